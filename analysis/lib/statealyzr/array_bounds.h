// Which bytes of an object a pointer into an array may point to.
#pragma once

#include "pointsto/points_to.h"
#include <optional>

namespace catena {

/// A range of bytes of an object.
struct Extent {
    uint64_t begin, end;
    bool contains(uint64_t offset) const { return begin <= offset && offset < end; }
    bool overlaps(const Extent &other) const { return begin < other.end && other.begin < end; }
};

/// Return the range in which a pointer into `object` stays by the C standard, because it was made by indexing an array
/// of known size; nothing where that is not known. Points-to sets have no such bounds.
std::optional<Extent> boundsOf(const llvm::Value *pointer, ObjectId object, const PointsTo &pointsTo);

} // namespace catena

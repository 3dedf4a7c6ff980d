// Where pointers lead that step over an object: by a distance, by any multiple of a stride, or anywhere.
//
// A step into the middle of a number has no location of its own: the number's stands for all its bytes. What is
// accessed there may lie in the next member too, and further steps from there end elsewhere than steps from the
// number's beginning do. So such a pointer may lead anywhere in its object.
#include "pointsto/solver.h"

#include <numeric>
#include <utility>

using namespace llvm;

namespace catena {

/// Return whether a location may be an element of an array, or part of one, that stands for all elements.
bool Solver::isElement(ObjectId object, Location location) const {
    return memory[object].type ? memory.inArray(location) : arrays.contains(object);
}

void Solver::stepFrom(Location location, Step step) {
    const Object &object = memory.objectOf(location);
    ObjectId id = memory.objectIdOf(location);
    uint64_t offset = memory.offsetOf(location);
    auto [distance, stride, clear, set] = step.distance;
    if (object.kind == Object::Function) return;
    if (offset == Memory::restOffset || object.isFormless() || (stride && memory.inByteArray(location))) {
        address(step.to, location);
        return;
    }
    auto sum = static_cast<int64_t>(offset) + distance;
    sum = (sum & ~int64_t{clear}) | set;
    // The location may stand for a place behind the number's first byte, and this lead back to the number.
    if (distance < 0 && !stride && memory.inScalar(id, offset - static_cast<uint64_t>(distance)))
        address(step.to, location);
    if (sum < 0 && !stride) {
        // Out of an object no address leads that may be used, but `location` may stand for a later element.
        if (!isElement(id, location)) {
            waiting[id].push_back({location, step});
            return;
        }
        stride = 1;
    }
    // A step on from any element of an array leads to a part of any element.
    auto array = object.type || stride ? arrays.end() : arrays.find(id);
    bool onwards = array != arrays.end() && offset;
    if (onwards && array->second) stride = array->second;
    // Among bytes, to a part that is known, or anywhere.
    if (onwards && !array->second && !object.fields.contains(static_cast<uint64_t>(sum))) stride = 1;
    if (!stride) {
        if (object.size && static_cast<uint64_t>(sum) > object.size) return;
        // A tag in the low bits is taken off again before the pointer is used.
        if (set)
            address(step.to, memory.at(id, static_cast<uint64_t>(sum)));
        else
            addressAt(step.to, id, static_cast<uint64_t>(sum));
        return;
    }
    auto period = static_cast<int64_t>(stride);
    auto remainder = static_cast<uint64_t>((sum % period + period) % period);
    auto first = sum < 0 || onwards ? remainder : static_cast<uint64_t>(sum);
    if (!object.type && !onwards) {
        if (stride > 1) memory.addStride(id, stride, first);
        // Elements of less than four bytes are bytes: other things may lie in them.
        auto [at, isNew] = arrays.try_emplace(id, 0);
        if (stride >= 4) at->second = std::gcd(at->second, stride);
        if (isNew)
            for (const auto &[from, waited] : std::exchange(waiting[id], {})) stepFrom(from, waited);
    }
    if (stride > 1 && (!object.size || first <= object.size)) addressAt(step.to, id, first);
    walk(id, {step.to, remainder, stride});
}

/// Point to the location at an offset of an object; to all of the object if that is the middle of a number.
void Solver::addressAt(NodeId to, ObjectId object, uint64_t offset) {
    bool middle = memory.inScalar(object, offset);
    address(to, memory.at(object, offset));
    if (middle) walk(object, {to, 0, 1});
}

/// Meet all parts of an object, those that appear later too.
void Solver::walk(ObjectId object, Walker walker) {
    if (!known.insert({uint64_t{object} << 32 | walker.to, walker.stride << 32 | walker.remainder}).second) return;
    walkers[object].push_back(walker);
    std::vector<uint64_t> offsets;
    for (const auto &[at, there] : memory[object].fields) offsets.push_back(at);
    for (uint64_t at : offsets) meet(object, walker, at);
}

/// A walker meets a part of its object: it steps on the beginning of the element that the part lies in.
void Solver::meet(ObjectId object, Walker walker, uint64_t at) {
    if (at == Memory::restOffset)
        address(walker.to, memory.at(object, at));
    else if (at >= walker.remainder)
        addressAt(walker.to, object, at - (at - walker.remainder) % walker.stride);
}

} // namespace catena

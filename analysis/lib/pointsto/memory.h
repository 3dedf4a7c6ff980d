// The memory of a program as the analyses see it: objects, and the locations within them.
#pragma once

#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <vector>

namespace catena {

using ObjectId = uint32_t;
using Location = uint32_t;

/// A variable or a block of memory; all blocks that one call allocates are one object.
struct Object {
    enum Kind : uint8_t {
        Global,   // a global or static variable
        Function, // a function, for function pointers
        Stack,    // a local variable or parameter
        Heap,     // what a call of an allocator returns
        Library,  // what belongs to a library, or what it hands out
        Variadic, // the variable arguments of a function
    };
    Kind kind;
    /// What makes it: the variable, the function, the call.
    const llvm::Value *site;
    /// Tells objects of one site apart.
    int number;
    /// Its type, or null where it is not known (the heap).
    llvm::Type *type;
    /// Bytes, or 0 if not known.
    uint64_t size;
    /// Its locations by byte offset. Without fields there is only the one at 0.
    std::map<uint64_t, Location> fields = {};
    /// Where its type is not known: the strides by which it is walked over, each with the offset that the first element
    /// has. What is accessed in an element may be accessed in any, whether they have locations or not.
    std::set<std::pair<uint64_t, uint64_t>> strides = {};
    /// Whether it lies in memory that cannot be written.
    bool isReadOnly() const;
    /// Whether it is a virtual table of the program.
    bool isVirtualTable() const;
    /// Whether its layout is not the program's to know: all of it is one location.
    bool isFormless() const { return kind == Function || kind == Library || kind == Variadic; }
};

/// All objects and locations of a program; locations come into being as the points-to analysis meets them.
///
/// Without fields an object is one location. With fields it has one for every offset in use; elements of an array share
/// one where the type is known, and offsets share one above `mostFields`.
class Memory {
public:
    static constexpr unsigned mostFields = 256, mostOfUnknownType = 64;
    /// The offset of the location that all offsets above the most share.
    static constexpr uint64_t restOffset = UINT64_MAX;

    Memory(const llvm::DataLayout &layout, bool fields) : layout(layout), fields(fields) {}

    bool hasFields() const { return fields; }
    /// Return the object of a site, made at need.
    ObjectId object(Object::Kind kind, const llvm::Value *site, int number = 0, llvm::Type *type = nullptr,
                    uint64_t size = 0);
    /// Return the object of a site, or null.
    const Object *find(const llvm::Value *site, int number = 0) const;
    /// Return what libraries keep from call to call, by the number that the library list gives it; made at need.
    Location ofLibrary(int number) { return at(object(Object::Library, nullptr, number), 0); }
    /// Return the location at a byte offset of an object, made at need.
    Location at(ObjectId object, uint64_t offset);
    /// Note that an object of unknown type is walked over by a stride.
    void addStride(ObjectId object, uint64_t stride, uint64_t first) {
        objects[object].strides.insert({stride, first});
    }
    const Object &operator[](ObjectId object) const { return objects[object]; }
    const Object &objectOf(Location location) const { return objects[owners[location].first]; }
    ObjectId objectIdOf(Location location) const { return owners[location].first; }
    uint64_t offsetOf(Location location) const { return owners[location].second; }
    uint32_t objectCount() const { return static_cast<uint32_t>(objects.size()); }
    uint32_t locationCount() const { return static_cast<uint32_t>(owners.size()); }
    /// Return whether a location lies in an array of bytes within an object of known type: a pointer that steps by a
    /// variable number of bytes stays in that array, by the C standard.
    bool inByteArray(Location location) const;
    /// Return whether an offset of an object lies within a number or pointer, behind its first byte. Its location is
    /// that of the whole number.
    bool inScalar(ObjectId object, uint64_t offset) const;
    /// Return whether a location lies in any array within an object of known type: it stands for all elements.
    bool inArray(Location location) const;
    const llvm::DataLayout &dataLayout() const { return layout; }

    /// Called with every new location.
    std::function<void(Location)> onLocation;

private:
    uint64_t canonical(const Object &object, uint64_t offset) const;

    const llvm::DataLayout &layout;
    bool fields;
    std::vector<Object> objects;
    std::vector<std::pair<ObjectId, uint64_t>> owners;
    llvm::DenseMap<std::pair<const llvm::Value *, int>, ObjectId> bySite;
    /// What `at` answered before.
    llvm::DenseMap<std::pair<ObjectId, uint64_t>, Location> answers;
};

} // namespace catena

// Objects and locations. One byte offset always means one location, whatever the type by which it is reached: that
// is what makes casts, unions and container_of sound.
#include "pointsto/memory.h"

#include "pointsto/virtual_tables.h"

using namespace llvm;

namespace catena {

bool Object::isReadOnly() const {
    const auto *global = kind == Global ? dyn_cast<GlobalVariable>(site) : nullptr;
    return global && global->isConstant();
}

bool Object::isVirtualTable() const {
    const auto *global = kind == Global ? dyn_cast<GlobalVariable>(site) : nullptr;
    return global && catena::isVirtualTable(*global);
}

ObjectId Memory::object(Object::Kind kind, const Value *site, int number, Type *type, uint64_t size) {
    auto [at, isNew] = bySite.try_emplace({site, number}, objects.size());
    if (isNew) {
        if (type && type->isSized() && !size) size = layout.getTypeAllocSize(type).getKnownMinValue();
        objects.push_back({kind, site, number, type, size});
    }
    return at->second;
}

const Object *Memory::find(const Value *site, int number) const {
    auto found = bySite.find({site, number});
    return found == bySite.end() ? nullptr : &objects[found->second];
}

Location Memory::at(ObjectId id, uint64_t offset) {
    if (!fields) offset = 0;
    if (auto answer = answers.find({id, offset}); answer != answers.end()) return answer->second;
    Object &object = objects[id];
    uint64_t asked = offset;
    offset = fields ? canonical(object, offset) : 0;
    if (!object.fields.contains(offset) && object.fields.size() >= (object.type ? mostFields : mostOfUnknownType))
        offset = restOffset;
    auto [at, isNew] = object.fields.try_emplace(offset, static_cast<Location>(owners.size()));
    Location location = at->second;
    answers[{id, asked}] = location;
    if (!isNew) return location;
    owners.push_back({id, offset});
    if (onLocation) onLocation(location);
    return location;
}

namespace {

/// Find the innermost element at an offset: the offset with all array indices taken as 0, the innermost array, and
/// whether there is an array around at all; and whether it is behind the first byte of a number or pointer.
uint64_t descend(const DataLayout &layout, Type *type, uint64_t offset, ArrayType **innermost, bool *within = nullptr,
                 bool *behind = nullptr) {
    uint64_t base = 0;
    while (type && type->isSized()) {
        if (auto *array = dyn_cast<ArrayType>(type)) {
            uint64_t element = layout.getTypeAllocSize(array->getElementType()).getKnownMinValue();
            if (!element) break;
            if (innermost) *innermost = array;
            if (within) *within = true;
            offset %= element;
            type = array->getElementType();
        } else if (auto *structure = dyn_cast<StructType>(type)) {
            const StructLayout *inside = layout.getStructLayout(structure);
            if (offset >= inside->getSizeInBytes() || !structure->getNumElements()) break;
            unsigned index = inside->getElementContainingOffset(offset);
            uint64_t begin = inside->getElementOffset(index).getKnownMinValue();
            base += begin;
            offset -= begin;
            type = structure->getElementType(index);
            if (innermost) *innermost = nullptr;
        } else {
            break;
        }
    }
    // Parts of a number or pointer are the whole of it.
    bool scalar = type && type->isSized() && offset < layout.getTypeAllocSize(type).getKnownMinValue() &&
                  (type->isIntOrPtrTy() || type->isFloatingPointTy());
    if (behind) *behind = scalar && offset;
    return scalar ? base : base + offset;
}

} // namespace

uint64_t Memory::canonical(const Object &object, uint64_t offset) const {
    // Library objects and variable arguments have no known layout: they are one location.
    if (object.isFormless()) return 0;
    if (object.type && offset < object.size) return descend(layout, object.type, offset, nullptr);
    return offset;
}

bool Memory::inScalar(ObjectId id, uint64_t offset) const {
    const Object &object = objects[id];
    if (!fields || object.isFormless() || !object.type || offset >= object.size) return false;
    bool behind = false;
    descend(layout, object.type, offset, nullptr, nullptr, &behind);
    return behind;
}

bool Memory::inByteArray(Location location) const {
    const Object &object = objectOf(location);
    if (object.isFormless()) return true;
    uint64_t offset = offsetOf(location);
    if (!object.type || offset >= object.size) return false;
    ArrayType *array = nullptr;
    descend(layout, object.type, offset, &array);
    return array && array->getElementType()->isIntegerTy(8);
}

bool Memory::inArray(Location location) const {
    const Object &object = objectOf(location);
    uint64_t offset = offsetOf(location);
    if (!object.type || !object.size || offset > object.size) return false;
    bool within = false;
    descend(layout, object.type, std::min(offset, object.size - 1), nullptr, &within);
    return within;
}

} // namespace catena

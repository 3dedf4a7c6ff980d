// Objects and locations. One byte offset always means one location, whatever the type by which it is reached: that
// is what makes casts, unions and container_of sound.
#include "pointsto/memory.h"

using namespace llvm;

namespace catena {

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
    Object &object = objects[id];
    offset = fields ? canonical(object, offset) : 0;
    auto found = object.fields.find(offset);
    if (found != object.fields.end()) return found->second;
    if (object.fields.size() >= mostFields) {
        offset = restOffset;
        found = object.fields.find(offset);
        if (found != object.fields.end()) return found->second;
    }
    auto location = static_cast<Location>(owners.size());
    owners.push_back({id, offset});
    object.fields[offset] = location;
    if (onLocation) onLocation(location);
    return location;
}

namespace {

/// Find the innermost element at an offset: the offset with all array indices taken as 0, and the innermost array.
uint64_t descend(const DataLayout &layout, Type *type, uint64_t offset, ArrayType **innermost) {
    uint64_t base = 0;
    while (type && type->isSized()) {
        if (auto *array = dyn_cast<ArrayType>(type)) {
            uint64_t element = layout.getTypeAllocSize(array->getElementType()).getKnownMinValue();
            if (!element) break;
            if (innermost) *innermost = array;
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
    return base + offset;
}

} // namespace

uint64_t Memory::canonical(const Object &object, uint64_t offset) const {
    // Library objects and variable arguments have no known layout: they are one location.
    if (object.kind == Object::Library || object.kind == Object::Variadic || object.kind == Object::Function) return 0;
    if (object.type && offset < object.size) return descend(layout, object.type, offset, nullptr);
    return offset;
}

bool Memory::inByteArray(Location location) const {
    const Object &object = objectOf(location);
    if (object.kind == Object::Library || object.kind == Object::Variadic) return true;
    uint64_t offset = offsetOf(location);
    if (!object.type || offset >= object.size) return false;
    ArrayType *array = nullptr;
    descend(layout, object.type, offset, &array);
    return array && array->getElementType()->isIntegerTy(8);
}

} // namespace catena

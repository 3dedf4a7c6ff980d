// Flattening types: members of structs in structs are members of the outer one, arrays of structs refer to the
// element's descriptor. What a pointer points to is not said: objects are known by their addresses.
#include "export/type_layouts.h"

#include "llvm/BinaryFormat/Dwarf.h"

using namespace llvm;

namespace catena {

namespace {

// The kinds of runtime/layout.h.
enum SlotKind : unsigned { PointerSlot, LibrarySlot, UnsureSlot, StructsSlot };

uint64_t bytesOf(const DIType *type) { return type ? (type->getSizeInBits() + 7) / 8 : 0; }

/// Return how many elements an array has; 0 if it is open.
uint64_t elementsOf(const DICompositeType *array) {
    uint64_t all = 1;
    for (const DINode *range : array->getElements()) {
        const auto *sub = dyn_cast<DISubrange>(range);
        auto *count = sub ? dyn_cast_if_present<ConstantInt *>(sub->getCount()) : nullptr;
        all *= count && !count->isMinusOne() ? count->getZExtValue() : 0;
    }
    return all;
}

/// Return the size of a type below typedefs and qualifiers, which have none of their own in debug information.
uint64_t sizeOf(const DIType *type) { return bytesOf(strip(type)); }

bool isPointer(const DIType *type) {
    unsigned tag = type->getTag();
    return tag == dwarf::DW_TAG_pointer_type || tag == dwarf::DW_TAG_reference_type ||
           tag == dwarf::DW_TAG_rvalue_reference_type;
}

/// Return whether a type is called uintptr_t or intptr_t, under any number of other names.
bool isPointerInteger(const DIType *type) {
    for (const auto *derived = dyn_cast_or_null<DIDerivedType>(type); derived;
         derived = dyn_cast_or_null<DIDerivedType>(derived->getBaseType()))
        if (derived->getName() == "uintptr_t" || derived->getName() == "intptr_t") return true;
    return false;
}

} // namespace

Constant *Texts::of(StringRef bytes) {
    Constant *&text = made[bytes];
    if (text) return text;
    Constant *value = ConstantDataArray::getString(program.getContext(), bytes);
    auto *global =
        new GlobalVariable(program, value->getType(), true, GlobalValue::PrivateLinkage, value, "catena_text");
    global->setUnnamedAddr(GlobalValue::UnnamedAddr::Global);
    return text = global;
}

TypeLayouts::TypeLayouts(Module &program, const StructNames &names, Texts &texts)
    : program(program), names(names), texts(texts) {
    LLVMContext &context = program.getContext();
    Type *word = Type::getInt64Ty(context), *half = Type::getInt32Ty(context), *pointer = PointerType::get(context, 0);
    slotType = StructType::get(context, {word, half, half, pointer, pointer});
    typeType = StructType::get(context, {pointer, word, pointer, half, half});
}

const DICompositeType *TypeLayouts::whole(const DIType *type) const {
    const auto *composite = dyn_cast_or_null<DICompositeType>(strip(type));
    if (composite && composite->isForwardDecl())
        // Another file of the program may say what it is.
        if (const DICompositeType *found = names.find(composite->getName())) return found;
    return composite;
}

bool TypeLayouts::isLibrarys(const DIType *pointee) const {
    const DICompositeType *composite = whole(pointee);
    if (!composite || composite->getTag() == dwarf::DW_TAG_array_type) return false;
    // glibc shows what a FILE is made of, for its macros.
    return composite->isForwardDecl() || composite->getName() == "_IO_FILE";
}

void TypeLayouts::addArray(std::vector<Slot> &slots, const DICompositeType *array, uint64_t offset,
                           const std::string &member) {
    uint64_t count = elementsOf(array);
    const DIType *element = strip(array->getBaseType());
    if (!count || !element) return;
    if (isPointer(element)) {
        bool library = isLibrarys(cast<DIDerivedType>(element)->getBaseType());
        slots.push_back({offset, library ? LibrarySlot : PointerSlot, static_cast<unsigned>(count), nullptr, member});
    } else if (isPointerInteger(array->getBaseType())) {
        slots.push_back({offset, UnsureSlot, static_cast<unsigned>(count * sizeOf(element)), nullptr, member});
    } else if (Constant *layout = of(element)) {
        slots.push_back({offset, StructsSlot, static_cast<unsigned>(count), layout, member});
    }
}

void TypeLayouts::addMembers(std::vector<Slot> &slots, const DICompositeType *type, uint64_t offset,
                             const std::string &member) {
    for (const DINode *node : type->getElements()) {
        const auto *inner = dyn_cast<DIDerivedType>(node);
        if (!inner || inner->isStaticMember() || inner->isBitField()) continue;
        if (inner->getTag() != dwarf::DW_TAG_member && inner->getTag() != dwarf::DW_TAG_inheritance) continue;
        std::string name = inner->getName().empty() ? member : member + "." + inner->getName().str();
        add(slots, inner->getBaseType(), offset + inner->getOffsetInBits() / 8, name);
    }
}

void TypeLayouts::add(std::vector<Slot> &slots, const DIType *type, uint64_t offset, const std::string &member) {
    const DIType *bare = strip(type);
    if (!bare) return;
    if (isPointer(bare)) {
        bool library = isLibrarys(cast<DIDerivedType>(bare)->getBaseType());
        slots.push_back({offset, library ? LibrarySlot : PointerSlot, 1, nullptr, member});
    } else if (isPointerInteger(type)) {
        slots.push_back({offset, UnsureSlot, static_cast<unsigned>(sizeOf(bare)), nullptr, member});
    } else if (const DICompositeType *composite = whole(bare)) {
        unsigned tag = composite->getTag();
        if (tag == dwarf::DW_TAG_array_type) {
            addArray(slots, composite, offset, member);
        } else if (tag == dwarf::DW_TAG_union_type) {
            std::vector<Slot> any;
            addMembers(any, composite, 0, member);
            if (!any.empty())
                slots.push_back({offset, UnsureSlot, static_cast<unsigned>(sizeOf(composite)), nullptr, member});
        } else if (tag == dwarf::DW_TAG_structure_type || tag == dwarf::DW_TAG_class_type) {
            addMembers(slots, composite, offset, member);
        }
    }
}

Constant *TypeLayouts::of(const DIType *type) {
    const DIType *bare = strip(type);
    if (!bare) return nullptr;
    if (auto found = made.find(type); found != made.end()) return found->second;
    const DICompositeType *composite = whole(bare);
    std::string name = typeName(bare);
    std::vector<Slot> slots;
    add(slots, type, 0, name);
    if (slots.empty()) return made[type] = nullptr;
    LLVMContext &context = program.getContext();
    auto *word = Type::getInt64Ty(context);
    auto *half = Type::getInt32Ty(context);
    auto *pointer = PointerType::get(context, 0);
    std::vector<Constant *> values;
    for (const Slot &slot : slots)
        values.push_back(ConstantStruct::get(
            slotType,
            {ConstantInt::get(word, slot.offset), ConstantInt::get(half, slot.kind), ConstantInt::get(half, slot.count),
             slot.element ? slot.element : ConstantPointerNull::get(pointer), texts.of(slot.member)}));
    auto define = [&](Constant *value, const char *what) {
        return new GlobalVariable(program, value->getType(), true, GlobalValue::PrivateLinkage, value, what);
    };
    Constant *list = define(ConstantArray::get(ArrayType::get(slotType, values.size()), values), "catena_slots");
    bool open = composite && isOpen(composite);
    Constant *value =
        ConstantStruct::get(typeType, {texts.of(name), ConstantInt::get(word, sizeOf(composite ? composite : bare)),
                                       list, ConstantInt::get(half, values.size()), ConstantInt::get(half, open)});
    return made[type] = define(value, "catena_type");
}

bool isOpen(const DICompositeType *type) {
    const DIDerivedType *last = nullptr;
    for (const DINode *node : type->getElements())
        if (const auto *member = dyn_cast<DIDerivedType>(node);
            member && member->getTag() == dwarf::DW_TAG_member && !member->isStaticMember())
            last = member;
    const auto *array = last ? dyn_cast_or_null<DICompositeType>(strip(last->getBaseType())) : nullptr;
    // `[0]` and `[1]` are how arrays of any length were written before C had them.
    return array && array->getTag() == dwarf::DW_TAG_array_type && elementsOf(array) <= 1;
}

} // namespace catena

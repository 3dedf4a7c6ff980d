// The types are read off the steps into members that begin at an allocation's result, or at the variable it is stored
// in.
#include "pointsto/block_types.h"

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Operator.h"

using namespace llvm;

namespace catena {

namespace {

/// Return whether a size is that of whole structs, and whether it may be of more than one.
bool isSizeOf(const Value *size, uint64_t structure, bool &several) {
    if (const auto *constant = dyn_cast<ConstantInt>(size)) {
        uint64_t bytes = constant->getLimitedValue();
        if (bytes < structure || bytes % structure) return false;
        several |= bytes != structure;
        return true;
    }
    if (const auto *cast = dyn_cast<CastInst>(size)) return isSizeOf(cast->getOperand(0), structure, several);
    const auto *product = dyn_cast<BinaryOperator>(size);
    if (!product || product->getOpcode() != Instruction::Mul) return false;
    several = true;
    bool ignored = false;
    return any_of(product->operands(), [&](const Use &factor) {
        return (isa<ConstantInt>(factor) || isa<BinaryOperator>(factor)) && isSizeOf(factor, structure, ignored);
    });
}

} // namespace

Type *typeOfBlock(const CallBase &allocation, const DataLayout &layout) {
    StructType *found = nullptr;
    SmallPtrSet<const Value *, 8> seen;
    SmallVector<const Value *, 8> work{&allocation};
    while (!work.empty()) {
        const Value *pointer = work.pop_back_val();
        if (!seen.insert(pointer).second) continue;
        for (const User *user : pointer->users()) {
            if (isa<PHINode>(user) || isa<SelectInst>(user)) {
                work.push_back(user);
                continue;
            }
            // The result goes through a variable: a static one, or a local of a loop procedure.
            if (const auto *store = dyn_cast<StoreInst>(user); store && store->getValueOperand() == pointer)
                if (const Value *cell = store->getPointerOperand(); isa<AllocaInst>(cell) || isa<GlobalVariable>(cell))
                    for (const User *other : cell->users())
                        if (isa<LoadInst>(other)) work.push_back(other);
            const auto *step = dyn_cast<GEPOperator>(user);
            if (!step || step->getPointerOperand() != pointer) continue;
            auto *structure = dyn_cast<StructType>(step->getSourceElementType());
            if (!structure) continue;
            if (found && found != structure) return nullptr;
            found = structure;
            // A step from element to element.
            if (step->getNumIndices() == 1) work.push_back(user);
        }
    }
    if (!found || !found->isSized()) return nullptr;
    uint64_t size = layout.getTypeAllocSize(found).getKnownMinValue();
    bool several = false;
    bool fits = size && any_of(allocation.args(), [&](const Use &given) {
                    return given->getType()->isIntegerTy() && isSizeOf(given.get(), size, several);
                });
    if (!fits) return nullptr;
    // calloc says how many beside how large.
    unsigned integers = count_if(allocation.args(), [](const Use &given) { return given->getType()->isIntegerTy(); });
    constexpr uint64_t mostElements = uint64_t{1} << 24;
    return several || integers > 1 ? static_cast<Type *>(ArrayType::get(found, mostElements)) : found;
}

} // namespace catena

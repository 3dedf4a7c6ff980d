// Finds the program's own allocators (xmalloc): functions that do nothing with a new object but fill it and return it.
// As no other pointer to it remains, every call of such a function can be taken for an allocation of its own, which is
// what tells tables apart in programs that never call malloc directly.
#include "pointsto/constraint_builder.h"

#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace catena {

namespace {

bool returnsFresh(const std::vector<Effect> &effects) {
    return any_of(effects, [](const Effect &effect) { return effect.kind == Effect::ReturnsFresh; });
}

/// Return whether a new object, or a pointer into it, goes anywhere but to the function's end.
bool isKept(const Value *object, const LibraryEffects &library, SmallPtrSetImpl<const Value *> &seen, bool &fills) {
    if (!seen.insert(object).second) return false;
    for (const Use &use : object->uses()) {
        const User *user = use.getUser();
        if (isa<ReturnInst>(user) || isa<ICmpInst>(user) || isa<LoadInst>(user)) continue;
        if (isa<PHINode>(user) || isa<SelectInst>(user) || isa<GetElementPtrInst>(user)) {
            if (isKept(user, library, seen, fills)) return true;
            continue;
        }
        if (const auto *store = dyn_cast<StoreInst>(user);
            store && store->getPointerOperand() == object && store->getValueOperand() != object) {
            const Value *stored = store->getValueOperand();
            fills |= mayHoldPointers(stored->getType()) && !isa<ConstantData>(stored);
            continue;
        }
        if (const auto *call = dyn_cast<CallBase>(user)) {
            fills |= isa<MemTransferInst>(call);
            if (isa<MemIntrinsic>(call) || isa<DbgInfoIntrinsic>(call)) continue;
            const Function *callee = namedCallee(*call);
            const auto *effects = callee && callee->isDeclaration() ? library.find(callee->getName()) : nullptr;
            if (effects && none_of(*effects, [](const Effect &effect) {
                    return effect.kind == Effect::Stores || effect.kind == Effect::Copies ||
                           effect.kind == Effect::Calls || effect.kind == Effect::ReturnsArgument ||
                           effect.kind == Effect::ReturnsInto || effect.kind == Effect::ReturnsCast ||
                           effect.kind == Effect::ReturnsReached || effect.kind == Effect::Links ||
                           effect.kind == Effect::StartsThread || effect.kind == Effect::Keeps ||
                           effect.kind == Effect::KeepsCopy || effect.kind == Effect::GivesCopy ||
                           effect.kind == Effect::StoresMemory || effect.kind == Effect::CallsThrough;
                }))
                continue;
        }
        return true;
    }
    return false;
}

} // namespace

bool ConstraintBuilder::isAllocator(const Function &function, Allocator &allocator) const {
    // From what is returned back to the allocations.
    // Each with its distance from what is returned.
    SmallVector<std::pair<const Value *, int64_t>, 8> work;
    SmallDenseMap<const Value *, int64_t, 16> seen;
    SmallVector<const Value *, 4> allocations;
    std::optional<int64_t> atAllocations;
    for (const BasicBlock &block : function)
        if (const auto *end = dyn_cast<ReturnInst>(block.getTerminator())) work.push_back({end->getReturnValue(), 0});
    while (!work.empty()) {
        auto [value, behind] = work.pop_back_val();
        if (isa<ConstantPointerNull>(value)) continue;
        if (auto [known, isNew] = seen.try_emplace(value, behind); !isNew) {
            allocator.inexact |= known->second != behind;
            continue;
        }
        if (const auto *joint = dyn_cast<PHINode>(value)) {
            for (const Value *incoming : joint->incoming_values()) work.push_back({incoming, behind});
        } else if (const auto *select = dyn_cast<SelectInst>(value)) {
            work.push_back({select->getTrueValue(), behind});
            work.push_back({select->getFalseValue(), behind});
        } else if (const auto *step = dyn_cast<GetElementPtrInst>(value)) {
            // Allocators that keep a header of their own before the object.
            APInt distance(64, 0);
            if (!step->accumulateConstantOffset(memory.dataLayout(), distance))
                allocator.inexact = true;
            else if (!distance.isNegative())
                allocator.header = std::max(allocator.header, distance.getZExtValue());
            work.push_back({step->getPointerOperand(), behind + distance.getSExtValue()});
        } else if (const auto *parameter = dyn_cast<Argument>(value)) {
            allocator.inexact |= behind != 0;
            allocator.returned.push_back(parameter->getArgNo());
        } else if (const auto *call = dyn_cast<CallBase>(value)) {
            allocator.inexact |= atAllocations.value_or(behind) != behind;
            atAllocations = behind;
            const Function *callee = namedCallee(*call);
            if (!callee) return false;
            allocations.push_back(call);
            auto known = allocators.find(callee);
            const auto *effects = callee->isDeclaration() ? library.find(callee->getName()) : nullptr;
            if (known != allocators.end()) {
                allocator.fills |= known->second.fills;
                allocator.inexact |= known->second.inexact || known->second.header;
                for (unsigned i : known->second.returned)
                    if (i < call->arg_size()) work.push_back({call->getArgOperand(i), behind});
            } else if (effects && returnsFresh(*effects)) {
                for (const Effect &effect : *effects)
                    if (effect.kind == Effect::ReturnsArgument && effect.a < call->arg_size())
                        work.push_back({call->getArgOperand(effect.a), behind});
            } else {
                return false;
            }
        } else {
            return false;
        }
    }
    allocator.inexact |= atAllocations && *atAllocations != static_cast<int64_t>(allocator.header);
    SmallPtrSet<const Value *, 16> followed;
    return !allocations.empty() && none_of(allocations, [&](const Value *object) {
        return isKept(object, library, followed, allocator.fills);
    });
}

const Allocator *ConstraintBuilder::allocator(const Function &function) const {
    auto found = allocators.find(&function);
    return found == allocators.end() ? nullptr : &found->second;
}

void ConstraintBuilder::findAllocators() {
    for (bool found = true; found;) {
        found = false;
        for (const Function &function : program) {
            if (function.isDeclaration() || !function.getReturnType()->isPointerTy() || allocators.contains(&function))
                continue;
            Allocator allocator;
            if (!isAllocator(function, allocator)) continue;
            allocators[&function] = allocator;
            found = true;
        }
    }
}

} // namespace catena

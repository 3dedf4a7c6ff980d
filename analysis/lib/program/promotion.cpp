// mem2reg over a whole program, without the loop procedures; unreachable blocks go first.
#include "program/promotion.h"

#include "llvm/Analysis/ConstantFolding.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Transforms/Utils/Local.h"
#include "llvm/Transforms/Utils/PromoteMemToReg.h"

using namespace llvm;

namespace catena {

void promoteLocals(Module &program, const StringSet<> &kept) {
    for (Function &function : program) {
        if (function.isDeclaration()) continue;
        removeUnreachableBlocks(function);
        if (kept.contains(function.getName())) continue;
        std::vector<AllocaInst *> promotable;
        for (Instruction &instruction : function.getEntryBlock())
            if (auto *cell = dyn_cast<AllocaInst>(&instruction))
                if (isAllocaPromotable(cell)) promotable.push_back(cell);
        if (promotable.empty()) continue;
        DominatorTree tree(function);
        PromoteMemToReg(promotable, tree);
        // What has become constant (the tag of an inlined function): offsets are then known.
        for (Instruction &instruction : make_early_inc_range(instructions(function)))
            if (!instruction.isTerminator() && !isa<CallBase>(instruction) && !isa<LoadInst>(instruction))
                if (Constant *value = ConstantFoldInstruction(&instruction, program.getDataLayout())) {
                    instruction.replaceAllUsesWith(value);
                    instruction.eraseFromParent();
                }
    }
}

} // namespace catena

// Line 6 of Algorithm 2 (Deng and Wu, NFReducer), "S' <- MERGECODE(CS)": the instructions of all slices stay in their
// order, all others go. A branch that is in no slice decides about nothing that stays; it is replaced by a jump to
// where its ways meet again.
#include "reduce/extraction.h"

#include "reduce/passes.h"
#include "llvm/Analysis/PostDominators.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/Transforms/Scalar/SROA.h"
#include "llvm/Transforms/Utils/Local.h"

using namespace llvm;

namespace catena {

namespace {

/// Let a block go on to where all of its ways meet.
void goStraight(Instruction &branch, BasicBlock &to) {
    BasicBlock *from = branch.getParent();
    // What merges there by ways that stay does not depend on this branch; only a direct way can bring it a value.
    std::vector<std::pair<PHINode *, Value *>> brought;
    for (PHINode &phi : to.phis()) {
        int index = phi.getBasicBlockIndex(from);
        brought.push_back({&phi, index < 0 ? PoisonValue::get(phi.getType()) : phi.getIncomingValue(index)});
    }
    for (BasicBlock *next : successors(from)) next->removePredecessor(from, true);
    for (auto [phi, value] : brought) phi->addIncoming(value, from);
    BranchInst::Create(&to, branch.getIterator());
    branch.eraseFromParent();
}

} // namespace

void prepareExtraction(Function &packet) {
    PassAnalyses analyses(*packet.getParent());
    SROAPass(SROAOptions::PreserveCFG).run(packet, analyses.functions);
    removeUnreachableBlocks(packet);
}

void extract(Function &packet, const PacketLogic &logic) {
    for (auto [question, answer] : logic.succeeded) question->replaceAllUsesWith(answer);
    removeUnreachableBlocks(packet);
    PostDominatorTree tree(packet);
    std::vector<std::pair<Instruction *, BasicBlock *>> straight;
    for (Instruction *instruction : logic.outside)
        if (instruction->isTerminator()) {
            straight.push_back({instruction, tree.getNode(instruction->getParent())->getIDom()->getBlock()});
        } else {
            if (!instruction->getType()->isVoidTy())
                instruction->replaceAllUsesWith(PoisonValue::get(instruction->getType()));
            instruction->eraseFromParent();
        }
    for (auto [branch, to] : straight) goStraight(*branch, *to);
    removeUnreachableBlocks(packet);
}

void silence(Module &program) {
    for (Function &function : program)
        for (Instruction &instruction : make_early_inc_range(instructions(function))) {
            if (!instruction.getMetadata(leftOutMark)) continue;
            if (!instruction.getType()->isVoidTy())
                instruction.replaceAllUsesWith(Constant::getNullValue(instruction.getType()));
            instruction.eraseFromParent();
        }
}

} // namespace catena

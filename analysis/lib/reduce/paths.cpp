// Lines 4-13 of Algorithm 3 (Deng and Wu, NFReducer):
//
//      4 paths = EXTRACTEXECUTIONPATH(S)
//      5 for each path p in paths do
//      ...
//     10     code <- DEAD_CODE_ELIMINATION(p')
//     11     CS = CS U code
//     13 S' <- MERGECODE(CS)
//
// A program of n decisions has up to 2^n paths. Only merges that matter are taken apart: those where a value depends on
// the path. If TCP and UDP store into one variable for a port, then what follows decoding is there for each; on UDP's
// copy no rule asks for the port, and what reads it is dead there. "The usage on one path misleads the usage judgment
// on another" no longer.
#include "reduce/paths.h"

#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/Local.h"

using namespace llvm;

namespace catena {

namespace {

/// Blocks from which a path goes on to a merge, in groups that bring the same values.
std::vector<std::vector<BasicBlock *>> groups(BasicBlock &merge) {
    std::vector<std::pair<std::vector<Value *>, std::vector<BasicBlock *>>> found;
    for (BasicBlock *from : predecessors(&merge)) {
        std::vector<Value *> values;
        for (PHINode &phi : merge.phis()) values.push_back(phi.getIncomingValueForBlock(from));
        auto same = find_if(found, [&](const auto &group) { return group.first == values; });
        if (same == found.end())
            found.push_back({values, {from}});
        else if (!is_contained(same->second, from))
            same->second.push_back(from);
    }
    std::vector<std::vector<BasicBlock *>> blocks;
    for (auto &[values, from] : found) blocks.push_back(std::move(from));
    return blocks;
}

std::vector<BasicBlock *> following(BasicBlock &from) {
    std::vector<BasicBlock *> blocks{&from};
    SmallPtrSet<BasicBlock *, 32> seen{&from};
    for (size_t i = 0; i < blocks.size(); ++i)
        for (BasicBlock *next : successors(blocks[i]))
            if (seen.insert(next).second) blocks.push_back(next);
    return blocks;
}

unsigned sizeOf(ArrayRef<BasicBlock *> blocks) {
    unsigned size = 0;
    for (const BasicBlock *block : blocks) size += block->size();
    return size;
}

bool decides(ArrayRef<BasicBlock *> blocks) {
    return any_of(blocks, [](const BasicBlock *block) { return block->getTerminator()->getNumSuccessors() > 1; });
}

/// Give some of the blocks before a merge a copy of all that follows.
///
/// Values need no repair: what is computed in the copied blocks is used only there, and what is used there from outside
/// is computed before the merge on every path.
void copyFor(ArrayRef<BasicBlock *> before, BasicBlock &merge, ArrayRef<BasicBlock *> blocks) {
    ValueToValueMapTy map;
    std::vector<BasicBlock *> copies;
    for (BasicBlock *block : blocks) {
        BasicBlock *copy = CloneBasicBlock(block, map, ".path", merge.getParent());
        map[block] = copy;
        copies.push_back(copy);
    }
    for (BasicBlock *copy : copies)
        for (Instruction &instruction : *copy) {
            RemapInstruction(&instruction, map, RF_NoModuleLevelChanges | RF_IgnoreMissingLocals);
            RemapDbgRecordRange(merge.getModule(), instruction.getDbgRecordRange(), map,
                                RF_NoModuleLevelChanges | RF_IgnoreMissingLocals);
        }
    auto *copiedMerge = cast<BasicBlock>(map[&merge]);
    for (BasicBlock *from : before) from->getTerminator()->replaceSuccessorWith(&merge, copiedMerge);
    // Each merge in the copy knows only the ways that lead to it now.
    auto keepOnly = [](BasicBlock &block) {
        SmallPtrSet<BasicBlock *, 8> now(pred_begin(&block), pred_end(&block));
        for (PHINode &phi : make_early_inc_range(block.phis()))
            for (unsigned i = phi.getNumIncomingValues(); i-- > 0;)
                if (!now.contains(phi.getIncomingBlock(i))) phi.removeIncomingValue(i, false);
    };
    for (BasicBlock *copy : copies) keepOnly(*copy);
    keepOnly(merge);
}

} // namespace

unsigned splitOne(Function &function, unsigned mostInstructions, unsigned passed) {
    DominatorTree tree(function);
    LoopInfo loops(tree);
    ReversePostOrderTraversal<Function *> order(&function);
    for (BasicBlock *merge : order) {
        if (loops.getLoopFor(merge) || merge->phis().empty()) continue;
        auto ways = groups(*merge);
        auto blocks = following(*merge);
        if (ways.size() < 2 || !decides(blocks)) continue;
        unsigned copied = (ways.size() - 1) * sizeOf(blocks);
        if (function.getInstructionCount() + copied > mostInstructions) continue;
        if (passed) {
            --passed;
            continue;
        }
        for (size_t i = 1; i < ways.size(); ++i) copyFor(ways[i], *merge, blocks);
        return copied;
    }
    return 0;
}

} // namespace catena

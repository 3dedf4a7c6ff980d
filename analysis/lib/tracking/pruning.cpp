// §4.4.2 of Khalid's dissertation on Figure 4.12b: "First, we construct a control flow graph (CFG) for each modified
// packet processing procedure. Next, we perform a depth-first traversal of each CFG, tracking the set of updated bits
// that have been set along the path; as we traverse each edge, we label it with the current set of updated bits.
// Lastly, for each updated-bit-setting statement in a procedure's CFG, we check whether the bit being set is included
// in the label for every incoming edge. If this is true, then we prune the statement."
//
// An edge that several paths lead to is labelled with what is set on all of them, so labels are taken down until they
// agree. Beyond the figure, a label is emptied where a packet ends: its bits are read and taken back there.
#include "tracking/pruning.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/IR/CFG.h"

using namespace llvm;

namespace catena {

BitsOf bitsSetBefore(const Function &procedure, const BitsOf &updates, unsigned count,
                     const std::function<Forgets(const Instruction &)> &forgets) {
    // What is set on every edge that leaves a block; not in the map: no path has come there yet.
    DenseMap<const BasicBlock *, BitVector> leaving;
    BitsOf found;
    auto walk = [&](const BasicBlock &block, BitVector set, bool note) {
        for (const Instruction &instruction : block) {
            Forgets here = forgets(instruction);
            if (here == Forgets::Before) set.reset();
            if (auto update = updates.find(&instruction); update != updates.end()) {
                std::vector<unsigned> already;
                for (unsigned bit : update->second) {
                    if (set.test(bit)) already.push_back(bit);
                    set.set(bit);
                }
                if (note && !already.empty()) found[&instruction] = std::move(already);
            }
            if (here == Forgets::After) set.reset();
        }
        return set;
    };
    auto entering = [&](const BasicBlock &block) {
        BitVector set(count, true);
        // Nothing is set when the procedure is called.
        bool none = &block == &procedure.getEntryBlock();
        for (const BasicBlock *before : predecessors(&block))
            if (auto label = leaving.find(before); label != leaving.end()) set &= label->second;
        if (none) set.reset();
        return set;
    };
    ReversePostOrderTraversal<const Function *> order(&procedure);
    for (bool changed = true; changed;) {
        changed = false;
        for (const BasicBlock *block : order) {
            BitVector set = walk(*block, entering(*block), false);
            auto [label, isNew] = leaving.try_emplace(block, set);
            if (!isNew && label->second == set) continue;
            label->second = std::move(set);
            changed = true;
        }
    }
    for (const BasicBlock *block : order) walk(*block, entering(*block), true);
    return found;
}

} // namespace catena

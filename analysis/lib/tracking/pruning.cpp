// §4.4.2 of Khalid's dissertation on Figure 4.12b: "First, we construct a control flow graph (CFG) for each modified
// packet processing procedure. Next, we perform a depth-first traversal of each CFG, tracking the set of updated bits
// that have been set along the path; as we traverse each edge, we label it with the current set of updated bits.
// Lastly, for each updated-bit-setting statement in a procedure's CFG, we check whether the bit being set is included
// in the label for every incoming edge. If this is true, then we prune the statement."
//
// An edge that several paths lead to is labelled with what is set on all of them, so labels are taken down until they
// agree. Beyond the figure, a label is emptied where a packet ends: its bits are read and taken back there. And labels
// go through calls: a procedure begins with what is set at all calls of it, and a call sets what its procedure has set
// wherever it returns.
#include "tracking/pruning.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;

namespace catena {

namespace {

class Labels {
public:
    explicit Labels(const TrackedProgram &tracked) : tracked(tracked) {
        bool whole = tracked.program.getFunction("main") != nullptr;
        for (const Function &function : tracked.program) {
            if (function.isDeclaration()) continue;
            // Who else may call it does so with nothing set; without a main, anybody.
            if (function.getName() == "main" || function.hasAddressTaken() || (!whole && !function.hasLocalLinkage()))
                enter(function, BitVector(tracked.count));
        }
        while (!work.empty()) label(*work.pop_back_val());
    }

    BitsOf find() {
        BitsOf found;
        for (const Function &function : tracked.program) {
            // Of what nobody was found to call nothing is known.
            if (entering.contains(&function)) walkAll(function, &found);
        }
        return found;
    }

private:
    const Function *procedureOf(const CallBase &call) const {
        const auto *callee = dyn_cast<Function>(call.getCalledOperand());
        return callee && !callee->isDeclaration() ? callee : nullptr;
    }

    void enter(const Function &function, const BitVector &label) {
        auto [at, isNew] = entering.try_emplace(&function, label);
        BitVector lower = at->second;
        lower &= label;
        if (!isNew && lower == at->second) return;
        at->second = std::move(lower);
        work.insert(&function);
    }

    /// Take down the label that a procedure's returns have in common.
    void returned(const Function &function, const BitVector &label) {
        auto [at, isNew] = returning.try_emplace(&function, label);
        BitVector lower = at->second;
        lower &= label;
        if (!isNew && lower == at->second) return;
        at->second = std::move(lower);
        for (const User *user : function.users())
            if (const auto *call = dyn_cast<CallBase>(user))
                if (entering.contains(call->getFunction())) work.insert(call->getFunction());
    }

    void pass(const CallBase &call, Forgets here, BitVector &set, bool enters) {
        const Function *procedure = procedureOf(call);
        if (!procedure || !tracked.processes(call)) return;
        // Where packets end on the way, the bits may be taken back before the procedure begins.
        if (enters) enter(*procedure, here == Forgets::No ? set : BitVector(tracked.count));
        // What is thrown leaves it in between.
        if (!isa<CallInst>(call)) return;
        if (auto found = returning.find(procedure); found != returning.end())
            set |= found->second;
        else
            // It has not been seen to return.
            set.set();
    }

    /// Follow the label through a block; note what is set already before its updates.
    BitVector walk(const BasicBlock &block, BitVector set, bool enters, BitsOf *found) {
        for (const Instruction &instruction : block) {
            Forgets here = tracked.forgets(instruction);
            if (here == Forgets::Before) set.reset();
            if (auto update = tracked.updates.find(&instruction); update != tracked.updates.end()) {
                std::vector<unsigned> already;
                for (unsigned bit : update->second) {
                    if (set.test(bit)) already.push_back(bit);
                    set.set(bit);
                }
                if (found && !already.empty()) (*found)[&instruction] = std::move(already);
            }
            if (const auto *call = dyn_cast<CallBase>(&instruction)) pass(*call, here, set, enters);
            if (here == Forgets::After) set.reset();
            if (enters && isa<ReturnInst>(instruction)) returned(*block.getParent(), set);
        }
        return set;
    }

    /// Label all edges of a procedure, then go along them once more with what is to be noted.
    void walkAll(const Function &function, BitsOf *found) {
        // What is set on every edge that leaves a block; not in the map: no path has come there yet.
        DenseMap<const BasicBlock *, BitVector> leaving;
        auto before = [&](const BasicBlock &block) {
            BitVector set =
                &block == &function.getEntryBlock() ? entering.find(&function)->second : BitVector(tracked.count, true);
            for (const BasicBlock *one : predecessors(&block))
                if (auto label = leaving.find(one); label != leaving.end()) set &= label->second;
            return set;
        };
        ReversePostOrderTraversal<const Function *> order(&function);
        for (bool changed = true; changed;) {
            changed = false;
            for (const BasicBlock *block : order) {
                BitVector set = walk(*block, before(*block), false, nullptr);
                auto [label, isNew] = leaving.try_emplace(block, set);
                if (!isNew && label->second == set) continue;
                label->second = std::move(set);
                changed = true;
            }
        }
        for (const BasicBlock *block : order) walk(*block, before(*block), !found, found);
    }

    void label(const Function &function) { walkAll(function, nullptr); }

    const TrackedProgram &tracked;
    /// What is set whenever a procedure begins, and whenever it returns; not in the map: it has not been seen to.
    DenseMap<const Function *, BitVector> entering, returning;
    SetVector<const Function *> work;
};

} // namespace

BitsOf bitsSetBefore(const TrackedProgram &tracked) { return Labels(tracked).find(); }

} // namespace catena

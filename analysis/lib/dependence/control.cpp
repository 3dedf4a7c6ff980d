// A block B depends on a branch in A if B post-dominates a successor of A, but not A itself: walking up the
// post-dominator tree from each successor to the parent of A finds all such B.
//
// Packet loops often never end, and then nothing post-dominates anything. So the head of a loop without end gets an
// edge to the procedure's end, as if its condition could fail. LLVM's own post-dominators choose any block of such a
// loop for this, even one within an `if`, whose dependence on the condition would be lost.
#include "dependence/control.h"

#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/CFG.h"

using namespace llvm;

namespace catena {

namespace {

/// Post-dominators by the algorithm of Cooper, Harvey and Kennedy (A Simple, Fast Dominance Algorithm, §3), over
/// numbers of blocks in reverse post-order; the number after the last is the procedure's end.
class PostDominators {
public:
    PostDominators(const Function &function, const SmallPtrSetImpl<const BasicBlock *> &left) {
        for (const BasicBlock *block : ReversePostOrderTraversal<const Function *>(&function)) {
            numbers[block] = static_cast<unsigned>(blocks.size());
            blocks.push_back(block);
        }
        end = static_cast<unsigned>(blocks.size());
        next.resize(end + 1);
        previous.resize(end + 1);
        endless.assign(end + 1, false);
        for (unsigned number = 0; number < end; ++number) {
            for (const BasicBlock *successor : successors(blocks[number])) edge(number, numbers[successor]);
            if (succ_empty(blocks[number]) || left.contains(blocks[number])) edge(number, end);
        }
        endLoops();
        solve();
    }

    std::vector<const BasicBlock *> blocks;
    std::vector<std::vector<unsigned>> next, previous;
    /// The immediate post-dominator of each block.
    std::vector<unsigned> parents;
    unsigned end;

    /// Return where the ways from a block's own successors meet again; the edge that ends a loop without end does not
    /// count, as no condition decides about it.
    unsigned meeting(unsigned branch) const {
        if (!endless[branch]) return parents[branch];
        unsigned all = next[branch].front();
        for (unsigned i = 0; i + 1 < next[branch].size(); ++i) all = meet(all, next[branch][i]);
        return all;
    }
    /// Return how many successors a block has by itself.
    size_t ownSuccessors(unsigned branch) const { return next[branch].size() - endless[branch]; }

private:
    void edge(unsigned from, unsigned to) {
        if (is_contained(next[from], to)) return;
        next[from].push_back(to);
        previous[to].push_back(from);
    }

    /// Give loops without end one: reverse post-order finds outer heads first.
    void endLoops() {
        std::vector<bool> ends(end + 1, false);
        std::vector<unsigned> work;
        auto spread = [&](unsigned from) {
            if (!ends[from]) work.push_back(from), ends[from] = true;
            while (!work.empty()) {
                unsigned number = work.back();
                work.pop_back();
                for (unsigned before : previous[number])
                    if (!ends[before]) ends[before] = true, work.push_back(before);
            }
        };
        spread(end);
        for (unsigned number = 0; number < end; ++number) {
            if (ends[number]) continue;
            bool head = any_of(previous[number], [&](unsigned before) { return before >= number; });
            if (!head) continue;
            edge(number, end);
            endless[number] = true;
            spread(number);
        }
    }

    unsigned meet(unsigned a, unsigned b) const {
        while (a != b) {
            while (rank[a] < rank[b]) a = parents[a];
            while (rank[b] < rank[a]) b = parents[b];
        }
        return a;
    }

    void solve() {
        constexpr unsigned unknown = UINT_MAX;
        // Post-order of the reversed graph, so that the end has the greatest number.
        std::vector<unsigned> order;
        rank.assign(end + 1, unknown);
        std::vector<std::pair<unsigned, size_t>> stack{{end, 0}};
        std::vector<bool> seen(end + 1, false);
        seen[end] = true;
        while (!stack.empty()) {
            auto &[number, at] = stack.back();
            if (at < previous[number].size()) {
                unsigned before = previous[number][at++];
                if (!seen[before]) seen[before] = true, stack.push_back({before, 0});
                continue;
            }
            rank[number] = static_cast<unsigned>(order.size());
            order.push_back(number);
            stack.pop_back();
        }
        parents.assign(end + 1, unknown);
        parents[end] = end;
        for (bool changed = true; changed;) {
            changed = false;
            for (unsigned number : reverse(order)) {
                if (number == end) continue;
                unsigned parent = unknown;
                for (unsigned after : next[number])
                    if (parents[after] != unknown) parent = parent == unknown ? after : meet(parent, after);
                if (parents[number] != parent) parents[number] = parent, changed = true;
            }
        }
    }

    DenseMap<const BasicBlock *, unsigned> numbers;
    std::vector<unsigned> rank;
    std::vector<bool> endless;
};

} // namespace

DenseMap<const BasicBlock *, std::vector<const BasicBlock *>>
controlDependence(const Function &function, const SmallPtrSetImpl<const BasicBlock *> &left) {
    DenseMap<const BasicBlock *, std::vector<const BasicBlock *>> controllers;
    PostDominators tree(function, left);
    for (unsigned branch = 0; branch < tree.end; ++branch) {
        if (tree.ownSuccessors(branch) < 2) continue;
        unsigned meeting = tree.meeting(branch);
        for (unsigned number : tree.next[branch])
            for (; number != meeting && number != tree.end; number = tree.parents[number]) {
                auto &there = controllers[tree.blocks[number]];
                if (!is_contained(there, tree.blocks[branch])) there.push_back(tree.blocks[branch]);
            }
    }
    return controllers;
}

} // namespace catena

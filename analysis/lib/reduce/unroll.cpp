// Step 3 of section III-B (Deng and Wu, NFReducer): "NFReducer unrolls a loop by cloning its loop body and functions
// called from the loop n times, with n equal to the number of entries of the loop data structure." The functions are
// inlined by then. n is found by following the loop's variables over frozen memory, from one iteration to the next:
// along a list, or up to a number of entries that is configuration too.
#include "reduce/unroll.h"

#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/Analysis/ConstantFolding.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/LoopIterator.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/Transforms/Utils/LoopPeel.h"
#include "llvm/Transforms/Utils/LoopSimplify.h"
#include "llvm/Transforms/Utils/LoopUtils.h"
#include "llvm/Transforms/Utils/ValueMapper.h"

using namespace llvm;

namespace catena {

namespace {

/// How many iterations are followed to find out how many there are, and how many that read nothing of the
/// configuration, as those over a packet's bytes, which end nowhere.
constexpr unsigned mostFollowed = 65536, mostWithout = 64;

class Iterations {
public:
    Iterations(Loop &loop, LoopInfo &loops, DominatorTree &tree, Frozen &frozen)
        : loop(loop), order(&loop), tree(tree), frozen(frozen), layout(loop.getHeader()->getModule()->getDataLayout()) {
        order.perform(&loops);
    }

    /// Return how often the loop comes back to its beginning, or nothing if that is not decided by frozen memory.
    /// With `course` the values of the loop's variables go there, of those that are decided in all iterations.
    std::optional<unsigned> count(unsigned most, IterationValues *course = nullptr) {
        const BasicBlock *before = loop.getLoopPreheader(), *latch = loop.getLoopLatch();
        if (!before || !latch) return std::nullopt;
        for (PHINode &phi : loop.getHeader()->phis())
            if (auto *constant = dyn_cast<Constant>(phi.getIncomingValueForBlock(before))) values[&phi] = constant;
        bool any = !values.empty();
        unsigned without = 0;
        for (unsigned i = 1; any && i <= most && without < mostWithout; ++i) {
            unsigned before = reads;
            if (course) {
                std::vector<Constant *> now;
                for (PHINode *phi : course->phis) now.push_back(known(phi));
                course->values.push_back(std::move(now));
            }
            if (follow()) return reads && i > 1 ? std::optional(i - 1) : std::nullopt;
            DenseMap<const Value *, Constant *> next;
            for (PHINode &phi : loop.getHeader()->phis())
                if (Constant *value = known(phi.getIncomingValueForBlock(latch))) next[&phi] = value;
            if (next.empty()) return std::nullopt;
            values = std::move(next);
            without = reads == before ? without + 1 : 0;
        }
        return std::nullopt;
    }

private:
    Constant *known(Value *value) const {
        if (auto *constant = dyn_cast<Constant>(value)) return constant;
        return values.lookup(value);
    }

    /// Evaluate one iteration; return whether the loop is left in it, whatever else happens.
    bool follow() {
        for (BasicBlock *block : make_range(order.beginRPO(), order.endRPO())) {
            for (Instruction &instruction : *block)
                if (!values.count(&instruction))
                    if (Constant *value = evaluate(instruction)) values[&instruction] = value;
            if (!tree.dominates(block, loop.getLoopLatch())) continue;
            const BasicBlock *next = nullptr;
            if (auto *branch = dyn_cast<BranchInst>(block->getTerminator()); branch && branch->isConditional()) {
                if (auto *condition = dyn_cast_or_null<ConstantInt>(known(branch->getCondition())))
                    next = branch->getSuccessor(condition->isZero());
            } else if (auto *select = dyn_cast<SwitchInst>(block->getTerminator())) {
                if (auto *condition = dyn_cast_or_null<ConstantInt>(known(select->getCondition())))
                    next = select->findCaseValue(condition)->getCaseSuccessor();
            }
            if (next && !loop.contains(next)) return true;
        }
        return false;
    }

    Constant *evaluate(Instruction &instruction) {
        if (auto *phi = dyn_cast<PHINode>(&instruction)) {
            if (phi->getParent() == loop.getHeader()) return nullptr;
            Constant *same = nullptr;
            for (Value *incoming : phi->incoming_values()) {
                Constant *value = known(incoming);
                if (!value || (same && same != value)) return nullptr;
                same = value;
            }
            return same;
        }
        if (auto *load = dyn_cast<LoadInst>(&instruction)) {
            Constant *pointer = load->isSimple() ? known(load->getPointerOperand()) : nullptr;
            Constant *value = pointer ? frozen.load(pointer, load->getType(), false) : nullptr;
            reads += value != nullptr;
            return value;
        }
        if (instruction.mayReadOrWriteMemory() || instruction.isTerminator() || isa<AllocaInst>(instruction) ||
            instruction.getType()->isVoidTy())
            return nullptr;
        SmallVector<Constant *, 4> operands;
        for (Value *operand : instruction.operands()) {
            Constant *value = known(operand);
            if (!value) return nullptr;
            operands.push_back(value);
        }
        return ConstantFoldInstOperands(&instruction, operands, layout);
    }

    Loop &loop;
    LoopBlocksDFS order;
    DominatorTree &tree;
    Frozen &frozen;
    const DataLayout &layout;
    DenseMap<const Value *, Constant *> values;
    /// How much of frozen memory was read.
    unsigned reads = 0;
};

unsigned sizeOf(const Loop &loop) {
    unsigned size = 0;
    for (const BasicBlock *block : loop.blocks()) size += block->size();
    return size;
}

Place beginOf(const Loop &loop) {
    for (const BasicBlock *block : loop.blocks())
        for (const Instruction &instruction : *block)
            if (instruction.getDebugLoc()) return placeOf(instruction);
    return {};
}

} // namespace

namespace {

/// Return the values that a loop's variables take, without those that are not decided in all iterations.
IterationValues courseOf(Loop &loop, LoopInfo &loops, DominatorTree &tree, Frozen &frozen) {
    IterationValues course;
    for (PHINode &phi : loop.getHeader()->phis()) course.phis.push_back(&phi);
    Iterations(loop, loops, tree, frozen).count(mostFollowed, &course);
    for (unsigned i = course.phis.size(); i-- > 0;) {
        if (all_of(course.values, [&](const auto &values) { return values[i] != nullptr; })) continue;
        course.phis.erase(course.phis.begin() + i);
        for (auto &values : course.values) values.erase(values.begin() + i);
    }
    return course;
}

} // namespace

std::optional<UnrolledLoop> unrollOne(Function &packet, Frozen &frozen, const UnrollLimits &limits,
                                      std::set<const BasicBlock *> &kept) {
    DominatorTree tree(packet);
    LoopInfo loops(tree);
    AssumptionCache assumptions(packet);
    TargetLibraryInfoImpl known(Triple(packet.getParent()->getTargetTriple()));
    TargetLibraryInfo library(known, &packet);
    ScalarEvolution evolution(packet, library, assumptions, tree, loops);
    for (Loop *outer : loops) simplifyLoop(outer, &tree, &loops, &evolution, &assumptions, nullptr, false);
    for (Loop *loop : loops.getLoopsInPreorder()) {
        if (kept.count(loop->getHeader())) continue;
        auto count = Iterations(*loop, loops, tree, frozen).count(mostFollowed);
        if (!count) continue;
        UnrolledLoop unrolled{beginOf(*loop), *count, false, {}};
        uint64_t grown = packet.getInstructionCount() + uint64_t(*count) * sizeOf(*loop);
        bool large = *count > limits.iterations || grown > limits.instructions || !canPeel(loop);
        if (large || *count > limits.decided)
            unrolled.decision = decide(*loop, courseOf(*loop, loops, tree, frozen), frozen, tree);
        if (large || unrolled.decision) {
            kept.insert(loop->getHeader());
            unrolled.kept = large;
            return unrolled;
        }
        formLCSSARecursively(*loop, tree, &loops, &evolution);
        ValueToValueMapTy map;
        if (!peelLoop(loop, *count, &loops, &evolution, tree, &assumptions, true, map)) {
            kept.insert(loop->getHeader());
            unrolled.kept = true;
        }
        return unrolled;
    }
    return std::nullopt;
}

} // namespace catena

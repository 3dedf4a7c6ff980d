// Every iteration is followed along all of its paths, with the configuration's values in it: a path that goes on to the
// next iteration does nothing; any other matters, under the conditions that were met on it. A condition that is no
// comparison of one field with a number is left out, so that a box is rather too large than too small.
#include "reduce/entry_conditions.h"

#include "llvm/Analysis/ConstantFolding.h"
#include "llvm/Analysis/Loads.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/ConstantRange.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;
using namespace llvm::PatternMatch;

namespace catena {

namespace {

constexpr unsigned mostPaths = 64, mostFields = 8, mostAlternatives = 8;

/// Ranges of one value, at most two: what a comparison leaves of it.
using Ranges = std::vector<FieldRange>;

Ranges rangesOf(const ConstantRange &set) {
    if (set.isEmptySet()) return {};
    if (set.isFullSet()) return {{0, set.getUnsignedMax().getZExtValue()}};
    uint64_t low = set.getLower().getZExtValue(), high = (set.getUpper() - 1).getZExtValue();
    if (low <= high) return {{low, high}};
    return {{0, high}, {low, APInt::getMaxValue(set.getBitWidth()).getZExtValue()}};
}

/// A way that may be gone, with what is known of the fields on it.
struct Way {
    FieldBox box;
    /// Whether all conditions on it are in the box.
    bool exact = true;
};

class Iteration {
public:
    Iteration(Loop &loop, const IterationValues &iterations, Frozen &frozen, const DominatorTree &tree, bool rely)
        : loop(loop), iterations(iterations), frozen(frozen), tree(tree), rely(rely),
          layout(loop.getHeader()->getModule()->getDataLayout()) {}

    std::optional<EntryConditions> run() {
        if (!loop.getSubLoops().empty()) return std::nullopt;
        for (const BasicBlock *block : loop.blocks())
            for (const Instruction &instruction : *block)
                if (instruction.mayHaveSideEffects() && !instruction.isDebugOrPseudoInst()) return std::nullopt;
        for (unsigned i = 0; i < iterations.values.size(); ++i) {
            values.clear();
            for (unsigned k = 0; k < iterations.phis.size(); ++k) values[iterations.phis[k]] = iterations.values[i][k];
            paths = 0, entry = i, begin = found.boxes.size();
            follow(loop.getHeader(), nullptr, {});
            if (paths <= mostPaths) continue;
            // Too many ways: it may always matter.
            found.boxes.resize(begin);
            found.boxes.push_back({entry, {}, false});
            allFollowed = false;
        }
        for (const auto &[load, value] : loads)
            if (allFollowed && value) found.uniform[load] = value;
        return std::move(found);
    }

private:
    Value *known(Value *value) const {
        auto at = values.find(value);
        return at == values.end() ? value : at->second;
    }

    void matters(const Way &way, bool leaves) { found.boxes.push_back({entry, way.box, leaves && way.exact}); }

    /// Follow all ways from a block on.
    void follow(BasicBlock *block, const BasicBlock *from, const Way &way) {
        if (++paths > mostPaths) return;
        if (from && !loop.contains(block)) return matters(way, true);
        if (from && block == loop.getHeader()) {
            for (PHINode &phi : block->phis())
                if (!is_contained(iterations.phis, &phi) && known(phi.getIncomingValueForBlock(from)) != &phi)
                    return matters(way, false);
            return;
        }
        std::vector<std::pair<PHINode *, Value *>> merged;
        if (from)
            for (PHINode &phi : block->phis()) merged.push_back({&phi, known(phi.getIncomingValueForBlock(from))});
        for (auto [phi, value] : merged) values[phi] = value;
        for (Instruction &instruction : *block) {
            if (isa<PHINode>(instruction) || instruction.isTerminator()) continue;
            if (Constant *value = evaluate(instruction))
                values[&instruction] = value;
            else
                values.erase(&instruction);
        }
        Instruction *end = block->getTerminator();
        if (auto *branch = dyn_cast<BranchInst>(end); branch && branch->isConditional()) {
            for (bool truth : {true, false})
                for (const Way &next : restrict({way}, branch->getCondition(), truth))
                    follow(branch->getSuccessor(!truth), block, next);
            return;
        }
        auto *select = dyn_cast<SwitchInst>(end);
        auto *chosen = select ? dyn_cast<ConstantInt>(known(select->getCondition())) : nullptr;
        if (chosen) return follow(select->findCaseValue(chosen)->getCaseSuccessor(), block, way);
        Way next = way;
        next.exact &= succ_size(block) == 1;
        SmallPtrSet<BasicBlock *, 8> gone;
        for (BasicBlock *successor : successors(block))
            if (gone.insert(successor).second) follow(successor, block, next);
    }

    Constant *evaluate(Instruction &instruction) {
        if (auto *load = dyn_cast<LoadInst>(&instruction)) {
            auto *pointer = dyn_cast<Constant>(known(load->getPointerOperand()));
            Constant *value = pointer ? frozen.load(pointer, load->getType(), rely) : nullptr;
            auto [at, isNew] = loads.try_emplace(load, value);
            if (!isNew && at->second != value) at->second = nullptr;
            return value;
        }
        SmallVector<Constant *, 4> operands;
        for (Value *operand : instruction.operands()) {
            auto *value = dyn_cast<Constant>(known(operand));
            if (!value) return nullptr;
            operands.push_back(value);
        }
        return operands.empty() || instruction.mayReadFromMemory()
                   ? nullptr
                   : ConstantFoldInstOperands(&instruction, operands, layout);
    }

    /// Return the ways that are left of some if a condition is true, or false.
    std::vector<Way> restrict(std::vector<Way> ways, Value *condition, bool truth) {
        condition = known(condition);
        if (auto *constant = dyn_cast<ConstantInt>(condition))
            return constant->isOne() == truth ? ways : std::vector<Way>();
        Value *left, *right;
        if (match(condition, m_Not(m_Value(left)))) return restrict(std::move(ways), left, !truth);
        bool both = match(condition, m_LogicalAnd(m_Value(left), m_Value(right)));
        if (both || match(condition, m_LogicalOr(m_Value(left), m_Value(right)))) {
            if (both == truth) return restrict(restrict(std::move(ways), left, truth), right, truth);
            auto one = restrict(ways, left, truth);
            auto other = restrict(restrict(std::move(ways), left, !truth), right, truth);
            one.insert(one.end(), other.begin(), other.end());
            return one;
        }
        auto *comparison = dyn_cast<ICmpInst>(condition);
        std::optional<std::vector<Way>> compared = comparison ? compare(ways, *comparison, truth) : std::nullopt;
        if (compared && compared->size() <= mostAlternatives) return *compared;
        for (Way &way : ways) way.exact = false;
        return ways;
    }

    std::optional<std::vector<Way>> compare(const std::vector<Way> &ways, ICmpInst &comparison, bool truth) {
        auto predicate = truth ? comparison.getPredicate() : comparison.getInversePredicate();
        Value *value = known(comparison.getOperand(0)), *bound = known(comparison.getOperand(1));
        if (isa<ConstantInt>(value)) {
            std::swap(value, bound);
            predicate = CmpInst::getSwappedPredicate(predicate);
        }
        auto *number = dyn_cast<ConstantInt>(bound);
        if (!number || number->getBitWidth() > 64) return std::nullopt;
        // A truth value as a number, as C compares it.
        Value *inner;
        if (number->isZero() && ICmpInst::isEquality(predicate) && match(value, m_ZExt(m_Value(inner))) &&
            inner->getType()->isIntegerTy(1))
            return restrict(ways, inner, predicate == CmpInst::ICMP_NE);
        Ranges ranges = rangesOf(ConstantRange::makeExactICmpRegion(predicate, number->getValue()));
        auto field = fieldOf(value, ranges);
        if (!field) return std::nullopt;
        std::vector<Way> left;
        for (const Way &way : ways)
            for (FieldRange range : ranges) {
                FieldRange before = rangeOf(way.box, *field);
                FieldRange both{std::max(before.low, range.low), std::min(before.high, range.high)};
                if (both.low > both.high) continue;
                Way one = way;
                if (one.box.size() <= *field) one.box.resize(*field + 1);
                one.box[*field] = both;
                left.push_back(std::move(one));
            }
        return left;
    }

    /// Return the field that a value is computed from, and turn ranges of the value into ranges of the field.
    std::optional<unsigned> fieldOf(Value *value, Ranges &ranges) {
        while (true) {
            value = known(value);
            unsigned width = value->getType()->getScalarSizeInBits();
            if (!value->getType()->isIntegerTy() || width > 64) return std::nullopt;
            uint64_t most = APInt::getMaxValue(width).getZExtValue();
            Value *inner, *other;
            if (loop.isLoopInvariant(value)) return number({value, value->getType(), false});
            if (match(value, m_ZExt(m_Value(inner)))) {
                clip(ranges, APInt::getMaxValue(inner->getType()->getScalarSizeInBits()).getZExtValue());
            } else if (match(value, m_And(m_Value(inner), m_Value(other)))) {
                if (isa<ConstantInt>(known(inner))) std::swap(inner, other);
                auto *mask = dyn_cast<ConstantInt>(known(other));
                if (!mask || !unmask(ranges, mask->getZExtValue(), most)) return std::nullopt;
            } else if (match(value, m_Add(m_Value(inner), m_Value(other)))) {
                if (isa<ConstantInt>(known(inner))) std::swap(inner, other);
                auto *added = dyn_cast<ConstantInt>(known(other));
                if (!added) return std::nullopt;
                shift(ranges, -added->getValue());
            } else if (match(value, m_Sub(m_Value(inner), m_Value(other)))) {
                auto *taken = dyn_cast<ConstantInt>(known(other));
                if (!taken) return std::nullopt;
                shift(ranges, taken->getValue());
            } else if (auto *load = dyn_cast<LoadInst>(value)) {
                auto *address = load->getPointerOperand();
                const Instruction *before = loop.getLoopPreheader()->getTerminator();
                if (!loop.isLoopInvariant(address) ||
                    !isDereferenceableAndAlignedPointer(address, load->getType(), load->getAlign(), layout, before,
                                                        nullptr, &tree))
                    return std::nullopt;
                return number({address, load->getType(), true});
            } else {
                return std::nullopt;
            }
            value = inner;
        }
    }

    std::optional<unsigned> number(PacketField field) {
        for (unsigned i = 0; i < found.fields.size(); ++i)
            if (found.fields[i].value == field.value && found.fields[i].type == field.type &&
                found.fields[i].loaded == field.loaded)
                return i;
        if (found.fields.size() == mostFields) return std::nullopt;
        found.fields.push_back(field);
        return found.fields.size() - 1;
    }

    static void clip(Ranges &ranges, uint64_t most) {
        erase_if(ranges, [&](FieldRange range) { return range.low > most; });
        for (FieldRange &range : ranges) range.high = std::min(range.high, most);
    }

    /// From `value & mask` to `value`, for masks that keep leading bits.
    static bool unmask(Ranges &ranges, uint64_t mask, uint64_t most) {
        uint64_t rest = most & ~mask;
        if (rest & (rest + 1)) return false;
        Ranges wider;
        for (FieldRange range : ranges) {
            // The least multiple that is not less, and the greatest that is not more with all that is masked.
            if (range.low > (most & ~rest)) continue;
            uint64_t low = range.low & rest ? (range.low | rest) + 1 : range.low, high = range.high & ~rest;
            if (low <= high) wider.push_back({low, high | rest});
        }
        ranges = std::move(wider);
        return true;
    }

    /// From a value to one that is greater by `by`, around the end of its type.
    static void shift(Ranges &ranges, const APInt &by) {
        Ranges moved;
        for (FieldRange range : ranges) {
            APInt low = APInt(by.getBitWidth(), range.low) + by, high = APInt(by.getBitWidth(), range.high) + by;
            if (range.high - range.low == APInt::getMaxValue(by.getBitWidth()).getZExtValue())
                moved.push_back(range);
            else
                for (FieldRange part : rangesOf(ConstantRange(low, high + 1))) moved.push_back(part);
        }
        ranges = std::move(moved);
    }

    Loop &loop;
    const IterationValues &iterations;
    Frozen &frozen;
    const DominatorTree &tree;
    bool rely;
    const DataLayout &layout;
    EntryConditions found;
    DenseMap<Value *, Value *> values;
    DenseMap<LoadInst *, Constant *> loads;
    unsigned paths = 0, entry = 0;
    size_t begin = 0;
    bool allFollowed = true;
};

} // namespace

std::optional<EntryConditions> entryConditions(Loop &loop, const IterationValues &iterations, Frozen &frozen,
                                               const DominatorTree &tree, bool rely) {
    return Iteration(loop, iterations, frozen, tree, rely).run();
}

} // namespace catena

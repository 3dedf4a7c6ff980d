// `table[i].count` with a table of n entries lies in the table, whatever i is (C17, 6.5.6, "Additive operators", 8). At
// -O0 each pair of square brackets is a step of its own over the array's type, so the steps behind a pointer tell.
#include "statealyzr/array_bounds.h"

#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Operator.h"

using namespace llvm;

namespace catena {

namespace {

/// More steps than a program has in one expression.
constexpr unsigned deepest = 16;

std::optional<Extent> unite(std::optional<Extent> a, std::optional<Extent> b) {
    if (!a || !b) return std::nullopt;
    return Extent{std::min(a->begin, b->begin), std::max(a->end, b->end)};
}

class Bounds {
public:
    Bounds(ObjectId object, const PointsTo &pointsTo) : object(object), pointsTo(pointsTo) {}

    std::optional<Extent> of(const Value *pointer, unsigned depth) const {
        if (depth == deepest) return std::nullopt;
        if (const auto *step = dyn_cast<GEPOperator>(pointer)) return ofStep(*step, depth);
        if (const auto *phi = dyn_cast<PHINode>(pointer)) return ofAll(phi->incoming_values(), depth);
        if (const auto *select = dyn_cast<SelectInst>(pointer))
            return unite(of(select->getTrueValue(), depth + 1), of(select->getFalseValue(), depth + 1));
        if (const auto *call = dyn_cast<CallBase>(pointer)) return ofCall(*call, depth);
        return std::nullopt;
    }

private:
    std::optional<Extent> ofStep(const GEPOperator &step, unsigned depth) const {
        const auto *array = dyn_cast<ArrayType>(step.getSourceElementType());
        const auto *first = dyn_cast<ConstantInt>(step.idx_begin()->get());
        // A step within what an outer array's step gave keeps within that.
        if (auto outer = of(step.getPointerOperand(), depth + 1)) return outer;
        if (!array || !first || !first->isZero() || step.getNumIndices() < 2) return std::nullopt;
        uint64_t size = pointsTo.memory().dataLayout().getTypeAllocSize(step.getSourceElementType()).getKnownMinValue();
        std::optional<Extent> found;
        for (Location base : pointsTo.of(step.getPointerOperand())) {
            if (pointsTo.memory().objectIdOf(base) != object) continue;
            uint64_t begin = pointsTo.memory().offsetOf(base);
            if (begin == Memory::restOffset) return std::nullopt;
            Extent one{begin, begin + size};
            found = found ? unite(found, one) : one;
        }
        return found;
    }

    template <typename Values> std::optional<Extent> ofAll(const Values &values, unsigned depth) const {
        std::optional<Extent> found;
        bool first = true;
        for (const Value *value : values) {
            if (isa<ConstantPointerNull>(value)) continue;
            auto one = of(value, depth + 1);
            found = first ? one : unite(found, one);
            first = false;
            if (!found) break;
        }
        return found;
    }

    std::optional<Extent> ofCall(const CallBase &call, unsigned depth) const {
        std::vector<const Value *> returned;
        for (const Function *callee : pointsTo.callees(call)) {
            if (callee->isDeclaration()) return std::nullopt;
            for (const Instruction &instruction : instructions(*callee))
                if (const auto *end = dyn_cast<ReturnInst>(&instruction); end && end->getReturnValue())
                    returned.push_back(end->getReturnValue());
        }
        return ofAll(returned, depth);
    }

    ObjectId object;
    const PointsTo &pointsTo;
};

} // namespace

std::optional<Extent> boundsOf(const Value *pointer, ObjectId object, const PointsTo &pointsTo) {
    return Bounds(object, pointsTo).of(pointer, 0);
}

} // namespace catena

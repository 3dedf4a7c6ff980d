// The public face of the points-to analysis.
#include "pointsto/points_to.h"

#include "pointsto/constraint_builder.h"
#include "pointsto/solver.h"
#include <unordered_map>

using namespace llvm;

namespace catena {

class PointsTo::Inside {
public:
    Inside(const Module &program, const LibraryEffects &library, const PointsToOptions &options)
        : library(library), memory(program.getDataLayout(), options.fields), solver(memory),
          builder(program, library, memory, solver, options) {
        builder.build();
        solver.solve();
        // The locations are complete now; asking makes no more.
        memory.onLocation = nullptr;
        solver.onCallee = nullptr;
    }

    const LibraryEffects &library;
    Memory memory;
    Solver solver;
    ConstraintBuilder builder;
    /// What accesses through a pointer's node touch, by size: asked for again and again.
    std::map<std::pair<NodeId, uint64_t>, SparseSet> touched;
    /// What can be reached from sets of locations; many pointers share theirs.
    std::unordered_map<SparseSet, SparseSet, SparseSet::Hash> reachable;
};

namespace {

/// The largest of the constants that a size is chosen from, or nothing if it may be something else.
std::optional<uint64_t> largest(const Value *size, SmallPtrSetImpl<const Value *> &seen) {
    if (const auto *constant = dyn_cast<ConstantInt>(size)) return constant->getLimitedValue();
    if (const auto *cast = dyn_cast<CastInst>(size)) return largest(cast->getOperand(0), seen);
    SmallVector<const Value *, 4> choices;
    if (const auto *select = dyn_cast<SelectInst>(size))
        choices = {select->getTrueValue(), select->getFalseValue()};
    else if (const auto *merged = dyn_cast<PHINode>(size))
        choices.append(merged->value_op_begin(), merged->value_op_end());
    else
        return {};
    uint64_t most = 0;
    if (!seen.insert(size).second) return most;
    for (const Value *choice : choices) {
        std::optional<uint64_t> one = largest(choice, seen);
        if (!one) return {};
        most = std::max(most, *one);
    }
    return most;
}

} // namespace

uint64_t mostBytes(const Value *size) {
    SmallPtrSet<const Value *, 8> seen;
    return largest(size, seen).value_or(0);
}

PointsTo::PointsTo(const Module &program, const LibraryEffects &library, const PointsToOptions &options)
    : inside(std::make_unique<Inside>(program, library, options)) {}

PointsTo::~PointsTo() = default;

const SparseSet &PointsTo::of(const Value *value) const {
    return inside->solver.pointsTo(inside->builder.nodeOrNothing(value));
}

const SparseSet &PointsTo::contents(Location location) const {
    return inside->solver.pointsTo(inside->solver.contentOf(location));
}

const SparseSet &PointsTo::touched(const Value *pointer, uint64_t size) const {
    const SparseSet &points = of(pointer);
    if (!inside->memory.hasFields()) return points;
    auto [at, isNew] = inside->touched.try_emplace({inside->solver.find(inside->builder.nodeOrNothing(pointer)), size});
    if (!isNew) return at->second;
    SparseSet &touched = at->second;
    for (Location location : points) {
        touched.insert(location);
        uint64_t begin = inside->memory.offsetOf(location);
        const auto &fields = inside->memory.objectOf(location).fields;
        bool all = !size || begin == Memory::restOffset;
        for (auto field = all ? fields.begin() : fields.lower_bound(begin); field != fields.end(); ++field) {
            if (!all && field->first - begin >= size) break;
            touched.insert(field->second);
        }
    }
    return touched;
}

SparseSet PointsTo::locationsOf(const Object &object) const {
    SparseSet all;
    for (const auto &[offset, location] : object.fields) all.insert(location);
    return all;
}

const SparseSet &PointsTo::reachable(const SparseSet &from) const {
    auto [at, isNew] = inside->reachable.try_emplace(from);
    if (!isNew) return at->second;
    SparseSet reached, met;
    std::vector<bool> objects(inside->memory.objectCount(), false);
    DenseSet<NodeId> held;
    std::vector<ObjectId> work;
    auto meet = [&](const SparseSet &locations) {
        for (Location location : locations.without(met))
            if (ObjectId object = inside->memory.objectIdOf(location); !objects[object]) {
                objects[object] = true;
                work.push_back(object);
            }
        met.add(locations);
    };
    meet(from);
    while (!work.empty()) {
        const Object &object = inside->memory[work.back()];
        work.pop_back();
        for (const auto &[offset, location] : object.fields) {
            reached.insert(location);
            // Locations that hold the same share a node.
            NodeId content = inside->solver.find(inside->solver.contentOf(location));
            if (held.insert(content).second) meet(inside->solver.pointsTo(content));
        }
    }
    at->second = std::move(reached);
    return at->second;
}

const std::vector<const Function *> &PointsTo::callees(const CallBase &call) const {
    static const std::vector<const Function *> none;
    auto found = inside->builder.callees.find(&call);
    return found == inside->builder.callees.end() ? none : found->second;
}

const std::vector<Callback> &PointsTo::callbacks(const CallBase &call) const {
    static const std::vector<Callback> none;
    auto found = inside->builder.callbacks.find(&call);
    return found == inside->builder.callbacks.end() ? none : found->second;
}

const Memory &PointsTo::memory() const { return inside->memory; }
const LibraryEffects &PointsTo::library() const { return inside->library; }
const std::set<std::string> &PointsTo::unmodelled() const { return inside->builder.unmodelled; }

PointsTo::Figures PointsTo::figures() const {
    return {inside->solver.nodeCount(), inside->memory.locationCount(), inside->memory.objectCount(),
            inside->solver.rounds};
}

} // namespace catena

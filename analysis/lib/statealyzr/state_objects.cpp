// A variable may lead to several tables, and its flowspace (Figure 4.10) has the fields of all of them. To split
// traffic, each table must be looked at by itself, and of each only what all look-ups have in common: packets that
// differ in a field that one look-up leaves out may meet in one entry. So, more strictly than the figure:
//
// - A table is an array that packet-processing code steps through by a variable index, or memory that is allocated
// while
//   packets are processed, such as a list's entries. Anything else is one entry, whatever it is compared with.
// - An index is a look-up; so are the comparisons for equality in one loop, together. A look-up without header fields
//   (clearing old entries, say) is none.
// - A pointer made by indexing an array stays in it.
// - What is left of an object beside its arrays are objects of their own, member by member.
#include "statealyzr/state_objects.h"

#include "dependence/graph_builder.h"
#include "statealyzr/array_bounds.h"
#include "statealyzr/unread_variables.h"
#include "llvm/ADT/SetOperations.h"
#include "llvm/BinaryFormat/Dwarf.h"
#include "llvm/IR/IntrinsicInst.h"
#include <map>

using namespace llvm;

namespace catena {

namespace {

/// Return the innermost array around an offset of a typed object, or nothing.
std::optional<Extent> arrayAround(const DataLayout &layout, Type *type, uint64_t offset) {
    std::optional<Extent> found;
    uint64_t begin = 0;
    while (type && type->isSized() && offset >= begin) {
        if (auto *array = dyn_cast<ArrayType>(type)) {
            uint64_t element = layout.getTypeAllocSize(array->getElementType()).getKnownMinValue();
            if (!element) break;
            found = {begin, begin + element * array->getNumElements()};
            begin += (offset - begin) / element * element;
            type = array->getElementType();
        } else if (auto *structure = dyn_cast<StructType>(type)) {
            const StructLayout *inside = layout.getStructLayout(structure);
            if (offset - begin >= inside->getSizeInBytes() || !structure->getNumElements()) break;
            unsigned index = inside->getElementContainingOffset(offset - begin);
            begin += inside->getElementOffset(index).getKnownMinValue();
            type = structure->getElementType(index);
        } else {
            break;
        }
    }
    return found;
}

class ObjectFinder {
public:
    ObjectFinder(const std::vector<Variable> &variables, Flowspaces &flowspaces, const MemoryStatements &statements,
                 const PacketProcedures &packet, const Graph &graph)
        : variables(variables), flowspaces(flowspaces), statements(statements), packet(packet), graph(graph),
          pointsTo(graph.pointsTo()), memory(pointsTo.memory()) {
        for (const MemoryStatement &statement : statements.all) written.add(*statement.writes);
    }

    std::vector<StateObject> find();

private:
    std::optional<Extent> extentOf(const Flowspaces::Step &step, Location base) const;
    std::vector<Extent> arraysOf(ObjectId object) const;
    std::set<std::string> scopeOf(const SparseSet &unit, const std::optional<Extent> &extent, ObjectId object) const;
    bool isAllocatedByPackets(const Object &object) const;
    bool reaches(const MemoryStatement &statement, ObjectId object, const SparseSet &unit) const;
    void add(ObjectId object, const SparseSet &unit, const std::optional<Extent> &extent);
    void name(StateObject &found, const Object &object, const SparseSet &unit,
              const std::optional<Extent> &extent) const;

    const std::vector<Variable> &variables;
    Flowspaces &flowspaces;
    const MemoryStatements &statements;
    const PacketProcedures &packet;
    const Graph &graph;
    const PointsTo &pointsTo;
    const Memory &memory;
    SparseSet written, own;
    std::vector<StateObject> objects;
};

/// The array that a step moves in, if its base is at `base`.
std::optional<Extent> ObjectFinder::extentOf(const Flowspaces::Step &step, Location base) const {
    const Object &object = memory.objectOf(base);
    uint64_t offset = memory.offsetOf(base);
    if (offset == Memory::restOffset) return Extent{0, Memory::restOffset};
    const GetElementPtrInst &instruction = *step.instruction;
    // `array[i]` in a struct of known members, at O0: {0, i} over the array's own type.
    const auto *array = dyn_cast<ArrayType>(instruction.getSourceElementType());
    bool whole = instruction.getNumIndices() > 1 && isa<Constant>(*instruction.idx_begin());
    if (whole && array)
        return Extent{offset,
                      offset + memory.dataLayout().getTypeAllocSize(const_cast<ArrayType *>(array)).getKnownMinValue()};
    if (object.type) return arrayAround(memory.dataLayout(), object.type, offset);
    return Extent{offset, Memory::restOffset};
}

/// The arrays of an object that are stepped through, without overlaps.
std::vector<Extent> ObjectFinder::arraysOf(ObjectId object) const {
    std::vector<Extent> found;
    for (const Flowspaces::Step &step : flowspaces.allSteps())
        for (Location base : *step.base)
            if (memory.objectIdOf(base) == object)
                if (auto extent = extentOf(step, base)) found.push_back(*extent);
    llvm::sort(found, [](const Extent &a, const Extent &b) { return a.begin < b.begin; });
    std::vector<Extent> merged;
    for (const Extent &extent : found)
        if (merged.empty() || extent.begin >= merged.back().end)
            merged.push_back(extent);
        else
            merged.back().end = std::max(merged.back().end, extent.end);
    return merged;
}

/// Return whether there may be many objects of this kind, made while packets are processed.
bool ObjectFinder::isAllocatedByPackets(const Object &object) const {
    const auto *site = dyn_cast<Instruction>(object.site);
    return object.kind == Object::Heap && site && packet.executed->contains(site);
}

/// Return whether a statement's pointer may lead to a part of an object, not only its points-to set.
bool ObjectFinder::reaches(const MemoryStatement &statement, ObjectId object, const SparseSet &unit) const {
    const Value *pointer = getLoadStorePointerOperand(statement.instruction);
    if (const auto *set = dyn_cast<MemSetInst>(statement.instruction)) pointer = set->getRawDest();
    auto bounds = pointer ? boundsOf(pointer, object, pointsTo) : std::nullopt;
    return !bounds || any_of(unit, [&](Location part) {
        return memory.offsetOf(part) == Memory::restOffset || bounds->contains(memory.offsetOf(part));
    });
}

std::set<std::string> ObjectFinder::scopeOf(const SparseSet &unit, const std::optional<Extent> &extent,
                                            ObjectId object) const {
    std::vector<std::vector<Vertex>> lookups;
    auto key = [&](std::vector<Vertex> &keys, const Value *value) {
        if (Vertex vertex = graph.ofValue(value); vertex != noVertex) keys.push_back(vertex);
    };
    for (const Flowspaces::Step &step : flowspaces.allSteps())
        if (extent && any_of(*step.base, [&](Location base) {
                if (memory.objectIdOf(base) != object) return false;
                auto moves = extentOf(step, base);
                return moves && moves->overlaps(*extent);
            })) {
            lookups.emplace_back();
            for (const Value *index : step.indices) key(lookups.back(), index);
        }
    std::map<const BasicBlock *, std::vector<Vertex>> loops;
    for (const Flowspaces::Condition &condition : flowspaces.allConditions()) {
        if (!condition.equality) continue;
        if (none_of(condition.leaves, [&](const Flowspaces::Leaf &leaf) { return leaf.touched->intersects(unit); }))
            continue;
        for (const Flowspaces::Leaf &leaf : condition.leaves)
            if (isa<CallBase>(leaf.value) || !leaf.touched->intersects(unit)) key(loops[condition.round], leaf.value);
    }
    for (auto &[loop, keys] : loops) lookups.push_back(std::move(keys));
    SparseSet entries = pointsTo.locationsOf(memory[object]);
    std::optional<std::set<std::string>> common;
    for (const std::vector<Vertex> &keys : lookups) {
        std::set<std::string> fields = flowspaces.keyFields(keys, entries);
        if (fields.empty()) continue;
        if (common)
            set_intersect(*common, fields);
        else
            common = std::move(fields);
    }
    return common.value_or(std::set<std::string>());
}

void ObjectFinder::name(StateObject &found, const Object &object, const SparseSet &unit,
                        const std::optional<Extent> &extent) const {
    if (object.kind == Object::Heap) {
        if (const auto *site = dyn_cast<Instruction>(object.site)) found.declared = placeOf(*site);
        found.name = "memory allocated";
        if (!found.declared.function.empty()) found.name += " in " + found.declared.function;
        uint64_t begin = extent ? extent->begin : memory.offsetOf(*unit.begin());
        if (begin && (extent || unit.size() == 1)) found.name += ", from byte " + std::to_string(begin);
        return;
    }
    for (const Variable &variable : variables) {
        if (variable.value != object.site) continue;
        found.name = variable.name, found.type = variable.type, found.declared = variable.declared;
        const auto *structure = dyn_cast_or_null<DICompositeType>(strip(variable.source->getType()));
        if (!structure || structure->getTag() == dwarf::DW_TAG_array_type) return;
        uint64_t begin = extent ? extent->begin : memory.offsetOf(*unit.begin());
        std::string member = memberAt(structure, begin);
        if (!member.empty() && (extent || unit.size() == 1)) found.name += "." + member;
        return;
    }
}

void ObjectFinder::add(ObjectId id, const SparseSet &unit, const std::optional<Extent> &extent) {
    if (!unit.intersects(written)) return;
    const Object &object = memory[id];
    StateObject found;
    name(found, object, unit, extent);
    if (extent || isAllocatedByPackets(object)) found.scope = scopeOf(unit, extent, id);
    for (const MemoryStatement &statement : statements.all) {
        found.reads += statement.reads->intersects(unit) && reaches(statement, id, unit);
        if (!statement.writes->intersects(unit) || !reaches(statement, id, unit)) continue;
        ++found.writes;
        found.fromPackets |= packet.slice->contains(graph.of(statement.instruction));
    }
    if (!found.writes) return;
    found.unread = isUnread(unit, own, packet, graph);
    objects.push_back(std::move(found));
}

std::vector<StateObject> ObjectFinder::find() {
    SparseSet state;
    for (const Variable &variable : variables) {
        own.add(variable.own);
        if (variable.updateable) state.add(variable.reach);
    }
    state = state.without(flowspaces.packetLocations());
    std::set<ObjectId> seen;
    for (Location location : state) {
        ObjectId id = memory.objectIdOf(location);
        const Object &object = memory[id];
        // Locals of other procedures do not outlive a packet; a library keeps its own state.
        bool kept = object.kind == Object::Global || object.kind == Object::Heap || own.contains(location);
        if (!kept || !seen.insert(id).second) continue;
        SparseSet rest = pointsTo.locationsOf(object);
        for (const Extent &extent : arraysOf(id)) {
            SparseSet unit;
            for (Location part : rest)
                if (extent.contains(memory.offsetOf(part))) unit.insert(part);
            // Offsets that share a location may lie anywhere behind those that do not.
            if (extent.end == Memory::restOffset)
                for (Location part : rest)
                    if (memory.offsetOf(part) == Memory::restOffset) unit.insert(part);
            if (unit.empty()) continue;
            rest = rest.without(unit);
            add(id, unit, extent);
        }
        // A list's entry is one thing, a struct's members each another.
        if (isAllocatedByPackets(object)) {
            if (!rest.empty()) add(id, rest, std::nullopt);
            continue;
        }
        for (Location part : rest) {
            SparseSet one;
            one.insert(part);
            add(id, one, std::nullopt);
        }
    }
    return std::move(objects);
}

} // namespace

std::vector<StateObject> stateObjects(const std::vector<Variable> &variables, Flowspaces &flowspaces,
                                      const MemoryStatements &statements, const PacketProcedures &packet,
                                      const Graph &graph) {
    return ObjectFinder(variables, flowspaces, statements, packet, graph).find();
}

} // namespace catena

// Figure 4.10 of Khalid's dissertation:
//
//      1 keyedVars = {}
//      2 foreach var in percrossflowVars do
//      3     if Type(var) == pointer or Type(var) == struct then
//      4         keyedVars = keyedVars U {var}
//      5 foreach proc in pktProcs do
//      6     foreach loopStmt in LoopStmts(proc) do
//      7         condVars = {}
//      8         foreach var in Vars(loopStmt.condition) do
//      9             if var in keyedVars or PointsTo(var) n keyedVars != {} then
//     10                 for condStmt in ConditionalStmts(loopStmt.body) do
//     11                     for condVar in Vars(condStmt) do
//     12                         if condVar != var then
//     13                             condVars = condVars U {condVar}
//     14         chop = Chop(sdg, pktVar, condVars)
//     15         flowspace = ExtractFlowspace(chop)
//
// and the text beside it: with square brackets and pointer arithmetic the chop ends at the index. Arrays are keyed too.
//
// A procedure that calls itself by name is a loop too (footnote 6 leaves recursion out).
//
// The packet loop itself looks nothing up: a condition directly in it compares an entry that was found before.
//
// Of a loop's conditions those count that compare an entry with something else; that something is the key, whether the
// loop's own condition names the entries (a list) or not (an array with a counter). The chop follows data, not control:
// a header field that only decides whether a look-up happens is no part of its key, and too many fields are what
// Theorem A.4 forbids. For the same reason it stops at the first header field on its way back to the packet: how the
// field's own place was found (the header length before it) does not key anything.
//
// More rules keep fields out. A look-up belongs to the variables that its access path begins at: the oldest entry of a
// table, kept in a variable of its own, is not found by any key, though the table's entries can be reached from it. A
// look-up within an entry that another look-up has found (the ports of a host) says nothing about which entries a flow
// has. What is found in an entry that packets change came with an earlier packet, so the chop does not pass through it.
// And where entries are told apart by equality, that is the key: an index (a hash) is only a way to get there sooner.
#include "statealyzr/flowspaces.h"

#include "dependence/graph_builder.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/BinaryFormat/Dwarf.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Operator.h"

using namespace llvm;

namespace catena {

Flowspaces::Flowspaces(const Module &program, const PacketProcedures &packet, const std::vector<PacketCall> &receives,
                       const std::vector<LoopProcedure> &packetLoops, const Graph &graph, const CallGraph &calls,
                       bool byRoot)
    : packet(packet), graph(graph), pointsTo(graph.pointsTo()), fields(program), paths(pointsTo, calls),
      byRoot(byRoot) {
    findPackets(receives);
    for (const LoopProcedure &procedure : packetLoops)
        for (const CallBase *receive : procedure.receives) receptions.insert(receive->getParent());
    for (const Function *procedure : packet.procedures) findConditions(*procedure);
    for (const Instruction *statement : packet.statements()) findSteps(*statement);
}

void Flowspaces::update(const std::vector<Variable> &variables) {
    for (const Variable &variable : variables)
        if (variable.updateable) changing.add(variable.reach.without(packets));
}

void Flowspaces::findPackets(const std::vector<PacketCall> &receives) {
    auto objects = [&](const SparseSet &locations) {
        for (Location location : locations) packets.add(pointsTo.locationsOf(pointsTo.memory().objectOf(location)));
    };
    for (const PacketCall &receive : receives) {
        for (const Function *callee : pointsTo.callees(*receive.call))
            if (callee->isDeclaration()) objects(libraryAccess(*receive.call, *callee, pointsTo).writes);
        for (const PacketPlace &place : receive.function->packets) {
            const Value *given =
                place.argument < receive.call->arg_size() ? receive.call->getArgOperand(place.argument) : nullptr;
            if (place.kind == PacketPlace::Return) objects(pointsTo.of(receive.call));
            if (place.kind == PacketPlace::Argument && given) objects(pointsTo.of(given));
            if (place.kind == PacketPlace::ThroughArgument && given)
                for (Location location : pointsTo.of(given)) objects(pointsTo.contents(location));
            if (place.kind == PacketPlace::CallbackParameter)
                for (const Callback &callback : pointsTo.callbacks(*receive.call))
                    if (place.parameter < callback.function->arg_size())
                        objects(pointsTo.of(callback.function->getArg(place.parameter)));
        }
    }
}

/// Collect what an expression is made of: loads, calls, parameters and merged values.
void Flowspaces::leavesOf(const Value *value, SmallPtrSetImpl<const Value *> &seen, std::vector<Leaf> &leaves) {
    if (isa<Constant>(value) || !seen.insert(value).second) return;
    const auto *instruction = dyn_cast<Instruction>(value);
    if (!instruction || isa<LoadInst>(value) || isa<CallBase>(value) || isa<PHINode>(value) || isa<AllocaInst>(value)) {
        leaves.push_back({value, touched(value)});
        return;
    }
    for (const Use &operand : instruction->operands()) leavesOf(operand.get(), seen, leaves);
}

void Flowspaces::addCondition(const Value *value, const BasicBlock *block, const BasicBlock *round,
                              std::shared_ptr<const Blocks> loop) {
    SmallPtrSet<const Value *, 16> seen;
    const auto *compare = dyn_cast<ICmpInst>(value);
    Condition found{{}, block, round, std::move(loop), compare && compare->isEquality()};
    leavesOf(value, seen, found.leaves);
    conditions.push_back(std::move(found));
}

void Flowspaces::findConditions(const Function &function) {
    DominatorTree tree(const_cast<Function &>(function));
    LoopInfo loops(tree);
    DenseMap<const Loop *, std::shared_ptr<const Blocks>> insides;
    bool callsItself = any_of(instructions(function), [&](const Instruction &instruction) {
        const auto *call = dyn_cast<CallBase>(&instruction);
        return call && namedCallee(*call) == &function;
    });
    auto looksUp = [&](const BasicBlock &block) {
        const Loop *loop = loops.getLoopFor(&block);
        return loop ? none_of(receptions, [&](const BasicBlock *reception) { return loop->contains(reception); })
                    : callsItself;
    };
    for (const BasicBlock &block : function) {
        if (!looksUp(block) || !packet.executed->contains(block.getTerminator())) continue;
        const BasicBlock *round = &function.getEntryBlock();
        std::shared_ptr<const Blocks> inside;
        if (const Loop *loop = loops.getLoopFor(&block)) {
            auto &known = insides[loop];
            if (!known) known = std::make_shared<const Blocks>(loop->block_begin(), loop->block_end());
            inside = known;
            round = loop->getHeader();
        }
        if (const auto *branch = dyn_cast<BranchInst>(block.getTerminator()); branch && branch->isConditional())
            addCondition(branch->getCondition(), &block, round, inside);
        // `a == b && c == d` as a value, not as branches.
        for (const Instruction &instruction : block)
            if (const auto *compare = dyn_cast<ICmpInst>(&instruction)) addCondition(compare, &block, round, inside);
    }
}

void Flowspaces::findSteps(const Instruction &statement) {
    if (const auto *step = dyn_cast<GetElementPtrInst>(&statement)) {
        Step found{step, sets.keep(pointsTo.of(step->getPointerOperand())), {}};
        for (const Use &index : step->indices())
            if (!isa<Constant>(index.get())) found.indices.push_back(index.get());
        if (!found.indices.empty()) steps.push_back(std::move(found));
        return;
    }
    // Look-ups in the C library: the first argument is the key, another one the table.
    const auto *call = dyn_cast<CallBase>(&statement);
    const Function *callee = call ? namedCallee(*call) : nullptr;
    if (callee && is_contained({"bsearch", "lfind", "lsearch", "tfind", "tsearch"}, callee->getName()))
        conditions.push_back({{{call, touched(call)}}, call->getParent(), call->getParent(), nullptr, true});
}

/// What a leaf touches: what it loads from, points to, or is given; of a table that is named, its entries too.
const SparseSet *Flowspaces::touched(const Value *leaf) {
    auto [at, isNew] = touchedBy.try_emplace(leaf);
    if (!isNew) return at->second;
    SparseSet all;
    if (const auto *load = dyn_cast<LoadInst>(leaf)) {
        all = pointsTo.of(load->getPointerOperand());
    } else if (const auto *call = dyn_cast<CallBase>(leaf)) {
        // What a library function writes it does not compare.
        const Function *callee = namedCallee(*call);
        bool writes =
            byRoot && callee && callee->isDeclaration() && !libraryAccess(*call, *callee, pointsTo).writes.empty();
        if (writes) return at->second = sets.keep(SparseSet());
        for (const Use &given : call->args()) {
            all.add(pointsTo.of(given.get()));
            if (isa<Constant>(given.get()))
                for (Location table : pointsTo.of(given.get())) all.add(pointsTo.contents(table));
        }
    } else {
        all = pointsTo.of(leaf);
    }
    return at->second = sets.keep(std::move(all));
}

/// Return the pointers by which a condition's leaf gets at entries.
std::vector<const Value *> Flowspaces::entryPointers(const Value *leaf, const SparseSet &entries) const {
    if (const auto *load = dyn_cast<LoadInst>(leaf)) return {load->getPointerOperand()};
    const auto *call = dyn_cast<CallBase>(leaf);
    if (!call) return {leaf};
    std::vector<const Value *> pointers;
    for (const Use &given : call->args())
        if (isa<Constant>(given.get()) || pointsTo.of(given.get()).intersects(entries)) pointers.push_back(given.get());
    return pointers;
}

bool Flowspaces::beginsAt(const Variable &variable, ArrayRef<const Value *> pointers) {
    return any_of(pointers, [&](const Value *pointer) {
        return pointsTo.of(pointer).intersects(variable.own) || paths.of(pointer).roots.contains(variable.value);
    });
}

/// Return whether some pointers lead through an entry that was found in a loop that is over in `block`.
bool Flowspaces::within(const Found &found, ArrayRef<const Value *> pointers, const BasicBlock *block) {
    return any_of(pointers, [&](const Value *pointer) {
        return any_of(paths.of(pointer).through, [&](const Value *entry) {
            auto at = found.find(entry);
            return at != found.end() && none_of(at->second, [&](const auto &loop) { return loop->contains(block); });
        });
    });
}

/// Find the pointers whose entries conditions compare with keys.
Flowspaces::Found Flowspaces::findEntries(const Variable &variable, const SparseSet &entries, Meets meets) {
    Found found;
    for (const Condition &condition : conditions) {
        if (!condition.loop || condition.leaves.size() < 2) continue;
        if (all_of(condition.leaves, [&](const Leaf &leaf) { return meets(leaf.touched); })) continue;
        for (const Leaf &leaf : condition.leaves) {
            if (!meets(leaf.touched)) continue;
            auto pointers = entryPointers(leaf.value, entries);
            if (!beginsAt(variable, pointers)) continue;
            for (const Value *pointer : pointers) found[AccessPaths::base(pointer)].push_back(condition.loop);
        }
    }
    return found;
}

/// What belongs to a variable: all that can be reached from it without passing through another variable, and no
/// packets.
SparseSet Flowspaces::near(const Variable &variable, const SparseSet &others) const {
    const Memory &memory = pointsTo.memory();
    SparseSet reached, met = others.without(variable.own);
    met.add(packets);
    DenseSet<ObjectId> objects;
    DenseSet<const SparseSet *> held;
    std::vector<ObjectId> work;
    auto meet = [&](const SparseSet &locations) {
        // Locations that hold the same share a set.
        if (!held.insert(&locations).second) return;
        for (Location location : locations.without(met))
            if (memory.objectOf(location).kind != Object::Function &&
                objects.insert(memory.objectIdOf(location)).second)
                work.push_back(memory.objectIdOf(location));
        met.add(locations);
    };
    meet(variable.own);
    while (!work.empty()) {
        const Object &object = memory[work.back()];
        work.pop_back();
        for (const auto &[offset, part] : object.fields) {
            reached.insert(part);
            meet(pointsTo.contents(part));
        }
    }
    return reached;
}

/// Return whether a location lies in entries that packets update: what is found there came with an earlier packet. A
/// struct or scalar of which there is only one may as well hold what belongs to this packet.
bool Flowspaces::isKept(Location location) const {
    if (!changing.contains(location)) return false;
    const Object &object = pointsTo.memory().objectOf(location);
    return object.kind == Object::Heap || isa_and_nonnull<ArrayType>(object.type);
}

bool Flowspaces::readsPacket(const Instruction &instruction) {
    auto [at, isNew] = packetReaders.try_emplace(&instruction, false);
    if (!isNew) return at->second;
    if (isa<LoadInst>(instruction)) at->second = readBy(instruction, pointsTo).intersects(packets);
    if (const auto *call = dyn_cast<CallBase>(&instruction))
        if (const Function *callee = namedCallee(*call); callee && callee->isDeclaration())
            at->second = libraryAccess(*call, *callee, pointsTo).reads.intersects(packets);
    return at->second;
}

/// Name the fields that a pointer may point to. Procedures are given pointers to fields (`find(&ip->saddr)`), so it is
/// followed to the places that call.
void Flowspaces::fieldsOf(const Value *pointer, SmallPtrSetImpl<const Value *> &seen,
                          std::set<std::string> &found) const {
    if (!seen.insert(pointer).second) return;
    if (std::string field = fields.nameOf(pointer); !field.empty()) {
        found.insert(field);
    } else if (isa<PHINode>(pointer) || isa<SelectInst>(pointer)) {
        for (const Use &operand : cast<Instruction>(pointer)->operands())
            if (pointsTo.of(operand.get()).intersects(packets)) fieldsOf(operand.get(), seen, found);
    } else if (isa<Argument>(pointer)) {
        for (Edge edge : graph.predecessors(graph.ofValue(pointer))) {
            const VertexInfo &given = graph[edge.vertex];
            if (given.kind != VertexKind::Argument) continue;
            const auto *call = cast<CallBase>(given.value);
            const Value *operand = call->getArgOperand(given.index);
            if (packet.executed->contains(call) && pointsTo.of(operand).intersects(packets))
                fieldsOf(operand, seen, found);
        }
    }
}

/// Return the header fields from which some vertices are computed.
std::set<std::string> Flowspaces::extract(const std::vector<Vertex> &keys, const SparseSet &entries, bool endAtKept) {
    SliceLimits limits;
    limits.control = false;
    limits.vertices = [&](Vertex vertex) {
        const VertexInfo &info = graph[vertex];
        if (info.kind == VertexKind::Definition)
            return !entries.contains(info.index) && !(endAtKept && isKept(info.index));
        const auto *instruction = dyn_cast_or_null<Instruction>(info.value);
        return !instruction || packet.executed->contains(instruction);
    };
    auto reader = [&](Vertex vertex) -> const Instruction * {
        const VertexInfo &info = graph[vertex];
        if (info.kind != VertexKind::Instruction && info.kind != VertexKind::CallResult) return nullptr;
        return cast<Instruction>(info.value);
    };
    limits.ends = [&](Vertex vertex) {
        const Instruction *instruction = reader(vertex);
        if (!instruction) return false;
        return readsPacket(*instruction) ||
               (endAtKept && isa<LoadInst>(instruction) &&
                any_of(readBy(*instruction, pointsTo), [&](Location location) { return isKept(location); }));
    };
    std::set<std::string> found;
    Slice slice(graph, keys, Slice::Backward, limits);
    for (Vertex vertex : slice.vertices()) {
        const Instruction *instruction = reader(vertex);
        if (!instruction || !readsPacket(*instruction)) continue;
        SmallPtrSet<const Value *, 16> seen;
        if (const Value *pointer = getLoadStorePointerOperand(instruction)) {
            fieldsOf(pointer, seen, found);
            continue;
        }
        for (const Use &given : cast<CallBase>(instruction)->args())
            if (pointsTo.of(given.get()).intersects(packets)) fieldsOf(given.get(), seen, found);
    }
    return found;
}

/// Return the vertices of what a condition compares entries with. Fields that a library function is given by a pointer
/// into the packet are added to `given`.
std::vector<Vertex> Flowspaces::keysOf(const Condition &condition, const SparseSet &entries, Meets meets,
                                       std::set<std::string> &given) {
    std::vector<Vertex> keys;
    auto add = [&](Vertex vertex) {
        if (vertex != noVertex) keys.push_back(vertex);
    };
    for (const Leaf &leaf : condition.leaves) {
        const auto *call = dyn_cast<CallBase>(leaf.value);
        const Function *callee = call ? namedCallee(*call) : nullptr;
        if (!byRoot || !callee || !callee->isDeclaration()) {
            if (call || !meets(leaf.touched)) add(graph.ofValue(leaf.value));
            continue;
        }
        // memcmp and its like: of what is given, that which is no entry.
        for (const Use &argument : call->args()) {
            if (pointsTo.of(argument.get()).intersects(entries)) continue;
            SmallPtrSet<const Value *, 16> seen;
            if (pointsTo.of(argument.get()).intersects(packets)) fieldsOf(argument.get(), seen, given);
            for (Location location : pointsTo.touched(argument.get(), accessedBytes(*call, *callee)))
                add(graph.ofLocation(location));
            if (!argument->getType()->isPointerTy()) add(graph.ofValue(argument.get()));
        }
    }
    return keys;
}

void Flowspaces::mark(Variable &variable, const SparseSet &others) {
    const auto *type = strip(variable.source->getType());
    const auto *derived = dyn_cast_or_null<DIDerivedType>(type);
    variable.keyed =
        isa_and_nonnull<DICompositeType>(type) || (derived && derived->getTag() == dwarf::DW_TAG_pointer_type);
    if (const auto *composite = dyn_cast_or_null<DICompositeType>(type))
        variable.keyed = composite->getTag() != dwarf::DW_TAG_enumeration_type;
    if (!variable.keyed) return;
    SparseSet entries = near(variable, others);
    // Many statements share their sets.
    DenseMap<const SparseSet *, bool> known;
    auto meets = [&](const SparseSet *set) {
        auto [at, isNew] = known.try_emplace(set, false);
        if (isNew) at->second = set->intersects(entries);
        return at->second;
    };
    Found found = byRoot ? findEntries(variable, entries, meets) : Found();
    auto counts = [&](ArrayRef<const Value *> pointers, const BasicBlock *block) {
        return !byRoot || (beginsAt(variable, pointers) && !within(found, pointers, block));
    };
    std::vector<Vertex> equal, other;
    std::set<std::string> equalFields, otherFields;
    for (const Step &step : steps) {
        if (!meets(step.base) || !counts({step.instruction->getPointerOperand()}, step.instruction->getParent()))
            continue;
        variable.accessed = true;
        for (const Value *index : step.indices)
            if (Vertex vertex = graph.ofValue(index); vertex != noVertex) other.push_back(vertex);
    }
    for (const Condition &condition : conditions) {
        if (none_of(condition.leaves, [&](const Leaf &leaf) {
                return meets(leaf.touched) && counts(entryPointers(leaf.value, entries), condition.block);
            }))
            continue;
        auto &fields = condition.equality ? equalFields : otherFields;
        std::vector<Vertex> keys = keysOf(condition, entries, meets, fields);
        variable.accessed |= !keys.empty() || !fields.empty();
        append_range(condition.equality ? equal : other, keys);
    }
    equalFields.merge(extract(equal, entries, byRoot));
    variable.flowspace = equalFields;
    if (!byRoot || equalFields.empty()) {
        variable.flowspace.merge(otherFields);
        if (!other.empty()) variable.flowspace.merge(extract(other, entries, byRoot));
    }
    if (!variable.flowspace.empty()) variable.entries = std::move(entries);
}

void markFlowspaces(std::vector<Variable> &variables, Flowspaces &flowspaces) {
    SparseSet others;
    for (const Variable &variable : variables) others.add(variable.own);
    flowspaces.update(variables);
    for (Variable &variable : variables)
        if (variable.topLevel()) flowspaces.mark(variable, others);
}

} // namespace catena

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
#include "statealyzr/flowspaces.h"

#include "dependence/graph_builder.h"
#include "library/list_file.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/BinaryFormat/Dwarf.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Operator.h"

using namespace llvm;

namespace catena {

namespace {

/// The names of header fields by struct and member.
StringMap<std::string> readHeaderFields() {
    StringMap<std::string> fields;
    for (const ListLine &line : parseList(lists::header_fields))
        for (StringRef member : line.rest)
            if (!line.words.empty()) fields[member] = line.words.front().str();
    return fields;
}

} // namespace

Flowspaces::Flowspaces(const Module &program, const PacketProcedures &packet, const std::vector<PacketCall> &receives,
                       const std::vector<LoopProcedure> &packetLoops, const Graph &graph)
    : packet(packet), graph(graph), pointsTo(graph.pointsTo()), structs(program), fields(readHeaderFields()) {
    findPackets(receives);
    for (const LoopProcedure &procedure : packetLoops)
        for (const CallBase *receive : procedure.receives) receptions.insert(receive->getParent());
    for (const Function *procedure : packet.procedures) findConditions(*procedure);
    for (const Instruction *statement : packet.statements()) findSteps(*statement);
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

Flowspaces::Condition Flowspaces::condition(const Value *value, const BasicBlock *round) {
    SmallPtrSet<const Value *, 16> seen;
    const auto *compare = dyn_cast<ICmpInst>(value);
    Condition found{{}, round, compare && compare->isEquality()};
    leavesOf(value, seen, found.leaves);
    return found;
}

void Flowspaces::findConditions(const Function &function) {
    DominatorTree tree(const_cast<Function &>(function));
    LoopInfo loops(tree);
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
        const Loop *loop = loops.getLoopFor(&block);
        const BasicBlock *round = loop ? loop->getHeader() : &function.getEntryBlock();
        if (const auto *branch = dyn_cast<BranchInst>(block.getTerminator()); branch && branch->isConditional())
            conditions.push_back(condition(branch->getCondition(), round));
        // `a == b && c == d` as a value, not as branches.
        for (const Instruction &instruction : block)
            if (const auto *compare = dyn_cast<ICmpInst>(&instruction)) conditions.push_back(condition(compare, round));
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
        conditions.push_back({{{call, touched(call)}}, call->getParent(), true});
}

/// What a leaf touches: what it loads from, points to, or is given; of a table that is named, its entries too.
const SparseSet *Flowspaces::touched(const Value *leaf) {
    auto [at, isNew] = touchedBy.try_emplace(leaf);
    if (!isNew) return at->second;
    SparseSet all;
    if (const auto *load = dyn_cast<LoadInst>(leaf)) {
        all = pointsTo.of(load->getPointerOperand());
    } else if (const auto *call = dyn_cast<CallBase>(leaf)) {
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

bool Flowspaces::readsPacket(const Instruction &instruction) {
    auto [at, isNew] = packetReaders.try_emplace(&instruction, false);
    if (!isNew) return at->second;
    if (isa<LoadInst>(instruction)) at->second = readBy(instruction, pointsTo).intersects(packets);
    if (const auto *call = dyn_cast<CallBase>(&instruction))
        if (const Function *callee = namedCallee(*call); callee && callee->isDeclaration())
            at->second = libraryAccess(*call, *callee, pointsTo).reads.intersects(packets);
    return at->second;
}

/// Name the header field that a pointer into a packet points to; empty if it is none.
std::string Flowspaces::fieldOf(const Value *pointer) const {
    const DataLayout &layout = pointsTo.memory().dataLayout();
    uint64_t offset = 0;
    bool stepped = false;
    const DICompositeType *type = nullptr;
    while (const auto *step = dyn_cast<GEPOperator>(pointer)) {
        APInt distance(64, 0);
        if (!step->accumulateConstantOffset(layout, distance)) break;
        const auto *structure = dyn_cast<StructType>(step->getSourceElementType());
        // A step from header to header is no field.
        if (structure && step->getNumIndices() == 1) break;
        if (type && !structure) break;
        offset += distance.getZExtValue();
        stepped = true;
        if (structure) type = structs.find(structure);
        pointer = step->getPointerOperand();
    }
    if (!type) return stepped ? "packet[" + std::to_string(offset) + "]" : "";
    std::string name = type->getName().str();
    if (name == "pcap_pkthdr" || name == "msghdr") return "";
    std::string member = memberAt(type, offset);
    // Members within members: the longest listed beginning names the field.
    for (StringRef path = member; !path.empty(); path = path.rsplit('.').first) {
        auto listed = fields.find(name + "." + path.str());
        if (listed != fields.end()) return listed->second;
        if (!path.contains('.')) break;
    }
    return name + "." + member;
}

/// Name the fields that a pointer may point to. Procedures are given pointers to fields (`find(&ip->saddr)`), so it is
/// followed to the places that call.
void Flowspaces::fieldsOf(const Value *pointer, SmallPtrSetImpl<const Value *> &seen,
                          std::set<std::string> &found) const {
    if (!seen.insert(pointer).second) return;
    if (std::string field = fieldOf(pointer); !field.empty()) {
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

std::set<std::string> Flowspaces::keyFields(const std::vector<Vertex> &keys, const SparseSet &entries) {
    std::set<std::string> found;
    SliceLimits limits;
    limits.control = false;
    limits.vertices = [&](Vertex vertex) {
        const VertexInfo &info = graph[vertex];
        if (info.kind == VertexKind::Definition) return !entries.contains(info.index);
        const auto *instruction = dyn_cast_or_null<Instruction>(info.value);
        return !instruction || packet.executed->contains(instruction);
    };
    limits.ends = [&](Vertex vertex) {
        const VertexInfo &info = graph[vertex];
        if (info.kind != VertexKind::Instruction && info.kind != VertexKind::CallResult) return false;
        return readsPacket(*cast<Instruction>(info.value));
    };
    Slice slice(graph, keys, Slice::Backward, limits);
    for (Vertex vertex : slice.vertices()) {
        if (!limits.ends(vertex)) continue;
        const auto *instruction = cast<Instruction>(graph[vertex].value);
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

void Flowspaces::mark(Variable &variable, const SparseSet &others) {
    const auto *type = strip(variable.source->getType());
    const auto *derived = dyn_cast_or_null<DIDerivedType>(type);
    variable.keyed =
        isa_and_nonnull<DICompositeType>(type) || (derived && derived->getTag() == dwarf::DW_TAG_pointer_type);
    if (const auto *composite = dyn_cast_or_null<DICompositeType>(type))
        variable.keyed = composite->getTag() != dwarf::DW_TAG_enumeration_type;
    if (!variable.keyed) return;
    SparseSet entries = near(variable, others);
    std::vector<Vertex> keys;
    auto key = [&](const Value *value) {
        variable.accessed = true;
        Vertex vertex = graph.ofValue(value);
        if (vertex != noVertex) keys.push_back(vertex);
    };
    // Many statements share their sets.
    DenseMap<const SparseSet *, bool> known;
    auto meets = [&](const SparseSet *set) {
        auto [at, isNew] = known.try_emplace(set, false);
        if (isNew) at->second = set->intersects(entries);
        return at->second;
    };
    for (const Step &step : steps)
        if (meets(step.base))
            for (const Value *index : step.indices) key(index);
    for (const Condition &condition : conditions) {
        if (none_of(condition.leaves, [&](const Leaf &leaf) { return meets(leaf.touched); })) continue;
        for (const Leaf &leaf : condition.leaves)
            if (isa<CallBase>(leaf.value) || !meets(leaf.touched)) key(leaf.value);
    }
    if (!keys.empty()) variable.flowspace = keyFields(keys, entries);
    if (!variable.flowspace.empty()) variable.entries = std::move(entries);
}

void markFlowspaces(std::vector<Variable> &variables, Flowspaces &flowspaces) {
    SparseSet others;
    for (const Variable &variable : variables) others.add(variable.own);
    for (Variable &variable : variables)
        if (variable.topLevel()) flowspaces.mark(variable, others);
}

} // namespace catena

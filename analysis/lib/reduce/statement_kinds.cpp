// "It has packet processing irrelevant features, e.g., logging, standard output warning" (Deng and Wu, NFReducer,
// section III-A). Which functions write logs, take locks and ask for the time stands in `lists/packet-functions.list`;
// statistics are what packets update and no packet depends on.
#include "reduce/statement_kinds.h"

#include "dependence/graph_builder.h"
#include "llvm/BinaryFormat/Dwarf.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace catena {

namespace {

const std::set<StringRef> givesBack = {"free",   "cfree",  "realloc", "reallocarray",
                                       "_ZdlPv", "_ZdaPv", "_ZdlPvm", "_ZdaPvm"};

} // namespace

StatementKinds::StatementKinds(const Function &packet, const PointsTo &pointsTo, const CallGraph &calls,
                               const PacketFunctions &functions, const AbruptExits &exits, const Graph &graph,
                               const Reception &reception)
    : packet(packet), pointsTo(pointsTo), calls(calls), functions(functions), exits(exits), graph(graph),
      reception(reception), loop(reception.call->getFunction()->getName()), processing(calls.closure({&packet})) {}

SparseSet StatementKinds::persistent(const SparseSet &locations) const {
    SparseSet kept;
    for (Location location : locations) {
        const Object &object = pointsTo.memory().objectOf(location);
        const auto *cell = object.kind == Object::Stack ? dyn_cast_or_null<Instruction>(object.site) : nullptr;
        if (!cell || !processing.contains(cell->getFunction())) kept.insert(location);
    }
    return kept;
}

bool StatementKinds::isRead(const SparseSet &locations) const {
    return any_of(locations, [&](Location location) {
        Vertex vertex = graph.ofLocation(location);
        return vertex != noVertex && !graph.successors(vertex).empty();
    });
}

std::string StatementKinds::nameOf(Location location) const {
    const Object &object = pointsTo.memory().objectOf(location);
    if (const auto *global = dyn_cast_or_null<GlobalVariable>(object.site)) {
        if (auto local = reception.locals.find(global->getName().str()); local != reception.locals.end())
            return local->second.name;
        const DIGlobalVariable *source = sourceVariable(*global);
        if (!source) return global->getName().str();
        const auto *type = dyn_cast_or_null<DICompositeType>(strip(source->getType()));
        std::string member = type && type->getTag() != dwarf::DW_TAG_array_type
                                 ? memberAt(type, pointsTo.memory().offsetOf(location))
                                 : "";
        return source->getName().str() + (member.empty() ? "" : "." + member);
    }
    if (const auto *call = dyn_cast_or_null<CallBase>(object.site)) {
        Place place = placeOf(*call);
        return "a block of " + place.file + ":" + std::to_string(place.line);
    }
    return object.kind == Object::Stack ? "a local variable" : "memory of a library";
}

std::vector<Vertex> StatementKinds::verticesOf(const Instruction &instruction) const {
    std::vector<Vertex> vertices{graph.of(&instruction)};
    if (const auto *call = dyn_cast<CallBase>(&instruction)) vertices.push_back(graph.ofCall(call));
    return vertices;
}

Statement StatementKinds::update(const Instruction &instruction, SparseSet locations) const {
    Statement statement;
    statement.purposes = {isRead(locations) ? Purpose::Statistics : Purpose::Other};
    statement.what = nameOf(*locations.begin());
    statement.vertices = verticesOf(instruction);
    statement.writes = std::move(locations);
    return statement;
}

std::optional<Statement> StatementKinds::of(const Instruction &instruction, bool deep) const {
    if (const auto *one = dyn_cast<CallBase>(&instruction)) return call(*one, deep);
    Statement essential;
    essential.essential = true, essential.vertices = verticesOf(instruction);
    if (instruction.isVolatile()) return essential;
    if (const auto *load = dyn_cast<LoadInst>(&instruction))
        return load->isAtomic() ? std::optional(essential) : std::nullopt;
    if (isa<FenceInst>(instruction)) return essential;
    if (!isa<StoreInst, AtomicRMWInst, AtomicCmpXchgInst>(instruction)) return std::nullopt;
    SparseSet locations = written(instruction, pointsTo);
    // Nobody knows where it leads.
    if (locations.empty()) return essential;
    SparseSet lasting = persistent(locations);
    if (lasting.empty()) return std::nullopt;
    return update(instruction, std::move(lasting));
}

bool StatementKinds::isEssential(const CallBase &call) const {
    if (call.doesNotReturn() || call.isInlineAsm() || exits.contains(&call)) return true;
    return any_of(pointsTo.callees(call), [&](const Function *callee) {
        const PacketFunction *listed = functions.find(callee->getName());
        return callee->doesNotReturn() ||
               (listed && (listed->kind == PacketFunction::Send || listed->kind == PacketFunction::Receive ||
                           listed->kind == PacketFunction::Device));
    });
}

std::optional<Statement> StatementKinds::libraryCall(const CallBase &call, const Function &callee) const {
    Statement statement;
    statement.what = callee.getName().str(), statement.vertices = verticesOf(call);
    statement.writes = persistent(libraryAccess(call, callee, pointsTo).writes);
    const PacketFunction *listed = functions.find(callee.getName());
    if (callee.isIntrinsic() || (listed && listed->kind == PacketFunction::Memory)) {
        if (statement.writes.empty()) return std::nullopt;
        return update(call, std::move(statement.writes));
    }
    statement.givesBack = givesBack.count(callee.getName());
    if (statement.givesBack && statement.writes.empty()) {
        statement.purposes = {Purpose::Other};
        return statement;
    }
    if (!listed) {
        statement.purposes = {Purpose::Other};
        return statement;
    }
    statement.output = listed->kind == PacketFunction::Log;
    statement.purposes = {statement.output                       ? Purpose::Log
                          : listed->kind == PacketFunction::Lock ? Purpose::Locks
                                                                 : Purpose::Time};
    return statement;
}

std::optional<Statement> StatementKinds::call(const CallBase &call, bool deep) const {
    if (isa<IntrinsicInst>(call))
        return isa<MemIntrinsic>(call) ? libraryCall(call, *call.getCalledFunction()) : std::nullopt;
    Statement whole;
    whole.vertices = verticesOf(call);
    std::vector<const Function *> withCode;
    for (const Function *callee : pointsTo.callees(call))
        if (!callee->isDeclaration()) withCode.push_back(callee);
    DenseSet<const Function *> within = deep ? calls.closure(withCode) : DenseSet<const Function *>();
    // What a library calls back is beyond what is asked here.
    whole.essential = isEssential(call) || pointsTo.callees(call).empty() || !pointsTo.callbacks(call).empty() ||
                      within.contains(&packet);
    if (whole.essential) return whole;
    std::optional<Statement> found;
    auto add = [&](const Statement &one) {
        if (!found) found = whole, found->what = one.what;
        found->essential |= one.essential, found->output |= one.output, found->givesBack |= one.givesBack;
        for (Purpose purpose : one.purposes)
            if (!is_contained(found->purposes, purpose)) found->purposes.push_back(purpose);
        found->writes.add(one.writes);
    };
    for (const Function *callee : pointsTo.callees(call))
        if (callee->isDeclaration())
            if (auto one = libraryCall(call, *callee)) add(*one);
    for (const Function *function : within)
        for (const Instruction &instruction : instructions(*function))
            if (auto one = of(instruction, false)) add(*one);
    if (!found) return found;
    if (!withCode.empty()) found->what = withCode[0]->getName().str();
    // It is listed under the first: a log before all others.
    sort(found->purposes);
    // What gives back blocks and does more counts for what it does more.
    if (found->purposes.size() > 1 || found->output) found->givesBack = false;
    return found;
}

std::vector<Vertex> StatementKinds::wholeOf(const CallBase &call) const {
    std::vector<Vertex> vertices;
    std::vector<const Function *> withCode;
    for (const Function *callee : calls.calledBy(&call)) withCode.push_back(callee);
    if (withCode.empty()) return vertices;
    for (unsigned i = 0; i < call.arg_size(); ++i) vertices.push_back(graph.ofArgument(&call, i));
    for (const Function *function : calls.closure(withCode))
        for (const Instruction &instruction : instructions(*function))
            for (Vertex vertex : verticesOf(instruction)) vertices.push_back(vertex);
    return vertices;
}

bool StatementKinds::sends() const {
    for (const Function *function : processing)
        for (const Instruction &instruction : instructions(*function))
            if (const auto *call = dyn_cast<CallBase>(&instruction))
                for (const Function *callee : pointsTo.callees(*call))
                    if (const PacketFunction *listed = functions.find(callee->getName());
                        listed && listed->kind == PacketFunction::Send)
                        return true;
    return false;
}

bool StatementKinds::threads() const {
    for (const Function &function : *packet.getParent()) {
        const std::vector<Effect> *effects =
            function.isDeclaration() && !function.use_empty() ? pointsTo.library().find(function.getName()) : nullptr;
        if (effects && any_of(*effects, [](const Effect &effect) { return effect.kind == Effect::StartsThread; }))
            return true;
    }
    return false;
}

} // namespace catena

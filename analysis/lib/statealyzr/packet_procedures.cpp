// Figure 4.7 of Khalid's dissertation:
//
//      1 pktProcs = {}
//      2 sdg = SystemDependenceGraph(prog)
//      3 foreach stmt in Statements(loopProc) do
//      4     if stmt calls PKT_RECV_FUNC then
//      5         slice = ForwardSlice(sdg, stmt, stmt.LHS)
//      6         pktProcs = pktProcs U Procedures(slice)
//      7 percrossflowVars = {}
//      8 foreach proc in pktProcs do
//      9     foreach stmt in Statements(proc) do
//     10         foreach var in Vars(stmt) do
//     11             if var in persistVars then
//     12                 percrossflowVars = percrossflowVars U {var}
//
// Four things are done with care beyond it. The slice keeps to what may be executed after a reception, and so do the
// statements: what a program does before its first packet is initialization (§4.2). Procedures called within the loop
// around a reception count even if no data leads there: "any code contained in the packet processing loop is used for
// processing packets". Variables reached through pointers count beside those that are named, so that each object that a
// packet changes has its own entry. And a variable used only as the handle of receive and send functions does not
// count: the text wants intPcap and extPcap of Figure 4.5 left out, though both stand in packet-processing statements.
#include "statealyzr/packet_procedures.h"

#include "dependence/graph_builder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace catena {

std::vector<const Instruction *> PacketProcedures::statements() const {
    std::vector<const Instruction *> all;
    for (const Function *procedure : procedures)
        for (const Instruction &instruction : instructions(*procedure))
            if (!isa<DbgInfoIntrinsic>(instruction) && executed->contains(&instruction)) all.push_back(&instruction);
    return all;
}

PacketProcedures packetProcedures(const Module &program, const Graph &graph, const CallGraph &calls,
                                  const std::vector<PacketCall> &receives, const std::vector<LoopProcedure> &loops,
                                  bool withInitialization) {
    PacketProcedures found;
    std::vector<const CallBase *> begin;
    for (const PacketCall &receive : receives) {
        begin.push_back(receive.call);
        found.packets.push_back(graph.of(receive.call));
    }
    found.executed = withInitialization ? std::make_unique<ExecutedAfter>(calls, program)
                                        : std::make_unique<ExecutedAfter>(calls, program, begin);
    SliceLimits after;
    SmallPtrSet<const CallBase *, 8> sources(begin.begin(), begin.end());
    after.vertices = [&](Vertex vertex) {
        const VertexInfo &info = graph[vertex];
        if (!info.function) return true;
        const auto *instruction = dyn_cast_or_null<Instruction>(info.value);
        if (!instruction) return found.executed->contains(info.function);
        const auto *call = dyn_cast<CallBase>(instruction);
        return found.executed->contains(instruction) || (call && sources.contains(call));
    };
    found.slice = std::make_unique<Slice>(graph, found.packets, Slice::Forward, after);
    DenseSet<const Function *> procedures;
    for (Vertex vertex : found.slice->vertices())
        if (const Function *function = graph[vertex].function) procedures.insert(function);
    // The body of the loop around a reception, and all that it calls.
    std::vector<const Function *> called;
    for (const LoopProcedure &loop : loops) {
        procedures.insert(loop.function);
        for (const CallBase *receive : loop.receives) {
            if (!sources.contains(receive)) continue;
            for (const BasicBlock *block : loopAround(*receive))
                for (const Instruction &instruction : *block)
                    if (const auto *call = dyn_cast<CallBase>(&instruction)) append_range(called, calls.calledBy(call));
        }
    }
    for (const Function *function : calls.closure(called)) procedures.insert(function);
    for (const Function &function : program)
        if (procedures.contains(&function)) found.procedures.push_back(&function);
    return found;
}

namespace {

/// Vars(stmt): call `visit` with the globals and cells that an instruction names, within constant expressions too.
template <typename Visit> void forNamed(const Value *operand, Visit visit) {
    if (isa<GlobalVariable, AllocaInst, Argument>(operand)) {
        visit(operand);
    } else if (const auto *expression = dyn_cast<ConstantExpr>(operand)) {
        for (const Use &inner : expression->operands()) forNamed(inner.get(), visit);
    }
}

/// Return whether what an instruction loads is used for nothing but handles of receive, send and log functions.
bool onlyHandle(const Instruction &load, const PacketFunctions &functions) {
    if (!isa<LoadInst>(load) || load.use_empty()) return false;
    return all_of(load.uses(), [&](const Use &use) {
        const auto *call = dyn_cast<CallBase>(use.getUser());
        const Function *callee = call ? namedCallee(*call) : nullptr;
        const PacketFunction *listed = callee ? functions.find(callee->getName()) : nullptr;
        return listed && call->isArgOperand(&use) && is_contained(listed->handles, call->getArgOperandNo(&use));
    });
}

} // namespace

void markTopLevel(std::vector<Variable> &variables, const PacketProcedures &packet, const Graph &graph,
                  const PacketFunctions &functions) {
    DenseMap<const Value *, Variable *> byValue;
    DenseMap<Location, Variable *> byLocation;
    for (Variable &variable : variables) {
        byValue[variable.value] = &variable;
        for (Location location : variable.own) byLocation[location] = &variable;
    }
    auto touch = [&](const SparseSet &locations) {
        for (Location location : locations)
            if (Variable *variable = byLocation.lookup(location))
                if (variable->use == Variable::Unused) variable->use = Variable::ThroughPointer;
    };
    const PointsTo &pointsTo = graph.pointsTo();
    for (const Instruction *statement : packet.statements()) {
        // The cell's own instruction does not use it.
        if (isa<AllocaInst>(statement)) continue;
        bool handle = onlyHandle(*statement, functions);
        for (const Use &operand : statement->operands())
            forNamed(operand.get(), [&](const Value *named) {
                Variable *variable = byValue.lookup(named);
                if (variable && !handle) variable->use = Variable::Named;
            });
        if (!handle) {
            touch(readBy(*statement, pointsTo));
            touch(written(*statement, pointsTo));
        }
        if (const auto *call = dyn_cast<CallBase>(statement)) {
            auto with = [&](const Function &callee) {
                LibraryAccess access = libraryAccess(*call, callee, pointsTo);
                touch(access.reads);
                touch(access.writes);
            };
            if (const Function *callee = call->getCalledFunction(); callee && callee->isIntrinsic()) with(*callee);
            for (const Function *callee : pointsTo.callees(*call))
                if (callee->isDeclaration()) with(*callee);
        }
    }
}

} // namespace catena

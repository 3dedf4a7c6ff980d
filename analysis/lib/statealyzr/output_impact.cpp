// Figure 4.11 of Khalid's dissertation:
//
//      1 pktoutputVars = {}
//      2 logoutputVars = {}
//      3 foreach proc in pktProcs do
//      4     foreach stmt in Statements(proc) do
//      5         if stmt calls PKT_OUTPUT_FUNC or stmt calls LOG_OUTPUT_FUNC then
//      6             slice = BackwardSlice(sdg, stmt, Vars(stmt.RHS))
//      7             foreach sliceStmt in Statements(slice) do
//      8                 foreach var in Vars(sliceStmt) do
//      9                     if var in updateableVars then
//     10                         if stmt calls PKT_OUTPUT_FUNC then
//     11                             pktoutputVars = pktoutputVars U {var}
//     12                         else
//     13                             logoutputVars = logoutputVars U {var}
//
// The union of the slices of all sends is the slice of all sends at once, so two slices do. A statement that gets at a
// variable through a pointer counts like one that names it (Theorem A.5 speaks of what is reachable).
#include "statealyzr/output_impact.h"

#include "dependence/graph_builder.h"

using namespace llvm;

namespace catena {

namespace {

void mark(std::vector<Variable> &variables, const std::vector<PacketCall> &outputs, const PacketProcedures &packet,
          const Graph &graph, bool Variable::*impact) {
    std::vector<Vertex> begin;
    for (const PacketCall &output : outputs) {
        if (!is_contained(packet.procedures, output.call->getFunction()) || !packet.executed->contains(output.call))
            continue;
        begin.push_back(graph.ofCall(output.call));
        begin.push_back(graph.of(output.call));
    }
    Slice slice(graph, begin, Slice::Backward);
    SparseSet influential;
    DenseSet<const Value *> named;
    for (Vertex vertex : slice.vertices()) {
        const VertexInfo &info = graph[vertex];
        if (info.kind == VertexKind::Definition) influential.insert(info.index);
        const auto *instruction = dyn_cast_or_null<Instruction>(info.value);
        if (!instruction || !packet.executed->contains(instruction)) continue;
        // What is read but never stored to has no definitions.
        if (isa<LoadInst>(instruction)) influential.add(readBy(*instruction, graph.pointsTo()));
        for (const Use &operand : instruction->operands())
            if (isa<GlobalVariable, AllocaInst, Argument>(operand)) named.insert(operand.get());
    }
    for (Variable &variable : variables)
        if (variable.updateable)
            variable.*impact = variable.own.intersects(influential) || named.contains(variable.value);
}

} // namespace

void markOutputImpact(std::vector<Variable> &variables, const std::vector<PacketCall> &sends,
                      const std::vector<PacketCall> &logs, const PacketProcedures &packet, const Graph &graph) {
    mark(variables, sends, packet, graph, &Variable::packetOutput);
    mark(variables, logs, packet, graph, &Variable::logOutput);
}

} // namespace catena

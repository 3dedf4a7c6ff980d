// Figure 4.9 of Khalid's dissertation:
//
//     1 updateableVars = {}
//     2 foreach proc in pktProcs do
//     3     foreach stmt in AssignmentStmts(proc) do
//     4         foreach var in percrossflowVars do
//     5             if stmt.LHS == var
//                      or var in PointsTo(stmt.LHS)
//                      or PointsTo(var) n PointsTo(stmt.LHS) != {} then
//     6                 updateableVars = updateableVars U {var}
//
// PointsTo(var) holds all that is reachable from the variable, over any number of pointers; PointsTo(stmt.LHS) the
// locations that the assignment writes. Assignments are stores and the library functions that write (memcpy,
// inet_ntop).
#include "statealyzr/updateable_variables.h"

#include "dependence/graph_builder.h"
#include "report/reasons.h"

using namespace llvm;

namespace catena {

std::vector<MemoryStatement> memoryStatements(const PacketProcedures &packet, const PointsTo &pointsTo) {
    std::vector<MemoryStatement> found;
    for (const Instruction *instruction : packet.statements()) {
        MemoryStatement statement{instruction, {}, {}};
        if (const auto *call = dyn_cast<CallBase>(instruction)) {
            auto with = [&](const Function &callee) {
                LibraryAccess access = libraryAccess(*call, callee, pointsTo);
                statement.reads.add(access.reads);
                statement.writes.add(access.writes);
            };
            if (const Function *callee = call->getCalledFunction(); callee && callee->isIntrinsic()) with(*callee);
            for (const Function *callee : pointsTo.callees(*call))
                if (callee->isDeclaration()) with(*callee);
        } else {
            statement.reads = readBy(*instruction, pointsTo);
            statement.writes = written(*instruction, pointsTo);
        }
        if (!statement.reads.empty() || !statement.writes.empty()) found.push_back(std::move(statement));
    }
    return found;
}

void markUpdateable(std::vector<Variable> &variables, const std::vector<MemoryStatement> &statements,
                    const PacketProcedures &packet, const Graph &graph) {
    // Many variables share what they reach, and many statements what they write: locations are asked, not pairs.
    for (Variable &variable : variables) {
        if (!variable.topLevel()) continue;
        const Instruction *direct = nullptr, *indirect = nullptr;
        for (const MemoryStatement &statement : statements) {
            if (statement.reads.intersects(variable.reach)) ++variable.reads;
            if (!statement.writes.intersects(variable.reach)) continue;
            ++variable.writes;
            bool own = statement.writes.intersects(variable.own);
            // The clearest reason: a statement that the packet leads to, and that writes the variable itself.
            bool led = packet.slice->contains(graph.of(statement.instruction));
            if (own && (!direct || (led && !packet.slice->contains(graph.of(direct))))) direct = statement.instruction;
            if (!own && (!indirect || (led && !packet.slice->contains(graph.of(indirect)))))
                indirect = statement.instruction;
        }
        variable.updateable = variable.writes > 0;
        if (const Instruction *because = direct ? direct : indirect)
            variable.why = reason(graph, *packet.slice, *because,
                                  direct ? "updates " + variable.name : "updates what " + variable.name + " leads to");
    }
}

} // namespace catena

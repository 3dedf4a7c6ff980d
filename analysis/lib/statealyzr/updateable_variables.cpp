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
#include "llvm/ADT/BitVector.h"

using namespace llvm;

namespace catena {

MemoryStatements memoryStatements(const PacketProcedures &packet, const PointsTo &pointsTo) {
    MemoryStatements found;
    for (const Instruction *instruction : packet.statements()) {
        SparseSet reads = readBy(*instruction, pointsTo), writes = written(*instruction, pointsTo);
        if (const auto *call = dyn_cast<CallBase>(instruction)) {
            auto with = [&](const Function &callee) {
                LibraryAccess access = libraryAccess(*call, callee, pointsTo);
                reads.add(access.reads);
                writes.add(access.writes);
            };
            if (const Function *callee = call->getCalledFunction(); callee && callee->isIntrinsic()) with(*callee);
            for (const Function *callee : pointsTo.callees(*call))
                if (callee->isDeclaration()) with(*callee);
        }
        if (reads.empty() && writes.empty()) continue;
        found.all.push_back({instruction, found.sets.keep(std::move(reads)), found.sets.keep(std::move(writes))});
    }
    return found;
}

namespace {

/// Tells which variables are met by sets of locations: variables by location first, so that a set is gone through
/// once, not once for every variable.
class MetVariables {
public:
    using Part = SparseSet Variable::*;
    MetVariables(const std::vector<Variable> &variables, Part part) : count(static_cast<unsigned>(variables.size())) {
        for (unsigned i = 0; i < count; ++i) {
            if (!variables[i].topLevel()) continue;
            for (Location location : variables[i].*part) {
                BitVector &there = byLocation[location];
                there.resize(count);
                there.set(i);
            }
        }
    }

    /// Return the numbers of the variables of which a set holds a location.
    const BitVector &by(const SparseSet *set) {
        auto [at, isNew] = bySet.try_emplace(set);
        if (!isNew) return at->second;
        BitVector met(count);
        for (Location location : *set)
            if (auto found = byLocation.find(location); found != byLocation.end()) met |= found->second;
        return bySet[set] = std::move(met);
    }

private:
    unsigned count;
    DenseMap<Location, BitVector> byLocation;
    DenseMap<const SparseSet *, BitVector> bySet;
};

} // namespace

void markUpdateable(std::vector<Variable> &variables, const MemoryStatements &statements,
                    const PacketProcedures &packet, const Graph &graph) {
    MetVariables reaching(variables, &Variable::reach), owning(variables, &Variable::own);
    struct Because {
        const Instruction *direct = nullptr, *indirect = nullptr;
    };
    std::vector<Because> because(variables.size());
    auto led = [&](const Instruction *instruction) { return packet.slice->contains(graph.of(instruction)); };
    for (const MemoryStatement &statement : statements.all) {
        for (unsigned i : reaching.by(statement.reads).set_bits()) ++variables[i].reads;
        const BitVector &own = owning.by(statement.writes);
        for (unsigned i : reaching.by(statement.writes).set_bits()) {
            ++variables[i].writes;
            // The clearest reason: a statement that the packet leads to, and that writes the variable itself.
            const Instruction *&known = own.test(i) ? because[i].direct : because[i].indirect;
            if (!known || (led(statement.instruction) && !led(known))) known = statement.instruction;
        }
    }
    for (size_t i = 0; i < variables.size(); ++i) {
        Variable &variable = variables[i];
        variable.updateable = variable.writes > 0;
        const Instruction *direct = because[i].direct, *indirect = because[i].indirect;
        if (const Instruction *update = direct ? direct : indirect)
            variable.why = reason(graph, *packet.slice, *update,
                                  direct ? "updates " + variable.name : "updates what " + variable.name + " leads to");
    }
}

} // namespace catena

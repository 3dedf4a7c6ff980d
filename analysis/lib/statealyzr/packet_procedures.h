// Finds packet-processing procedures and top-level variables: Khalid's dissertation, Figure 4.7.
#pragma once

#include "dependence/execution.h"
#include "dependence/slice.h"
#include "statealyzr/loop_procedures.h"
#include "statealyzr/variables.h"
#include <optional>

namespace catena {

/// The packet-processing procedures of a program.
struct PacketProcedures {
    /// The procedures, in the order of the program.
    std::vector<const llvm::Function *> procedures;
    /// The vertices where packets enter.
    std::vector<Vertex> packets;
    /// The forward slice from there.
    std::unique_ptr<Slice> slice;
    /// What may be executed after the first packet was received.
    std::unique_ptr<ExecutedAfter> executed;

    /// Return the statements that process packets: those of the procedures that may be executed after a reception.
    std::vector<const llvm::Instruction *> statements() const;
};

/// Find the procedures that a received packet may affect, and those called in the loop around its reception;
/// `withInitialization` as if what runs before the first packet could depend on packets too.
PacketProcedures packetProcedures(const llvm::Module &program, const Graph &graph, const CallGraph &calls,
                                  const std::vector<PacketCall> &receives, const std::vector<LoopProcedure> &loops,
                                  bool withInitialization = false);

/// Mark the top-level variables: persistent variables that packet-processing statements use by name, or get at through
/// a pointer. A variable that only says through which device packets come and go is none.
void markTopLevel(std::vector<Variable> &variables, const PacketProcedures &packet, const Graph &graph,
                  const PacketFunctions &functions);

} // namespace catena

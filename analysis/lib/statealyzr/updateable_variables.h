// Finds updateable variables: Khalid's dissertation, Figure 4.9.
#pragma once

#include "statealyzr/packet_procedures.h"

namespace catena {

/// A statement of packet-processing code that writes or reads memory.
struct MemoryStatement {
    const llvm::Instruction *instruction;
    const SparseSet *reads, *writes;
};

/// The packet-processing statements that touch memory, with what they touch: few sets for many statements.
struct MemoryStatements {
    std::vector<MemoryStatement> all;
    SharedSets sets;
};
MemoryStatements memoryStatements(const PacketProcedures &packet, const PointsTo &pointsTo);

/// Mark the top-level variables that packet-processing code may update, with the reason, and count what reads and
/// writes each: its access pattern.
void markUpdateable(std::vector<Variable> &variables, const MemoryStatements &statements,
                    const PacketProcedures &packet, const Graph &graph);

} // namespace catena

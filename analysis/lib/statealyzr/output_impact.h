// Finds which output updateable variables impact: Khalid's dissertation, Figure 4.11.
#pragma once

#include "statealyzr/updateable_variables.h"

namespace catena {

/// Mark the updateable variables that may change packets or logs that packet-processing code puts out.
void markOutputImpact(std::vector<Variable> &variables, const std::vector<PacketCall> &sends,
                      const std::vector<PacketCall> &logs, const PacketProcedures &packet, const Graph &graph);

} // namespace catena

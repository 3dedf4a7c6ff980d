// Finds the header fields that key a variable's entries: Khalid's dissertation, Figure 4.10.
#pragma once

#include "statealyzr/packet_procedures.h"

namespace catena {

/// Mark the variables that can hold entries of several flows, whether packet-processing code looks entries up, and by
/// which header fields.
///
/// Header fields are members of structs that lie over the packet, the system's or the program's own; names of the
/// system's are those of `lists/header-fields.list`. With `byRoot` a look-up counts for the variables it begins at
/// only.
void markFlowspaces(std::vector<Variable> &variables, const llvm::Module &program, const PacketProcedures &packet,
                    const std::vector<PacketCall> &receives, const std::vector<LoopProcedure> &loops,
                    const Graph &graph, const CallGraph &calls, bool byRoot);

} // namespace catena

// Finds updateable variables that packets change and nothing reads.
#pragma once

#include "statealyzr/packet_procedures.h"

namespace catena {

/// Mark the updateable variables whose content no statement reads after the first reception except to update the
/// variable itself. To be called when output impact is known.
void markUnread(std::vector<Variable> &variables, const PacketProcedures &packet, const Graph &graph);

} // namespace catena

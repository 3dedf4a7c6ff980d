// Finds updateable variables that packets change and nothing reads.
#pragma once

#include "statealyzr/packet_procedures.h"

namespace catena {

/// Return whether no statement reads some locations after the first reception except to update them. `persistent` are
/// the locations of all persistent variables: whatever is put there is kept.
bool isUnread(const SparseSet &within, const SparseSet &persistent, const PacketProcedures &packet, const Graph &graph);

/// Mark the updateable variables whose content no statement reads after the first reception except to update the
/// variable itself. To be called when output impact is known.
void markUnread(std::vector<Variable> &variables, const PacketProcedures &packet, const Graph &graph);

} // namespace catena

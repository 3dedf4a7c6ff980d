// Finds the objects in memory that hold a program's state, and by what traffic may be split over instances.
#pragma once

#include "statealyzr/flowspaces.h"
#include "statealyzr/updateable_variables.h"

namespace catena {

/// An object, or a table within one, that packets change.
struct StateObject {
    /// The variable, with the member; or where the memory is allocated.
    std::string name, type;
    Place declared;
    /// Header fields that every look-up of an entry uses; empty if all packets share what is there.
    std::set<std::string> scope;
    /// Statements that read and write it.
    unsigned reads = 0, writes = 0;
    /// Whether what is written depends on packets, and whether nothing reads it but to update it.
    bool fromPackets = false, unread = false;
};

/// Find what packets change, object by object; the points-to sets must tell the members of structs apart.
std::vector<StateObject> stateObjects(const std::vector<Variable> &variables, Flowspaces &flowspaces,
                                      const MemoryStatements &statements, const PacketProcedures &packet,
                                      const Graph &graph);

} // namespace catena

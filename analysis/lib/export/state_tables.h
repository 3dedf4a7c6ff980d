// Writes into a program what its state is made of: the tables of runtime/layout.h.
#pragma once

#include "export/allocation_sites.h"

namespace catena {

/// What a program's runtime needs to know beside its variables.
struct RuntimeTables {
    llvm::MapVector<llvm::CallBase *, AllocationSite> sites;
    /// Where packets end.
    std::vector<Place> boundaries;
};

/// Add the tables to the original program: its objects, persistent variables, types, allocations and functions; and
/// have the procedures with a packet loop say where their cells are.
///
/// Errors: a local variable of such a procedure whose size is known only when it runs.
llvm::Error addStateTables(StateFindings &findings, const RuntimeTables &tables);

} // namespace catena

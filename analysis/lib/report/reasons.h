// Reasons: chains of statements through the dependence graph, for people.
#pragma once

#include "dependence/slice.h"
#include "statealyzr/variables.h"

namespace catena {

/// Return the statements from the reception of a packet to a statement, by a shortest way through a forward slice;
/// `what` says what the last one does. A statement outside of the slice is its own reason.
std::vector<Step> reason(const Graph &graph, const Slice &slice, const llvm::Instruction &statement,
                         const std::string &what);

} // namespace catena

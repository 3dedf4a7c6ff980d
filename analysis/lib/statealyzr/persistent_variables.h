// Finds persistent variables: Khalid's dissertation, Figure 4.6.
#pragma once

#include "pointsto/points_to.h"
#include "statealyzr/loop_procedures.h"
#include "statealyzr/variables.h"

namespace catena {

/// Return the variables whose values outlive the processing of a packet: global and static ones, and the locals and
/// parameters of the loop procedures.
///
/// Counted are variables that the source declares; constants (strings, tables) only if they point to what can change.
std::vector<Variable> persistentVariables(const llvm::Module &program, const PointsTo &pointsTo,
                                          const std::vector<LoopProcedure> &loops);

} // namespace catena

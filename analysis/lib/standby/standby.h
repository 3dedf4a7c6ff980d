// Makes a program that can be the primary or the hot standby: Khalid's dissertation, §4.5 and §4.6.2.
#pragma once

#include "tracking/updates.h"

namespace catena {

/// Add to the original program what the runtime (runtime/standby.c) needs: calls where packets end, allocations that
/// are known, notes of what is written, updated bits, and the tables of its state.
///
/// Errors: those of `trackUpdates`, `packetEnds` and `addStateTables`.
llvm::Error makeStandby(StateFindings &findings);

} // namespace catena

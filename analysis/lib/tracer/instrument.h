// Instruments a program so that it reports, when it is run, what packets did to its variables.
#pragma once

#include "library/effects.h"
#include "library/packet_functions.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"

namespace catena {

/// Insert calls of the runtime (`runtime/trace/trace.h`) into a program, and take its debug information away.
///
/// Every load and store of memory that can be persistent is seen, what library functions read by the list, and what
/// they write by comparing. Packets are received by calls of listed functions that name them; calls of these through
/// pointers are not seen.
///
/// Errors: a program without `main`.
llvm::Error instrumentForTrace(llvm::Module &program, const LibraryEffects &library, const PacketFunctions &functions);

} // namespace catena

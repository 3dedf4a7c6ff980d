// Runs a program traced, within this process's own child, without writing an executable.
#pragma once

#include "tracer/misses.h"
#include "llvm/ADT/StringRef.h"

namespace catena::random {

/// Run bitcode of a program, instrumented, with `packets` random packets from a seed; it may take ten seconds.
llvm::Expected<ObservedRun> runTraced(llvm::StringRef bitcode, uint64_t seed, unsigned packets);

} // namespace catena::random

// The manifest: a function's state as plans read it.
#pragma once

#include "statealyzr/analysis.h"
#include "llvm/Support/raw_ostream.h"

namespace catena {

/// Write what packets change, object by object, as JSON described in docs/analyze.md; `Native` functions take it.
void writeManifest(const StateReport &report, llvm::raw_ostream &out);

} // namespace catena

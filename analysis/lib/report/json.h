// The report as JSON; the schema is in `docs/analyze.md`.
#pragma once

#include "statealyzr/analysis.h"
#include "llvm/Support/raw_ostream.h"

namespace catena {

/// Write reports as JSON, described in docs/analyze.md: one as an object, several as an array of them.
void writeJson(const std::vector<StateReport> &reports, llvm::raw_ostream &out);

} // namespace catena

// The report as JSON; the schema is in `docs/analyze.md`.
#pragma once

#include "statealyzr/analysis.h"
#include "llvm/Support/raw_ostream.h"

namespace catena {

/// Write the report as one JSON object.
void writeJson(const StateReport &report, llvm::raw_ostream &out);

} // namespace catena

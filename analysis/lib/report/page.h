// The report as one page for a browser.
#pragma once

#include "statealyzr/analysis.h"
#include "llvm/Support/raw_ostream.h"

namespace catena {

/// Write a page in HTML that needs nothing else: a table of the variables, the source with the state coloured, and for
/// each variable and line the reasons. Source files are found by debug information; the page says which are missing.
void writePage(const StateReport &report, llvm::raw_ostream &out);

} // namespace catena

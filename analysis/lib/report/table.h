// The report as a table for people.
#pragma once

#include "statealyzr/analysis.h"
#include "llvm/Support/raw_ostream.h"

namespace catena {

/// What a variable's entries are keyed by, in words: `-` for one value, `*` for all flows, or header fields.
std::string scopeOf(const Variable &variable);
/// How packet-processing code uses something, by the statements that read and write it: read, written, or both and what
/// mostly.
std::string accessPattern(unsigned reads, unsigned writes);

/// What a variable impacts, in words: `packets`, `logs`, both; `unread` if nothing reads it, `-` for nothing.
std::string outputOf(const Variable &variable);

/// Print the table of top-level variables; `all` adds the persistent ones that are not, `why` the reasons.
void printTable(const StateReport &report, bool all, bool why, llvm::raw_ostream &out);

} // namespace catena

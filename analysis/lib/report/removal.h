// What a reduction removed, line by line, for people and for programs.
#pragma once

#include "reduce/reduce.h"
#include "llvm/Support/raw_ostream.h"

namespace catena {

/// What the outputs of a reduction are, for its report: sizes are bytes of machine code and data, 0 if it was not made.
struct ReductionSizes {
    uint64_t original = 0, reduced = 0, shared = 0;
};

/// Write a text: figures, then each line of the source of which nothing is left, with the reason.
void writeRemovalText(const Reduction &reduction, const ReductionSizes &sizes, llvm::raw_ostream &to);
/// Write the same as JSON, described in docs/reduce.md.
void writeRemovalJson(const Reduction &reduction, const ReductionSizes &sizes, llvm::raw_ostream &to);

} // namespace catena

// Comparing programs of which one does not write what was dropped.
#pragma once

#include "reduce/reduce.h"

namespace catena {

/// The original taken apart but whole, and both programs without what was dropped; made when they are first needed.
struct Silent {
    std::string apart, original, reduced;
    llvm::Error make(const Reduction &reduction, const LinkFlags &link, const Scratch &scratch);
};

/// Return how two runs differ: in how they end, or in the files that they write, by their names.
std::string endDifference(const Run &original, const Run &reduced);
std::map<std::string, std::string> fileDifferences(const Run &original, const Run &reduced);
/// Return the first of these differences, or nothing.
std::string firstDifference(const Run &original, const Run &reduced);

} // namespace catena

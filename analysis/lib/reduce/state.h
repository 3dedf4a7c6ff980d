// Comparing the state that two programs leave.
#pragma once

#include "reduce/image.h"
#include "reduce/private.h"
#include "reduce/written.h"

namespace catena {

/// What was compared, and the first difference.
struct StateComparison {
    unsigned variables = 0;
    uint64_t bytes = 0;
    std::string difference;
};

/// Compare the globals of the program that both images have and what they lead to; parts that are of one packet only
/// are left out, and so is memory that is no longer updated.
///
/// Blocks that libraries allocated for themselves are not looked into: `ownBlocks` are the calls that allocate others.
/// Where libraries gave each program packets of their own, `samePackets` is false: pointers to libraries' blocks may
/// then lead anywhere.
StateComparison compareState(const llvm::Module &program, const Image &original, const Image &reduced,
                             const std::map<std::string, PrivateParts> &privates, const std::set<unsigned> &ownBlocks,
                             const WrittenMemory &leftOut, bool samePackets = true);

} // namespace catena

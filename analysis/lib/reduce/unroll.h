// Unrolling the loops over configuration, rule by rule.
#pragma once

#include "reduce/decision.h"

namespace catena {

/// How far loops are unrolled.
struct UnrollLimits {
    /// Iterations of one loop, and instructions of the packet function after unrolling.
    unsigned iterations = 4096, instructions = 60000;
    /// Iterations above which a decision tree is put before a loop instead, if it has the shape for it.
    unsigned decided = 64;
};

/// What became of a loop over configuration.
struct UnrolledLoop {
    Place place;
    unsigned iterations;
    /// Whether it was left a loop, for its size.
    bool kept;
    /// What stands before it instead, if it was not unrolled for that.
    std::optional<Decision> decision;
};

/// Unroll a loop of the packet function whose course frozen memory decides, if there is one, and return what was done.
///
/// Loops in `kept` are passed over; one that is too large is put there, and one that got a decision tree.
std::optional<UnrolledLoop> unrollOne(llvm::Function &packet, Frozen &frozen, const UnrollLimits &limits,
                                      std::set<const llvm::BasicBlock *> &kept);

} // namespace catena

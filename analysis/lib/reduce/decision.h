// Leading a loop over many entries straight to those that may matter for the packet at hand.
#pragma once

#include "reduce/entry_conditions.h"

namespace catena {

/// What stands before a loop that was not unrolled.
struct Decision {
    unsigned entries, fields, nodes, deepest, longest;
};

/// Put a decision tree before a loop, so that it runs through the entries only that may matter; nothing is changed if
/// the loop is not of the shape for it, or the tree would not make it shorter.
///
/// The loop's body stays as it is and decides about every entry that the tree leads it to, in their order: what the
/// tree leaves out would have done nothing but go on to the next.
std::optional<Decision> decide(llvm::Loop &loop, const IterationValues &iterations, Frozen &frozen,
                               llvm::DominatorTree &tree);

} // namespace catena

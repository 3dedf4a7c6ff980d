// Taking merged paths apart, so that each keeps only what it needs.
#pragma once

#include "llvm/IR/Function.h"

namespace catena {

/// Take a merge of paths that bring different values apart: each path gets what follows as its own copy. Return how
/// many instructions were copied; 0 if there was no such merge, or the function would have more than a number of
/// instructions.
///
/// The first `passed` merges are passed over. Paths that bring the same values stay merged; so do those after which
/// nothing is decided any more.
unsigned splitOne(llvm::Function &function, unsigned mostInstructions, unsigned passed);

} // namespace catena

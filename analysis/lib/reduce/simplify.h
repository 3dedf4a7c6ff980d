// LLVM's own passes on one function.
#pragma once

#include "llvm/IR/Function.h"

namespace catena {

/// Propagate constants and remove what became dead and unreachable: after each step that makes constants.
void propagateConstants(llvm::Function &function);
/// Remove what is decided on a path by what was decided before on it.
void propagateDecisions(llvm::Function &function);
/// Run all of LLVM's simplifications of -O3 that look at one function.
void simplify(llvm::Function &function);

} // namespace catena

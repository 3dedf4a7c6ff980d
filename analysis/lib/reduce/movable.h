// Where a reduced program has its state, written into it: for the object that takes its place when the configuration
// changes.
#pragma once

#include "reduce/reduce.h"

namespace catena {

/// Add to a copy of a reduced program the tables of runtime/layout.h and of runtime/adapter/state.h, and have its calls
/// of `allocators` say which they are.
///
/// All objects that were reduced from one program have the same names and numbers in their tables, whatever the
/// configuration.
void addMovableState(llvm::Module &program, const Reduction &reduction, const std::set<std::string> &allocators);

} // namespace catena

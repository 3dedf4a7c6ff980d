// Linking a program with shared libraries the way the loader does.
#pragma once

#include "llvm/IR/Module.h"

namespace catena {

/// Prepare the code of a whole shared library for being linked into a program: what is hidden becomes its own, and what
/// the program defines too is left to the program, as the loader takes the first definition of a name.
void giveWay(llvm::Module &library, const llvm::Module &program);

} // namespace catena

// Turning local variables into SSA values before the analysis.
#pragma once

#include "llvm/ADT/StringSet.h"
#include "llvm/IR/Module.h"

namespace catena {

/// Turn the local variables whose address is never taken into SSA values, but keep those of the functions in `kept`.
///
/// At -O0 every local is a memory cell. As SSA values they are flow-sensitive and cost nothing in points-to sets; but
/// the locals of loop procedures are persistent variables (Khalid's dissertation, Figure 4.6, line 5), so they stay
/// cells that have a name.
void promoteLocals(llvm::Module &program, const llvm::StringSet<> &kept);

} // namespace catena

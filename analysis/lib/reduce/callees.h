// What a packet function calls: taken into it as far as that stays of a size, and copied for it alone beyond.
#pragma once

#include "llvm/IR/Module.h"
#include <vector>

namespace catena {

/// Inline all calls of functions with code, until the packet function is large; return how many.
unsigned inlineCalls(llvm::Function &packet);

/// Remove functions that nothing calls any more: what only they used is the packet function's own then.
void removeUncalled(llvm::Module &program);

/// Return the functions with code that a packet function still calls by name, directly or by one another: too large to
/// be inlined, or recursive. Those that others use as well are copied first, so that what holds while packets are
/// processed can be built into them.
std::vector<llvm::Function *> ownCallees(llvm::Function &packet);

/// Let functions that only the given ones call have the values that all of these calls pass alike; return how many.
unsigned propagateArguments(llvm::ArrayRef<llvm::Function *> callees);

/// Return the number of instructions of a function and of all that it calls by name.
unsigned instructionsWithCallees(const llvm::Function &packet);

} // namespace catena

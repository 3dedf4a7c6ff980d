// Object code of programs, made in this process.
#pragma once

#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"

namespace catena {

/// Return an object file for this machine, position-independent, optimized as by clang's `-O` of a level (0 to 3).
///
/// Errors: a program for another machine.
llvm::Expected<llvm::SmallVector<char, 0>> objectCode(const llvm::Module &program, unsigned level);

} // namespace catena

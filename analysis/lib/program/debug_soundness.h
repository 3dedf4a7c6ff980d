// Debug information whose parts are what they must be: LLVM's accessors cast them without looking.
#pragma once

#include "llvm/IR/Module.h"
#include <optional>
#include <string>

namespace catena {

/// Return what is wrong with a program's debug information, if anything.
///
/// LLVM's verifier looks at most of it, but lets some operands of a damaged file be of any kind: a name that is no
/// text, a scope that is none. Whoever asks for them then crashes. All nodes that the program leads to are looked at.
std::optional<std::string> unsoundDebugInformation(const llvm::Module &program);

} // namespace catena

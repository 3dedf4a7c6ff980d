// What libraries keep once for a process, for functions that were processes of their own.
#pragma once

#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"
#include <vector>

namespace catena {

/// Give a program that shares its process with others state of its own in getopt and strtok.
void ownLibraryState(llvm::Module &program, llvm::StringRef name);

/// Return an error if programs that shall share a process use what a process has only once: signals, the folder it runs
/// in, random numbers, threads.
llvm::Error mayShareProcess(const std::vector<const llvm::Module *> &programs, const std::vector<std::string> &names);

} // namespace catena

// Files that a tool writes: that one cannot be written is said before the work, and what was not written is an error.
#pragma once

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"
#include <string>

namespace catena {

/// Check that a file can be written, without touching it. Nothing is wrong with an empty name: no file is asked for.
llvm::Error checkWritable(const std::string &file);

/// Write a file in one step, beside it first. It keeps its permissions, and a link goes on leading to it. What is no
/// file, such as `/dev/stdout` or a pipe, is written to directly.
llvm::Error writeOutput(const std::string &file, llvm::function_ref<void(llvm::raw_ostream &)> write);

/// Write what is printed to the end. What cannot be written would end the process with LLVM's own message otherwise.
llvm::Error finishOutput(llvm::raw_fd_ostream &printed);

} // namespace catena

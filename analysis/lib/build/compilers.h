// Compilers that leave bitcode in what they make.
#pragma once

#include "llvm/Support/Error.h"
#include <string>

namespace catena {

/// Names the environment variable that holds a file's path; paths of linked files are added to it, one a line.
constexpr const char *linkedVariable = "CATENA_LINKED";

/// Write a folder of compilers, under all names that a build may call a compiler of this machine by, that pass
/// everything on to clang 19 and make it keep the bitcode; return its path. It stays there, as builds may remember it.
///
/// Errors: there is no clang 19, or the folder cannot be written.
llvm::Expected<std::string> compilersWithBitcode();

} // namespace catena

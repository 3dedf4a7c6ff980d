// Building a program with any build system, and finding what came out of it with its bitcode.
#pragma once

#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace catena {

/// A program that was built: an executable, or a shared library that no executable of the build asks for.
struct BuiltProgram {
    std::string path;
    /// The shared libraries of the same build that it asks for, directly or through others; in the loader's order.
    std::vector<std::string> libraries;
};

/// Run a build command with compilers that leave bitcode in what they make, and return the programs that it linked, by
/// path. What the command prints goes to the standard error.
///
/// Errors: the command cannot be run or fails, there is no clang 19, or nothing with bitcode was linked.
llvm::Expected<std::vector<BuiltProgram>> build(const std::vector<std::string> &command);

/// Return the program that a user calls `name`: its path, the end of it, or its file name.
///
/// Errors: there is none, or there are several; both say which there are.
llvm::Expected<BuiltProgram> choose(const std::vector<BuiltProgram> &programs, llvm::StringRef name);

} // namespace catena

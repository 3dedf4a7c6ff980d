// Reading whole programs as LLVM bitcode.
#pragma once

#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <string>
#include <vector>

namespace catena {

/// Return an error with a message for the user.
llvm::Error failure(const llvm::Twine &message);

/// Read bitcode files, or executables that carry their bitcode, and link them into one program, with shared libraries
/// that carry theirs.
///
/// Errors, each a message that says what to do: a file that cannot be read or is not bitcode, bitcode of a newer LLVM,
/// two definitions of one name, damaged bitcode, a program without debug information.
llvm::Expected<std::unique_ptr<llvm::Module>> readProgram(const std::vector<std::string> &files,
                                                          llvm::LLVMContext &context,
                                                          const std::vector<std::string> &libraries = {});

} // namespace catena

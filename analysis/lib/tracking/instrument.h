// Emits a program that sets an updated bit before each update: Khalid's dissertation, Figure 4.12a.
#pragma once

#include "tracking/updates.h"

namespace catena {

/// Add the updated bits to the original program, and note in the report where they are set.
///
/// The program then has `char catena_updated[]`, one element for each updateable variable in the order of the report,
/// `catena_updated_names` beside it and `unsigned catena_updated_count` (`runtime/updated.h`). Whoever reads an element
/// takes it back. Errors: a program that has them already.
llvm::Error trackUpdates(StateFindings &findings, const std::vector<Update> &updates);

/// Write a program as bitcode. Errors: a file that cannot be written, a program that is not whole.
llvm::Error writeProgram(const llvm::Module &program, const std::string &file);

} // namespace catena

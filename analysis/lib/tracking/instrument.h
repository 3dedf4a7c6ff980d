// Emits a program that sets an updated bit before each update: Khalid's dissertation, Figure 4.12a.
#pragma once

#include "program/output_file.h"
#include "tracking/updates.h"

namespace catena {

/// Add the updated bits to the original program, and note in the report where they are set.
///
/// The program then has `void catena_take_updated(char *bits)`, which says which updateable variables, in the order of
/// the report, have their bits set, and takes these back; beside it `catena_updated_names` and `unsigned
/// catena_updated_count` (`runtime/updated.h`). Errors: a program that has them already.
llvm::Error trackUpdates(StateFindings &findings, const std::vector<Update> &updates);

/// Write a program as bitcode. Errors: a file that cannot be written, a program that is not whole.
llvm::Error writeProgram(const llvm::Module &program, const std::string &file, OutputFiles &outputs);

} // namespace catena

// What every tool can be told of functions that it does not know: --receive, --functions and --library.
#pragma once

#include "program/used_files.h"
#include "statealyzr/analysis.h"
#include "llvm/Support/CommandLine.h"

namespace catena {

/// The options that `--help` lists: a tool's own and these. Other files' options are LLVM's.
llvm::cl::OptionCategory &toolOptions();

/// Add the lists that the command line names to the files that are read.
llvm::Error addLists(UsedFiles &used);

/// Add what the command line tells to what is known. Errors name the file and line, or the option.
llvm::Error readKnownFunctions(AnalysisOptions &options);

/// Return an error if a function of --receive is called by none of the analysed programs: its name may be misspelt.
llvm::Error checkReceives(const std::vector<StateReport> &reports);

} // namespace catena

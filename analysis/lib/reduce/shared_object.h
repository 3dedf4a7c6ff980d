// A reduced program as a function of a chain: a shared object with the interface of include/catena/nf.h.
#pragma once

#include "reduce/reduce.h"

namespace catena {

/// Make a shared object of a reduced program, and return where it is in the scratch folder. `name` is what it calls
/// itself.
///
/// The program runs within it as a coroutine on a stack of its own, its main to begin with; its receptions and sends,
/// and what would end or change the whole process, are replaced by functions of the adapter (runtime/adapter). The
/// command line is that of the reduction, `{NAME}` in it an argument of the chain file. Errors: receptions or sends
/// that are not libpcap's, and calls of libpcap that have no counterpart in a chain.
///
/// A spliced program is a function like any other: its last one sends to the chain. `{ids.log}` of its command line is
/// the argument `ids_log`.
llvm::Expected<std::string> buildSharedObject(const Reduction &reduction, const ReduceOptions &options,
                                              const std::string &name, const Scratch &scratch);

} // namespace catena

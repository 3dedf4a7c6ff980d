// A chain of network functions as one program that processes a packet to its end (Deng and Wu, NFReducer, Algorithm 4).
#pragma once

#include "reduce/native.h"
#include "reduce/reception.h"

namespace catena {

/// A function of a chain. `{next}` in its command line stands for what it sends to the function after it, whose `{in}`
/// that is.
struct ChainMember {
    /// What its variables are named by; empty if it is alone.
    std::string name;
    std::unique_ptr<llvm::Module> program;
    CommandLine line;
};

/// The word between the command lines of a spliced program's functions.
extern const char *const thenWord;

/// The mark of calls that open the captures which functions would write for those after them.
extern const char *const nextMark;

/// A spliced program.
struct Splice {
    std::unique_ptr<llvm::Module> program;
    /// Its command line; `{out}` of a function `ids` is `{ids.out}` in it.
    CommandLine line;
    /// Variables that were locals of the functions' loop procedures.
    std::map<std::string, LiftedLocal> locals;
};

/// Rename the functions' symbols and make one program of them (lines 2 and 3 of Algorithm 4). Afterwards `members` hold
/// the functions as they are by themselves, renamed too, with the same numbers of calls.
///
/// Errors: functions that receive or send in a way that is not understood, or share what a process has only once.
llvm::Expected<Splice> splice(std::vector<ChainMember> &members, const AnalysisOptions &options);

} // namespace catena

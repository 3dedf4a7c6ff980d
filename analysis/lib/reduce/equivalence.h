// Whether a reduced program does what the original does.
#pragma once

#include "reduce/capture.h"
#include "reduce/reduce.h"

namespace catena {

/// What was compared, and the first difference.
struct Equivalence {
    unsigned captures = 0;
    uint64_t packets = 0;
    /// Variables whose state was compared at the end, and bytes of it, in all.
    unsigned variables = 0;
    uint64_t stateBytes = 0;
    /// Files that differ from the original's, but not beyond what was dropped.
    std::set<std::string> leftOut;
    /// Empty if there is none.
    std::string difference;
};

/// A program that leaves its image when it ends.
struct StateProgram {
    const llvm::Module &program;
    std::string executable;
};
llvm::Expected<StateProgram> buildState(const llvm::Module &program, const LinkFlags &link, const Scratch &scratch);
/// Run a program on a capture, and return the image that it leaves; `prefix` names the files.
llvm::Expected<Image> stateAfter(const StateProgram &built, const CommandLine &line, const std::string &capture,
                                 const std::string &prefix, const Scratch &scratch);

/// Run original and reduced program on captures, and compare all they write, how they end, and the state that they
/// leave: its bytes, and where its pointers lead.
///
/// `executable` is the reduced program as it will be used. A file that it writes otherwise because something was
/// dropped is compared once more, with two programs that write nothing of it: the original and the reduced one without
/// the calls that write what is left out.
llvm::Expected<Equivalence> compare(const llvm::Module &original, const Reduction &reduction,
                                    const std::string &executable, const ReduceOptions &options,
                                    const std::vector<std::pair<std::string, Capture>> &captures,
                                    const Scratch &scratch);

} // namespace catena

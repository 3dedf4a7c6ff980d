// Whether a spliced and reduced program does what the functions of its chain do one after another.
#pragma once

#include "reduce/equivalence.h"
#include "reduce/splice.h"

namespace catena {

/// The functions of a chain, in two forms.
struct ChainOriginals {
    /// As they came, and their command lines.
    std::vector<std::unique_ptr<llvm::Module>> programs;
    std::vector<CommandLine> lines;
    /// As `splice` left them.
    std::vector<ChainMember> members;
};

/// Run the functions on captures, each on what the one before it sent, and the spliced program; compare all that they
/// write, how they end, and their state. What several functions print to one place may be mixed in the spliced program,
/// but each one's must be there in its order. If something was dropped, a file that differs for that is compared as for
/// a function alone: the spliced program before anything was dropped must write what the functions do.
llvm::Expected<Equivalence> compareChain(const ChainOriginals &originals, const Reduction &reduction,
                                         const std::string &executable, const ReduceOptions &options,
                                         const std::vector<std::pair<std::string, Capture>> &captures,
                                         const Scratch &scratch);

/// Return whether a text is made of others, each in its order, mixed in any way.
bool isMixOf(llvm::StringRef text, const std::vector<llvm::StringRef> &parts);

} // namespace catena

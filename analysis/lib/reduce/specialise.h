// Making the packet function fit its configuration.
#pragma once

#include "reduce/consolidate.h"
#include "reduce/private.h"
#include "reduce/removed.h"
#include "reduce/unroll.h"

namespace catena {

/// How much is done; each level does what those before it do. They are there to be compared.
enum class ReduceLevel {
    Extraction,  // nothing but what is to be dropped
    Splice,      // nothing but to splice a chain
    Duplicated,  // what functions of a chain do again
    Overwritten, // and what they do to packets that are dropped, or do over
    Constants,   // configuration as constants, loops over it unrolled
    Layers,      // and what is of one packet only is no longer kept: unused layers
    Paths,       // and what a path does not need is not done on it: unused protocols
};

/// What was done to the packet function.
struct Specialised {
    unsigned inlined = 0, loadsFolded = 0;
    std::vector<UnrolledLoop> loops;
    std::map<std::string, PrivateParts> privates;
    Consolidated consolidated;
    /// Merged paths that were taken apart, branches that the solver showed to go one way only, and questions it left
    /// open.
    unsigned pathsSplit = 0, branchesDecided = 0, undecided = 0;
    unsigned instructionsBefore = 0, instructionsAfter = 0;
    /// The lines of which nothing is left, of how many.
    std::vector<RemovedLine> removed;
    unsigned lines = 0;
};

/// Specialise the packet function, whose calls are inlined: fold frozen memory, unroll, make private, and eliminate;
/// with a chain's knowledge remove what its functions do twice or in vain.
/// `lines` says what each step removes; `temporaries` are variables that are of one packet only by the user's word.
void specialise(llvm::Function &packet, Frozen &frozen, ReduceLevel level, const UnrollLimits &limits,
                const std::set<std::string> &temporaries, const ChainKnowledge *chain, RemovedLines &lines,
                Specialised &done);

/// Inline what a packet function calls and simplify it, without regard to any configuration.
void inlineAll(llvm::Function &packet);

} // namespace catena

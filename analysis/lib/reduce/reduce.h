// NFReducer as a whole: from a program and its configuration to a program for that configuration.
#pragma once

#include "reduce/capture.h"
#include "reduce/image.h"
#include "reduce/irrelevant.h"
#include "reduce/labels.h"
#include "reduce/specialise.h"

namespace catena {

/// How a program is reduced.
struct ReduceOptions {
    AnalysisOptions analysis;
    /// What executables of it are linked with, as -lpcap.
    LinkFlags link;
    /// Which of several places of reception is meant: a function, or file and line.
    std::string at;
    /// Variables that were locals of loop procedures before the functions of a chain were spliced.
    std::map<std::string, LiftedLocal> lifted;
    /// Whether to look for what the functions of a spliced chain do twice or in vain.
    bool consolidate = false;
    /// The program's command line with its configuration, and a capture to start it on.
    CommandLine line;
    std::string capture;
    ReduceLevel level = ReduceLevel::Paths;
    UnrollLimits limits;
    ExtractionChoice extraction;
    /// Labels that the user gives.
    std::vector<GivenLabel> labels;
};

/// A reduced program, and what was done.
struct Reduction {
    std::unique_ptr<llvm::Module> program;
    /// The program as it was before the elimination, with the same variables.
    std::unique_ptr<llvm::Module> unreduced;
    Reception reception;
    std::string packetFunction;
    /// What packets may write.
    PacketPhase phase;
    /// The calls that allocate blocks which the program itself fills.
    std::set<unsigned> ownBlocks;
    Extraction extraction;
    Labels labels;
    Specialised specialised;
    /// What each step took, in seconds.
    std::vector<std::pair<std::string, double>> seconds;
    std::vector<std::string> unmodelled;
};

/// Reduce a program, which is changed. Its equivalence is not checked here.
///
/// Errors: those of the steps, each with what to do.
llvm::Expected<Reduction> reduce(std::unique_ptr<llvm::Module> program, const ReduceOptions &options,
                                 const Scratch &scratch);

/// Return packets that a solver made to go every way in the packet function that it can go: as it was, whatever the
/// configuration makes of it; and as it is.
std::vector<std::string> packetsOfOriginal(const Reduction &reduction);
std::vector<std::string> packetsOfReduced(const Reduction &reduction);

/// Make an executable of a reduced program and return its path.
llvm::Expected<std::string> buildReduced(const llvm::Module &program, const LinkFlags &link, const Scratch &scratch);

} // namespace catena

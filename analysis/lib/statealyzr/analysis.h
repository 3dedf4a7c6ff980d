// StateAlyzr as a whole: from a program to its state.
#pragma once

#include "library/effects.h"
#include "library/packet_functions.h"
#include "pointsto/points_to.h"
#include "statealyzr/variables.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"
#include <functional>
#include <memory>

namespace catena {

/// How a program is analysed.
struct AnalysisOptions {
    LibraryEffects library = LibraryEffects::standard();
    PacketFunctions functions = PacketFunctions::standard();
    /// Tell the members of structs apart.
    bool fields = false;
    /// Procedures that hold the packet loop; if none is named they are looked for.
    std::vector<std::string> loops;
    /// Steps to do without, to see what they gain; of `steps`.
    std::set<std::string> without;

    static constexpr const char *steps[] = {"initialization", "handles", "allocators", "types", "roots"};
    PointsToOptions pointsTo() const { return {fields, !without.contains("allocators"), !without.contains("types")}; }
};

/// A place where packets are received or put out.
struct PacketPlaceFound {
    std::string name;
    Place place;
};

/// What the analysis found, in plain values: the program may be gone.
struct StateReport {
    std::string program;
    std::vector<Variable> variables;
    std::vector<PacketPlaceFound> receives, sends, logs;
    std::vector<std::string> loopProcedures;
    std::vector<std::string> packetProcedures;
    /// Library functions that are called, but in no list: what they do had to be guessed.
    std::vector<std::string> unmodelled;
    unsigned allVariables = 0, instructions = 0, procedures = 0;
    /// What each step took, in seconds.
    std::vector<std::pair<std::string, double>> seconds;
    unsigned locations = 0, vertices = 0;
    size_t edges = 0;
};

/// Makes the program anew: the analysis changes it, and needs it twice.
using ProgramSource = std::function<llvm::Expected<std::unique_ptr<llvm::Module>>()>;

/// Find the state of a program (Khalid's dissertation, chapter 4).
///
/// Errors: those of `source`, and a program in which no packet is received.
llvm::Expected<StateReport> findState(const ProgramSource &source, const AnalysisOptions &options);

} // namespace catena

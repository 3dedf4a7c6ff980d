// StateAlyzr as a whole: from a program to its state.
#pragma once

#include "library/effects.h"
#include "library/packet_functions.h"
#include "pointsto/points_to.h"
#include "statealyzr/state_objects.h"
#include "statealyzr/variables.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"
#include <functional>
#include <map>
#include <memory>

namespace catena {

/// How a program is analysed.
struct AnalysisOptions {
    LibraryEffects library = LibraryEffects::standard();
    PacketFunctions functions = PacketFunctions::standard();
    /// Tell the members of structs apart.
    bool fields = false;
    /// Find the objects that hold the state; only with `fields`.
    bool objects = false;
    /// Procedures that hold the packet loop; if none is named they are looked for.
    std::vector<std::string> loops;
    /// Steps to do without, to see what they gain; of `steps`.
    std::set<std::string> without;

    static constexpr const char *steps[] = {"initialization", "handles", "allocators", "roots"};
    PointsToOptions pointsTo() const { return {fields, !without.contains("allocators")}; }
};

/// A place where packets are received or put out.
struct PacketPlaceFound {
    std::string name;
    Place place;
};

/// A statement that updates state: where it is and which variables it may update, each by its rank among the
/// updateable ones. Of some it is known that their bits are set already (Khalid's dissertation, Figure 4.12).
struct UpdateFound {
    Place place;
    std::vector<unsigned> bits, pruned;
};

/// What the analysis found, in plain values: the program may be gone.
struct StateReport {
    std::string program;
    std::vector<Variable> variables;
    /// What packets change, if it was asked for.
    std::vector<StateObject> objects;
    std::vector<PacketPlaceFound> receives, sends, logs;
    std::vector<std::string> loopProcedures;
    std::vector<std::string> packetProcedures;
    /// The statements before which updated bits are set, if the program was instrumented.
    std::vector<UpdateFound> updates;
    /// Where each procedure begins.
    std::vector<Place> procedurePlaces;
    /// Where source files are, by the names in places.
    std::map<std::string, std::string> sources;
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

/// The error for a program in which no packet is received: of several programs of a build, some do other things.
struct NoReception : llvm::ErrorInfo<NoReception, llvm::StringError> {
    static char ID;
    explicit NoReception(const llvm::Twine &message) : ErrorInfo(message, llvm::inconvertibleErrorCode()) {}
};

struct StateFindings;
/// Uses what was found while the program is there.
using FindingsUse = std::function<llvm::Error(StateFindings &)>;

/// Find the state of a program (Khalid's dissertation, chapter 4), and hand it to `use` if there is one.
///
/// Errors: those of `source` and `use`, and `NoReception`.
llvm::Expected<StateReport> findState(const ProgramSource &source, const AnalysisOptions &options,
                                      const FindingsUse &use = {});

} // namespace catena

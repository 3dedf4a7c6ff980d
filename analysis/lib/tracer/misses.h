// Holds what the analysis says against what a program was seen to do.
#pragma once

#include "statealyzr/variables.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace catena {

/// What a traced run saw of a variable, while packets were processed.
struct Observation {
    Variable::Kind kind;
    Place declared;
    std::string name;
    /// It was read, other than as the handle of a packet function; its own memory was written; it led to memory that
    /// was written.
    bool read = false, written = false, leads = false;
};

/// A traced run, or several of one program.
struct ObservedRun {
    uint64_t packets = 0;
    std::vector<Observation> variables;
};

/// Read what `catena_trace_report` wrote. Errors name the line.
llvm::Expected<ObservedRun> readObservations(llvm::StringRef file, llvm::StringRef text);

/// Something that was seen, and that the analysis says cannot be.
struct Miss {
    std::string variable;
    Place declared;
    std::string what;
};

/// Return all misses.
///
/// - A variable that was written must be updateable: "every variable that packets can change" (Khalid's dissertation,
///   §4.3.2, Figure 4.9, line 5).
/// - A variable that was read must be top-level. This asks for more than the text does, which wants those whose values
///   influence packets: what influences a packet was read, but what was read need not matter.
/// - A top-level variable that led to something written must be updateable (the same line's PointsTo(var)).
///
/// Locals count where the analysis takes them for persistent, constants not at all.
std::vector<Miss> findMisses(const std::vector<Variable> &analysed, const ObservedRun &run);

/// How many variables are called updateable, and how many of these a run did update or lead to updates.
struct Precision {
    unsigned called = 0, seen = 0;
};
Precision precision(const std::vector<Variable> &analysed, const ObservedRun &run);

} // namespace catena

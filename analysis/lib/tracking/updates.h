// Finds the statements before which updated bits must be set: Khalid's dissertation, Figure 4.12.
#pragma once

#include "statealyzr/findings.h"

namespace catena {

/// A statement of the original program that may update variables.
struct Update {
    llvm::Instruction *statement;
    /// The variables, by their ranks among the updateable ones, ascending.
    std::vector<unsigned> bits;
    /// Those of them whose bits are set already whenever the statement is executed.
    std::vector<unsigned> pruned = {};
};

/// Return the updates of a program, in its order, with what Figure 4.12b prunes.
std::vector<Update> findUpdates(const StateFindings &findings);

} // namespace catena

// The critical variables of a program: packet, state, configuration and temporary ones.
#pragma once

#include "reduce/frozen.h"
#include "reduce/given_labels.h"
#include "reduce/private.h"

namespace catena {

/// A variable with its label, and why it has it.
struct LabelledVariable {
    Label label;
    std::string name, type;
    Place declared;
    std::string why;
};

/// Table I of the paper, for one program: its variables in the order of the labels.
struct Labels {
    std::vector<LabelledVariable> variables;
    unsigned count(Label label) const;
};

/// Label the variables that packet processing uses and whose life is longer than a packet's; the user's labels have
/// precedence.
Labels labelVariables(const llvm::Module &program, const Reception &reception, const PacketPhase &phase,
                      const Frozen &frozen, const std::map<std::string, PrivateParts> &privates,
                      const GivenLabels &given);

} // namespace catena

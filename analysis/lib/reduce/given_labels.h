// Labels that the user gives where those that are found are wrong.
#pragma once

#include "reduce/written.h"

namespace catena {

/// What packets do with a variable; see `labelVariables`.
enum class Label { Packet, State, Configuration, Temporary };
constexpr Label allLabels[] = {Label::Packet, Label::State, Label::Configuration, Label::Temporary};

/// Return the name of a label.
llvm::StringRef name(Label label);

/// A line of the user's file.
struct GivenLabel {
    Label label;
    std::string variable;
    /// The function or file that the variable is declared in, where several have its name.
    std::string in;
    /// The line as FILE:LINE.
    std::string where;
};

/// The user's labels by the names of global variables.
using GivenLabels = std::map<std::string, GivenLabel>;

/// Return the variables that are temporary by the user's word.
std::set<std::string> temporaries(const GivenLabels &given);

/// Read a file of labels: lines `LABEL VARIABLE [in FUNCTION|FILE]`. Errors name file and line.
llvm::Expected<std::vector<GivenLabel>> readLabels(llvm::StringRef file, llvm::StringRef text);

/// Find the variables that labels speak of, among those that packet processing uses, and let the phase be as they say:
/// configuration is not written, all else is. Errors name file and line, and what there is.
llvm::Expected<GivenLabels> applyLabels(const std::vector<GivenLabel> &labels, const llvm::Module &program,
                                        const Reception &reception, PacketPhase &phase);

} // namespace catena

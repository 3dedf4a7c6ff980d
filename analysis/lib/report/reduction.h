// What was reduced, as text for people.
#pragma once

#include "reduce/equivalence.h"
#include "llvm/Support/raw_ostream.h"

namespace catena {

/// Print the labels, what was done, and what was compared.
void printReduction(const Reduction &reduction, llvm::raw_ostream &to);
/// Print what was compared.
void printEquivalence(const Equivalence &equivalence, llvm::raw_ostream &to);

} // namespace catena

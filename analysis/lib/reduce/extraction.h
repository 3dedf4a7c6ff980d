// Taking the packet-processing logic out of a packet function.
#pragma once

#include "reduce/irrelevant.h"

namespace catena {

/// Make a packet function ready for extraction: its locals become values.
void prepareExtraction(llvm::Function &packet);

/// Remove what is outside the packet-processing logic.
void extract(llvm::Function &packet, const PacketLogic &logic);

/// Remove the calls that write what is left out: of two programs, so that what remains of them can be compared.
void silence(llvm::Module &program);

} // namespace catena

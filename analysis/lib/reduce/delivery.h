// A program's packet loop turned inside out: packets are handed to it instead of being waited for.
#pragma once

#include "reduce/reception.h"
#include "llvm/IR/DerivedTypes.h"

namespace catena {

/// Let a program get its packets from a function `void(header, packet)` that is made and returned here: what it does
/// with one packet, up to its next reception.
///
/// Where the program waited for its first packet it calls `upstream`, which delivers all of them and returns; then the
/// program goes on as at the end of its capture, or where it left its loop. With `copied` every packet is copied first,
/// for a program that writes to its packets. Errors: receptions other than libpcap's, and loops that are not
/// understood.
llvm::Expected<llvm::Function *> takeDeliveries(Reception &reception, llvm::FunctionCallee upstream, bool copied);

} // namespace catena

// The filter that a function sets which gets its packets from another one.
#pragma once

#include "llvm/IR/Function.h"
#include "llvm/Support/Error.h"

namespace catena {

/// Let a program keep to the filter that it sets by pcap_setfilter, in `deliver`, a function `void(header, packet)`
/// that is called with its packets: what the filter refuses is not delivered.
///
/// Errors: a program that passes on the address of pcap_setfilter.
llvm::Error keepFilter(llvm::Module &program, llvm::Function &deliver);

} // namespace catena

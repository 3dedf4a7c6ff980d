// Prunes redundant settings of updated bits: Khalid's dissertation, Figure 4.12b, and on through calls.
#pragma once

#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Module.h"
#include <functional>
#include <vector>

namespace catena {

/// Where, along a procedure's control flow, bits that were set need not be set any more.
enum class Forgets : uint8_t {
    No,
    Before, // a packet ends before the instruction does its work
    After,  // packets end while it does its work
};

/// The bits that each updating instruction sets.
using BitsOf = llvm::DenseMap<const llvm::Instruction *, std::vector<unsigned>>;

/// A program and where it sets bits.
struct TrackedProgram {
    const llvm::Module &program;
    const BitsOf &updates;
    /// The number of bits.
    unsigned count;
    /// Where bits are taken back.
    std::function<Forgets(const llvm::Instruction &)> forgets;
    /// Whether a call may be executed while packets are processed.
    std::function<bool(const llvm::CallBase &)> processes;
};

/// Return, for the updating instructions, the bits that are set whenever they are reached.
BitsOf bitsSetBefore(const TrackedProgram &tracked);

} // namespace catena

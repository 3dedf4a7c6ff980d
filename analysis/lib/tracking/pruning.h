// Prunes redundant settings of updated bits: Khalid's dissertation, Figure 4.12b.
#pragma once

#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/Function.h"
#include <functional>
#include <vector>

namespace catena {

/// Where, along a procedure's control flow, bits that were set need not be set any more.
enum class Forgets : uint8_t {
    No,
    Before, // a packet ends before the instruction does its work
    After,  // packets end while it does its work
};

/// The bits that each updating instruction of a procedure sets.
using BitsOf = llvm::DenseMap<const llvm::Instruction *, std::vector<unsigned>>;

/// Return, for the updating instructions of a procedure, the bits that are set whenever they are reached.
///
/// `count` is the number of bits; `forgets` says where the bits are taken back.
BitsOf bitsSetBefore(const llvm::Function &procedure, const BitsOf &updates, unsigned count,
                     const std::function<Forgets(const llvm::Instruction &)> &forgets);

} // namespace catena

// Finds the types of blocks of memory: C's allocators return bytes, and what lies in them shows in how they are used.
#pragma once

#include "llvm/IR/DataLayout.h"
#include "llvm/IR/InstrTypes.h"

namespace catena {

/// Return the type of the block that an allocating call returns: a struct, an array of them if there may be more than
/// one, or null if its use does not tell.
///
/// The C standard gives a block the type by which it is written (N1570, 6.5, paragraph 6). A struct counts if the
/// block's size, as the call gives it, is a multiple of the struct's, and all steps from the call's result into members
/// are of that struct.
llvm::Type *typeOfBlock(const llvm::CallBase &allocation, const llvm::DataLayout &layout);

} // namespace catena

// Control dependence within a function.
#pragma once

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/IR/Function.h"
#include <vector>

namespace catena {

/// Return, for every block, the blocks whose branch decides whether it is executed (Ferrante, Ottenstein and Warren,
/// The Program Dependence Graph and Its Use in Optimization, §3.1). A block that is not in the map, or has an empty
/// list, depends only on the function being called.
///
/// Some blocks may be left for the procedure's end at any time, by an exception; then they decide about others as a
/// branch would.
llvm::DenseMap<const llvm::BasicBlock *, std::vector<const llvm::BasicBlock *>> controlDependence(
    const llvm::Function &function,
    const llvm::SmallPtrSetImpl<const llvm::BasicBlock *> &left = llvm::SmallPtrSet<const llvm::BasicBlock *, 1>());

} // namespace catena

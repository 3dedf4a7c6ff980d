// Control dependence within a function.
#pragma once

#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/Function.h"
#include <vector>

namespace catena {

/// Return, for every block, the blocks whose branch decides whether it is executed (Ferrante, Ottenstein and Warren,
/// The Program Dependence Graph and Its Use in Optimization, §3.1). A block that is not in the map, or has an empty
/// list, depends only on the function being called.
llvm::DenseMap<const llvm::BasicBlock *, std::vector<const llvm::BasicBlock *>>
controlDependence(const llvm::Function &function);

} // namespace catena

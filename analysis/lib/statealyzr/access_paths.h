// Finds where an access begins: the variables whose names or addresses the program starts from, and the pointers it
// follows on the way to what it reads or writes.
#pragma once

#include "dependence/execution.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace catena {

/// How a program gets to a pointer.
struct AccessPath {
    /// The variables it begins at: globals, and cells of locals.
    llvm::SmallPtrSet<const llvm::Value *, 4> roots;
    /// The pointers that it follows, see `AccessPaths::base`.
    llvm::SmallPtrSet<const llvm::Value *, 8> through;
};

/// The paths of a program, each followed once.
///
/// A path is followed back through steps, loads, parameters and results, but not through memory from a load to all
/// stores that it may see: `p->next->key` begins at `p` wherever else the entry may be reached from. Only the cells of
/// locals are followed on to what is stored in them, by name or by procedures that are given their address (iterators).
class AccessPaths {
public:
    AccessPaths(const PointsTo &pointsTo, const CallGraph &calls) : pointsTo(pointsTo), calls(calls) {}
    const AccessPath &of(const llvm::Value *pointer);
    /// Return what stands for a pointer in paths: itself without constant steps; the cell, if it is loaded from one.
    static const llvm::Value *base(const llvm::Value *pointer);

private:
    const std::vector<const llvm::Value *> &storedIn(const llvm::AllocaInst *cell);
    std::vector<const llvm::Value *> givenTo(const llvm::Argument &parameter, const llvm::CallBase &call) const;

    const PointsTo &pointsTo;
    const CallGraph &calls;
    llvm::DenseMap<const llvm::Value *, AccessPath> known;
    /// What is stored in the cells of locals.
    llvm::DenseMap<const llvm::Value *, std::vector<const llvm::Value *>> stored;
};

} // namespace catena

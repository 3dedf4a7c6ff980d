// Finds calls that may not return to the statement behind them, because an exception or a long jump leads elsewhere.
#pragma once

#include "pointsto/points_to.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/IR/Instructions.h"

namespace catena {

/// The calls of a program behind which it may not go on, though the program does.
///
/// What ends the program (exit, abort) is no such call: as usual for slices, whether a program ends is no dependence.
class AbruptExits {
public:
    AbruptExits(const llvm::Module &program, const PointsTo &pointsTo);
    /// Return whether a call throws or jumps, or calls what does.
    bool contains(const llvm::CallBase *call) const { return calls.contains(call); }
    bool empty() const { return calls.empty(); }

private:
    llvm::DenseSet<const llvm::CallBase *> calls;
};

} // namespace catena

// What an analysis knows while its program is there: for those who change the program by it.
#pragma once

#include "statealyzr/analysis.h"
#include "statealyzr/updateable_variables.h"
#include "llvm/Transforms/Utils/ValueMapper.h"

namespace catena {

/// The analysed program beside the program as it was read.
///
/// The analysis works on a copy whose locals are SSA values. Whoever instruments does so in the original, where every
/// statement and variable of the copy has its counterpart.
struct StateFindings {
    StateReport &report;
    /// The program that was analysed.
    const llvm::Module &analysed;
    /// The program as it was read, to be changed at will.
    llvm::Module &original;
    const PointsTo &pointsTo;
    const CallGraph &calls;
    const std::vector<PacketCall> &receives;
    const std::vector<LoopProcedure> &loops;
    const MemoryStatements &statements;
    /// What may be executed after the first packet was received.
    const ExecutedAfter &executed;
    const llvm::ValueToValueMapTy &counterparts;

    /// Return what a value of the analysed program is in the original, or null if it is not there.
    template <typename Kind> Kind *inOriginal(const Kind *value) const {
        auto found = counterparts.find(value);
        return found == counterparts.end() ? nullptr
                                           : llvm::dyn_cast_or_null<Kind>(static_cast<llvm::Value *>(found->second));
    }
};

} // namespace catena

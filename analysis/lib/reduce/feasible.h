// Which branches can be taken: asked of a solver.
#pragma once

#include "reduce/capture.h"
#include "llvm/IR/Function.h"

namespace catena {

/// What the solver said of a function's branches.
struct Feasibility {
    /// Branches that now go one way only, and directions that the solver did not decide.
    unsigned decided = 0, undecided = 0;
};

/// Remove the directions of branches that no execution takes, as far as the solver decides it within its bounds; what
/// it does not decide stays.
Feasibility removeInfeasible(llvm::Function &function);

/// Where a packet function finds its packet: parameters, or globals that hold the pointers; the header may be a global.
struct PacketBases {
    const llvm::Value *packet = nullptr;
    /// A `struct pcap_pkthdr`.
    const llvm::Value *header = nullptr;
};

/// Return a packet for every direction of a branch for which the solver finds one.
std::vector<std::string> packetsForBranches(const llvm::Function &function, const PacketBases &bases);

} // namespace catena

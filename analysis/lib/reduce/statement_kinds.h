// What a statement of a packet function does that can be noticed, by the lists of functions and by points-to sets.
#pragma once

#include "dependence/execution.h"
#include "dependence/exits.h"
#include "dependence/graph.h"
#include "reduce/irrelevant.h"
#include "llvm/ADT/DenseSet.h"

namespace catena {

/// A statement that can be noticed.
struct Statement {
    /// What it is for if no packet depends on it; a call of a function that was not inlined may have several.
    std::vector<Purpose> purposes;
    /// Whether it sends packets or decides which are received.
    bool essential = false;
    /// Whether it writes a log.
    bool output = false;
    /// Whether it gives memory back.
    bool givesBack = false;
    std::string what;
    std::vector<Vertex> vertices;
    /// What it writes that lives longer than a packet.
    SparseSet writes;
};

/// Tells the statements of a packet function apart.
class StatementKinds {
public:
    StatementKinds(const llvm::Function &packet, const PointsTo &pointsTo, const CallGraph &calls,
                   const PacketFunctions &functions, const AbruptExits &exits, const Graph &graph,
                   const Reception &reception);

    /// Return what a statement is; nothing for one that only computes, or writes what is gone with the packet.
    ///
    /// A call of a function with code is what all of its statements are, unless it is not to be looked into.
    std::optional<Statement> of(const llvm::Instruction &instruction, bool deep = true) const;
    /// Return whether a call sends or receives packets, asks the device, or does not come back.
    bool isEssential(const llvm::CallBase &call) const;
    std::vector<Vertex> verticesOf(const llvm::Instruction &instruction) const;
    /// Return all that a call of a function with code depends on, if all of the function is kept.
    std::vector<Vertex> wholeOf(const llvm::CallBase &call) const;
    /// Whether any statement of the packet function sends packets.
    bool sends() const;
    /// Whether the program starts threads.
    bool threads() const;
    llvm::StringRef loopProcedure() const { return loop; }

private:
    Statement update(const llvm::Instruction &instruction, SparseSet locations) const;
    std::optional<Statement> call(const llvm::CallBase &call, bool deep) const;
    std::optional<Statement> libraryCall(const llvm::CallBase &call, const llvm::Function &callee) const;
    SparseSet persistent(const SparseSet &locations) const;
    bool isRead(const SparseSet &locations) const;
    std::string nameOf(Location location) const;

    const llvm::Function &packet;
    const PointsTo &pointsTo;
    const CallGraph &calls;
    const PacketFunctions &functions;
    const AbruptExits &exits;
    const Graph &graph;
    const Reception &reception;
    std::string loop;
    llvm::DenseSet<const llvm::Function *> processing;
};

} // namespace catena

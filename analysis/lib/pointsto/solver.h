// Solves inclusion constraints between points-to sets (Andersen's analysis).
#pragma once

#include "pointsto/memory.h"
#include "pointsto/sparse_set.h"
#include "llvm/ADT/DenseSet.h"
#include <functional>
#include <vector>

namespace catena {

using NodeId = uint32_t;

/// A set of inclusion constraints over nodes; a node is a pointer, and holds the locations it may point to.
///
/// Constraints may be added while it solves: when a call through a pointer finds a new callee, `onCallee` adds those of
/// the call.
class Solver {
public:
    explicit Solver(Memory &memory);

    /// The node of what never points anywhere.
    static constexpr NodeId nothing = 0;

    NodeId newNode();
    /// Return the node of what a location holds.
    NodeId contentOf(Location location);

    /// `node` may point to `location`.
    void address(NodeId node, Location location);
    /// `to` may point wherever `from` does.
    void copy(NodeId from, NodeId to);
    /// `to` may point wherever the `size` bytes that `pointer` points to do.
    void load(NodeId pointer, NodeId to, uint64_t size);
    /// The `size` bytes that `pointer` points to may point wherever `from` does.
    void store(NodeId from, NodeId pointer, uint64_t size);
    /// `to` is `from` plus `offset` bytes, and any multiple of `stride` bytes if it is not 0.
    void step(NodeId from, NodeId to, int64_t offset, uint64_t stride);
    /// `size` bytes are copied from where `source` points to where `target` does; 0 is all.
    void copyMemory(NodeId source, NodeId target, uint64_t size);
    /// The functions that `pointer` points to are callees of call `number`.
    void call(NodeId pointer, unsigned number);

    /// Called for every function found to be called by a numbered call.
    std::function<void(unsigned number, const llvm::Function *callee)> onCallee;

    /// Solve until nothing changes.
    void solve();

    const SparseSet &pointsTo(NodeId node) { return nodes[find(node)].points; }
    uint32_t nodeCount() const { return static_cast<uint32_t>(nodes.size()); }
    /// Rounds that solving took.
    unsigned rounds = 0;

private:
    struct Access {
        NodeId other;
        uint32_t size;
    };
    struct Step {
        NodeId to;
        int64_t offset;
        uint64_t stride;
    };
    struct Node {
        SparseSet points;
        /// What came since it was last passed on.
        SparseSet fresh;
        /// What came since the constraints below last saw it.
        SparseSet unseen;
        llvm::SmallVector<NodeId, 2> copies;
        std::vector<Access> loads, stores;
        std::vector<Step> steps;
        std::vector<unsigned> moves, calls;
    };
    struct Move {
        NodeId source, target;
        uint64_t size;
    };
    /// A pointer that steps over an object: it gets the locations that appear in it later.
    struct Walker {
        NodeId to;
        uint64_t remainder, stride;
    };
    /// A copy of one object's bytes into another: it takes along locations that appear in it later.
    struct Flow {
        uint64_t from;
        ObjectId target;
        uint64_t to, size;
    };

    NodeId find(NodeId node);
    bool addEdge(NodeId from, NodeId to);
    void merge(NodeId into, NodeId other);
    template <typename Found> void components(bool withSteps, Found found);
    void loosenCyclicSteps();
    std::vector<NodeId> collapseCycles();
    void seen(NodeId node, const SparseSet &points);
    void stepFrom(Location location, const Step &step);
    void moveBetween(Location source, Location target, uint64_t size);
    void appeared(Location location);
    template <typename Visit> void within(Location location, uint64_t size, Visit visit);

    Memory &memory;
    std::vector<Node> nodes;
    std::vector<NodeId> parents;
    std::vector<NodeId> contents;
    std::vector<Move> moves;
    llvm::DenseSet<uint64_t> edges;
    llvm::DenseMap<ObjectId, std::vector<Walker>> walkers;
    llvm::DenseMap<ObjectId, std::vector<Flow>> flows;
    llvm::DenseSet<std::pair<uint64_t, uint64_t>> known;
    std::vector<Location> fresh;
};

} // namespace catena

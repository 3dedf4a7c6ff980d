// Solves inclusion constraints between points-to sets (Andersen's analysis).
#pragma once

#include "pointsto/memory.h"
#include "pointsto/sparse_set.h"
#include "llvm/ADT/DenseSet.h"
#include <functional>
#include <map>
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
    /// Return the node of what lies where `pointer` points, of memory without fields: all loads through it are one.
    NodeId loaded(NodeId pointer);
    /// The `size` bytes that `pointer` points to may point wherever `from` does.
    void store(NodeId from, NodeId pointer, uint64_t size);
    /// How an address comes from another: plus `offset` bytes, and any multiple of `stride` bytes if it is not 0; then
    /// low bits are cleared and set (tags in pointers).
    struct Distance {
        int64_t offset = 0;
        uint64_t stride = 0;
        uint8_t clear = 0, set = 0;
        bool isNone() const { return !offset && !stride && !clear && !set; }
    };
    static constexpr Distance anywhere{0, 1, 0, 0};
    /// `to` is `from` and a distance.
    void step(NodeId from, NodeId to, Distance distance);
    /// `size` bytes are copied from where `source` points to where `target` does; 0 is all.
    void copyMemory(NodeId source, NodeId target, uint64_t size);
    /// Whether what lies in virtual tables is told apart from what lies elsewhere.
    bool tablesApart = false;
    /// Return the node of what lies in the virtual tables that `pointer` points to, where `loaded` leaves it out.
    NodeId loadedOfTables(NodeId pointer);
    /// What `pointer` points to, functions or tables of them, is called by call `number`.
    void call(NodeId pointer, unsigned number);
    /// What a filter lets through: locations that it points to itself, or all in objects that it points to.
    enum class Through : uint8_t { Locations, Objects };
    /// `to` may point wherever `given` does, as far as `filter` points there too; and into what belongs to libraries.
    void filter(NodeId given, NodeId filter, Through through, NodeId to);

    /// Called for every function or table found to be called by a numbered call.
    std::function<void(unsigned number, const llvm::GlobalObject *callee)> onCallee;

    /// Return the node that stands for all nodes found to be equal to one.
    NodeId find(NodeId node);
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
        Distance distance;
    };
    struct Node {
        SparseSet points;
        /// What came since it was last passed on.
        SparseSet fresh;
        /// What came since the constraints below last saw it.
        SparseSet unseen;
        llvm::SmallVector<NodeId, 2> copies;
        std::vector<Access> loads, stores;
        /// What all plain loads through this pointer copy from, and all plain stores copy to: so there is one copy a
        /// location and pointer, not one a location and access.
        NodeId loaded = nothing, stored = nothing, loadedOfTables = nothing;
        std::vector<Step> steps;
        std::vector<unsigned> moves, calls, filters;
    };
    struct Filter {
        NodeId given, filter;
        Through through;
        NodeId to;
        /// The locations or objects that the filter was seen to point to.
        SparseSet known = {};
        bool lets(const Memory &memory, Location location) const {
            return known.contains(through == Through::Objects ? memory.objectIdOf(location) : location);
        }
    };
    /// A copy of memory. What is copied passes through a node for every offset, so that there are as many copies as
    /// sources and targets, not as pairs of them.
    struct Move {
        NodeId source, target;
        uint64_t size;
        std::map<uint64_t, NodeId> middles = {};
        SparseSet targets = {};
        unsigned sources = 0;
        /// Whether offsets are left aside, because there would be too many pairs of them.
        bool coarse = false;
    };
    /// A pointer that steps over an object: it gets the locations that appear in it later.
    struct Walker {
        NodeId to;
        uint64_t remainder, stride;
    };
    /// A copy of an object's bytes from an offset on: it takes along locations that appear in it later.
    struct Flow {
        unsigned move;
        uint64_t from;
    };

    NodeId hubOf(NodeId pointer, NodeId Node::*hub);
    bool addEdge(NodeId from, NodeId to);
    void merge(NodeId into, NodeId other);
    template <typename Found> void components(bool withSteps, Found found);
    void loosenCyclicSteps();
    std::vector<NodeId> collapseCycles();
    void seen(NodeId node, const SparseSet &points);
    void stepFrom(Location location, Step step);
    void addressAt(NodeId to, ObjectId object, uint64_t offset);
    void walk(ObjectId object, Walker walker);
    void meet(ObjectId object, Walker walker, uint64_t at);
    bool isElement(ObjectId object, Location location) const;
    void pass(unsigned filter, const SparseSet &given);
    bool coarsen(unsigned move);
    void moveFrom(unsigned move, Location source);
    void moveTo(unsigned move, Location target);
    void moveAt(unsigned move, uint64_t from, Location location);
    void appeared(Location location);
    template <typename Visit> void within(Location location, uint64_t size, Visit visit);

    Memory &memory;
    std::vector<Node> nodes;
    std::vector<NodeId> parents;
    std::vector<NodeId> contents;
    std::vector<Move> moves;
    std::vector<Filter> filters;
    llvm::DenseSet<uint64_t> edges;
    llvm::DenseMap<ObjectId, std::vector<Walker>> walkers;
    llvm::DenseMap<ObjectId, std::vector<Flow>> flows;
    llvm::DenseSet<std::pair<uint64_t, uint64_t>> known;
    /// Objects of unknown type that are walked over by index, and the size of their elements (0: bytes). Steps that
    /// lead before the beginning of others wait for that to happen.
    llvm::DenseMap<ObjectId, uint64_t> arrays;
    llvm::DenseMap<ObjectId, std::vector<std::pair<Location, Step>>> waiting;
    std::vector<Location> fresh;
    std::vector<std::pair<NodeId, NodeId>> pending;
};

} // namespace catena

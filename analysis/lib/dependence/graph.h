// The system dependence graph of a program.
#pragma once

#include "pointsto/points_to.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/Instructions.h"
#include <span>
#include <vector>

namespace catena {

using Vertex = uint32_t;
constexpr Vertex noVertex = UINT32_MAX;

/// What a vertex stands for; the words are those of Horwitz, Reps and Binkley, Interprocedural Slicing Using Dependence
/// Graphs, §3.
enum class VertexKind : uint8_t {
    Entry,       // the call of a procedure
    Parameter,   // formal-in: what a parameter is
    Result,      // formal-out: what a procedure returns
    Block,       // that a block is executed
    Instruction, // any instruction but a call
    Call,        // that a call is executed
    Argument,    // actual-in: an argument of a call
    CallResult,  // actual-out: what a call returns; for a library function, all it does
    Definition,  // what is stored at a location, by anyone
    Accesses,    // a set of locations that several loads (or stores) have in common
};

enum class EdgeKind : uint8_t {
    Data,    // a value is used
    Address, // a value is used as the address of a load or store
    Control, // decides whether something is executed
    Memory,  // through memory
    In,      // from a call into a procedure
    Out,     // from a procedure back to a call
    Summary, // over a call: the result depends on an argument
};

struct VertexInfo {
    VertexKind kind;
    /// The procedure it is in; null for Definition and Accesses.
    const llvm::Function *function;
    /// The instruction or call, parameter or block; null for others.
    const llvm::Value *value;
    /// The argument's number, or the location of a Definition.
    uint32_t index;
};

struct Edge {
    Vertex vertex;
    EdgeKind kind;
};

/// One dependence graph for all procedures (Horwitz, Reps and Binkley), over LLVM instructions.
///
/// Memory is not passed through parameters: every location has one Definition vertex, which all stores to it lead to
/// and which leads to all loads from it, so that edges are as many as accesses, not as their product. Whoever walks
/// through such a vertex forgets from where procedures were called; values in registers are matched call by call, with
/// summary edges.
class Graph {
public:
    /// Build the graph of a program, with summary edges.
    Graph(const llvm::Module &program, const PointsTo &pointsTo);

    uint32_t size() const { return static_cast<uint32_t>(vertices.size()); }
    const VertexInfo &operator[](Vertex vertex) const { return vertices[vertex]; }
    std::span<const Edge> successors(Vertex vertex) const { return span(forward, vertex); }
    std::span<const Edge> predecessors(Vertex vertex) const { return span(backward, vertex); }
    size_t edgeCount() const { return forward.edges.size(); }

    /// Return an instruction's vertex; for a call, its CallResult.
    Vertex of(const llvm::Instruction *instruction) const { return lookup(instructions, instruction); }
    /// Return the vertex of a value in a procedure: instruction or parameter; noVertex for a constant.
    Vertex ofValue(const llvm::Value *value) const { return lookup(instructions, value); }
    /// Return the vertex for a call being executed.
    Vertex ofCall(const llvm::CallBase *call) const { return lookup(calls, call); }
    Vertex ofArgument(const llvm::CallBase *call, unsigned number) const;
    Vertex entryOf(const llvm::Function *function) const { return lookup(entries, function); }
    Vertex resultOf(const llvm::Function *function) const { return lookup(results, function); }
    /// Return the Definition of a location, or noVertex if nothing stores to it.
    Vertex ofLocation(Location location) const { return lookup(locations, location); }
    const PointsTo &pointsTo() const { return points; }

private:
    friend class GraphBuilder;
    friend class SummaryEdges;
    struct Adjacency {
        std::vector<uint32_t> begin;
        std::vector<Edge> edges;
    };
    struct FullEdge {
        Vertex from, to;
        EdgeKind kind;
    };

    template <typename Map, typename Key> static Vertex lookup(const Map &map, Key key) {
        auto found = map.find(key);
        return found == map.end() ? noVertex : found->second;
    }
    std::span<const Edge> span(const Adjacency &to, Vertex vertex) const {
        return {to.edges.data() + to.begin[vertex], to.edges.data() + to.begin[vertex + 1]};
    }
    /// Sort `all` into both directions.
    void index();

    const PointsTo &points;
    std::vector<VertexInfo> vertices;
    std::vector<FullEdge> all;
    Adjacency forward, backward;
    llvm::DenseMap<const llvm::Value *, Vertex> instructions;
    llvm::DenseMap<const llvm::CallBase *, Vertex> calls;
    llvm::DenseMap<const llvm::Function *, Vertex> entries, results;
    llvm::DenseMap<Location, Vertex> locations;
};

/// What a call of a function without code reads and writes.
struct LibraryAccess {
    SparseSet reads, writes;
};
/// Return what a call does by the library's effects; an unknown function reads all it can reach and writes what its
/// arguments point to.
LibraryAccess libraryAccess(const llvm::CallBase &call, const llvm::Function &callee, const PointsTo &pointsTo);
/// Return the most bytes that a library function touches where its arguments point to, as the call tells it (memcmp),
/// or 0 if it does not.
uint64_t accessedBytes(const llvm::CallBase &call, const llvm::Function &callee);

} // namespace catena

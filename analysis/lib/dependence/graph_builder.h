// Builds the system dependence graph.
#pragma once

#include "dependence/exits.h"
#include "dependence/graph.h"
#include <unordered_map>

namespace catena {

/// Makes vertices and edges of all procedures; summary edges come after.
class GraphBuilder {
public:
    GraphBuilder(Graph &graph, const llvm::Module &program)
        : graph(graph), program(program), pointsTo(graph.pointsTo()), exits(program, graph.pointsTo()) {}
    void build();

private:
    Vertex add(VertexKind kind, const llvm::Function *function, const llvm::Value *value, uint32_t index = 0);
    void edge(Vertex from, Vertex to, EdgeKind kind);
    void makeVertices(const llvm::Function &function);
    void connect(const llvm::Function &function);
    void connectControl(const llvm::Function &function);
    void connectExits(const llvm::Function &function);
    void connectInstruction(const llvm::Instruction &instruction);
    void connectCall(const llvm::CallBase &call);
    void enter(const llvm::CallBase &call, const llvm::Function &callee);
    void enterCallback(const llvm::CallBase &call, const Callback &callback);
    /// A vertex reads or writes locations.
    void reads(Vertex vertex, const SparseSet &locations);
    void writes(Vertex vertex, const SparseSet &locations);
    void findStored();
    Vertex definition(Location location);
    Vertex blockVertex(const llvm::BasicBlock *block) const { return blocks.lookup(block); }
    uint64_t bytes(llvm::Type *type) const;

    Graph &graph;
    const llvm::Module &program;
    const PointsTo &pointsTo;
    AbruptExits exits;
    llvm::DenseMap<const llvm::BasicBlock *, Vertex> blocks;
    llvm::DenseMap<const llvm::CallBase *, LibraryAccess> libraryAccesses;
    SparseSet stored;
    std::unordered_map<SparseSet, Vertex, SparseSet::Hash> readSets, writeSets;
};

/// Return what an instruction that is no call writes in memory; empty for most.
SparseSet written(const llvm::Instruction &instruction, const PointsTo &pointsTo);
/// Return what an instruction that is no call reads from memory; empty for most.
SparseSet readBy(const llvm::Instruction &instruction, const PointsTo &pointsTo);

} // namespace catena

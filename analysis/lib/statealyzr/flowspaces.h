// Finds the header fields that key a variable's entries: Khalid's dissertation, Figure 4.10.
#pragma once

#include "statealyzr/access_paths.h"
#include "statealyzr/header_fields.h"
#include "statealyzr/packet_procedures.h"

namespace catena {

/// What packet-processing code finds entries by, and which header fields that comes from.
///
/// Header fields are members of structs that lie over the packet, the system's or the program's own; names of the
/// system's are those of `lists/header-fields.list`. With `byRoot` a look-up counts for the variables it begins at
/// only.
class Flowspaces {
public:
    Flowspaces(const llvm::Module &program, const PacketProcedures &packet, const std::vector<PacketCall> &receives,
               const std::vector<LoopProcedure> &packetLoops, const Graph &graph, const CallGraph &calls, bool byRoot);

    /// Say which variables packet-processing code updates.
    void update(const std::vector<Variable> &variables);
    /// Mark whether a variable can hold entries of several flows, whether packet-processing code looks entries up, and
    /// by which header fields. `others` are the locations of all variables.
    void mark(Variable &variable, const SparseSet &others);

    using Blocks = llvm::SmallPtrSet<const llvm::BasicBlock *, 16>;
    /// What an expression is made of, and the locations that this touches.
    struct Leaf {
        const llvm::Value *value;
        const SparseSet *touched;
    };
    /// A condition in a loop, or in a procedure that calls itself.
    struct Condition {
        std::vector<Leaf> leaves;
        const llvm::BasicBlock *block;
        /// Where a round of it begins.
        const llvm::BasicBlock *round;
        /// The innermost loop around it, or null.
        std::shared_ptr<const Blocks> loop;
        /// Whether it asks for equality.
        bool equality = false;
    };
    /// A step by square brackets or pointer arithmetic, and where it begins.
    struct Step {
        const llvm::GetElementPtrInst *instruction;
        const SparseSet *base;
        std::vector<const llvm::Value *> indices;
    };
    const std::vector<Condition> &allConditions() const { return conditions; }
    const std::vector<Step> &allSteps() const { return steps; }
    /// Return the header fields that values come from, by ways that do not lead through the entries.
    std::set<std::string> keyFields(const std::vector<Vertex> &keys, const SparseSet &entries) {
        return extract(keys, entries, false);
    }
    /// Where received packets, and what comes with them, lie.
    const SparseSet &packetLocations() const { return packets; }

private:
    /// The pointers to entries that look-ups found, and the loops in which they did.
    using Found = llvm::DenseMap<const llvm::Value *, std::vector<std::shared_ptr<const Blocks>>>;
    using Meets = llvm::function_ref<bool(const SparseSet *)>;

    void findPackets(const std::vector<PacketCall> &receives);
    void findConditions(const llvm::Function &function);
    void findSteps(const llvm::Instruction &statement);
    void leavesOf(const llvm::Value *value, llvm::SmallPtrSetImpl<const llvm::Value *> &seen,
                  std::vector<Leaf> &leaves);
    const SparseSet *touched(const llvm::Value *leaf);
    void addCondition(const llvm::Value *value, const llvm::BasicBlock *block, const llvm::BasicBlock *round,
                      std::shared_ptr<const Blocks> loop);
    std::vector<const llvm::Value *> entryPointers(const llvm::Value *leaf, const SparseSet &entries) const;
    bool beginsAt(const Variable &variable, llvm::ArrayRef<const llvm::Value *> pointers);
    bool within(const Found &found, llvm::ArrayRef<const llvm::Value *> pointers, const llvm::BasicBlock *block);
    Found findEntries(const Variable &variable, const SparseSet &entries, Meets meets);
    bool isKept(Location location) const;
    SparseSet near(const Variable &variable, const SparseSet &others) const;
    bool readsPacket(const llvm::Instruction &instruction);
    void fieldsOf(const llvm::Value *pointer, llvm::SmallPtrSetImpl<const llvm::Value *> &seen,
                  std::set<std::string> &found) const;
    std::set<std::string> extract(const std::vector<Vertex> &keys, const SparseSet &entries, bool endAtKept);
    std::vector<Vertex> keysOf(const Condition &condition, const SparseSet &entries, Meets meets,
                               std::set<std::string> &given);

    const PacketProcedures &packet;
    const Graph &graph;
    const PointsTo &pointsTo;
    HeaderFields fields;
    AccessPaths paths;
    bool byRoot;
    /// Where received packets, and what comes with them, lie.
    SparseSet packets;
    /// What packet-processing code updates, packets left out.
    SparseSet changing;
    /// The blocks in which packet loops receive.
    llvm::SmallPtrSet<const llvm::BasicBlock *, 8> receptions;
    std::vector<Condition> conditions;
    std::vector<Step> steps;
    SharedSets sets;
    llvm::DenseMap<const llvm::Value *, const SparseSet *> touchedBy;
    llvm::DenseMap<const llvm::Instruction *, bool> packetReaders;
};

/// Mark the scopes of all top-level variables.
void markFlowspaces(std::vector<Variable> &variables, Flowspaces &flowspaces);

} // namespace catena

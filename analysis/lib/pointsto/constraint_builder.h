// Turns a program into inclusion constraints.
#pragma once

#include "pointsto/points_to.h"
#include "pointsto/solver.h"
#include "pointsto/virtual_tables.h"
#include "llvm/IR/InstVisitor.h"
#include "llvm/IR/Operator.h"
#include <map>
#include <set>

namespace catena {

/// What an allocating function returns, apart from a new object.
struct Allocator {
    /// Parameters that it may return as well (realloc).
    std::vector<unsigned> returned = {};
    /// Bytes of a header of its own before what it returns.
    uint64_t header = 0;
    /// Whether it is not certain that it always returns the place behind that header.
    bool inexact = false;
    /// Whether it stores pointers in the object.
    bool fills = false;
};

/// Writes the constraints of a program; those of calls through pointers follow as the solver finds callees.
class ConstraintBuilder : public llvm::InstVisitor<ConstraintBuilder> {
public:
    ConstraintBuilder(const llvm::Module &program, const LibraryEffects &library, Memory &memory, Solver &solver,
                      const PointsToOptions &options);
    /// Write the constraints of all functions and initial values.
    void build();
    /// Return a value's node.
    NodeId node(const llvm::Value *value);
    NodeId nodeOrNothing(const llvm::Value *value) const;
    /// Return what is known of a function that only allocates, or null.
    const Allocator *allocator(const llvm::Function &function) const;

    std::map<const llvm::CallBase *, std::vector<const llvm::Function *>> callees;
    std::map<const llvm::CallBase *, std::vector<Callback>> callbacks;
    /// What is in `callbacks` already: the solver asks again whenever a set grows, of programs with thousands of them.
    llvm::DenseSet<std::pair<std::pair<const llvm::CallBase *, const Effect *>, const llvm::Function *>> bound;
    std::set<std::string> unmodelled;

    // One for every kind of instruction that moves pointers.
    void visitAllocaInst(llvm::AllocaInst &cell);
    void visitLoadInst(llvm::LoadInst &load);
    void visitStoreInst(llvm::StoreInst &store);
    void visitAtomicRMWInst(llvm::AtomicRMWInst &change);
    void visitAtomicCmpXchgInst(llvm::AtomicCmpXchgInst &change);
    void visitGetElementPtrInst(llvm::GetElementPtrInst &step);
    void visitBinaryOperator(llvm::BinaryOperator &operation);
    void visitCallBase(llvm::CallBase &call);
    void visitReturnInst(llvm::ReturnInst &end);
    void visitVAArgInst(llvm::VAArgInst &argument);
    void visitLandingPadInst(llvm::LandingPadInst &pad);
    void visitICmpInst(llvm::ICmpInst &) {}
    void visitFCmpInst(llvm::FCmpInst &) {}
    /// All others pass on what their operands point to.
    void visitInstruction(llvm::Instruction &instruction);

private:
    struct Site {
        const llvm::CallBase *call;
        /// For a callback, what its parameters are; null for the call itself.
        const Effect *effect;
        /// Where in tables the function lies, for a call of a virtual function.
        std::optional<int64_t> inTable = {};
    };

    NodeId constantNode(const llvm::Constant *constant);
    void stepThrough(const llvm::GEPOperator &step, NodeId to);
    void initialize(const llvm::Constant *value, ObjectId object, uint64_t offset);
    void bind(const llvm::CallBase &call, const llvm::Function &callee);
    void bindCallback(const llvm::CallBase &call, const Effect &effect, const llvm::Function &callee);
    void bindLibrary(const llvm::CallBase &call, const llvm::Function &callee);
    void bindUnknown(const llvm::CallBase &call, const llvm::Function &callee);
    bool bindIntrinsic(const llvm::CallBase &call, const llvm::Function &callee);
    void bindAllocator(const llvm::CallBase &call, const llvm::Function &callee, const Allocator &allocator);
    void applyEffect(const llvm::CallBase &call, const llvm::Function &callee, const Effect &effect, int number);
    NodeId followed(NodeId pointer, unsigned times);
    void callThrough(NodeId pointer, const llvm::CallBase &call, const Effect *effect);
    void findObjectsOfClasses();
    NodeId objectsOf(const llvm::GlobalVariable &information);
    NodeId arrival(const llvm::Argument &parameter);
    bool castTo(const llvm::Value *information, NodeId given, NodeId to);
    bool isOnlyCalled(const llvm::LoadInst &load) const;
    NodeId loadedBy(const llvm::LoadInst &load);
    void findAllocators();
    bool isAllocator(const llvm::Function &function, Allocator &allocator) const;
    NodeId argument(const llvm::CallBase &call, unsigned number);
    NodeId onlySource(const llvm::CallBase &call);
    NodeId resultOf(const llvm::Function &function);
    uint64_t sizeOf(llvm::Type *type) const { return memory.dataLayout().getTypeStoreSize(type).getKnownMinValue(); }

    const llvm::Module &program;
    const LibraryEffects &library;
    Memory &memory;
    Solver &solver;
    PointsToOptions options;
    llvm::DenseMap<const llvm::Value *, NodeId> nodes;
    llvm::DenseMap<const llvm::Function *, NodeId> results;
    llvm::DenseMap<const llvm::Function *, Allocator> allocators;
    VirtualTables virtualTables;
    /// The objects of every class, by its type information.
    llvm::DenseMap<const llvm::GlobalVariable *, NodeId> objects;
    /// Objects whose classes are not all known.
    NodeId ofAnyClass = Solver::nothing;
    /// Classes that objects may be of without being known to be.
    llvm::DenseSet<const llvm::GlobalVariable *> unsure;
    bool allUnsure = false;
    /// What is given to the methods of a class as their object.
    llvm::DenseMap<const llvm::Argument *, NodeId> arrivals;
    std::vector<Site> sites;
    /// What is found by following pointers of a node, some more times.
    llvm::DenseMap<std::pair<NodeId, unsigned>, NodeId> ends;
    NodeId thrown;
};

} // namespace catena

// The values of a function as terms of a solver, and the conditions under which its blocks are reached.
#pragma once

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Operator.h"
#include <map>
#include <optional>
#include <vector>
#include <z3.h>

namespace catena {

/// What is read from a packet or its header: the base it is found by, and where.
struct PacketRead {
    const llvm::Value *base;
    Z3_ast offset;
    unsigned bytes;
    Z3_ast value;
};

/// Terms over bit vectors. What is not modelled (loads, calls, floating point, values around a loop) is any value, so
/// that what the solver finds infeasible is.
///
/// For one execution of a block, every value stands for what was computed last; values that a loop carries over are
/// any.
class Terms {
public:
    /// With `memoryOf`, loads through these bases (parameters, globals, or what globals hold if that is a pointer) read
    /// one unchanging array each: good for making packets, not for proofs.
    Terms(const llvm::Function &function, std::vector<const llvm::Value *> memoryOf = {});
    ~Terms();
    Terms(const Terms &) = delete;
    Terms &operator=(const Terms &) = delete;

    Z3_context context() const { return z3; }
    /// The condition under which a block is reached, loops entered.
    Z3_ast reached(const llvm::BasicBlock *block);
    /// The condition under which the end of a block goes on to its successor number `index`.
    Z3_ast taken(const llvm::BasicBlock *block, unsigned index);
    const std::vector<PacketRead> &reads() const { return packetReads; }
    Z3_ast number(uint64_t value, unsigned bits) const;
    /// The term of an integer or pointer.
    Z3_ast of(const llvm::Value *value);

private:
    Z3_ast make(const llvm::Instruction &instruction);
    Z3_ast binary(const llvm::BinaryOperator &operation);
    Z3_ast compare(const llvm::ICmpInst &comparison);
    Z3_ast step(const llvm::GEPOperator &address);
    Z3_ast join(const llvm::PHINode &phi);
    Z3_ast intrinsic(const llvm::CallInst &call);
    Z3_ast read(const llvm::LoadInst &load);
    Z3_ast edge(const llvm::BasicBlock *from, const llvm::BasicBlock *to);
    Z3_ast any(const llvm::Type *type);
    Z3_ast truth(Z3_ast condition) const;
    Z3_ast isTrue(Z3_ast bit) const;
    unsigned width(const llvm::Type *type) const;
    const llvm::Value *baseOf(const llvm::Value *pointer) const;

    const llvm::DataLayout &layout;
    Z3_context z3;
    std::vector<const llvm::Value *> memories;
    llvm::DenseSet<std::pair<const llvm::BasicBlock *, const llvm::BasicBlock *>> backEdges;
    llvm::DenseMap<const llvm::Value *, Z3_ast> terms;
    llvm::DenseMap<const llvm::BasicBlock *, Z3_ast> reach;
    std::vector<PacketRead> packetReads;
};

/// Return a solver that gives up a question at a cost in its own units, so that the answer does not depend on the
/// machine. Who asks for it gives it back with Z3_solver_dec_ref.
Z3_solver boundedSolver(Z3_context z3, unsigned cost);

} // namespace catena

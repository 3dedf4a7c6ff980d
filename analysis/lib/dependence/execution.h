// What a program may execute after given instructions.
#pragma once

#include "pointsto/points_to.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/IR/Instructions.h"
#include <map>

namespace catena {

/// Who calls whom, through pointers and libraries too.
class CallGraph {
public:
    CallGraph(const llvm::Module &program, const PointsTo &pointsTo);
    /// Return the calls that may call a function, directly, through a pointer or by a library.
    const std::vector<const llvm::CallBase *> &callersOf(const llvm::Function *function) const;
    /// Return the functions with code that a call may call, those that a library calls among them.
    const std::vector<const llvm::Function *> &calledBy(const llvm::CallBase *call) const;
    /// Return all functions with code that may run when some do.
    llvm::DenseSet<const llvm::Function *> closure(const std::vector<const llvm::Function *> &from) const;
    /// Return the functions that a library calls.
    const std::vector<const llvm::Function *> &calledBack() const { return callbacks; }

private:
    std::map<const llvm::Function *, std::vector<const llvm::CallBase *>> callers;
    std::map<const llvm::CallBase *, std::vector<const llvm::Function *>> called;
    std::map<const llvm::Function *, std::vector<const llvm::Function *>> callees;
    std::vector<const llvm::Function *> callbacks;
};

/// The instructions that may be executed after one of some calls has returned.
///
/// What a program does before it receives its first packet cannot depend on packets, whatever a flow-insensitive
/// dependence graph says. Found by following control flow: on in the same function, after it returned on in its
/// callers, and from both down into all they call.
class ExecutedAfter {
public:
    ExecutedAfter(const CallGraph &calls, const llvm::Module &program,
                  const std::vector<const llvm::CallBase *> &begin);
    /// Take all of a program to be executed after, as a flow-insensitive analysis does.
    ExecutedAfter(const CallGraph &calls, const llvm::Module &program);
    bool contains(const llvm::Instruction *instruction) const;
    /// Return whether a part of a function, or all of it, may be executed.
    bool contains(const llvm::Function *function) const {
        return whole.contains(function) || partly.contains(function);
    }

private:
    void continueAt(const llvm::Instruction *instruction);
    void continueAfter(const llvm::Instruction *instruction);
    void enter(const llvm::Function *function);

    const CallGraph &calls;
    llvm::DenseSet<const llvm::Function *> whole, partly;
    /// The first instruction of each block that is executed after; those behind it are as well.
    llvm::DenseMap<const llvm::BasicBlock *, const llvm::Instruction *> blocks;
    std::vector<const llvm::Instruction *> work;
};

} // namespace catena

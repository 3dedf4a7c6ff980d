// The variables of a traced program as its runtime is told of them.
#pragma once

#include "program/debug_names.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/IR/IRBuilder.h"

namespace catena {

/// The tables of `struct catena_variable` and `struct catena_global`, and the objects themselves: each begins at a
/// multiple of 16 bytes and has 16 bytes behind it, so that a pointer past its end leads to no other.
class TracedObjects {
public:
    explicit TracedObjects(llvm::Module &program);

    /// Enter all global and static variables.
    void addGlobals();
    /// Enter the cells of a function that can outlive a packet: those whose address is kept somewhere and, where
    /// packets may be received in a loop, all. Calls `catena_trace_local` for each.
    void addCells(llvm::Function &function, bool all);
    bool isTraced(const llvm::AllocaInst &cell) const { return cells.contains(&cell); }
    /// Call `catena_trace_program` at the beginning of `main`.
    void announce(llvm::Function &main);

private:
    llvm::FunctionCallee begins();
    uint32_t variable(const llvm::DIVariable &source, unsigned kind);
    llvm::Constant *text(llvm::StringRef text);
    llvm::Constant *table(llvm::ArrayRef<llvm::Constant *> rows, llvm::StructType *type);

    llvm::Module &program;
    llvm::LLVMContext &context;
    llvm::Type *pointer, *word, *number;
    llvm::StructType *variableType, *globalType;
    llvm::StringMap<llvm::Constant *> texts;
    std::vector<llvm::Constant *> variables, globals;
    llvm::DenseMap<const llvm::DIVariable *, uint32_t> numbers;
    llvm::DenseSet<const llvm::AllocaInst *> cells;
};

} // namespace catena

// The virtual tables of a C++ program: what lies where in them, and which classes their objects are of.
#pragma once

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/GlobalVariable.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include <optional>
#include <vector>

namespace catena {

/// Return whether a global variable is a virtual table whose contents are known.
bool isVirtualTable(const llvm::GlobalVariable &global);

/// A call of a virtual function, or of one in another table of functions: the table's address, loaded from the object,
/// and where in it the function's pointer lies.
struct TableCall {
    const llvm::LoadInst *table;
    int64_t offset;
};
/// Return from where a call takes its function, if it is from a table, at a constant offset.
std::optional<TableCall> tableCall(const llvm::CallBase &call, const llvm::DataLayout &layout);

/// Return whether a load may take a function's pointer from a virtual table, as calls through pointers to methods do
/// and programs that read virtual tables by hand; members of structs are no such thing.
bool mayReadTable(const llvm::LoadInst &load);

/// The virtual tables of a program (Itanium C++ ABI, §2.5), and its classes, which are named by their type information
/// (§2.9).
class VirtualTables {
public:
    explicit VirtualTables(const llvm::Module &program);

    /// Visit the functions that lie `offset` bytes behind the places of a table that objects point to.
    void functionsAt(const llvm::GlobalVariable &table, int64_t offset,
                     llvm::function_ref<void(const llvm::Function &)> visit) const;

    /// What is known of the objects that point to a table.
    struct Class {
        /// The class and all that it is derived from.
        std::vector<const llvm::GlobalVariable *> lineage;
        /// Whether they may be of more classes: their type information is in part not there.
        bool open = false;
        /// What makes objects of it: the stores of the table's address, and variables that hold it from the beginning.
        std::vector<const llvm::StoreInst *> stores = {};
        std::vector<const llvm::GlobalVariable *> constants = {};
        /// Whether the table's address goes elsewhere too, so that others may make objects of it.
        bool escapes = false;
    };
    const Class &classOf(const llvm::GlobalVariable &table) const { return classes.find(&table)->second; }
    const std::vector<const llvm::GlobalVariable *> &tables() const { return all; }

    /// Return the class of a method that works on objects made before, or null: constructors make them.
    const llvm::GlobalVariable *classOfMethod(const llvm::Function &method) const;

private:
    void makers(const llvm::User &user, const llvm::GlobalVariable &table);
    void addLineage(const llvm::GlobalVariable &information, Class &found) const;

    const llvm::Module &program;
    std::vector<const llvm::GlobalVariable *> all;
    llvm::DenseMap<const llvm::GlobalVariable *, Class> classes;
    /// The offsets that objects point to, of each table.
    llvm::DenseMap<const llvm::GlobalVariable *, std::vector<uint64_t>> addressPoints;
};

/// Return the parameter of a method that is its object.
const llvm::Argument &objectParameter(const llvm::Function &method);

} // namespace catena

// What the source calls things: names, types and lines from debug information.
#pragma once

#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include <map>
#include <set>
#include <string>

namespace catena {

/// A place in the source.
struct Place {
    std::string file;
    unsigned line = 0;
    std::string function;
    bool operator==(const Place &) const = default;
};

/// Return where an instruction stands; line 0 if the compiler did not say.
Place placeOf(const llvm::Instruction &instruction);

/// Return a type as C writes it: `struct host *`, `char *[100]`.
std::string typeName(const llvm::DIType *type);

/// Return the type below typedefs, const and volatile; null is void.
const llvm::DIType *strip(const llvm::DIType *type);

/// Return the variable that a global variable is in the source, or null if the compiler made it.
const llvm::DIGlobalVariable *sourceVariable(const llvm::GlobalVariable &global);

/// Return the variable or parameter that a cell on the stack is in the source, or null. A struct that is passed as a
/// copy has no cell, its parameter is the copy's address.
const llvm::DILocalVariable *sourceLocal(const llvm::Value &cell);

/// Return where source files are, by the names that debug information has for them.
std::map<std::string, std::string> sourcePaths(const llvm::Module &program);

/// Return where all source files are that debug information names, those of types alone too: where they were compiled,
/// and the names relative to that, for programs that were moved with their sources.
std::set<std::string> sourceFiles(const llvm::Module &program);

/// Count all variables that the source declares: global, static and local ones and parameters.
unsigned countVariables(const llvm::Module &program);

/// Return the path of a struct's or union's member at a byte offset, as `outer.inner`; empty if there is none.
std::string memberAt(const llvm::DICompositeType *type, uint64_t byte);

/// Return the struct or union within another at a byte offset, and the offset within it; null if there is none.
const llvm::DICompositeType *memberType(const llvm::DICompositeType *type, uint64_t &byte);

/// Return whether a struct or union has a pointer for a member, at any depth.
bool holdsPointers(const llvm::DICompositeType *type);

/// Return a struct or union by its name in the source, or null. The name has no `struct ` before it.
class StructNames {
public:
    explicit StructNames(const llvm::Module &program);
    const llvm::DICompositeType *find(llvm::StringRef name) const { return types.lookup(name); }
    /// Return the source's type of an IR struct such as `%struct.host`, or null.
    const llvm::DICompositeType *find(const llvm::StructType *type) const;

private:
    llvm::StringMap<const llvm::DICompositeType *> types;
};

} // namespace catena

// What every pointer of a program may point to, and what every call may call.
#pragma once

#include "library/effects.h"
#include "pointsto/memory.h"
#include "pointsto/sparse_set.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/IR/InstrTypes.h"
#include <memory>
#include <set>

namespace catena {

/// A function that a library calls because a call gave it a pointer to it.
struct Callback {
    const llvm::Function *function;
    /// What its parameters are: arguments of the call, `Effect::newObject` or `Effect::noPointer`.
    std::vector<int> arguments;
    /// Whether it runs in a thread of its own.
    bool thread;
    bool operator==(const Callback &) const = default;
};

/// How the points-to analysis works.
struct PointsToOptions {
    /// Tell the members of structs apart.
    bool fields = false;
    /// Take every call of a function that only allocates and returns (xmalloc) for an allocation of its own.
    bool cloneAllocators = true;
};

/// An inclusion-based points-to analysis of a whole program, flow- and context-insensitive.
///
/// Function pointers are resolved as it goes, without regard to their types. Functions without code do what the library
/// list says; those that are not in it are taken to read and write what their arguments point to, to return any of it
/// or a new object, and to call any function among it.
class PointsTo {
public:
    PointsTo(const llvm::Module &program, const LibraryEffects &library, const PointsToOptions &options = {});
    ~PointsTo();
    PointsTo(const PointsTo &) = delete;
    PointsTo &operator=(const PointsTo &) = delete;

    /// Return where a value may point.
    const SparseSet &of(const llvm::Value *value) const;
    /// Return where what is stored at a location may point.
    const SparseSet &contents(Location location) const;
    /// Return the locations that an access of `size` bytes (0: any number, to both sides) through a pointer may touch.
    const SparseSet &touched(const llvm::Value *pointer, uint64_t size) const;
    /// Return all locations of an object.
    SparseSet locationsOf(const Object &object) const;
    /// Return all locations that can be reached from some: `from`, all of their objects, and what these point to.
    const SparseSet &reachable(const SparseSet &from) const;
    /// Return the functions that a call may call, with or without code.
    const std::vector<const llvm::Function *> &callees(const llvm::CallBase &call) const;
    /// Return the functions with code that a library calls because of a call.
    const std::vector<Callback> &callbacks(const llvm::CallBase &call) const;
    const Memory &memory() const;
    const LibraryEffects &library() const;
    /// Functions without code that are called and not in the library list, by name.
    const std::set<std::string> &unmodelled() const;

    /// Figures of the analysis.
    struct Figures {
        unsigned nodes, locations, objects, rounds;
    };
    Figures figures() const;

private:
    class Inside;
    std::unique_ptr<Inside> inside;
};

/// Return whether values of a type may hold pointers: pointers, integers of their size, aggregates of such.
bool mayHoldPointers(const llvm::Type *type);
/// Return the most bytes that the size of a copy may be, or 0 if it is not known.
uint64_t mostBytes(const llvm::Value *size);
/// Return the function that a call names, through casts and aliases, or null if it calls through a pointer.
const llvm::Function *namedCallee(const llvm::CallBase &call);

} // namespace catena

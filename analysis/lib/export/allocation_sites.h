// Finds what each allocation of a program is used for.
#pragma once

#include "statealyzr/findings.h"
#include "llvm/ADT/MapVector.h"

namespace catena {

/// How the pointers in a piece of memory are found; the numbers are those of runtime/layout.h.
enum class Treatment : unsigned { Bytes, Typed, Words, Constant };

/// A call in the original program that allocates memory, directly or through an allocator of the program's own.
struct AllocationSite {
    Treatment treatment = Treatment::Words;
    /// The struct that it is an object or an array of; only if typed.
    const llvm::StructType *type = nullptr;
    /// Whether the call is the program's own allocator's, which allocates elsewhere.
    bool outer = false;
    /// The variables that what it allocates is an entry of, by their ranks among the updateable ones.
    std::vector<unsigned> entryOf = {};
};

/// Return whether a function of a library allocates memory that the program owns and frees.
bool allocates(llvm::StringRef function);

/// Find the allocations of a program.
///
/// An object is typed if all structs as which the program accesses it are one struct, or parts of it; it is bytes if no
/// pointer is ever stored in it; otherwise pointers are known by what they point to.
llvm::MapVector<llvm::CallBase *, AllocationSite> allocationSites(const StateFindings &findings);

} // namespace catena

// What StateAlyzr finds out about a variable.
#pragma once

#include "pointsto/sparse_set.h"
#include "program/debug_names.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Value.h"
#include <set>
#include <string>
#include <vector>

namespace catena {

/// A step of a reason: a statement and what happens there.
struct Step {
    Place place;
    std::string what;
    bool operator==(const Step &) const = default;
};

/// A persistent variable, and what becomes known of it, figure by figure.
struct Variable {
    /// The global variable, or the cell on the stack of a loop procedure's local.
    const llvm::Value *value = nullptr;
    const llvm::DIVariable *source = nullptr;
    std::string name, type;
    Place declared;
    enum Kind { Global, Static, Local, Parameter } kind = Global;
    /// Its own locations, and all that can be reached from it.
    SparseSet own, reach;

    /// How packet-processing code uses it (Figure 4.7).
    enum Use { Unused, ThroughPointer, Named } use = Unused;
    /// Whether packet-processing code may change it or what it leads to (Figure 4.9).
    bool updateable = false;
    /// Whether it can hold entries of several flows (Figure 4.10, lines 2-4), is looked up at all, and by which fields.
    bool keyed = false, accessed = false;
    std::set<std::string> flowspace;
    /// The locations of its entries, its own among them; empty where no header field keys them.
    SparseSet entries;
    /// Which output it may change (Figure 4.11).
    bool packetOutput = false, logOutput = false;
    /// Whether packets update it and nothing reads it but to update it.
    bool unread = false;
    /// Statements of packet-processing code that read and write it or what it leads to.
    unsigned reads = 0, writes = 0;
    /// The chain of statements from the packet's reception to the update, and to the use.
    std::vector<Step> why;

    bool topLevel() const { return use != Unused; }
};

} // namespace catena

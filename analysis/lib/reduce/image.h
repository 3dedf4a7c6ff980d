// The memory of a program when it receives its first packet, found by running its own initialization.
#pragma once

#include "reduce/native.h"
#include "reduce/reception.h"

namespace catena {

/// A pointer in the image: into an object, or just behind it.
struct ImagePointer {
    unsigned object;
    uint64_t offset;
    bool operator==(const ImagePointer &) const = default;
};

/// A global variable, a function, or a block on the heap.
struct ImageObject {
    /// The name of a global variable or function; empty for a block.
    std::string symbol;
    /// The number of the call that allocated a block, 0 if it was allocated otherwise; and of the one by which the
    /// program called its own allocator, where it has one.
    unsigned site = 0, origin = 0;
    bool freed = false;
    std::vector<uint8_t> bytes;
    std::map<uint64_t, ImagePointer> pointers;
    /// Words (by their offsets) that differ from run to run and are no pointers: time, chance, names of temporary
    /// files, and pointers to what only a library knows.
    std::set<uint64_t> unsteady;

    /// Return whether bytes are the same numbers in every run.
    bool steady(uint64_t begin, uint64_t end) const;
};

/// All objects, global ones first.
struct Image {
    std::vector<ImageObject> objects;
    std::map<std::string, unsigned> symbols;
};

/// The attribute of functions that are the program's own allocators.
inline constexpr char allocatorMark[] = "catena-allocator";

/// Compile a program so that it writes its image; return the executable.
llvm::Expected<std::string> buildForImage(const llvm::Module &program, const LinkFlags &link, const Scratch &scratch);

/// Read the image that two runs of a program wrote: what is the same in both, and pointers that lead to the same.
///
/// Errors: runs that have the same addresses, so that nothing can be told.
llvm::Expected<Image> readImage(const llvm::Module &program, const std::string &first, const std::string &second);

/// Run the program's initialization up to the first reception, twice, and return the image there.
///
/// Errors: a program that ends before it receives, with what it said.
llvm::Expected<Image> imageAtReception(const llvm::Module &program, const LinkFlags &link, const CommandLine &line,
                                       const std::string &capture, const Scratch &scratch);

} // namespace catena

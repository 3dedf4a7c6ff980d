// Bitcode within executables, shared libraries and object files (ELF).
#pragma once

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBufferRef.h"
#include <string>
#include <vector>

namespace catena {

/// The section that holds bitcode in what Catena's compilers make.
constexpr llvm::StringRef bitcodeSection = ".catena.bitcode";

/// What an ELF file says that matters here.
struct ElfFile {
    enum Kind { Object, Executable, SharedLibrary } kind = Object;
    /// The name that a shared library is asked for by; empty if it says none.
    std::string soname;
    /// The shared libraries that it asks for.
    std::vector<std::string> needed;
    /// Bitcode of the files that it was linked from, one each; within the buffer it was read from. It stands in
    /// `bitcodeSection` or where clang puts it (`-Xclang -fembed-bitcode=bitcode`).
    std::vector<llvm::StringRef> bitcode;
};

/// Return whether bytes begin like an ELF file.
bool isElf(llvm::StringRef bytes);

/// Read an ELF file of 64 bits. Errors: what is damaged in it.
llvm::Expected<ElfFile> readElf(llvm::MemoryBufferRef buffer);

} // namespace catena

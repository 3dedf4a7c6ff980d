// Files that a tool writes: that one cannot be written is said before the work, and what was not written is an error.
#pragma once

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"
#include <string>
#include <vector>

namespace catena {

/// Check that a file can be written, without touching it. Nothing is wrong with an empty name: no file is asked for.
llvm::Error checkWritable(const std::string &file);

/// The files that a run writes: all of them, or none. Each is written beside the one that it replaces, and all get
/// their names when the last is there. A run that ends before leaves what was there as it was.
class OutputFiles {
public:
    OutputFiles() = default;
    OutputFiles(const OutputFiles &) = delete;
    OutputFiles &operator=(const OutputFiles &) = delete;
    ~OutputFiles() { discard(); }

    /// Write a file, executable or not. One that is there keeps its permissions, and a link goes on leading to it. What
    /// is no file, such as `/dev/stdout` or a pipe, is written to directly.
    llvm::Error write(const std::string &file, llvm::function_ref<void(llvm::raw_ostream &)> write,
                      bool executable = false);

    /// Give all files their names.
    llvm::Error keep();

    /// Forget all files that have not got their names.
    void discard();

private:
    struct Staged {
        /// As the user calls it, and where links from there end.
        std::string file, target;
        /// Where it has been written; empty if its folder cannot take another file, so that it is written over.
        std::string aside;
        std::string bytes;
    };

    std::vector<Staged> staged;
};

/// Write what is printed to the end. What cannot be written would end the process with LLVM's own message otherwise.
llvm::Error finishOutput(llvm::raw_fd_ostream &printed);

} // namespace catena

// The files that a run of a tool reads and writes: none of those it writes may be another one of them. All are named
// here before the first is written.
#pragma once

#include "program/file_identity.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"
#include <set>
#include <string>
#include <vector>

namespace catena {

class UsedFiles {
public:
    /// Standard output and standard error are written in any case.
    UsedFiles();

    /// Add a file that is read. `what` is what the user calls it, such as `--functions`; a file `-` is standard input.
    ///
    /// Errors: it is one that is written.
    llvm::Error reads(const llvm::Twine &what, const std::string &file);

    /// Add the source files that a program's debug information names, as far as they are there: reports show them, and
    /// nobody wants one overwritten. Relative names are those of the current folder and of the files' that were added.
    ///
    /// Errors: one is a file that is written.
    llvm::Error readsSources(const llvm::Module &program);

    /// Add a file that is written; `-` is standard output. Nothing is wrong with an empty name: no file is asked for.
    ///
    /// Errors: it cannot be written, it is one that is read, or another one that is written.
    llvm::Error writes(const llvm::Twine &what, const std::string &file);

    /// Return whether a file that is there already is written.
    bool writesOver() const;

    /// Check that nothing else has written to the files to be written since they were added.
    ///
    /// Errors: `by` has; it is the subject of the message, such as `the build`.
    llvm::Error checkUnwritten(const llvm::Twine &by) const;

private:
    enum class Stream { None, Output, Error };

    struct Use {
        std::string name;
        std::optional<FileIdentity> identity;
        /// The stream that it is, also if that is named by an option.
        Stream stream = Stream::None;
        std::string file = "", state = "";
    };

    llvm::Error add(Use use);

    std::vector<Use> read, written;
    std::set<std::string> folders{"."};
    std::optional<FileIdentity> standardOutput;
};

} // namespace catena

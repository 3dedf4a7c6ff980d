// Making executables of programs, and running them.
#pragma once

#include "reduce/leftovers.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"
#include <map>
#include <string>
#include <vector>

namespace catena {

/// A folder of temporary files, gone with this.
class Scratch {
public:
    static llvm::Expected<Scratch> make();
    Scratch(Scratch &&other) : path(std::move(other.path)), leftovers(std::move(other.leftovers)) {
        other.path.clear();
    }
    ~Scratch();
    /// Return the path of a file in it.
    std::string file(const llvm::Twine &name) const { return (llvm::Twine(path) + "/" + name).str(); }
    /// Make a folder in it and return its path.
    llvm::Expected<std::string> folder(const llvm::Twine &name) const;

private:
    explicit Scratch(std::string path) : path(std::move(path)), leftovers(this->path) {}
    std::string path;
    Leftovers leftovers;
};

/// What executables are linked with: flags of `clang-19`, such as `-lpcap`.
using LinkFlags = std::vector<std::string>;

/// Make an executable of a program and, if it is not empty, a source in C; return its path. The program is optimized as
/// by clang's `-O` of a level. One that was made before in the same folder is not made again.
llvm::Expected<std::string> buildExecutable(const llvm::Module &program, llvm::StringRef source, unsigned level,
                                            const LinkFlags &link, const Scratch &scratch);

/// A program's command line. `{in}` in it stands for a capture to read, any other `{NAME}` for a file that it writes.
struct CommandLine {
    std::vector<std::string> words;
    /// The names of the files it writes.
    std::vector<std::string> outputs() const;
};

/// What a run of a program came to: all of it that can be seen from outside.
struct Run {
    int status = 0;
    /// Why there is no status: it could not be started, a signal, out of time.
    std::string failed;
    /// The files it wrote by their names, `stdout` and `stderr` among them.
    std::map<std::string, std::string> written;
};

/// Run a program on a capture, with files in `folder` for what it writes.
Run run(const std::string &executable, const CommandLine &line, const std::string &capture, const std::string &folder,
        const std::map<std::string, std::string> &environment = {});

/// Return a file's contents. Errors name it.
llvm::Expected<std::string> readFile(const std::string &path);

} // namespace catena

// Which lines of the source processing a packet came to, and with which step each of them went.
#pragma once

#include "llvm/IR/Function.h"
#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace catena {

/// A line of the source; procedures in macros and headers share files, so the procedure counts too.
struct SourceLine {
    std::string file;
    unsigned line;
    std::string function;
    bool operator<(const SourceLine &other) const {
        return std::tie(file, line, function) < std::tie(other.file, other.line, other.function);
    }
};

/// Why nothing is left of a line.
enum class RemovalReason { Dropped, Configuration, Layer, Path, Duplicated, Overwritten };

/// A line that is gone, with the number of instructions that it was.
struct RemovedLine {
    SourceLine line;
    RemovalReason reason;
    unsigned instructions;
};

/// Notes, from step to step, what is left of the lines that a packet's processing consists of.
class RemovedLines {
public:
    /// Begin with a packet function and all that it calls. Their values get names that say their lines: whoever moves
    /// an instruction to where it is done on more paths takes its place in the source from it, but not its name.
    explicit RemovedLines(llvm::Function &packet);
    /// Return the lines that a function and all that it calls or names consist of, each with its number of
    /// instructions.
    std::map<SourceLine, unsigned> linesOf(const llvm::Function &packet) const;
    /// Note what is gone since the last time, for this reason. To be asked of functions in which the compiler has not
    /// yet put statements of several lines together: an instruction of both would be of none.
    void step(const llvm::Function &packet, RemovalReason reason);
    /// Note what is gone of the lines that another function had.
    void step(const std::map<SourceLine, unsigned> &before, const llvm::Function &packet, RemovalReason reason);
    /// Return the lines that are gone, in the source's order.
    const std::vector<RemovedLine> &removed() const { return gone; }
    /// Return how many lines there were.
    unsigned total() const { return lines; }

private:
    std::vector<SourceLine> named;
    std::map<SourceLine, unsigned> left;
    std::vector<RemovedLine> gone;
    unsigned lines;
};

} // namespace catena

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
enum class RemovalReason { Configuration, Layer, Path, Duplicated, Overwritten };

/// A line that is gone, with the number of instructions that it was.
struct RemovedLine {
    SourceLine line;
    RemovalReason reason;
    unsigned instructions;
};

/// Notes, from step to step, what is left of the lines that a packet's processing consists of.
class RemovedLines {
public:
    /// Begin with a packet function and all that it calls.
    explicit RemovedLines(const llvm::Function &packet);
    /// Note what is gone since the last time, for this reason.
    void step(const llvm::Function &packet, RemovalReason reason);
    /// Return the lines that are gone, in the source's order.
    const std::vector<RemovedLine> &removed() const { return gone; }
    /// Return how many lines there were.
    unsigned total() const { return lines; }

private:
    std::map<SourceLine, unsigned> left;
    std::vector<RemovedLine> gone;
    unsigned lines;
};

} // namespace catena

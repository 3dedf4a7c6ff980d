// Noticing that a configuration has changed.
#pragma once

#include "reduce/native.h"
#include "llvm/ADT/ArrayRef.h"

namespace catena {

/// Files that are looked at several times a second.
///
/// Polling, since editors put new files in the place of old ones, and configuration may lie where no notices come from.
class WatchedFiles {
public:
    /// Look at these from now on; they need not exist.
    explicit WatchedFiles(std::vector<std::string> paths);
    /// Return when one of them has changed, and no more since a moment.
    void wait();
    const std::vector<std::string> &names() const { return paths; }

private:
    std::vector<std::string> paths, seen;
};

/// Return the files that a command line names as they are, in words or behind `=` in a word.
std::vector<std::string> namedFiles(const CommandLine &line);

} // namespace catena

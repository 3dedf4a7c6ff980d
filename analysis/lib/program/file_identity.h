// Which file a name or a descriptor leads to. Names do not tell: hard links, symbolic links and redirected streams lead
// to one file by several.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace catena {

/// A file: by device and inode if it is there, else by those of its folder and its name in it.
struct FileIdentity {
    uint64_t device = 0, inode = 0;
    /// Empty for a file that is there.
    std::string name = "";

    bool operator==(const FileIdentity &) const = default;
};

/// Return which file a name leads to; nothing for devices, pipes and sockets, which may be written to several times,
/// and for what cannot be there.
std::optional<FileIdentity> identityOf(const std::string &file);

/// Return which file an open descriptor is.
std::optional<FileIdentity> identityOf(int descriptor);

/// Return where a chain of symbolic links ends, though nothing is there.
std::string endOfLinks(const std::string &file);

/// Return whether a name is that of standard output.
bool namesStandardOutput(const std::string &file);

} // namespace catena

// Symbolic links that lead nowhere are followed by hand: a file that is written there gets the last one's name.
#include "program/file_identity.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Path.h"
#include <climits>
#include <sys/stat.h>
#include <unistd.h>

using namespace llvm;

namespace catena {

namespace {

/// Symbolic links in a row that are followed, as many as Linux follows.
constexpr unsigned mostLinks = 40;

std::optional<FileIdentity> identityOf(const struct stat &there) {
    if (S_ISCHR(there.st_mode) || S_ISFIFO(there.st_mode) || S_ISSOCK(there.st_mode)) return std::nullopt;
    return FileIdentity{there.st_dev, there.st_ino};
}

} // namespace

std::optional<FileIdentity> identityOf(const std::string &file) {
    struct stat there;
    if (!stat(file.c_str(), &there)) return identityOf(there);
    std::string target = endOfLinks(file), folder = sys::path::parent_path(target).str();
    if (stat(folder.empty() ? "." : folder.c_str(), &there)) return std::nullopt;
    return FileIdentity{there.st_dev, there.st_ino, sys::path::filename(target).str()};
}

std::optional<FileIdentity> identityOf(int descriptor) {
    struct stat there;
    return fstat(descriptor, &there) ? std::nullopt : identityOf(there);
}

std::string endOfLinks(const std::string &file) {
    SmallString<256> target(file);
    for (unsigned links = 0; links < mostLinks; ++links) {
        char next[PATH_MAX];
        ssize_t length = readlink(target.c_str(), next, sizeof next);
        if (length < 0 || static_cast<size_t>(length) == sizeof next) break;
        StringRef path(next, length);
        if (sys::path::is_absolute(path)) {
            target = path;
        } else {
            sys::path::remove_filename(target);
            sys::path::append(target, path);
        }
    }
    return target.str().str();
}

bool namesStandardOutput(const std::string &file) {
    return is_contained({"-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"}, StringRef(file));
}

} // namespace catena

// What is checked beforehand may change until the file is written, so writing says what is wrong too.
#include "program/output_file.h"

#include "program/bitcode.h"
#include "program/file_identity.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Signals.h"
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace llvm;

namespace catena {

namespace {

/// Names beside a file that are tried until one is free: a process of the same number may have died there.
constexpr unsigned mostNames = 1000;

Error unwritable(const std::string &file, const Twine &why) { return failure(file + ": cannot be written: " + why); }

std::string reason(int number) { return std::generic_category().message(number); }

std::string folderOf(const std::string &file) {
    StringRef folder = sys::path::parent_path(file);
    return folder.empty() ? "." : folder.str();
}

Error writeTo(raw_fd_ostream &out, const std::string &file, function_ref<void(raw_ostream &)> write) {
    // A file that would be larger than is allowed (`ulimit -f`) is an error like a full disk, and no crash.
    struct sigaction before, ignored = {};
    ignored.sa_handler = SIG_IGN;
    sigaction(SIGXFSZ, &ignored, &before);
    write(out);
    out.flush();
    sigaction(SIGXFSZ, &before, nullptr);
    if (!out.has_error()) return Error::success();
    std::error_code code = out.error();
    out.clear_error();
    return unwritable(file, code.message());
}

/// Write to what is there.
Error overwrite(const std::string &file, function_ref<void(raw_ostream &)> write) {
    std::error_code code;
    raw_fd_ostream out(file, code);
    if (code) return unwritable(file, code.message());
    return writeTo(out, file, write);
}

bool isStandardOutput(const struct stat &there) {
    struct stat printed;
    return !fstat(STDOUT_FILENO, &printed) && there.st_dev == printed.st_dev && there.st_ino == printed.st_ino;
}

/// Return whether it is the folder, not the file, that cannot be written: a file may be written to in a folder that
/// takes no others, belong to somebody else, or be mounted by itself.
bool isAboutFolder(int number) { return number == EACCES || number == EPERM || number == EROFS || number == EBUSY; }

/// Open a new file in a folder and return its descriptor, or -1 with errno.
int openBeside(const std::string &folder, mode_t mode, std::string &name) {
    static unsigned number = 0;
    for (unsigned tried = 0; tried < mostNames; ++tried) {
        name = folder + "/.catena-" + std::to_string(getpid()) + "-" + std::to_string(number++);
        int opened = open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (opened >= 0 || errno != EEXIST) return opened;
    }
    return -1;
}

/// Give a new file owner and permissions of the one that it is to replace; one that was none becomes executable for who
/// may read it, as a linker's does. Return errno, or 0.
int takeAfter(int file, const struct stat &there, bool executable) {
    struct stat made;
    if (fstat(file, &made)) return errno;
    if ((made.st_uid != there.st_uid || made.st_gid != there.st_gid) && fchown(file, there.st_uid, there.st_gid))
        return errno;
    mode_t mode = there.st_mode & 07777;
    return fchmod(file, executable ? mode | (mode & 0444) >> 2 : mode) ? errno : 0;
}

} // namespace

Error checkWritable(const std::string &file) {
    if (file.empty() || namesStandardOutput(file)) return Error::success();
    if (sys::fs::is_directory(file)) return unwritable(file, "this is a folder");
    std::string folder = folderOf(endOfLinks(file));
    if (!sys::fs::is_directory(folder)) return unwritable(file, "there is no folder " + folder);
    if (std::error_code code = sys::fs::access(sys::fs::exists(file) ? file : folder, sys::fs::AccessMode::Write))
        return unwritable(file, code.message());
    return Error::success();
}

Error OutputFiles::write(const std::string &file, function_ref<void(raw_ostream &)> write, bool executable) {
    struct stat there;
    bool isNew = stat(file.c_str(), &there) != 0;
    // `/dev/stdout`, and what it is redirected to: behind what has been printed, and before what will be.
    if (namesStandardOutput(file) || (!isNew && isStandardOutput(there))) {
        write(outs());
        return finishOutput(outs());
    }
    if (!isNew && !S_ISREG(there.st_mode)) return overwrite(file, write);
    Staged one{file, endOfLinks(file), "", ""};
    if (!isNew) {
        // A name can be given to another file in its folder though the file itself is protected.
        if (access(file.c_str(), W_OK)) return unwritable(file, reason(errno));
        SmallString<256> real;
        if (std::error_code code = sys::fs::real_path(file, real)) return unwritable(file, code.message());
        one.target = real.str().str();
    }
    raw_string_ostream text(one.bytes);
    write(text);
    // Nobody reads what becomes of a secret file before it has its permissions.
    int descriptor = openBeside(folderOf(one.target), !isNew ? 0600 : executable ? 0777 : 0666, one.aside);
    if (descriptor < 0) {
        if (isNew || !isAboutFolder(errno)) return unwritable(file, reason(errno));
        one.aside.clear();
        staged.push_back(std::move(one));
        return Error::success();
    }
    sys::RemoveFileOnSignal(one.aside);
    staged.push_back(one);
    raw_fd_ostream out(descriptor, true);
    int failed = isNew ? 0 : takeAfter(descriptor, there, executable);
    if (failed && !isAboutFolder(failed)) return unwritable(file, reason(failed));
    if (failed) {
        // It belongs to somebody else.
        sys::fs::remove(one.aside);
        sys::DontRemoveFileOnSignal(one.aside);
        staged.back().aside.clear();
        return Error::success();
    }
    if (Error error = writeTo(out, file, [&](raw_ostream &to) { to << one.bytes; })) return error;
    if (fsync(descriptor)) return unwritable(file, reason(errno));
    out.close();
    if (!out.has_error()) return Error::success();
    std::error_code code = out.error();
    out.clear_error();
    return unwritable(file, code.message());
}

Error OutputFiles::keep() {
    for (Staged &one : staged) {
        auto bytes = [&](raw_ostream &to) { to << one.bytes; };
        if (one.aside.empty()) {
            if (Error error = overwrite(one.file, bytes)) return error;
            continue;
        }
        if (rename(one.aside.c_str(), one.target.c_str())) {
            int failed = errno;
            if (!isAboutFolder(failed) || !sys::fs::exists(one.file)) return unwritable(one.file, reason(failed));
            if (Error error = overwrite(one.file, bytes)) return error;
            continue;
        }
        sys::DontRemoveFileOnSignal(one.aside);
        one.aside.clear();
        // The name is safe on the disk once the folder is, where the file system can say so.
        if (int folder = open(folderOf(one.target).c_str(), O_RDONLY | O_CLOEXEC); folder >= 0) {
            fsync(folder);
            close(folder);
        }
    }
    discard();
    return Error::success();
}

void OutputFiles::discard() {
    for (const Staged &one : staged) {
        if (one.aside.empty()) continue;
        sys::fs::remove(one.aside);
        sys::DontRemoveFileOnSignal(one.aside);
    }
    staged.clear();
}

Error finishOutput(raw_fd_ostream &printed) {
    printed.flush();
    if (!printed.has_error()) return Error::success();
    std::error_code code = printed.error();
    printed.clear_error();
    return failure("standard output: cannot be written: " + code.message());
}

} // namespace catena

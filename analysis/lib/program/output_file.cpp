// What is checked beforehand may change until the file is written, so writing says what is wrong too.
#include "program/output_file.h"

#include "program/bitcode.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <unistd.h>

using namespace llvm;

namespace catena {

namespace {

Error unwritable(const std::string &file, const Twine &why) { return failure(file + ": cannot be written: " + why); }

Error writeTo(raw_fd_ostream &out, const std::string &file, function_ref<void(raw_ostream &)> write) {
    write(out);
    out.flush();
    if (!out.has_error()) return Error::success();
    std::error_code code = out.error();
    out.clear_error();
    return unwritable(file, code.message());
}

/// Write a file beside another, and give it that one's name: whoever reads it meets what it was or what it becomes, and
/// a full disk leaves it as it was.
Error replace(const std::string &file, bool isNew, const sys::fs::file_status &there,
              function_ref<void(raw_ostream &)> write) {
    SmallString<128> target(file);
    if (!isNew) {
        if (std::error_code code = sys::fs::access(file, sys::fs::AccessMode::Write))
            return unwritable(file, code.message());
        if (std::error_code code = sys::fs::real_path(file, target)) return unwritable(file, code.message());
    }
    SmallString<128> aside = sys::path::parent_path(target);
    sys::path::append(aside, ".catena-%%%%%%%%");
    auto made = sys::fs::TempFile::create(aside);
    if (!made) return unwritable(file, toString(made.takeError()));
    Error done = [&]() -> Error {
        raw_fd_ostream out(made->FD, false);
        if (Error error = writeTo(out, file, write)) return error;
        if (!isNew && (there.getUser() != geteuid() || there.getGroup() != getegid()))
            if (std::error_code code = sys::fs::changeFileOwnership(made->FD, there.getUser(), there.getGroup()))
                return unwritable(file, code.message());
        if (!isNew)
            if (std::error_code code = sys::fs::setPermissions(made->FD, there.permissions()))
                return unwritable(file, code.message());
        if (fsync(made->FD)) return unwritable(file, std::generic_category().message(errno));
        return Error::success();
    }();
    if (!done) return made->keep(target);
    return joinErrors(std::move(done), made->discard());
}

} // namespace

Error checkWritable(const std::string &file) {
    if (file.empty()) return Error::success();
    if (sys::fs::is_directory(file)) return unwritable(file, "this is a folder");
    StringRef folder = sys::path::parent_path(file);
    if (folder.empty()) folder = ".";
    if (!sys::fs::is_directory(folder)) return unwritable(file, "there is no folder " + folder);
    std::string asked = sys::fs::exists(file) ? file : folder.str();
    if (std::error_code code = sys::fs::access(asked, sys::fs::AccessMode::Write))
        return unwritable(file, code.message());
    return Error::success();
}

Error writeOutput(const std::string &file, function_ref<void(raw_ostream &)> write) {
    sys::fs::file_status there, printed;
    std::error_code missing = sys::fs::status(file, there);
    // `/dev/stdout`, and what it is redirected to: behind what has been printed, and before what will be.
    if (!missing && !sys::fs::status(STDOUT_FILENO, printed) && there.getUniqueID() == printed.getUniqueID()) {
        write(outs());
        return finishOutput(outs());
    }
    bool isNew = missing == std::errc::no_such_file_or_directory && !sys::fs::is_symlink_file(file);
    bool isFile = isNew || (!missing && sys::fs::is_regular_file(there));
    if (file != "-" && isFile) return replace(file, isNew, there, write);
    std::error_code code;
    raw_fd_ostream out(file, code);
    if (code) return unwritable(file, code.message());
    return writeTo(out, file, write);
}

Error finishOutput(raw_fd_ostream &printed) {
    printed.flush();
    if (!printed.has_error()) return Error::success();
    std::error_code code = printed.error();
    printed.clear_error();
    return failure("standard output: cannot be written: " + code.message());
}

} // namespace catena

// What is checked beforehand may change until the file is written, so writing says what is wrong too.
#include "program/output_file.h"

#include "program/bitcode.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace catena {

namespace {

Error unwritable(const std::string &file, const Twine &why) { return failure(file + ": cannot be written: " + why); }

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
    std::error_code code;
    raw_fd_ostream out(file, code);
    if (code) return unwritable(file, code.message());
    write(out);
    out.close();
    if (!out.has_error()) return Error::success();
    code = out.error();
    out.clear_error();
    return unwritable(file, code.message());
}

Error finishOutput(raw_fd_ostream &printed) {
    printed.flush();
    if (!printed.has_error()) return Error::success();
    std::error_code code = printed.error();
    printed.clear_error();
    return failure("standard output: cannot be written: " + code.message());
}

} // namespace catena

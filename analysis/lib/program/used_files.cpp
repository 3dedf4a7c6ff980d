// Files are compared as they are when they are added: a tool that lets others write in between asks anew.
#include "program/used_files.h"

#include "program/bitcode.h"
#include "program/debug_names.h"
#include "program/output_file.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <unistd.h>

using namespace llvm;

namespace catena {

namespace {

Error overwritten(const std::string &written, const std::string &read) {
    return failure(written + " would overwrite " + read + ", which is the same file");
}

/// Return what tells a file from what it was before; empty for one that is not there.
std::string stateOf(const std::string &file) {
    sys::fs::file_status there;
    if (!identityOf(file) || sys::fs::status(file, there)) return "";
    auto changed = there.getLastModificationTime().time_since_epoch().count();
    return std::to_string(there.getUniqueID().getFile()) + " " + std::to_string(there.getSize()) + " " +
           std::to_string(changed);
}

} // namespace

UsedFiles::UsedFiles() : standardOutput(identityOf(STDOUT_FILENO)) {
    written.push_back({"standard output", standardOutput, Stream::Output});
    // A log that takes both is none of the files that are asked for.
    auto standardError = identityOf(STDERR_FILENO);
    if (standardError != standardOutput) written.push_back({"standard error", standardError, Stream::Error});
}

Error UsedFiles::reads(const Twine &what, const std::string &file) {
    Use use{(what + " " + (file == "-" ? "standard input" : file)).str(),
            file == "-" ? identityOf(STDIN_FILENO) : identityOf(file)};
    if (file.empty()) return Error::success();
    if (sys::fs::is_regular_file(file) && !sys::path::parent_path(file).empty())
        folders.insert(sys::path::parent_path(file).str());
    return add(std::move(use));
}

Error UsedFiles::add(Use use) {
    if (!use.identity) return Error::success();
    for (const Use &other : written)
        if (other.identity == use.identity) return overwritten(other.name, use.name);
    read.push_back(std::move(use));
    return Error::success();
}

Error UsedFiles::readsSources(const Module &program) {
    auto addIfThere = [&](const std::string &file) {
        return sys::fs::is_regular_file(file) ? add({"the source " + file, identityOf(file)}) : Error::success();
    };
    for (const std::string &file : sourceFiles(program)) {
        if (sys::path::is_absolute(file)) {
            if (Error error = addIfThere(file)) return error;
            continue;
        }
        for (const std::string &folder : folders) {
            SmallString<256> path(folder);
            sys::path::append(path, file);
            sys::path::remove_dots(path);
            if (Error error = addIfThere(path.str().str())) return error;
        }
    }
    return Error::success();
}

Error UsedFiles::writes(const Twine &what, const std::string &file) {
    if (file.empty()) return Error::success();
    if (Error error = checkWritable(file)) return error;
    Use use{(what + " " + file).str(), identityOf(file)};
    if (namesStandardOutput(file)) use.identity = standardOutput;
    // By its name, or because it is redirected there: such a file is written behind what is printed.
    if (namesStandardOutput(file) || (use.identity && use.identity == standardOutput)) use.stream = Stream::Output;
    use.file = file;
    use.state = stateOf(file);
    for (const Use &other : read)
        if (use.identity && other.identity == use.identity) return overwritten(use.name, other.name);
    for (const Use &other : written) {
        bool same = use.identity && other.identity == use.identity;
        // What is printed goes on before it and behind it.
        if (use.stream == Stream::Output && other.stream == Stream::Output ? !other.file.empty() : same)
            return failure(other.name + " and " + use.name + " are the same file: one would overwrite the other");
    }
    written.push_back(std::move(use));
    return Error::success();
}

bool UsedFiles::writesOver() const {
    return any_of(written, [](const Use &use) { return !use.state.empty(); });
}

Error UsedFiles::checkUnwritten(const Twine &by) const {
    for (const Use &use : written) {
        if (use.file.empty() || use.stream == Stream::Output) continue;
        std::string now = stateOf(use.file);
        if (!now.empty() && now != use.state)
            return failure(use.name + ": " + by + " has written this file, which would be overwritten");
    }
    return Error::success();
}

} // namespace catena

// What was linked is known in two ways: compilers note what they link, and linked files under the working directory are
// looked for, as builds rename and install their programs, or call the linker themselves.
#include "build/build.h"

#include "build/compilers.h"
#include "program/bitcode.h"
#include "program/elf_file.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/xxhash.h"
#include <map>
#include <set>
#include <sys/wait.h>
#include <unistd.h>

using namespace llvm;

namespace catena {

namespace {

/// Run a command and return its exit status.
Expected<int> run(const std::vector<std::string> &command) {
    std::vector<char *> words;
    for (const std::string &word : command) words.push_back(const_cast<char *>(word.c_str()));
    words.push_back(nullptr);
    pid_t child = fork();
    if (child < 0) return failure("no process can be made for " + command.front());
    if (child == 0) {
        // The standard output is for the report.
        dup2(STDERR_FILENO, STDOUT_FILENO);
        execvp(words.front(), words.data());
        _exit(127);
    }
    int status;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) return failure("the end of " + command.front() + " cannot be waited for");
    if (WIFSIGNALED(status)) return failure("the build was ended by signal " + Twine(WTERMSIG(status)));
    return WEXITSTATUS(status);
}

/// A linked file with bitcode.
struct Linked {
    std::string path;
    ElfFile elf;
    /// Whether this build linked it; else it was there before.
    bool isNew;
};

/// Linked files with bitcode, each once, however many copies there are.
class LinkedFiles {
public:
    void add(StringRef path, bool isNew) {
        SmallString<256> real;
        // What build systems only try out is none of the program.
        if (sys::fs::real_path(path, real) || path.contains("/CMakeFiles/") || path.contains("/meson-private/")) return;
        if (!sys::fs::is_regular_file(real) || !paths.insert(real).second) return;
        auto buffer = MemoryBuffer::getFile(real, false, false);
        if (!buffer || !isElf((*buffer)->getBuffer())) return;
        auto elf = readElf((*buffer)->getMemBufferRef());
        if (!elf) {
            consumeError(elf.takeError());
            return;
        }
        if (elf->kind == ElfFile::Object || elf->bitcode.empty()) return;
        uint64_t hash = elf->kind;
        for (StringRef part : elf->bitcode) hash = hash * 31 + xxh3_64bits(part);
        if (!contents.insert(hash).second) return;
        elf->bitcode.clear();
        files.push_back({real.str().str(), std::move(*elf), isNew});
    }

    void addFolder(StringRef folder, sys::TimePoint<> since) {
        std::error_code error;
        for (sys::fs::recursive_directory_iterator entry(folder, error, false), end; !error && entry != end;
             entry.increment(error)) {
            auto status = entry->status();
            if (status && status->type() == sys::fs::file_type::regular_file)
                add(entry->path(), status->getLastModificationTime() >= since);
        }
    }

    std::vector<Linked> files;

private:
    StringSet<> paths;
    std::set<uint64_t> contents;
};

/// Sort what was linked into programs and the libraries they ask for.
std::vector<BuiltProgram> programsOf(const std::vector<Linked> &files) {
    std::map<std::string, const Linked *, std::less<>> libraries;
    for (const Linked &file : files) {
        if (file.elf.kind != ElfFile::SharedLibrary) continue;
        libraries.try_emplace(sys::path::filename(file.path).str(), &file);
        if (!file.elf.soname.empty()) libraries[file.elf.soname] = &file;
    }
    auto asked = [&](const Linked &file) {
        std::vector<const Linked *> found{&file};
        for (size_t i = 0; i < found.size(); ++i)
            for (const std::string &name : found[i]->elf.needed)
                // The name is a path where a library without a name of its own was linked by its path.
                if (auto library = libraries.find(sys::path::filename(name)); library != libraries.end())
                    if (!is_contained(found, library->second)) found.push_back(library->second);
        found.erase(found.begin());
        return found;
    };
    std::set<const Linked *> used;
    for (const Linked &file : files)
        if (file.elf.kind == ElfFile::Executable)
            for (const Linked *library : asked(file)) used.insert(library);
    // If nothing was to be done, what an earlier run built still has its bitcode. Libraries may be older in any case.
    bool anyNew = any_of(files, [](const Linked &file) { return file.isNew; });
    std::vector<BuiltProgram> programs;
    for (const Linked &file : files) {
        if (used.count(&file) || (anyNew && !file.isNew)) continue;
        BuiltProgram program{file.path, {}};
        for (const Linked *library : asked(file)) program.libraries.push_back(library->path);
        programs.push_back(std::move(program));
    }
    llvm::sort(programs, [](const BuiltProgram &a, const BuiltProgram &b) { return a.path < b.path; });
    return programs;
}

std::string listOf(const std::vector<BuiltProgram> &programs) {
    std::string list;
    for (const BuiltProgram &program : programs) list += (list.empty() ? "" : ", ") + program.path;
    return list;
}

} // namespace

Expected<std::vector<BuiltProgram>> build(const std::vector<std::string> &command) {
    if (auto program = sys::findProgramByName(command.front()); !program)
        return failure(command.front() + ": there is no such command");
    auto compilers = compilersWithBitcode();
    if (!compilers) return compilers.takeError();
    SmallString<128> linked;
    if (std::error_code error = sys::fs::createTemporaryFile("catena", "linked", linked))
        return failure("no temporary file can be made: " + error.message());
    sys::RemoveFileOnSignal(linked);
    auto remove = make_scope_exit([&] { sys::fs::remove(linked); });
    const char *path = getenv("PATH");
    setenv("PATH", (*compilers + ":" + (path ? path : "/usr/bin:/bin")).c_str(), 1);
    setenv("CC", (*compilers + "/cc").c_str(), 1);
    setenv("CXX", (*compilers + "/c++").c_str(), 1);
    setenv(linkedVariable, linked.c_str(), 1);
    // File systems count time more coarsely than clocks.
    auto begin = std::chrono::system_clock::now() - std::chrono::seconds(1);
    auto status = run(command);
    if (!status) return status.takeError();
    if (*status != 0) return failure("the build failed: " + join(command, " ") + ": exit status " + Twine(*status));

    LinkedFiles found;
    if (auto list = MemoryBuffer::getFile(linked)) {
        SmallVector<StringRef, 16> lines;
        (*list)->getBuffer().split(lines, '\n', -1, false);
        for (StringRef line : lines) found.add(line, true);
    }
    SmallString<256> here;
    if (!sys::fs::current_path(here)) found.addFolder(here, begin);
    auto programs = programsOf(found.files);
    if (programs.empty())
        return failure(
            "nothing with bitcode was linked by " + join(command, " ") +
            ". If it was built before, clean it first (make clean); if it was configured for another compiler, "
            "or names its compiler by a path, configure it by this command too: catena analyze -- "
            "sh -c './configure && make'");
    return programs;
}

Expected<BuiltProgram> choose(const std::vector<BuiltProgram> &programs, StringRef name) {
    std::vector<BuiltProgram> chosen;
    for (const BuiltProgram &program : programs)
        if (program.path == name || StringRef(program.path).ends_with(("/" + name).str())) chosen.push_back(program);
    if (chosen.size() == 1) return chosen.front();
    if (chosen.empty()) return failure("no program " + name + " was built; there are " + listOf(programs));
    return failure("several programs are called " + name + ": " + listOf(chosen) + "; say more of the path");
}

} // namespace catena

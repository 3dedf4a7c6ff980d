// A compiler is a shell script of a few lines, as all that has to be done is to add options behind the build's own,
// where they win. The object files are real ones that carry their bitcode in a section of its own: linkers, archivers
// and `strip` handle them as they are, in every kind of build, and put together what each program consists of.
#include "build/compilers.h"

#include "program/bitcode.h"
#include "program/elf_file.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/Regex.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"

using namespace llvm;

namespace catena {

namespace {

constexpr StringRef script = R"(#!/bin/sh
# Compiles as asked, and leaves the bitcode in what it makes. Written by catena-analyze.
step=link output= next= objects=
for word in "$@"; do
    if [ "$next" ]; then output=$word next=; continue; fi
    case $word in
    -o) next=output ;;
    -o?*) output=${word#-o} ;;
    -c) step=compile ;;
    -S | -E | -M | -MM | -fsyntax-only | --version | -print-* | -dump*) step=other ;;
    -*) ;;
    *.[cCisS] | *.ii | *.cc | *.cpp | *.cxx | *.c++) object=${word##*/} objects="$objects ${object%.*}.o" ;;
    esac
done
@COMPILER@ "$@" @OPTIONS@ || exit
case $step in
compile)
    if [ "$output" ]; then set -- "$output"; else set -- $objects; fi
    for object in "$@"; do
        [ ! -f "$object" ] || objcopy --rename-section .llvmbc=@SECTION@ "$object" || exit
    done ;;
link)
    [ "$@LINKED@" ] || exit 0
    case ${output:=a.out} in
    /*) ;;
    *) output=$PWD/$output ;;
    esac
    printf '%s\n' "$output" >>"$@LINKED@" ;;
esac
)";

/// Bitcode as the analysis wants it; and what GCC lets pass with a warning must not stop the build.
constexpr StringRef compile = "-g -O0 -Xclang -disable-O0-optnone -fno-discard-value-names "
                              "-Xclang -fembed-bitcode=bitcode -fno-addrsig -fno-lto -Qunused-arguments "
                              "-Wno-error -Wno-unknown-warning-option -Wno-ignored-optimization-argument "
                              "-Wno-error=implicit-function-declaration -Wno-error=implicit-int "
                              "-Wno-error=int-conversion -Wno-error=incompatible-function-pointer-types";

std::string scriptFor(StringRef compiler) {
    std::string text;
    StringRef rest = script;
    while (!rest.empty()) {
        size_t at = rest.find('@');
        text += rest.take_front(at);
        if (at == StringRef::npos) break;
        rest = rest.drop_front(at + 1);
        if (rest.consume_front("COMPILER@"))
            text += compiler;
        else if (rest.consume_front("OPTIONS@"))
            text += compile;
        else if (rest.consume_front("LINKED@"))
            text += linkedVariable;
        else if (rest.consume_front("SECTION@"))
            text += bitcodeSection;
        else
            text += '@';
    }
    return text;
}

/// Return whether a file's name is that of a C or C++ compiler for this machine: `cc`, `g++-12`,
/// `x86_64-linux-gnu-gcc`.
bool isCompiler(StringRef name) {
    Triple machine(sys::getProcessTriple());
    std::string arch = Triple::getArchTypeName(machine.getArch()).str();
    Regex names("^(" + arch +
                "-((pc|unknown)-)?linux-gnu-)?(cc|c89|c99|gcc|clang|c\\+\\+|g\\+\\+|clang\\+\\+)(-[0-9.]+)?$");
    return names.match(name);
}

/// The compilers there are, and the usual names in any case.
StringSet<> compilerNames() {
    StringSet<> names;
    for (StringRef name : {"cc", "c89", "c99", "gcc", "clang", "c++", "g++", "clang++"}) names.insert(name);
    SmallVector<StringRef, 16> folders;
    std::optional<std::string> path = sys::Process::GetEnv("PATH");
    StringRef(path.value_or("")).split(folders, ':', -1, false);
    for (StringRef folder : folders) {
        std::error_code error;
        for (sys::fs::directory_iterator file(folder, error), end; !error && file != end; file.increment(error)) {
            StringRef name = sys::path::filename(file->path());
            if (isCompiler(name)) names.insert(name);
        }
    }
    return names;
}

Error writeScript(const Twine &path, StringRef text) {
    std::string file = path.str();
    auto there = MemoryBuffer::getFile(file);
    if (there && (*there)->getBuffer() == text && sys::fs::can_execute(file)) return Error::success();
    // Another run may be using the old one: it is replaced, not written over.
    SmallString<128> fresh;
    int handle;
    if (std::error_code error = sys::fs::createUniqueFile(file + ".%%%%%%", handle, fresh, sys::fs::OF_None,
                                                          sys::fs::all_read | sys::fs::all_exe | sys::fs::owner_write))
        return failure(file + ": " + error.message());
    raw_fd_ostream out(handle, true);
    out << text;
    out.close();
    if (out.has_error()) {
        out.clear_error();
        return failure(file + ": cannot be written");
    }
    if (std::error_code error = sys::fs::rename(fresh, file)) return failure(file + ": " + error.message());
    return Error::success();
}

} // namespace

Expected<std::string> compilersWithBitcode() {
    std::string compilers[2];
    for (bool plus : {false, true}) {
        const char *name = plus ? "clang++-19" : "clang-19";
        auto found = sys::findProgramByName(name);
        if (!found) return failure(Twine(name) + " is not there, and bitcode is made by it: apt-get install clang-19");
        compilers[plus] = *found;
    }
    SmallString<128> folder;
    if (!sys::path::cache_directory(folder)) sys::path::system_temp_directory(true, folder);
    sys::path::append(folder, "catena", "compilers");
    if (std::error_code error = sys::fs::create_directories(folder))
        return failure(folder + ": compilers for the build are to be written here: " + error.message());
    for (const auto &name : compilerNames()) {
        bool plus = name.getKey().contains("++");
        if (Error error = writeScript(folder + "/" + name.getKey(), scriptFor(compilers[plus])))
            return std::move(error);
    }
    return folder.str().str();
}

} // namespace catena

// Programs are compiled here and linked by clang-19, which must be there anyway to make bitcode.
#include "reduce/native.h"

#include "program/bitcode.h"
#include "reduce/compile.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/SHA1.h"
#include "llvm/Support/raw_ostream.h"
#include <set>
#include <unistd.h>

using namespace llvm;

namespace catena {

namespace {

/// No program that is compared runs longer, in seconds.
constexpr unsigned longestRun = 60;

Error writeText(const std::string &path, StringRef text) {
    std::error_code code;
    raw_fd_ostream stream(path, code);
    if (code) return failure(path + ": " + code.message());
    stream << text;
    return Error::success();
}

Error clang(std::vector<StringRef> words, const char *cannot, const Scratch &scratch) {
    auto program = sys::findProgramByName("clang-19");
    if (!program) return failure("clang-19 is not there; it makes executables: apt-get install clang-19");
    words.insert(words.begin(), {"clang-19", "-w"});
    std::string messages = scratch.file("clang"), why;
    int status = sys::ExecuteAndWait(*program, words, std::nullopt, {"", messages, messages}, longestRun, 0, &why);
    if (status == 0) return Error::success();
    auto said = readFile(messages);
    std::string what = said ? *said : (consumeError(said.takeError()), std::string());
    return failure(Twine(cannot) + ": " + why + what);
}

/// What the files that are made of these texts are called.
std::string keyOf(ArrayRef<StringRef> texts) {
    SHA1 sum;
    for (StringRef text : texts) {
        sum.update(std::to_string(text.size()) + ":");
        sum.update(text);
    }
    return toHex(sum.final(), true);
}

/// Compile a source in C that comes with this program.
Expected<std::string> compileSource(StringRef source, const Scratch &scratch) {
    std::string object = scratch.file(keyOf(source) + ".o"), text = scratch.file("runtime.c");
    if (sys::fs::exists(object)) return object;
    if (Error error = writeText(text, source)) return std::move(error);
    // An allocator that is built of itself would never end.
    if (Error error = clang({"-O1", "-fPIC", "-fno-builtin", "-c", text, "-o", object},
                            "clang-19 cannot compile what reduced programs are linked with", scratch))
        return std::move(error);
    return object;
}

} // namespace

Expected<Scratch> Scratch::make() {
    SmallString<128> path;
    sys::fs::createUniquePath("catena-reduce-%%%%%%%%%%%%%%%%", path, true);
    Scratch scratch{std::string(path)};
    std::error_code code = sys::fs::create_directory(path, false, sys::fs::perms::owner_all);
    if (!code) return scratch;
    scratch.leftovers.disown();
    scratch.path.clear();
    return failure("cannot make a temporary folder: " + path.str() + ": " + code.message());
}

Scratch::~Scratch() {
    if (!path.empty()) sys::fs::remove_directories(path);
}

Expected<std::string> Scratch::folder(const Twine &name) const {
    std::string at = file(name);
    if (std::error_code code = sys::fs::create_directory(at)) return failure(at + ": " + code.message());
    return at;
}

Expected<std::string> readFile(const std::string &path) {
    auto buffer = MemoryBuffer::getFile(path);
    if (!buffer) return failure(path + ": " + buffer.getError().message());
    return (*buffer)->getBuffer().str();
}

Expected<std::string> buildExecutable(const Module &program, StringRef source, unsigned level, const LinkFlags &link,
                                      const Scratch &scratch) {
    std::string bitcode;
    raw_string_ostream stream(bitcode);
    WriteBitcodeToFile(program, stream);
    std::string key = keyOf({bitcode, source, std::to_string(level), join(link, " ")});
    std::string made = scratch.file(key), object = scratch.file("program.o");
    if (sys::fs::exists(made)) return made;
    auto code = objectCode(program, level);
    if (!code) return code.takeError();
    if (Error error = writeText(object, StringRef(code->data(), code->size()))) return std::move(error);
    std::vector<StringRef> words{object};
    std::string with;
    if (!source.empty()) {
        auto compiled = compileSource(source, scratch);
        if (!compiled) return compiled.takeError();
        with = *compiled;
        words.push_back(with);
    }
    // Its addresses must be random, where it is no library.
    if (!is_contained(link, "-shared")) words.push_back("-pie");
    words.insert(words.end(), {"-o", made});
    words.insert(words.end(), link.begin(), link.end());
    if (Error error = clang(
            words, "clang-19 cannot make an executable of the program (libraries are named with --link)", scratch))
        return std::move(error);
    return made;
}

std::vector<std::string> CommandLine::outputs() const {
    std::vector<std::string> names;
    for (StringRef word : words)
        for (size_t open = word.find('{'); open != StringRef::npos; open = word.find('{', open + 1))
            if (size_t close = word.find('}', open); close != StringRef::npos)
                if (StringRef name = word.slice(open + 1, close); name != "in") names.push_back(name.str());
    return names;
}

Run run(const std::string &executable, const CommandLine &line, const std::string &capture, const std::string &folder,
        const std::map<std::string, std::string> &environment) {
    auto place = [&](StringRef name) { return name == "in" ? capture : folder + "/" + name.str(); };
    // Programs print their name before messages; original and reduced program must have the same.
    std::vector<std::string> words{"program"};
    for (StringRef word : line.words) {
        std::string filled;
        while (!word.empty()) {
            size_t open = word.find('{'), close = open == StringRef::npos ? open : word.find('}', open);
            if (close == StringRef::npos) break;
            filled += word.take_front(open).str() + place(word.slice(open + 1, close));
            word = word.drop_front(close + 1);
        }
        words.push_back(filled + word.str());
    }
    std::vector<std::string> variables;
    for (char **variable = environ; *variable; ++variable)
        if (!StringRef(*variable).starts_with("CATENA_")) variables.push_back(*variable);
    for (const auto &[name, value] : environment) variables.push_back(name + "=" + value);
    std::vector<StringRef> arguments(words.begin(), words.end()), settings(variables.begin(), variables.end());
    std::string out = place("stdout"), err = place("stderr");
    std::vector<std::string> names = line.outputs();
    names.insert(names.end(), {"stdout", "stderr"});
    // What an earlier run left there is none of this one's.
    for (const std::string &name : names) sys::fs::remove(place(name));
    std::string why;
    Run done;
    done.status =
        sys::ExecuteAndWait(executable, arguments, ArrayRef<StringRef>(settings), {"", out, err}, longestRun, 0, &why);
    if (done.status < 0) done.failed = why.empty() ? "it was ended by a signal" : why;
    for (const std::string &name : names)
        if (auto text = readFile(place(name)))
            done.written[name] = std::move(*text);
        else
            consumeError(text.takeError());
    return done;
}

} // namespace catena

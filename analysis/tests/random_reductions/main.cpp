// catena-random-reductions: writes random network functions with random configurations, reduces them, and looks whether
// original and reduced program do the same: by the tool's own comparison, and by one that shares nothing with it.
//
// With --mutants it spoils reduced programs, and looks whether the comparison notices what the other one notices.
#include "function.h"
#include "mutants.h"
#include "program/bitcode.h"
#include "reduce/equivalence.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include <chrono>
#include <csignal>
#include <sys/wait.h>
#include <unistd.h>

using namespace llvm;
using namespace catena;

namespace {

cl::OptionCategory category("Options");
cl::opt<unsigned> programCount("count", cl::desc("How many functions and configurations"), cl::init(100),
                               cl::cat(category));
cl::opt<unsigned long long> seed("seed", cl::desc("The first function's seed; the others follow"), cl::init(1),
                                 cl::cat(category));
cl::opt<unsigned> perFunction("configurations", cl::desc("Configurations of each function"), cl::init(5),
                              cl::cat(category));
cl::opt<bool> withMutants("mutants", cl::desc("Spoil reduced programs as well"), cl::cat(category));
cl::opt<unsigned> most("seconds", cl::desc("Begin with no function after so many seconds"), cl::init(UINT32_MAX),
                       cl::cat(category));
cl::opt<std::string> unnoticed("unnoticed",
                               cl::desc("A folder for the spoilt programs that the comparison does not notice"),
                               cl::value_desc("FOLDER"), cl::cat(category));
cl::opt<unsigned> packetsEach("packets", cl::desc("Packets made at random for each comparison"), cl::init(200),
                              cl::cat(category));
cl::opt<bool> show("show", cl::desc("Print the functions and configurations"), cl::cat(category));

/// No reduction takes longer with all that is compared, in seconds.
constexpr unsigned longest = 300;
constexpr unsigned trafficPackets = 60, otherTraffic = 300;
constexpr size_t kinds = std::size(random::mutations);

/// What came of a number of reductions.
struct Figures {
    unsigned reductions = 0, differences = 0, failures = 0;
    uint64_t packets = 0, before = 0, after = 0, folded = 0, unrolled = 0;
    struct Mutants {
        unsigned made = 0, noticed = 0, noticedOtherwise = 0, missed = 0;
    } mutants[kinds];

    void add(const Figures &more) {
        reductions += more.reductions, differences += more.differences, failures += more.failures;
        packets += more.packets, before += more.before, after += more.after, folded += more.folded;
        unrolled += more.unrolled;
        for (size_t i = 0; i < kinds; ++i) {
            mutants[i].made += more.mutants[i].made, mutants[i].noticed += more.mutants[i].noticed;
            mutants[i].noticedOtherwise += more.mutants[i].noticedOtherwise;
            mutants[i].missed += more.mutants[i].missed;
        }
    }
};

Error writeText(const std::string &file, StringRef text) {
    std::error_code code;
    raw_fd_ostream stream(file, code);
    if (code) return failure(file + ": " + code.message());
    stream << text;
    return Error::success();
}

Error clang(std::vector<StringRef> words) {
    auto program = sys::findProgramByName("clang-19");
    if (!program) return failure("clang-19 is not there: apt-get install clang-19");
    words.insert(words.begin(), {*program, "-w"});
    std::string why;
    if (sys::ExecuteAndWait(*program, words, std::nullopt, {}, 60, 0, &why))
        return failure("a random function cannot be compiled " + why);
    return Error::success();
}

/// A function with its files.
struct Subject {
    uint64_t seed;
    random::NetworkFunction function;
    const Scratch &scratch;
    std::string bitcode, original;
    Capture traffic, other;

    std::string configuration(unsigned i) const { return scratch.file("configuration" + Twine(i)); }
};

Expected<Subject> makeSubject(uint64_t seed, unsigned configurations, const Scratch &scratch) {
    Subject made{seed,
                 random::networkFunction(seed, configurations),
                 scratch,
                 scratch.file("function.bc"),
                 scratch.file("original"),
                 {},
                 {}};
    std::string source = scratch.file("function.c");
    if (Error error = writeText(source, made.function.source)) return std::move(error);
    if (Error error = clang({"-g", "-O0", "-Xclang", "-disable-O0-optnone", "-fno-discard-value-names", "-emit-llvm",
                             "-c", source, "-o", made.bitcode}))
        return std::move(error);
    if (Error error = clang({"-O0", source, "-o", made.original, "-lpcap"})) return std::move(error);
    for (unsigned i = 0; i < configurations; ++i)
        if (Error error = writeText(made.configuration(i), made.function.configurations[i])) return std::move(error);
    made.traffic.packets = random::randomTraffic(seed, trafficPackets);
    made.other.packets = random::randomTraffic(~seed, otherTraffic);
    if (Error error = writeCapture(made.traffic, scratch.file("traffic.pcap"))) return std::move(error);
    if (Error error = writeCapture(made.other, scratch.file("other.pcap"))) return std::move(error);
    return made;
}

/// Run both on other packets than the tool does, the original as clang makes it of the source, and compare what they
/// write: functions print their state when they end.
Expected<std::string> compareOtherwise(const Subject &subject, const std::string &reduced, const CommandLine &line) {
    auto folder = subject.scratch.folder("otherwise");
    if (!folder) return folder.takeError();
    Run left = run(subject.original, line, subject.scratch.file("other.pcap"), *folder);
    Run right = run(reduced, line, subject.scratch.file("other.pcap"), *folder);
    if (!left.failed.empty() || left.status > 1) return "the original fails: " + left.failed + left.written["stderr"];
    if (!right.failed.empty()) return "the reduced function fails: " + right.failed;
    if (left.status != right.status) return "exit status " + std::to_string(right.status) + right.written["stderr"];
    for (const auto &[name, text] : left.written)
        if (right.written[name] != text) return name + " differs";
    return std::string();
}

/// Packets for the function as it was are the same for all of its configurations.
Expected<Capture> solvedPackets(const Subject &subject, const Reduction &reduction) {
    Capture solved;
    std::string file = subject.scratch.file("solved.pcap");
    if (sys::fs::exists(file)) {
        auto made = readCapture(file);
        if (!made) return made.takeError();
        solved = std::move(*made);
    } else {
        solved.packets = packetsOfOriginal(reduction);
        if (Error error = writeCapture(solved, file)) return std::move(error);
    }
    append_range(solved.packets, packetsOfReduced(reduction));
    return solved;
}

/// Write what can be read of a spoilt program that is not noticed: what was changed, and both programs.
Error writeUnnoticed(const std::string &name, const std::string &changed, const Module &right, const Module &wrong) {
    std::string texts[2];
    for (const auto &[program, text] : {std::pair(&right, &texts[0]), std::pair(&wrong, &texts[1])}) {
        raw_string_ostream stream(*text);
        stream << *program;
    }
    std::string begin = unnoticed + "/" + name;
    outs() << name << ": " << changed << "\n";
    if (Error error = writeText(begin + "-right.ll", texts[0])) return error;
    return writeText(begin + "-wrong.ll", texts[1]);
}

Error spoil(const Subject &subject, unsigned i, const Module &original, Reduction &reduction,
            const ReduceOptions &options, const std::vector<std::pair<std::string, Capture>> &captures,
            Figures &figures) {
    auto right = std::move(reduction.program);
    for (size_t kind = 0; kind < kinds; ++kind) {
        auto wrong =
            random::mutant(*right, reduction.packetFunction, random::mutations[kind], subject.seed * 8 + i * 64 + kind);
        if (!wrong.program) continue;
        reduction.program = std::move(wrong.program);
        auto executable = buildReduced(*reduction.program, options.link, subject.scratch);
        if (!executable) return executable.takeError();
        auto compared = compare(original, reduction, *executable, options, captures, subject.scratch);
        if (!compared) return compared.takeError();
        auto otherwise = compareOtherwise(subject, *executable, options.line);
        if (!otherwise) return otherwise.takeError();
        Figures::Mutants &mutants = figures.mutants[kind];
        bool noticed = !compared->difference.empty(), noticedOtherwise = !otherwise->empty();
        ++mutants.made, mutants.noticed += noticed, mutants.noticedOtherwise += noticedOtherwise;
        if (!noticed && !unnoticed.empty()) {
            std::string number = std::to_string(subject.seed) + "-" + std::to_string(i) + "-" + std::to_string(kind);
            if (Error error = writeUnnoticed(number, wrong.changed, *right, *reduction.program)) return error;
        }
        if (!noticedOtherwise || noticed) continue;
        ++mutants.missed;
        outs() << "function " << subject.seed << ", configuration " << i << ": " << name(random::mutations[kind])
               << " is not noticed: " << *otherwise << "\n";
    }
    return Error::success();
}

Error check(const Subject &subject, unsigned i, Figures &figures) {
    LLVMContext context;
    auto buffer = MemoryBuffer::getFile(subject.bitcode);
    if (!buffer) return failure(subject.bitcode + ": " + buffer.getError().message());
    auto program = parseBitcodeFile((*buffer)->getMemBufferRef(), context);
    if (!program) return program.takeError();
    auto original = CloneModule(**program);
    ReduceOptions options;
    options.link = {"-lpcap"};
    options.line.words = {subject.configuration(i), "{in}", "{out}", "{log}"};
    options.capture = subject.scratch.file("traffic.pcap");
    auto reduction = reduce(std::move(*program), options, subject.scratch);
    if (!reduction) return reduction.takeError();
    auto executable = buildReduced(*reduction->program, options.link, subject.scratch);
    if (!executable) return executable.takeError();
    auto solved = solvedPackets(subject, *reduction);
    if (!solved) return solved.takeError();
    // One after the other: starting a program takes longer than all that it does here.
    Capture all = subject.traffic;
    append_range(all.packets, randomPackets(subject.traffic, packetsEach, subject.seed).packets);
    append_range(all.packets, solved->packets);
    append_range(all.packets, randomPackets(*solved, packetsEach, ~subject.seed).packets);
    std::vector<std::pair<std::string, Capture>> captures{{"packets", std::move(all)}};
    auto compared = compare(*original, *reduction, *executable, options, captures, subject.scratch);
    if (!compared) return compared.takeError();
    auto otherwise = compareOtherwise(subject, *executable, options.line);
    if (!otherwise) return otherwise.takeError();
    for (const std::string &difference : {compared->difference, *otherwise})
        if (!difference.empty())
            outs() << "function " << subject.seed << ", configuration " << i << ": " << difference << "\n";
    figures.differences += !compared->difference.empty() || !otherwise->empty();
    figures.packets += compared->packets + otherTraffic;
    figures.before += reduction->specialised.instructionsBefore;
    figures.after += reduction->specialised.instructionsAfter;
    figures.folded += reduction->specialised.loadsFolded;
    for (const UnrolledLoop &loop : reduction->specialised.loops) figures.unrolled += !loop.kept;
    if (!withMutants || figures.differences) return Error::success();
    return spoil(subject, i, *original, *reduction, options, captures, figures);
}

/// Check one configuration in a process of its own, which may crash.
Error checkApart(const Subject &subject, unsigned i, Figures &figures) {
    int ends[2];
    if (pipe(ends)) return failure("no pipe: " + Twine(strerror(errno)));
    outs().flush();
    pid_t child = fork();
    if (child < 0) return failure("no process: " + Twine(strerror(errno)));
    if (!child) {
        close(ends[0]);
        alarm(longest);
        for (int number : {SIGSEGV, SIGABRT, SIGBUS, SIGILL, SIGFPE}) signal(number, SIG_DFL);
        Figures own;
        own.reductions = 1;
        if (Error error = check(subject, i, own)) {
            ++own.failures;
            outs() << "function " << subject.seed << ", configuration " << i << ": " << toString(std::move(error))
                   << "\n";
        }
        outs().flush();
        ssize_t wrote = ::write(ends[1], &own, sizeof own);
        _exit(wrote == sizeof own ? 0 : 1);
    }
    close(ends[1]);
    Figures own;
    bool whole = ::read(ends[0], &own, sizeof own) == sizeof own;
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    if (!whole) {
        own = {};
        own.reductions = own.failures = 1;
        outs() << "function " << subject.seed << ", configuration " << i << ": the reduction ends by signal "
               << WTERMSIG(status) << "\n";
    }
    figures.add(own);
    return Error::success();
}

Error checkAll(Figures &figures) {
    auto begin = std::chrono::steady_clock::now();
    for (uint64_t function = seed; figures.reductions < programCount; ++function) {
        if (std::chrono::steady_clock::now() - begin > std::chrono::seconds(most)) break;
        // What is built for one function is of no use for another.
        auto scratch = Scratch::make();
        if (!scratch) return scratch.takeError();
        unsigned configurations = std::min<unsigned>(perFunction, programCount - figures.reductions);
        auto subject = makeSubject(function, configurations, *scratch);
        if (!subject) return joinErrors(failure("function " + Twine(function)), subject.takeError());
        if (show) {
            outs() << subject->function.source;
            for (const std::string &text : subject->function.configurations) outs() << "\n" << text;
        }
        for (unsigned i = 0; i < configurations; ++i)
            if (Error error = checkApart(*subject, i, figures)) return error;
        constexpr unsigned told = 100;
        if (figures.reductions / told != (figures.reductions - configurations) / told)
            errs() << figures.reductions << " of " << programCount << " reductions, " << figures.differences
                   << " differ, " << figures.failures << " fail\n";
    }
    return Error::success();
}

} // namespace

int main(int argc, char **argv) {
    InitLLVM init(argc, argv);
    cl::HideUnrelatedOptions(category);
    cl::ParseCommandLineOptions(argc, argv, "Reduces random network functions and compares them with the originals.\n");
    Figures figures;
    if (Error error = checkAll(figures)) {
        errs() << toString(std::move(error)) << "\n";
        return 1;
    }
    outs() << figures.reductions << " reductions, " << figures.differences << " that differ, " << figures.failures
           << " that fail; " << figures.packets << " packets; " << figures.folded << " loads folded, "
           << figures.unrolled << " loops unrolled, " << figures.after << " of " << figures.before
           << " instructions left\n";
    unsigned missed = 0;
    for (size_t i = 0; withMutants && i < kinds; ++i) {
        const Figures::Mutants &mutants = figures.mutants[i];
        missed += mutants.missed;
        outs() << name(random::mutations[i]) << ": " << mutants.made << " made, " << mutants.noticed << " noticed, "
               << mutants.noticedOtherwise << " by the other comparison, " << mutants.missed << " by that only\n";
    }
    return figures.differences || figures.failures || missed ? 1 : 0;
}

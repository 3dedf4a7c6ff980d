// catena-reduce: the command line of the reduction.
#include "known_functions.h"
#include "program/bitcode.h"
#include "program/output_file.h"
#include "program/used_files.h"
#include "reduce/chain_equivalence.h"
#include "reduce/equivalence.h"
#include "reduce/shared_object.h"
#include "reduce/watch.h"
#include "report/reduction.h"
#include "report/removal.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/WithColor.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include <chrono>

using namespace llvm;
using namespace catena;

namespace {

cl::OptionCategory &category = toolOptions();
cl::list<std::string> files(cl::Positional, cl::desc("FILE.bc ... -- ARGUMENT ..."), cl::OneOrMore, cl::cat(category));
cl::opt<std::string> input("input", cl::desc("A capture to start the program on, and to compare on"),
                           cl::value_desc("FILE.pcap"), cl::cat(category));
cl::list<std::string> check("check", cl::desc("Another capture to compare on"), cl::value_desc("FILE.pcap"),
                            cl::cat(category));
cl::opt<unsigned> randomCount("random", cl::desc("How many random packets to compare on (default 2000)"),
                              cl::value_desc("PACKETS"), cl::init(2000), cl::cat(category));
cl::opt<std::string> output("o", cl::desc("The executable to make"), cl::value_desc("FILE"), cl::cat(category));
cl::opt<std::string>
    shared("shared",
           cl::desc("A shared object to make, for Native in a chain file; {NAME} in the command line is "
                    "then an argument there"),
           cl::value_desc("FILE.so"), cl::cat(category));
cl::opt<bool> watch("watch",
                    cl::desc("Do not end: reduce again when a configuration file changes, which are the files that the "
                             "command line names"),
                    cl::cat(category));
cl::list<std::string> watched("watched", cl::desc("Another configuration file for --watch"), cl::value_desc("FILE"),
                              cl::cat(category));
cl::opt<std::string>
    report("report",
           cl::desc("A file for what was removed, by lines of the source and with the reasons: a text, or "
                    "JSON for *.json"),
           cl::value_desc("FILE"), cl::cat(category));
cl::opt<std::string> bitcode("bitcode", cl::desc("A file for the reduced program as bitcode"), cl::value_desc("FILE"),
                             cl::cat(category));
cl::list<std::string> link("link",
                           cl::desc("A flag that makes executables of the program need, as -lssl; -lpcap and -lm "
                                    "are given"),
                           cl::value_desc("FLAG"), cl::cat(category));
cl::opt<std::string> at("at", cl::desc("The place of reception that is meant, where a program has several"),
                        cl::value_desc("FUNCTION|FILE:LINE"), cl::cat(category));
cl::opt<bool> unchecked("unchecked", cl::desc("Do not compare with the original"), cl::cat(category));
cl::opt<bool>
    unconsolidated("unconsolidated",
                   cl::desc("Leave what a chain's functions do twice or in vain, to see what removing it adds"),
                   cl::cat(category));
cl::opt<bool> times("times", cl::desc("Say how long each step took"), cl::cat(category));
cl::opt<unsigned> unroll("unroll",
                         cl::desc("Iterations up to which a loop over configuration is unrolled (default 4096)"),
                         cl::value_desc("N"), cl::init(UnrollLimits().iterations), cl::cat(category));
cl::opt<unsigned> decided("decide",
                          cl::desc("Iterations above which a loop over configuration gets a decision tree instead of "
                                   "being unrolled (default 64)"),
                          cl::value_desc("N"), cl::init(UnrollLimits().decided), cl::cat(category));
cl::opt<ReduceLevel> level(
    "level", cl::desc("How much is done"), cl::init(ReduceLevel::Paths), cl::cat(category),
    cl::values(clEnumValN(ReduceLevel::Extraction, "extraction", "only what --drop names"),
               clEnumValN(ReduceLevel::Splice, "splice", "of a chain, one program"),
               clEnumValN(ReduceLevel::Duplicated, "duplicated", "and what its functions do again removed"),
               clEnumValN(ReduceLevel::Overwritten, "overwritten", "and what they do to packets that are dropped"),
               clEnumValN(ReduceLevel::Constants, "constants", "configuration as constants"),
               clEnumValN(ReduceLevel::Layers, "layers", "and unused layers removed"),
               clEnumValN(ReduceLevel::Paths, "paths", "and unused protocols (default)")));
cl::list<std::string> drop("drop",
                           cl::desc("What to drop of what no packet depends on: log, locks, statistics, time, other "
                                    "or all, with commas between (default nothing)"),
                           cl::value_desc("KINDS"), cl::cat(category));
cl::list<std::string> keep("keep", cl::desc("What to keep of what --drop names: kinds, or lines as FILE:LINE"),
                           cl::value_desc("KINDS"), cl::cat(category));
cl::list<std::string> labels("labels",
                             cl::desc("A file of labels for variables: lines LABEL VARIABLE [in FUNCTION|FILE]"),
                             cl::value_desc("FILE"), cl::cat(category));

Expected<std::vector<std::pair<std::string, Capture>>> captures() {
    std::vector<std::pair<std::string, Capture>> all;
    std::vector<std::string> names{input};
    names.insert(names.end(), check.begin(), check.end());
    for (const std::string &name : names) {
        auto capture = readCapture(name);
        if (!capture) return capture.takeError();
        all.push_back({name, std::move(*capture)});
    }
    if (randomCount) all.push_back({"random packets", randomPackets(all.front().second, randomCount, 1)});
    return all;
}

/// A function as the command line names it.
struct Named {
    std::vector<std::string> files;
    CommandLine line;
};

/// Part `FILE.bc ... -- ARGUMENT ... --then FILE.bc ... -- ARGUMENT ...`, whose first files are known.
Expected<std::vector<Named>> chainOf(const std::vector<std::string> &first, ArrayRef<std::string> words) {
    std::vector<Named> chain{{first, {}}};
    bool inLine = true;
    for (const std::string &word : words) {
        if (word == thenWord) {
            chain.push_back({});
            inLine = false;
        } else if (!inLine && word == "--") {
            inLine = true;
        } else {
            (inLine ? chain.back().line.words : chain.back().files).push_back(word);
        }
    }
    for (const Named &one : chain)
        if (one.files.empty())
            return failure(Twine("after ") + thenWord +
                           " stands a function as the first one did: FILE.bc -- ARGUMENT ...");
    return chain;
}

/// Return the files of a run, but for the sources, which the programs name.
Expected<UsedFiles> usedFiles(ArrayRef<Named> chain) {
    UsedFiles used;
    for (const auto &[option, file] :
         {std::pair("-o", &output), {"--shared", &shared}, {"--report", &report}, {"--bitcode", &bitcode}})
        if (Error error = used.writes(option, *file)) return std::move(error);
    if (Error error = used.reads("--input", input)) return std::move(error);
    for (const auto &[option, names] :
         {std::pair("--check", &check), {"--labels", &labels}, {"--watched", &watched}, {"--link", &link}})
        for (const std::string &file : *names)
            if (Error error = used.reads(option, file)) return std::move(error);
    for (const Named &one : chain) {
        for (const std::string &file : one.files)
            if (Error error = used.reads("the program", file)) return std::move(error);
        // Which words are names of files only the program knows; it may write them too.
        for (StringRef word : one.line.words)
            for (StringRef name : {word, word.split('=').second})
                if (Error error = used.reads("the command line's", name.str())) return std::move(error);
    }
    if (Error error = addLists(used)) return std::move(error);
    return used;
}

/// Check what can be known before the work: that the command lines have places for files.
Error checkWords(ArrayRef<Named> chain) {
    if (input.empty())
        return failure("a capture is missing, on which the program is started and compared: --input FILE.pcap");
    for (const std::string &file : watched)
        if (!sys::fs::exists(file)) return failure("--watched " + file + ": there is no such file");
    for (const Named &one : chain)
        for (const std::string &name : one.line.outputs())
            if (name.empty() || !all_of(name, [](char c) { return isAlnum(c) || c == '_' || c == '-' || c == '.'; }) ||
                name.front() == '.')
                return failure("{" + name +
                               "} in the command line is no name of a file: {in} is the capture that the " +
                               "program reads, {NAME} of letters and digits a file that it writes");
    auto reads = [](StringRef word) { return word.contains("{in}"); };
    if (!unchecked && none_of(chain.front().line.words, reads))
        return failure(
            "the command line behind `--` has no {in}, the place of the capture that the program reads; on others "
            "it could not be compared with the original (--unchecked does without)");
    return Error::success();
}

/// Read a chain and splice it; a function alone stays as it is.
Expected<std::unique_ptr<Module>> readChain(ArrayRef<Named> chain, LLVMContext &context, ReduceOptions &options,
                                            ChainOriginals &originals, UsedFiles &used) {
    for (const Named &one : chain) {
        auto program = readProgram(one.files, context);
        if (!program) return program.takeError();
        if (Error error = used.readsSources(**program)) return std::move(error);
        originals.programs.push_back(CloneModule(**program));
        originals.lines.push_back(one.line);
        std::string name = sys::path::stem(one.files.front()).str();
        auto alike = [&](const Named &other) { return sys::path::stem(other.files.front()) == name; };
        if (count_if(chain, alike) > 1) name += std::to_string(originals.lines.size());
        originals.members.push_back({name, std::move(*program), one.line});
    }
    if (chain.size() == 1) {
        options.line = chain.front().line;
        return std::move(originals.members.front().program);
    }
    auto spliced = splice(originals.members, options.analysis);
    if (!spliced) return spliced.takeError();
    options.line = spliced->line;
    options.lifted = spliced->locals;
    options.consolidate = !unconsolidated;
    return std::move(spliced->program);
}

uint64_t sizeOf(const std::string &file) {
    uint64_t size = 0;
    return sys::fs::file_size(file, size) ? 0 : size;
}

/// Write a file as one that was made elsewhere.
Error writeCopy(const std::string &to, const std::string &made, bool executable, OutputFiles &outputs) {
    auto bytes = readFile(made);
    if (!bytes) return bytes.takeError();
    return outputs.write(to, [&](raw_ostream &out) { out << *bytes; }, executable);
}

Error writeReport(const Reduction &reduction, const ReductionSizes &sizes, OutputFiles &outputs) {
    return outputs.write(report, [&](raw_ostream &stream) {
        if (StringRef(report).ends_with(".json"))
            writeRemovalJson(reduction, sizes, stream);
        else
            writeRemovalText(reduction, sizes, stream);
    });
}

Error reduceOnce(ArrayRef<Named> chain) {
    auto used = usedFiles(chain);
    if (!used) return used.takeError();
    ReduceOptions options;
    options.capture = input;
    options.level = level;
    options.at = at;
    options.limits.iterations = unroll;
    options.limits.decided = decided;
    options.link = {"-lpcap", "-lm"};
    options.link.insert(options.link.end(), link.begin(), link.end());
    if (Error error = readKnownFunctions(options.analysis)) return error;
    for (const std::string &words : drop)
        if (Error error = options.extraction.drop(words)) return error;
    for (const std::string &words : keep)
        if (Error error = options.extraction.keep(words)) return error;
    for (const std::string &file : labels) {
        auto text = readFile(file);
        if (!text) return text.takeError();
        auto more = readLabels(file, *text);
        if (!more) return more.takeError();
        options.labels.insert(options.labels.end(), more->begin(), more->end());
    }
    auto compared = captures();
    if (!compared) return compared.takeError();
    auto scratch = Scratch::make();
    if (!scratch) return scratch.takeError();
    LLVMContext context;
    ChainOriginals originals;
    auto program = readChain(chain, context, options, originals, *used);
    if (!program) return program.takeError();
    auto reduction = reduce(std::move(*program), options, *scratch);
    if (!reduction) return reduction.takeError();
    printReduction(*reduction, outs());
    auto begin = std::chrono::steady_clock::now();
    auto step = [&](const char *name) {
        auto now = std::chrono::steady_clock::now();
        reduction->seconds.push_back({name, std::chrono::duration<double>(now - begin).count()});
        begin = now;
    };
    auto executable = buildReduced(*reduction->program, options.link, *scratch);
    if (!executable) return executable.takeError();
    step("rebuilding");
    if (!unchecked) {
        Capture solved{compared->front().second.linkType, packetsOfOriginal(*reduction)};
        append_range(solved.packets, packetsOfReduced(*reduction));
        // A model's packet may go another way than the solver says, as it knows nothing of state; one like it goes it.
        append_range(solved.packets, randomPackets(solved, randomCount, 2).packets);
        compared->push_back({"packets by the solver", std::move(solved)});
        step("packets by the solver");
        auto equivalence =
            chain.size() > 1
                ? compareChain(originals, *reduction, *executable, options, *compared, *scratch)
                : compare(*originals.programs.front(), *reduction, *executable, options, *compared, *scratch);
        if (!equivalence) return equivalence.takeError();
        if (!equivalence->difference.empty())
            return failure("the reduced program does not do what the original does, so it is not written: " +
                           equivalence->difference);
        printEquivalence(*equivalence, outs());
        step("comparison");
    }
    OutputFiles outputs;
    auto writeBitcode = [&](raw_ostream &out) { WriteBitcodeToFile(*reduction->program, out); };
    if (!bitcode.empty())
        if (Error error = outputs.write(bitcode, writeBitcode)) return error;
    uint64_t sharedSize = 0;
    if (!shared.empty()) {
        auto made = buildSharedObject(*reduction, options, sys::path::stem(shared).str(), *scratch);
        if (!made) return made.takeError();
        if (Error error = writeCopy(shared, *made, false, outputs)) return error;
        sharedSize = sizeOf(*made);
        step("shared object");
    }
    if (!output.empty())
        if (Error error = writeCopy(output, *executable, true, outputs)) return error;
    if (!report.empty()) {
        // The original, as it is compiled without the tool.
        uint64_t plainSize = 0;
        for (const auto &original : originals.programs) {
            auto plain = buildExecutable(*original, "", 3, options.link, *scratch);
            if (!plain) return plain.takeError();
            plainSize += sizeOf(*plain);
        }
        if (Error error = writeReport(*reduction, {plainSize, sizeOf(*executable), sharedSize}, outputs)) return error;
    }
    if (Error error = outputs.keep()) return error;
    if (times)
        for (const auto &[name, seconds] : reduction->seconds) outs() << format("%8.3f s  ", seconds) << name << "\n";
    return finishOutput(outs());
}

/// Reduce, and with --watch again and again.
Error run(const std::vector<std::string> &words) {
    auto chain = chainOf({files.begin(), files.end()}, words);
    if (!chain) return chain.takeError();
    if (Error error = checkWords(*chain)) return error;
    std::vector<std::string> read(watched.begin(), watched.end());
    for (const Named &one : *chain)
        for (std::string &file : namedFiles(one.line)) read.push_back(std::move(file));
    if (watch && read.empty())
        return failure(
            "--watch: the command line names no file that is there; name configuration files by --watched FILE");
    // From before the first time, so that nothing in between is missed.
    WatchedFiles configuration(read);
    if (Error error = reduceOnce(*chain)) return error;
    while (watch) {
        outs() << "waiting for changes of " << join(read, ", ") << "\n";
        outs().flush();
        configuration.wait();
        // A configuration that does not work is no reason to end: what is there stays.
        if (Error error = reduceOnce(*chain))
            WithColor::error(errs(), "catena-reduce") << toString(std::move(error)) << "; what was made before stays\n";
    }
    return Error::success();
}

} // namespace

int main(int argc, char **argv) {
    InitLLVM init(argc, argv);
    // What follows `--` is the program's own command line, or those of a chain.
    char **behind = std::find(argv, argv + argc, StringRef("--"));
    std::vector<std::string> line(behind == argv + argc ? behind : behind + 1, argv + argc);
    cl::HideUnrelatedOptions(category);
    cl::ParseCommandLineOptions(behind - argv, argv,
                                "Removes the logic of a network function that its configuration makes redundant.\n\n"
                                "After -- stands the function's own command line: {in} in it is a capture to read, any "
                                "other\n{NAME} a file that it writes.\n\n"
                                "A chain becomes one program: FILE.bc -- ARGUMENT ... --then FILE.bc -- ARGUMENT ..., "
                                "where {next}\nis what a function sends to the next one, whose {in} that is.\n");
    if (Error error = run(line)) {
        WithColor::error(errs(), "catena-reduce") << toString(std::move(error)) << "\n";
        return 1;
    }
    return 0;
}

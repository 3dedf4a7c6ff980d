// catena-analyze: the command line of the analysis.
#include "build/build.h"
#include "known_functions.h"
#include "program/bitcode.h"
#include "program/output_file.h"
#include "program/used_files.h"
#include "report/json.h"
#include "report/manifest.h"
#include "report/page.h"
#include "report/table.h"
#include "standby/standby.h"
#include "tracking/instrument.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/WithColor.h"

using namespace llvm;
using namespace catena;

namespace {

cl::OptionCategory &category = toolOptions();
cl::list<std::string> files(cl::Positional, cl::desc("FILE.bc ..."), cl::cat(category));
cl::opt<bool> asJson("json", cl::desc("Print the report as JSON"), cl::cat(category));
cl::opt<bool> all("all", cl::desc("List persistent variables that are not top-level too"), cl::cat(category));
cl::opt<bool> why("why", cl::desc("Say why each updateable variable is: statements from packet to update"),
                  cl::cat(category));
cl::opt<bool> fields("fields", cl::desc("Tell the members of structs apart (more precise, slower)"), cl::cat(category));
cl::opt<bool> times("times", cl::desc("Say how long each step took"), cl::cat(category));
cl::list<std::string> loops("loop", cl::desc("The procedure that holds the packet loop, in place of those found"),
                            cl::value_desc("NAME"), cl::cat(category));
cl::list<std::string> without("without",
                              cl::desc("Do without a step that gains precision, to see what it gains: initialization, "
                                       "handles, allocators or roots"),
                              cl::value_desc("STEP"), cl::cat(category));
cl::opt<std::string> track("track",
                           cl::desc("Write the program with an updated bit set before each update of its state"),
                           cl::value_desc("OUT.bc"), cl::cat(category));
cl::opt<std::string> standby("standby",
                             cl::desc("Write the program so that it can be a primary or its hot standby; it is linked "
                                      "with libcatena-standby.a"),
                             cl::value_desc("OUT.bc"), cl::cat(category));

/// Write the instrumented program that was asked for.
Error instrument(StateFindings &findings, OutputFiles &outputs) {
    if (!standby.empty()) {
        if (Error error = makeStandby(findings)) return error;
        return writeProgram(findings.original, standby, outputs);
    }
    if (Error error = trackUpdates(findings, findUpdates(findings))) return error;
    return writeProgram(findings.original, track, outputs);
}
cl::opt<std::string> html("html",
                          cl::desc("Write a page that shows the source with the state coloured, and the reasons"),
                          cl::value_desc("FILE"), cl::cat(category));
cl::opt<std::string>
    manifest("manifest", cl::desc("Write what packets change, for the `state` of a Native function; implies --fields"),
             cl::value_desc("FILE"), cl::cat(category));
cl::opt<std::string> chosen("program", cl::desc("Of a build's programs, the one to analyse"), cl::value_desc("NAME"),
                            cl::cat(category));
cl::extrahelp
    builds("\nIn place of files, `-- COMMAND ...` runs a build (`-- make`) and analyses the programs that it links.\n");

/// What makes up one program.
struct Program {
    std::string name;
    std::vector<std::string> files, libraries;
};

/// Return the files that are known before anything is read; those of a build are not.
Expected<UsedFiles> usedFiles(const std::vector<std::string> &command) {
    UsedFiles used;
    for (const auto &[option, file] :
         {std::pair("--html", &html), {"--manifest", &manifest}, {"--track", &track}, {"--standby", &standby}})
        if (Error error = used.writes(option, *file)) return std::move(error);
    for (const std::string &file : files)
        if (Error error = used.reads("the program", file)) return std::move(error);
    // Others are goals, which may have the name of what is written.
    for (const std::string &word : command)
        if (sys::fs::is_regular_file(word))
            if (Error error = used.reads("the build's", word)) return std::move(error);
    if (Error error = addLists(used)) return std::move(error);
    return used;
}

/// Return the programs to analyse, one of the files given or those of a build, and add what is known of a build's
/// files.
Expected<std::vector<Program>> findPrograms(const std::vector<std::string> &command, UsedFiles &used) {
    if (command.empty()) {
        if (files.empty()) return failure("no file is given: FILE.bc ..., or -- COMMAND to run a build");
        if (!chosen.empty()) return failure("--program chooses among what a build makes: -- COMMAND is missing");
        return std::vector<Program>{{files.front(), {files.begin(), files.end()}, {}}};
    }
    if (!files.empty()) return failure("either files or a build are analysed, not both: " + files.front());
    auto built = build(command);
    if (!built) return built.takeError();
    if (Error error = used.checkUnwritten("the build")) return std::move(error);
    // What was there is now something else.
    auto now = usedFiles(command);
    if (!now) return now.takeError();
    used = std::move(*now);
    for (const BuiltProgram &one : *built) {
        if (Error error = used.reads("the build's program", one.path)) return std::move(error);
        for (const std::string &library : one.libraries)
            if (Error error = used.reads("the build's library", library)) return std::move(error);
    }
    if (!chosen.empty()) {
        auto one = choose(*built, chosen);
        if (!one) return one.takeError();
        // The others' sources are the user's as well. What cannot be read names none.
        for (const BuiltProgram &other : *built) {
            if (other.path == one->path || !used.writesOver()) continue;
            LLVMContext context;
            auto read = readProgram({other.path}, context, other.libraries);
            if (!read)
                consumeError(read.takeError());
            else if (Error error = used.readsSources(**read))
                return std::move(error);
        }
        built = std::vector<BuiltProgram>{*one};
    }
    std::vector<Program> programs;
    for (const BuiltProgram &one : *built) programs.push_back({one.path, {one.path}, one.libraries});
    return programs;
}

/// Analyse programs; of several, those that receive no packets are left out with a message.
Expected<std::vector<StateReport>> analyse(const std::vector<Program> &programs, const AnalysisOptions &options,
                                           UsedFiles &used, OutputFiles &outputs) {
    FindingsUse use;
    if (!track.empty() || !standby.empty())
        use = [&](StateFindings &findings) { return instrument(findings, outputs); };
    std::vector<StateReport> reports;
    std::vector<std::pair<std::string, std::string>> without;
    for (const Program &program : programs) {
        LLVMContext context;
        auto source = [&]() -> Expected<std::unique_ptr<Module>> {
            auto read = readProgram(program.files, context, program.libraries);
            if (read)
                if (Error error = used.readsSources(**read)) return std::move(error);
            return read;
        };
        auto report = findState(source, options, use);
        if (report) {
            if (files.empty()) report->program = program.name;
            reports.push_back(std::move(*report));
            continue;
        }
        Error rest = handleErrors(report.takeError(), [&](const NoReception &error) {
            without.push_back({program.name, error.getMessage()});
        });
        if (rest) return failure((programs.size() > 1 ? program.name + ": " : "") + toString(std::move(rest)));
    }
    if (reports.empty() && without.size() == 1) return failure(without.front().second);
    if (reports.empty()) return failure("in none of " + Twine(without.size()) + " programs: " + without.front().second);
    for (const auto &[name, message] : without)
        WithColor::note(errs(), "catena-analyze") << name << ": left out, as it receives no packets\n";
    return reports;
}

/// Write a file about one program.
Error writeOne(StringRef file, const std::vector<StateReport> &reports, OutputFiles &outputs,
               function_ref<void(const StateReport &, raw_ostream &)> write) {
    if (reports.size() > 1) {
        std::string names;
        for (const StateReport &report : reports) names += (names.empty() ? "" : ", ") + report.program;
        return failure(file + ": it describes one program; choose by --program among " + names);
    }
    return outputs.write(file.str(), [&](raw_ostream &out) { write(reports.front(), out); });
}

Error run(const std::vector<std::string> &command) {
    AnalysisOptions options;
    options.fields = fields || !manifest.empty();
    options.objects = !manifest.empty();
    options.loops.assign(loops.begin(), loops.end());
    for (const std::string &step : without) {
        if (!is_contained(AnalysisOptions::steps, step))
            return failure("--without " + step + ": there is no such step; see --help");
        options.without.insert(step);
    }
    if (Error error = readKnownFunctions(options)) return error;
    if (!track.empty() && !standby.empty()) return failure("--track and --standby are two programs: give one of them");
    auto used = usedFiles(command);
    if (!used) return used.takeError();
    auto programs = findPrograms(command, *used);
    if (!programs) return programs.takeError();
    if (programs->size() > 1 && !(track.empty() && standby.empty()))
        return failure("--track and --standby write one program; choose it by --program");
    OutputFiles outputs;
    auto reports = analyse(*programs, options, *used, outputs);
    if (!reports) return reports.takeError();
    if (Error error = checkReceives(*reports)) return error;
    if (!manifest.empty())
        if (Error error = writeOne(manifest, *reports, outputs, writeManifest)) return error;
    if (!html.empty())
        if (Error error = writeOne(html, *reports, outputs, writePage)) return error;
    if (Error error = outputs.keep()) return error;
    if (asJson) writeJson(*reports, outs());
    for (const StateReport &report : *reports) {
        if (!asJson && reports->size() > 1)
            outs() << (&report == &reports->front() ? "" : "\n") << report.program << "\n\n";
        if (!asJson) printTable(report, all, why, outs());
        if (times)
            for (const auto &[step, seconds] : report.seconds) errs() << format("%8.3f s  ", seconds) << step << "\n";
    }
    return finishOutput(outs());
}

} // namespace

int main(int argc, char **argv) {
    InitLLVM init(argc, argv);
    // What stands behind `--` is the build's command, whatever it looks like.
    char **end = std::find_if(argv + 1, argv + argc, [](const char *word) { return StringRef(word) == "--"; });
    std::vector<std::string> command(end == argv + argc ? end : end + 1, argv + argc);
    cl::HideUnrelatedOptions(category);
    cl::ParseCommandLineOptions(static_cast<int>(end - argv), argv,
                                "Finds the state of a network function in C or C++: which variables outlive a packet, "
                                "which it changes,\nby which header fields they are keyed, and which output they "
                                "impact.\n");
    if (Error error = run(command)) {
        WithColor::error(errs(), "catena-analyze") << toString(std::move(error)) << "\n";
        return 1;
    }
    return 0;
}

// catena-trace-state: the command line of the tracer, which shows by running a program whether the analysis missed any
// of its state.
#include "known_functions.h"
#include "program/bitcode.h"
#include "program/output_file.h"
#include "statealyzr/analysis.h"
#include "tracer/instrument.h"
#include "tracer/misses.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/WithColor.h"

using namespace llvm;
using namespace catena;

namespace {

cl::OptionCategory &category = toolOptions();
cl::list<std::string> files(cl::Positional, cl::desc("FILE.bc ..."), cl::OneOrMore, cl::cat(category));
cl::opt<std::string> output("o", cl::desc("Write the program as it is traced to this bitcode file"),
                            cl::value_desc("FILE"), cl::cat(category));
cl::list<std::string> observed("hold", cl::desc("Hold the analysis against what a traced run wrote"),
                               cl::value_desc("FILE"), cl::cat(category));
cl::opt<bool> fields("fields", cl::desc("Tell the members of structs apart"), cl::cat(category));
cl::list<std::string> loops("loop", cl::desc("A procedure that holds the packet loop, beside those found"),
                            cl::value_desc("NAME"), cl::cat(category));

Expected<std::unique_ptr<MemoryBuffer>> open(const std::string &file) {
    auto buffer = MemoryBuffer::getFile(file);
    if (!buffer) return failure(file + ": " + buffer.getError().message());
    return std::move(*buffer);
}

Error trace(const std::vector<std::string> &names, const AnalysisOptions &options, UsedFiles &used) {
    LLVMContext context;
    auto program = readProgram(names, context);
    if (!program) return program.takeError();
    if (Error error = used.readsSources(**program)) return error;
    if (Error error = instrumentForTrace(**program, options.library, options.functions)) return error;
    std::string message;
    raw_string_ostream text(message);
    if (verifyModule(**program, &text)) return failure("the instrumented program is not sound: " + message);
    OutputFiles outputs;
    if (Error error = outputs.write(output, [&](raw_ostream &out) { WriteBitcodeToFile(**program, out); }))
        return error;
    return outputs.keep();
}

/// Return how many misses there are.
Expected<size_t> hold(const std::vector<std::string> &names, const AnalysisOptions &options) {
    LLVMContext context;
    auto report = findState([&] { return readProgram(names, context); }, options);
    if (!report) return report.takeError();
    ObservedRun all;
    for (const std::string &file : observed) {
        auto text = open(file);
        if (!text) return text.takeError();
        auto run = readObservations(file, (*text)->getBuffer());
        if (!run) return run.takeError();
        all.packets += run->packets;
        append_range(all.variables, run->variables);
    }
    std::vector<Miss> misses = findMisses(report->variables, all);
    for (const Miss &miss : misses) {
        outs() << miss.declared.file << ":" << miss.declared.line << ": " << miss.variable;
        if (!miss.declared.function.empty()) outs() << " of " << miss.declared.function;
        outs() << " " << miss.what << "\n";
    }
    Precision figures = precision(report->variables, all);
    outs() << all.packets << " packets, " << misses.size() << " misses, " << figures.seen << " of " << figures.called
           << " updateable variables were updated\n";
    return misses.size();
}

Expected<size_t> run() {
    if (output.empty() == observed.empty()) return failure("one of -o and --hold is needed");
    AnalysisOptions options;
    options.fields = fields;
    options.loops.assign(loops.begin(), loops.end());
    UsedFiles used;
    if (Error error = used.writes("-o", output)) return std::move(error);
    for (const std::string &file : files)
        if (Error error = used.reads("the program", file)) return std::move(error);
    if (Error error = addLists(used)) return std::move(error);
    if (Error error = readKnownFunctions(options)) return std::move(error);
    std::vector<std::string> names(files.begin(), files.end());
    if (!observed.empty()) return hold(names, options);
    if (Error error = trace(names, options, used)) return std::move(error);
    return 0;
}

} // namespace

int main(int argc, char **argv) {
    InitLLVM init(argc, argv);
    cl::HideUnrelatedOptions(category);
    cl::ParseCommandLineOptions(argc, argv,
                                "Shows by running it whether the analysis of a program missed any of its state.\n\n"
                                "    catena-trace-state function.bc -o traced.bc\n"
                                "    clang-19 traced.bc libcatena-trace.a -o traced; ./traced     # writes trace.tsv\n"
                                "    catena-trace-state --hold trace.tsv function.bc\n");
    auto misses = run();
    if (misses) return *misses ? 2 : 0;
    WithColor::error(errs(), "catena-trace-state") << toString(misses.takeError()) << "\n";
    return 1;
}

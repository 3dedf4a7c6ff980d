// catena-analyze: the command line of the analysis.
#include "program/bitcode.h"
#include "report/json.h"
#include "report/table.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/WithColor.h"

using namespace llvm;
using namespace catena;

namespace {

cl::OptionCategory category("Options");
cl::list<std::string> files(cl::Positional, cl::desc("FILE.bc ..."), cl::OneOrMore, cl::cat(category));
cl::opt<bool> asJson("json", cl::desc("Print the report as JSON"), cl::cat(category));
cl::opt<bool> all("all", cl::desc("List persistent variables that are not top-level too"), cl::cat(category));
cl::opt<bool> why("why", cl::desc("Say why each updateable variable is: statements from packet to update"),
                  cl::cat(category));
cl::opt<bool> fields("fields", cl::desc("Tell the members of structs apart (more precise, slower)"), cl::cat(category));
cl::opt<bool> times("times", cl::desc("Say how long each step took"), cl::cat(category));
cl::list<std::string> receive("receive",
                              cl::desc("A function that receives packets: NAME, packet in argument 1, or "
                                       "NAME:packet=..[,handle=N] as in a list"),
                              cl::value_desc("NAME"), cl::cat(category));
cl::list<std::string> functionLists("functions", cl::desc("A list of receive, send and log functions"),
                                    cl::value_desc("FILE"), cl::cat(category));
cl::list<std::string> libraryLists("library", cl::desc("A list of what library functions do"), cl::value_desc("FILE"),
                                   cl::cat(category));
cl::list<std::string> loops("loop", cl::desc("The procedure that holds the packet loop, in place of those found"),
                            cl::value_desc("NAME"), cl::cat(category));
cl::list<std::string> without("without",
                              cl::desc("Do without a step that gains precision, to see what it gains: initialization, "
                                       "handles, allocators, types or roots"),
                              cl::value_desc("STEP"), cl::cat(category));

template <typename Lists> Error addList(Lists &lists, const std::string &file) {
    auto buffer = MemoryBuffer::getFile(file);
    if (!buffer) return failure(file + ": " + buffer.getError().message());
    return lists.add(file, (*buffer)->getBuffer());
}

Error readLists(AnalysisOptions &options) {
    for (const std::string &file : functionLists)
        if (Error error = addList(options.functions, file)) return error;
    for (const std::string &file : libraryLists)
        if (Error error = addList(options.library, file)) return error;
    for (const std::string &one : receive) {
        auto [name, rest] = StringRef(one).split(':');
        std::string line = "receive " + name.str() + " " + (rest.empty() ? "packet=1 handle=0" : rest.str());
        for (char &c : line)
            if (c == ',') c = ' ';
        if (Error error = options.functions.add("--receive", line)) return error;
    }
    return Error::success();
}

Error run() {
    AnalysisOptions options;
    options.fields = fields;
    options.loops.assign(loops.begin(), loops.end());
    for (const std::string &step : without) {
        if (!is_contained(AnalysisOptions::steps, step))
            return failure("--without " + step + ": there is no such step; see --help");
        options.without.insert(step);
    }
    if (Error error = readLists(options)) return error;
    LLVMContext context;
    std::vector<std::string> names(files.begin(), files.end());
    auto report = findState([&] { return readProgram(names, context); }, options);
    if (!report) return report.takeError();
    if (asJson)
        writeJson(*report, outs());
    else
        printTable(*report, all, why, outs());
    if (times)
        for (const auto &[step, seconds] : report->seconds) errs() << format("%8.3f s  ", seconds) << step << "\n";
    return Error::success();
}

} // namespace

int main(int argc, char **argv) {
    InitLLVM init(argc, argv);
    cl::HideUnrelatedOptions(category);
    cl::ParseCommandLineOptions(argc, argv,
                                "Finds the state of a network function in C or C++: which variables outlive a packet, "
                                "which it changes,\nby which header fields they are keyed, and which output they "
                                "impact.\n");
    if (Error error = run()) {
        WithColor::error(errs(), "catena-analyze") << toString(std::move(error)) << "\n";
        return 1;
    }
    return 0;
}

// Files come before single functions, which have the last word.
#include "known_functions.h"

#include "program/bitcode.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include <set>

using namespace llvm;

namespace catena {

cl::OptionCategory &toolOptions() {
    static cl::OptionCategory category("Options");
    return category;
}

namespace {

cl::list<std::string> receive("receive",
                              cl::desc("A function that receives packets: NAME, packet in argument 1, or "
                                       "NAME:packet=..[,handle=N] as in a list"),
                              cl::value_desc("NAME"), cl::cat(toolOptions()));
cl::list<std::string> functionLists("functions", cl::desc("A list of receive, send and log functions"),
                                    cl::value_desc("FILE"), cl::cat(toolOptions()));
cl::list<std::string> libraryLists("library", cl::desc("A list of what library functions do"), cl::value_desc("FILE"),
                                   cl::cat(toolOptions()));

template <typename Lists> Error addList(Lists &lists, const std::string &file) {
    auto buffer = MemoryBuffer::getFile(file);
    if (!buffer) return failure(file + ": " + buffer.getError().message());
    return lists.add(file, (*buffer)->getBuffer());
}

} // namespace

Error addLists(UsedFiles &used) {
    for (const std::string &file : functionLists)
        if (Error error = used.reads("--functions", file)) return error;
    for (const std::string &file : libraryLists)
        if (Error error = used.reads("--library", file)) return error;
    return Error::success();
}

Error readKnownFunctions(AnalysisOptions &options) {
    for (const std::string &file : functionLists)
        if (Error error = addList(options.functions, file)) return error;
    for (const std::string &file : libraryLists)
        if (Error error = addList(options.library, file)) return error;
    for (const std::string &one : receive)
        if (Error error = options.functions.addReceive(one)) return error;
    return Error::success();
}

Error checkReceives(const std::vector<StateReport> &reports) {
    std::set<std::string> received;
    for (const StateReport &report : reports)
        for (const PacketPlaceFound &place : report.receives) received.insert(place.name);
    for (const std::string &one : receive) {
        StringRef name = StringRef(one).split(':').first;
        if (received.contains(name.str())) continue;
        return failure("--receive " + name + ": the program does not call it; it receives packets by " +
                       join(received, ", "));
    }
    return Error::success();
}

} // namespace catena

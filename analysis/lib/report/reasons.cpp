// A way through the graph has several vertices a statement; only lines of the source are shown, each once in a row.
#include "report/reasons.h"

using namespace llvm;

namespace catena {

namespace {

std::string describe(const VertexInfo &info) {
    const auto *instruction = dyn_cast_or_null<Instruction>(info.value);
    if (!instruction) return "";
    if (const auto *call = dyn_cast<CallBase>(instruction)) {
        const Function *callee = namedCallee(*call);
        std::string name = callee ? callee->getName().str() : "a function by pointer";
        return info.kind == VertexKind::Argument ? "passes it to " + name : "calls " + name;
    }
    if (isa<LoadInst>(instruction)) return "reads";
    if (isa<StoreInst>(instruction)) return "writes";
    if (isa<ReturnInst>(instruction)) return "returns it";
    if (instruction->isTerminator()) return "decides by it";
    return "computes with it";
}

} // namespace

std::vector<Step> reason(const Graph &graph, const Slice &slice, const Instruction &statement,
                         const std::string &what) {
    std::vector<Step> steps;
    Vertex target = graph.of(&statement);
    // A statement may be reached by no packet, but stand in a procedure that processes packets: then that is the
    // reason.
    Vertex end = target;
    if (!slice.contains(target))
        for (Vertex vertex : slice.vertices())
            if (graph[vertex].function == statement.getFunction() &&
                isa_and_nonnull<Instruction>(graph[vertex].value)) {
                end = vertex;
                break;
            }
    if (slice.contains(end))
        for (Vertex vertex : slice.way(end)) {
            std::string does = describe(graph[vertex]);
            if (does.empty()) continue;
            Place place = placeOf(*cast<Instruction>(graph[vertex].value));
            if (!place.line) continue;
            if (steps.empty() && vertex != target) {
                does = "receives a packet: " + does;
            } else if (!steps.empty() && steps.back().place == place) {
                // Of one line's parts the last says most, but the reception stays.
                if (steps.size() > 1) steps.back().what = does;
                continue;
            }
            steps.push_back({place, does});
        }
    Place last = placeOf(statement);
    std::string ends = what;
    if (!slice.contains(target))
        ends += slice.contains(end) ? ", in a procedure that processes packets"
                                    : ", in a procedure called in the packet loop";
    if (!steps.empty() && steps.back().place == last && steps.size() > 1)
        steps.back().what = ends;
    else
        steps.push_back({last, ends});
    return steps;
}

} // namespace catena

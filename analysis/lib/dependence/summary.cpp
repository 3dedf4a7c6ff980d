// A procedure has one result, so one mark a vertex tells whether the result of its procedure depends on it. Marks
// spread backwards; a parameter that gets one makes summary edges at all calls of the procedure, along which marks
// spread on. Memory is left out: its dependences are edges of their own from procedure to procedure.
#include "dependence/summary.h"

using namespace llvm;

namespace catena {

void SummaryEdges::visit(Vertex vertex) {
    if (visited[vertex]) return;
    visited[vertex] = true;
    work.push_back(vertex);
}

void SummaryEdges::add() {
    visited.assign(graph.size(), false);
    for (const auto &[function, result] : graph.results) visit(result);
    while (!work.empty()) {
        Vertex vertex = work.back();
        work.pop_back();
        const VertexInfo info = graph[vertex];
        if (info.kind == VertexKind::Parameter) {
            for (Edge edge : graph.predecessors(vertex)) {
                if (edge.kind != EdgeKind::In || graph[edge.vertex].kind != VertexKind::Argument) continue;
                const auto *call = cast<CallBase>(graph[edge.vertex].value);
                Vertex result = graph.of(call);
                graph.all.push_back({edge.vertex, result, EdgeKind::Summary});
                if (visited[result]) visit(edge.vertex);
            }
            continue;
        }
        for (Edge edge : graph.predecessors(vertex))
            if (edge.kind == EdgeKind::Data || edge.kind == EdgeKind::Address || edge.kind == EdgeKind::Control)
                visit(edge.vertex);
        if (info.kind != VertexKind::CallResult) continue;
        // Arguments whose parameters are marked already.
        const auto *call = cast<CallBase>(info.value);
        for (unsigned i = 0; i < call->arg_size(); ++i) {
            Vertex argument = graph.ofArgument(call, i);
            for (Edge edge : graph.successors(argument))
                if (edge.kind == EdgeKind::In && visited[edge.vertex]) visit(argument);
        }
    }
}

} // namespace catena

// The graph's face: edges in both directions, in one array each.
#include "dependence/graph.h"

#include "dependence/graph_builder.h"
#include "dependence/summary.h"

using namespace llvm;

namespace catena {

Graph::Graph(const Module &program, const PointsTo &pointsTo) : points(pointsTo) {
    GraphBuilder(*this, program).build();
    index();
    SummaryEdges(*this).add();
    index();
    all.clear();
    all.shrink_to_fit();
}

Vertex Graph::ofArgument(const CallBase *call, unsigned number) const {
    // Arguments follow their call.
    Vertex vertex = ofCall(call);
    return vertex == noVertex || number >= call->arg_size() ? noVertex : vertex + 2 + number;
}

void Graph::index() {
    auto sorted = [&](Adjacency &to, auto source, auto target) {
        to.begin.assign(vertices.size() + 1, 0);
        for (const FullEdge &edge : all) ++to.begin[source(edge) + 1];
        for (size_t i = 1; i < to.begin.size(); ++i) to.begin[i] += to.begin[i - 1];
        to.edges.resize(all.size());
        std::vector<uint32_t> at(to.begin.begin(), to.begin.end() - 1);
        for (const FullEdge &edge : all) to.edges[at[source(edge)]++] = {target(edge), edge.kind};
    };
    auto from = [](const FullEdge &edge) { return edge.from; };
    auto to = [](const FullEdge &edge) { return edge.to; };
    sorted(forward, from, to);
    sorted(backward, to, from);
}

} // namespace catena

// Both phases of a slice run at once: a vertex is marked as reached in the first phase, which may leave procedures to
// their callers, or in the second, which may enter those that are called. The first implies the second.
#include "dependence/slice.h"

#include <deque>

namespace catena {

namespace {
enum Mark : uint8_t { first = 1, second = 2 };
}

Slice::Slice(const Graph &graph, const std::vector<Vertex> &from, Direction direction, const SliceLimits &limits)
    : marks(graph.size(), 0), parents(graph.size(), noVertex) {
    std::deque<std::pair<Vertex, Mark>> work;
    auto reach = [&](Vertex vertex, Mark mark, Vertex parent) {
        if (marks[vertex] & (mark | first)) return;
        if (limits.vertices && !limits.vertices(vertex)) return;
        if (!marks[vertex]) {
            order.push_back(vertex);
            parents[vertex] = parent;
        }
        marks[vertex] |= mark;
        if (limits.ends && limits.ends(vertex)) return;
        work.push_back({vertex, mark});
    };
    for (Vertex vertex : from)
        if (vertex != noVertex) reach(vertex, first, noVertex);
    // Leaving a procedure: forward by its result, backward by its parameters.
    EdgeKind leaving = direction == Forward ? EdgeKind::Out : EdgeKind::In;
    EdgeKind entering = direction == Forward ? EdgeKind::In : EdgeKind::Out;
    while (!work.empty()) {
        auto [vertex, mark] = work.front();
        work.pop_front();
        for (Edge edge : direction == Forward ? graph.successors(vertex) : graph.predecessors(vertex)) {
            if (edge.kind == EdgeKind::Control && !limits.control) continue;
            if (edge.kind == leaving) {
                if (mark == first) reach(edge.vertex, first, vertex);
            } else if (edge.kind == entering) {
                reach(edge.vertex, second, vertex);
            } else if (edge.kind == EdgeKind::Memory) {
                reach(edge.vertex, first, vertex);
            } else {
                reach(edge.vertex, mark, vertex);
            }
        }
    }
}

std::vector<Vertex> Slice::way(Vertex vertex) const {
    std::vector<Vertex> way;
    for (; vertex != noVertex; vertex = parents[vertex]) way.push_back(vertex);
    return {way.rbegin(), way.rend()};
}

} // namespace catena

// Summary edges: which results of a call depend on which of its arguments.
#pragma once

#include "dependence/graph.h"

namespace catena {

/// Adds the summary edges of all calls (Horwitz, Reps and Binkley; the algorithm is that of Reps, Horwitz, Sagiv and
/// Rosay, Speeding up Slicing, §4). They let a slice pass over a call without forgetting which call it was.
class SummaryEdges {
public:
    explicit SummaryEdges(Graph &graph) : graph(graph) {}
    void add();

private:
    void visit(Vertex vertex);

    Graph &graph;
    std::vector<bool> visited;
    std::vector<Vertex> work;
};

} // namespace catena

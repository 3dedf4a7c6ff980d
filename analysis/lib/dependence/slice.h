// Slices of the system dependence graph.
#pragma once

#include "dependence/graph.h"
#include <functional>

namespace catena {

/// Which vertices and edges a slice may use.
struct SliceLimits {
    /// Vertices that it may enter; empty function: all.
    std::function<bool(Vertex)> vertices = {};
    /// Vertices that it does not go on from; empty function: none.
    std::function<bool(Vertex)> ends = {};
    /// Whether control dependence counts.
    bool control = true;
};

/// The vertices that some vertices may affect (forward) or be affected by (backward).
///
/// Calls and returns match: what goes into a procedure from one call does not come out at another (Horwitz, Reps and
/// Binkley, §4: first up or over calls, then down or over), except through memory, whose vertices belong to no call.
class Slice {
public:
    enum Direction { Forward, Backward };
    Slice(const Graph &graph, const std::vector<Vertex> &from, Direction direction, const SliceLimits &limits = {});

    bool contains(Vertex vertex) const { return marks[vertex] != 0; }
    /// The vertices in the order they were found: nearest first.
    const std::vector<Vertex> &vertices() const { return order; }
    /// Return the vertices from where the slice began to `vertex`, by a shortest way.
    std::vector<Vertex> way(Vertex vertex) const;

private:
    std::vector<uint8_t> marks;
    std::vector<Vertex> order;
    std::vector<Vertex> parents;
};

} // namespace catena

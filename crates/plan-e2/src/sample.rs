//! Graphs for tests.

use catena_policy::Direction;

use super::graph::{PEdge, PEnd, PGraph, PNode, Side};

/// A function called `name`.
pub fn node(name: &str) -> PNode {
    PNode { name: name.into() }
}

/// A forward edge without filters.
pub fn edge(from: PEnd, to: PEnd, bps: f64) -> PEdge {
    PEdge { from, to, direction: Direction::Forward, bps }
}

/// in -> A -> B -> ... -> out, with `bps` on every edge.
pub fn line(nodes: usize, bps: f64) -> PGraph {
    let name =
        |n: usize| node(&char::from(b'A' + u8::try_from(n).expect("what the test made is well formed")).to_string());
    let end = |n: usize| match n {
        0 => PEnd::Port(Side::In),
        n if n > nodes => PEnd::Port(Side::Out),
        n => PEnd::Node(n - 1),
    };
    PGraph {
        nodes: (0..nodes).map(name).collect(),
        edges: (0..=nodes).map(|n| edge(end(n), end(n + 1), bps)).collect(),
    }
}

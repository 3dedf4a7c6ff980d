//! The policy graphs that are placed.

use catena_plan::catalogue::{Affinity, Fields};
use catena_plan::e2::graph::{PEdge, PEnd, PGraph, PNode, Side};
use catena_plan::e2::keys::Splitting;
use catena_plan::random::Random;
use catena_policy::Direction;

const FLOW: Affinity = Affinity::Fields(Fields::FIVE_TUPLE);

/// A policy graph with what is known of its functions.
pub struct Graph {
    /// The graph; its rates say how traffic divides.
    pub policy: PGraph,
    /// How each function's traffic may be split.
    pub splitting: Vec<Splitting>,
    /// Bits per second of a core with each function.
    pub capacities: Vec<f64>,
}

impl Graph {
    fn new(nodes: usize, core_bps: f64, random: &mut Random) -> Graph {
        let node = |n: usize| PNode { name: n.to_string() };
        Graph {
            policy: PGraph { nodes: (0..nodes).map(node).collect(), edges: vec![] },
            splitting: vec![Splitting { affinity: FLOW, rewrites: Fields::default() }; nodes],
            // Functions differ: from half of what they carry on average to one and a half times that.
            capacities: (0..nodes).map(|_| core_bps * (0.5 + random.unit())).collect(),
        }
    }

    fn join(&mut self, from: PEnd, to: PEnd, bps: f64) {
        let direction = Direction::Forward;
        self.policy.edges.push(PEdge { from, to, direction, bps });
    }

    /// Let `share` of the functions ask for the same source at one instance: what a split by flows does not
    /// satisfy, so that every instance sends to every other.
    pub fn regroup(mut self, share: f64, random: &mut Random) -> Graph {
        for splitting in &mut self.splitting {
            if random.unit() < share {
                let fields = if random.unit() < 0.5 { Fields::SOURCE } else { Fields::DESTINATION };
                splitting.affinity = Affinity::Fields(fields);
            }
        }
        self
    }

    /// Let all functions carry the same on a core.
    pub fn alike(mut self, core_bps: f64) -> Graph {
        self.capacities.fill(core_bps);
        self
    }

    /// Scale all rates by `factor`.
    pub fn scale(&mut self, factor: f64) {
        self.policy.edges.iter_mut().for_each(|e| e.bps *= factor);
    }
}

/// A line of `nodes` functions.
pub fn line(nodes: usize, core_bps: f64, random: &mut Random) -> Graph {
    let mut graph = Graph::new(nodes, core_bps, random);
    let mut from = PEnd::Port(Side::In);
    for to in (0..nodes).map(PEnd::Node).chain([PEnd::Port(Side::Out)]) {
        graph.join(from, to, 1e9);
        from = to;
    }
    graph
}

/// A random graph of `nodes` functions without circles: an edge from each function to each later one with the
/// probability that makes `successors` on average; a function's traffic divides at random among them.
pub fn random_graph(nodes: usize, successors: f64, core_bps: f64, random: &mut Random) -> Graph {
    let mut graph = Graph::new(nodes, core_bps, random);
    let chance = successors * 2.0 / (nodes as f64 - 1.0);
    let mut next = vec![Vec::new(); nodes];
    for (from, next) in next.iter_mut().enumerate() {
        next.extend((from + 1..nodes).filter(|_| random.unit() < chance));
    }
    let first: Vec<usize> = (0..nodes).filter(|n| !next.iter().any(|to| to.contains(n))).collect();
    let mut here = vec![0.0; nodes];
    for &node in &first {
        here[node] = 1e9;
        graph.join(PEnd::Port(Side::In), PEnd::Node(node), 1e9);
    }
    for (node, next) in next.iter().enumerate() {
        if next.is_empty() {
            graph.join(PEnd::Node(node), PEnd::Port(Side::Out), here[node]);
        }
        let weights: Vec<f64> = next.iter().map(|_| 0.1 + random.unit()).collect();
        let sum: f64 = weights.iter().sum();
        for (&to, weight) in next.iter().zip(weights) {
            let bps = here[node] * weight / sum;
            here[to] += bps;
            graph.join(PEnd::Node(node), PEnd::Node(to), bps);
        }
    }
    graph
}

/// `chains` lines of three to seven functions each, out of `functions` that they share (one node for each
/// function, as merging makes them).
pub fn shared_chains(chains: usize, functions: usize, core_bps: f64, random: &mut Random) -> Graph {
    let mut graph = Graph::new(functions, core_bps, random).regroup(0.2, random);
    for _ in 0..chains {
        let length = 3 + random.below(5);
        let mut nodes: Vec<usize> = (0..length).map(|_| random.below(functions)).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let bps = 1e8 * (0.2 + random.unit());
        let mut from = PEnd::Port(Side::In);
        for to in nodes.into_iter().map(PEnd::Node).chain([PEnd::Port(Side::Out)]) {
            graph.join(from, to, bps);
            from = to;
        }
    }
    graph
}

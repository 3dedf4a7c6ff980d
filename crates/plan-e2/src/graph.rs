//! Step 1: the pipelines as one graph (E2's PGraph): "the union of the individual pipelines with one node for each NF and
//! edges copied from the individual pipelines" (Lan's dissertation, §3.4.1). Each mention of a function is an NF of its own, in
//! one chain as in two: so they are built and so they run.

use catena_plan_model::problem::{Chain, Problem};
use catena_policy::Direction;

/// Index of a node in [`PGraph::nodes`].
pub type PNodeId = usize;

/// What of a chain is taken to come in at least, bits per second: of one that is promised nothing nobody knows, and still its
/// functions belong together.
const LEAST_BPS: f64 = 1e6;

/// The policy graph of all chains.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PGraph {
    /// One node a function.
    pub nodes: Vec<PNode>,
    /// The edges of all chains, in the order of chains and of each chain's edges.
    pub edges: Vec<PEdge>,
}

/// A function of the policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PNode {
    /// As the chains call it.
    pub name: String,
}

/// One of the two sides of the rack, each a set of the switch's external ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Side {
    /// Where chains begin.
    In,
    /// Where chains end.
    Out,
}

/// Where an edge begins or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PEnd {
    /// A switch port to the outside.
    Port(Side),
    /// A function.
    Node(PNodeId),
    /// The packet ends here.
    Drop,
}

/// Traffic from one function to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PEdge {
    /// Where from.
    pub from: PEnd,
    /// Where to.
    pub to: PEnd,
    /// Which way.
    pub direction: Direction,
    /// Bits per second expected.
    pub bps: f64,
}

impl PGraph {
    /// The chains of a problem, of each of which what it was promised comes in. Nodes are in the order of chains and their nodes;
    /// those that run on no server are on the switch, where its ports are, and have no edges.
    #[must_use]
    pub fn of(problem: &Problem) -> PGraph {
        let mut graph = PGraph::default();
        for chain in &problem.chains {
            graph.add(chain);
        }
        graph
    }

    fn add(&mut self, chain: &Chain) {
        let first = self.nodes.len();
        let end = |id: usize, side| match chain.nodes.get(id) {
            Some(node) if node.server.is_some() => PEnd::Node(first + id),
            _ => PEnd::Port(side),
        };
        let bps = chain.t_min_bps.max(LEAST_BPS.min(chain.limit_bps()));
        let mut join = |from, to, share: f64| {
            // What is left of a share after its parts may differ from nothing by rounding.
            let is_inside = matches!(from, PEnd::Node(_)) || matches!(to, PEnd::Node(_));
            if share > 1e-9 && is_inside {
                self.edges.push(PEdge { from, to, direction: Direction::Forward, bps: bps * share });
            }
        };
        for edge in &chain.edges {
            join(end(edge.from, Side::In), end(edge.to, Side::Out), edge.share);
        }
        for (id, node) in chain.nodes.iter().enumerate() {
            join(PEnd::Port(Side::In), end(id, Side::Out), node.entry);
            // What a function drops it does not send out. How much that is nobody says; all that goes to no other function is
            // taken to leave.
            let on: f64 = chain.edges.iter().filter(|edge| edge.from == id).map(|edge| edge.share).sum();
            join(end(id, Side::In), PEnd::Port(Side::Out), node.share - on);
        }
        self.nodes.extend(chain.nodes.iter().map(|node| PNode { name: format!("{}/{}", chain.name, node.name) }));
    }
}

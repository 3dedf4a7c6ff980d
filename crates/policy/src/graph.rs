//! The policy graph (E2's PGraph): the union of all chains, as plain data without any I/O left.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::filter::Filter;
use crate::span::Span;
use crate::value::Value;

/// Index of a class in [`PolicyGraph::classes`].
pub type ClassId = u32;
/// Index of a chain in [`PolicyGraph::chains`].
pub type ChainId = u32;
/// Index of a node in its [`Chain::nodes`].
pub type NodeId = u32;

/// Everything a chain file says.
///
/// A packet belongs to the first class, in the order of `classes`, that matches it and is named by
/// a chain; the chain without classes, if there is one, takes the packets that no class matched.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PolicyGraph {
    /// The traffic classes in the order of the file.
    pub classes: Vec<Class>,
    /// The chains in the order of the file.
    pub chains: Vec<Chain>,
    /// What was said between chains and classes.
    pub relations: Vec<Relation>,
}

impl PolicyGraph {
    /// Clears all spans, so that graphs of differently laid out files compare equal.
    pub fn forget_places(&mut self) {
        self.classes.iter_mut().for_each(|class| class.span = Span::default());
        for chain in &mut self.chains {
            chain.span = Span::default();
            chain.nodes.iter_mut().for_each(|node| node.span = Span::default());
            chain.edges.iter_mut().for_each(|edge| edge.span = Span::default());
        }
    }
}

/// A traffic class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Class {
    /// As the file spells it.
    pub name: String,
    /// Which packets enter forward.
    pub filter: Filter,
    /// Which packets return: as written behind `back`, or the mirror image of `filter`. None if
    /// no mirror image can be derived and no chain needs it.
    pub back: Option<Filter>,
    /// Where it is defined.
    pub span: Span,
}

/// A chain of functions for some classes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Chain {
    /// As the file spells it; `main` for a chain without a block.
    pub name: String,
    /// Its classes; empty: all packets that belong to no other chain.
    pub classes: Vec<ClassId>,
    /// What its traffic was promised.
    pub promise: Promise,
    /// What becomes of frames that are not IPv4, IPv6 or ARP where they enter.
    #[serde(default)]
    pub unparsed: Unparsed,
    /// The functions; a node's `id` is its index.
    pub nodes: Vec<Node>,
    /// The edges, sorted by direction, source (in, out, nodes) and `order`.
    pub edges: Vec<Edge>,
    /// Where it is defined.
    pub span: Span,
}

impl Chain {
    /// The edges that leave `from` in `direction`; the first whose conditions hold takes the packet.
    pub fn edges_from(&self, from: End, direction: Direction) -> impl Iterator<Item = &Edge> {
        self.edges.iter().filter(move |e| e.from == from && e.direction == direction)
    }

    /// The name of an end: `in`, `out`, `drop` or the node's.
    #[must_use]
    pub fn end_name(&self, end: End) -> &str {
        match end {
            End::In => "in",
            End::Out => "out",
            End::Drop => "drop",
            End::Node(id) => self.nodes.get(id as usize).map_or("?", |n| n.name.as_str()),
        }
    }
}

/// What becomes of frames in which no function can read addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unparsed {
    /// They go the chain's ways, and functions that look at addresses do with them what their pages say.
    #[default]
    Pass,
    /// They are dropped, counted, before the chain's first function.
    Drop,
}

/// Lemur's Table 1: bulk is `0..`, a virtual pipe has `t_max` equal to `t_min`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Promise {
    /// Bits per second guaranteed; 0: none.
    pub t_min_bps: u64,
    /// Bits per second allowed; None: no limit.
    pub t_max_bps: Option<u64>,
    /// Nanoseconds a packet may take; None: any.
    pub d_max_ns: Option<u64>,
}

/// One function in a chain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// Its index in the chain.
    pub id: NodeId,
    /// Unique in the chain: the instance's name, or one made from the function's; nodes of a macro
    /// instance `g` are called `g.name`.
    pub name: String,
    /// The function's name in the library.
    pub function: String,
    /// What it was given, in the order written; names are unique.
    pub args: Vec<(String, Value)>,
    /// Where it is created.
    pub span: Span,
}

impl Node {
    /// The argument called `name`.
    #[must_use]
    pub fn arg(&self, name: &str) -> Option<&Value> {
        self.args.iter().find(|(n, _)| n == name).map(|(_, v)| v)
    }
}

/// Where an edge begins or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The side the chain's traffic comes from.
    In,
    /// The side it goes to.
    Out,
    /// A function.
    Node(NodeId),
    /// The packet ends here, counted.
    Drop,
}

/// Which traffic an edge carries: forward goes from `in` to `out`, return from `out` to `in`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From `in` to `out`.
    Forward,
    /// From `out` to `in`.
    Return,
}

/// Packets go from one end to another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Edge {
    /// Where from.
    pub from: End,
    /// Where to.
    pub to: End,
    /// With which traffic.
    pub direction: Direction,
    /// All of these must hold; empty: every packet that no earlier edge took.
    pub when: Vec<Condition>,
    /// Position among the edges of the same source and direction, from 0; first match wins.
    pub order: u32,
    /// The part of its source's traffic that is expected to take it, from 0 to 1.
    pub share: Option<f64>,
    /// The expected rate in bits per second.
    pub rate_bps: Option<f64>,
    /// Where it was written.
    pub span: Span,
}

/// What decides whether a packet takes an edge.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// The packet matches.
    Filter(Filter),
    /// A function tagged the packet, or let it out by that gate.
    Attribute {
        /// The attribute; None if the function is unknown and the file gives no name.
        name: Option<String>,
        /// Any of these values.
        values: Vec<String>,
        /// Any value but these.
        negated: bool,
    },
    /// The flow's hash with `branch` as its salt, as a number in 0..1, lies in `from..to`. All
    /// packets of a flow, in both directions, have the same hash; branches hash independently.
    Split {
        /// Number of the branch in its chain; a two-way path has the same one in both directions.
        branch: u32,
        /// Lower end, included.
        from: f64,
        /// Upper end, excluded.
        to: f64,
    },
}

/// What was said between chains or classes (Alpine §5.2.1).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Relation {
    /// Earlier ones are always scheduled before later ones.
    Priority(Vec<Subject>),
    /// CPU cycles in the ratio of the weights.
    Cpu(Vec<(Subject, f64)>),
    /// Packets per second in the ratio of the weights.
    Throughput(Vec<(Subject, f64)>),
    /// What is left beyond the promises, in the ratio of the weights.
    Share(Vec<(Subject, f64)>),
}

/// Whom a relation is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// All traffic of a chain.
    Chain(ChainId),
    /// A class.
    Class(ClassId),
}

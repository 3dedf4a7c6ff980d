//! Step 3: from the policy graph to the instance graph (E2's IGraph), "in which each node represents an
//! instance of a NF" (Lan's dissertation, §3.4.1 and Figure 3.3).
//!
//! Every instance has a range of the hashes of its node's key. Packets between two nodes with the same key
//! keep their hash, so instances are joined only where their ranges overlap: with equal numbers of instances
//! these are the direct connections of Figure 3.3(d). Otherwise every instance is joined to every other, as in
//! Figure 3.3(c), and the hashes count as independent.

use super::graph::{PEdge, PEnd, PGraph, PNodeId, Side};
use super::keys::{self, Keys, Splitting};
use catena_plan_model::catalogue::Fields;

/// Index of an instance in [`IGraph::instances`].
pub type InstanceId = usize;

/// Hashes are numbers below this (the interval R of Lan's dissertation, §3.4.4, with N = 32).
pub const HASHES: u64 = 1 << 32;
/// The most edges that an instance graph may begin with.
pub const MAX_EDGES: usize = 1 << 23;

/// Hashes from `from` (included) to `to` (not).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The first.
    pub from: u64,
    /// Behind the last; at most [`HASHES`].
    pub to: u64,
}

impl Range {
    /// All hashes.
    pub const FULL: Range = Range { from: 0, to: HASHES };

    /// The part number `i` of `n` even ones.
    #[must_use]
    pub fn part(self, i: u32, n: u32) -> Range {
        let (i, n) = (u64::from(i), u64::from(n.max(1)));
        let at = |i: u64| self.from + self.to.saturating_sub(self.from) * i / n;
        Range { from: at(i), to: at(i + 1) }
    }

    /// The part of all hashes that lies in it, 0 to 1.
    #[must_use]
    pub fn share(self) -> f64 {
        self.to.saturating_sub(self.from) as f64 / HASHES as f64
    }

    /// What lies in both.
    #[must_use]
    pub fn common(self, other: Range) -> Range {
        let from = self.from.max(other.from);
        Range { from, to: self.to.min(other.to).max(from) }
    }

    /// Whether all of `other` lies in it.
    #[must_use]
    pub fn holds(self, other: Range) -> bool {
        self.from <= other.from && other.to <= self.to
    }

    /// Whether nothing lies in it.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.to <= self.from
    }
}

/// An instance of a function, on a core of its own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Instance {
    /// The node of the policy graph.
    pub node: PNodeId,
    /// The hashes of the node's key that it serves.
    pub range: Range,
}

/// Where an edge begins or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum IEnd {
    /// A switch port to the outside.
    Port(Side),
    /// An instance.
    Instance(InstanceId),
    /// The packet ends here.
    Drop,
}

/// Traffic from one instance to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IEdge {
    /// Where from.
    pub from: IEnd,
    /// Where to.
    pub to: IEnd,
    /// The edge of the policy graph that it is a part of: its filters, chain and direction.
    pub edge: usize,
    /// Bits per second expected.
    pub bps: f64,
    /// The filter beside those of the policy: hashes of these fields must lie in the target's range. None: all
    /// packets that the policy sends this way go here.
    pub hash: Option<Fields>,
}

/// The instance graph.
#[derive(Clone, Debug, PartialEq)]
pub struct IGraph {
    /// The instances.
    pub instances: Vec<Instance>,
    /// The edges.
    pub edges: Vec<IEdge>,
    /// The edges at each instance, whichever way.
    pub at: Vec<Vec<usize>>,
    /// The instances of each node of the policy graph.
    pub of_node: Vec<Vec<InstanceId>>,
    /// How each node's traffic is split.
    pub keys: Keys,
    /// For each edge of the policy graph: whether its packets keep their hash from node to node.
    pub keeps: Vec<bool>,
    /// Bits per second of each edge of the policy graph.
    pub rates: Vec<f64>,
}

/// More edges than [`MAX_EDGES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge {
    /// How many there would be at most.
    pub edges: usize,
}

impl std::fmt::Display for TooLarge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the instance graph might have {} edges, and at most {MAX_EDGES} are handled", self.edges)
    }
}

impl std::error::Error for TooLarge {}

impl IGraph {
    /// Split the nodes of `graph` into `counts` instances each. Nodes that may have one instance only get one.
    ///
    /// # Errors
    /// When the graph would be too large.
    pub fn build(graph: &PGraph, splitting: &[Splitting], counts: &[u32]) -> Result<IGraph, TooLarge> {
        let keys = keys::keys(graph, splitting, counts);
        let keeps: Vec<bool> = graph
            .edges
            .iter()
            .map(|edge| match (key(&keys, edge.from), key(&keys, edge.to)) {
                (Some(a), Some(b)) => a == b && !keys::disturbed(splitting, edge, a),
                _ => false,
            })
            .collect();
        let counts: Vec<u32> = keys
            .iter()
            .enumerate()
            .map(|(node, key)| if key.is_some() { counts.get(node).copied().unwrap_or(1).max(1) } else { 1 })
            .collect();
        let count = |end: PEnd| if let PEnd::Node(n) = end { counts.get(n).map_or(1, |&c| c as usize) } else { 1 };
        // Ranges of the same key overlap like the teeth of a zip: no more than both counts together.
        let edges = graph.edges.iter().zip(&keeps).map(|(edge, &keeps)| match keeps {
            true => count(edge.from) + count(edge.to),
            false => count(edge.from).saturating_mul(count(edge.to)),
        });
        let edges = edges.fold(0, usize::saturating_add);
        if edges > MAX_EDGES {
            return Err(TooLarge { edges });
        }
        let rates = graph.edges.iter().map(|e| e.bps).collect();
        let mut built = IGraph { instances: vec![], edges: vec![], at: vec![], of_node: vec![], keys, keeps, rates };
        for (node, &count) in counts.iter().enumerate() {
            let first = built.instances.len();
            built.instances.extend((0..count).map(|i| Instance { node, range: Range::FULL.part(i, count) }));
            built.of_node.push((first..built.instances.len()).collect());
        }
        built.at = vec![Vec::new(); built.instances.len()];
        for (id, edge) in graph.edges.iter().enumerate() {
            built.join(id, edge);
        }
        Ok(built)
    }

    /// Add the parts of the policy graph's edge number `id`.
    fn join(&mut self, id: usize, edge: &PEdge) {
        let (sources, targets) = (self.ends(edge.from), self.ends(edge.to));
        let mut first = 0;
        for &from in &sources {
            if !self.keeps[id] {
                first = 0;
            }
            for (place, &to) in targets.iter().enumerate().skip(first) {
                match self.part(id, from, to) {
                    Some(part) => {
                        first = if self.keeps[id] { place } else { 0 };
                        self.add(part);
                    }
                    // The ranges ascend: what lies behind the first that does not overlap does not either.
                    None if self.keeps[id] && self.range(to).from >= self.range(from).to => break,
                    None => {}
                }
            }
        }
    }

    fn ends(&self, end: PEnd) -> Vec<IEnd> {
        match end {
            PEnd::Port(side) => vec![IEnd::Port(side)],
            PEnd::Drop => vec![IEnd::Drop],
            PEnd::Node(node) => {
                self.of_node.get(node).map_or_else(Vec::new, |ids| ids.iter().map(|&i| IEnd::Instance(i)).collect())
            }
        }
    }

    /// The range of an end; ports and drops have all hashes.
    #[must_use]
    pub fn range(&self, end: IEnd) -> Range {
        match end {
            IEnd::Instance(id) => self.instances.get(id).map_or(Range::FULL, |i| i.range),
            IEnd::Port(_) | IEnd::Drop => Range::FULL,
        }
    }

    /// What the policy graph's edge number `edge` carries from `from` to `to`; None: nothing ever.
    pub(super) fn part(&self, edge: usize, from: IEnd, to: IEnd) -> Option<IEdge> {
        let (source, target) = (self.range(from), self.range(to));
        let keeps = self.keeps.get(edge).copied().unwrap_or(false);
        let share = match keeps {
            true => source.common(target).share(),
            false => source.share() * target.share(),
        };
        let sure = if keeps { target.holds(source) } else { target == Range::FULL };
        let hash = match to {
            IEnd::Instance(id) if !sure => self.instances.get(id).and_then(|i| *self.keys.get(i.node)?),
            _ => None,
        };
        let bps = self.rates.get(edge).copied().unwrap_or(0.0) * share;
        (share > 0.0).then_some(IEdge { from, to, edge, bps, hash })
    }

    pub(super) fn add(&mut self, edge: IEdge) {
        let id = self.edges.len();
        self.edges.push(edge);
        for end in [edge.from, edge.to] {
            if let IEnd::Instance(instance) = end
                && let Some(at) = self.at.get_mut(instance)
            {
                at.push(id);
            }
        }
    }

    /// Bits per second that reach each instance.
    #[must_use]
    pub fn loads(&self) -> Vec<f64> {
        let mut loads = vec![0.0; self.instances.len()];
        for edge in &self.edges {
            if let IEnd::Instance(to) = edge.to
                && let Some(load) = loads.get_mut(to)
            {
                *load += edge.bps;
            }
        }
        loads
    }
}

fn key(keys: &Keys, end: PEnd) -> Option<Fields> {
    match end {
        PEnd::Node(node) => keys.get(node).copied().flatten(),
        PEnd::Port(_) | PEnd::Drop => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_range_leave_no_gap() {
        let range = Range { from: 7, to: 1007 };
        for n in 1..50 {
            let parts: Vec<Range> = (0..n).map(|i| range.part(i, n)).collect();
            assert!(parts.windows(2).all(|w| w[0].to == w[1].from));
            assert_eq!((parts[0].from, parts.last().unwrap().to), (7, 1007));
        }
        assert!(Range { from: 3, to: 5 }.common(Range { from: 6, to: 9 }).is_empty());
    }
}

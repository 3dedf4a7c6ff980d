//! By which header fields each function's traffic is split among its instances (Lan's dissertation, §3.4.1,
//! step 3): by those of its affinity, unless a neighbour's split already satisfies it. Then both split by the
//! same fields and so by the same hash, and packets of one instance go to the same instance of the other.
//!
//! A key holds for a node, not for an edge, and is stated for forward packets (return packets have source
//! and destination exchanged): else the two directions of a flow would meet different instances.

use catena_policy::Direction;

use super::graph::{PEdge, PEnd, PGraph};
use catena_plan_model::catalogue::{Affinity, Fields};

/// What a node allows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Splitting {
    /// Which packets must meet the same instance.
    pub affinity: Affinity,
    /// Header fields that differ between its inner and its outer side.
    pub rewrites: Fields,
}

/// The fields that each node's traffic is hashed by; None: it has one instance for ever.
pub type Keys = Vec<Option<Fields>>;

/// Fields that any split may use when no affinity says which: packets of a connection keep their order.
pub const USUAL: Fields = Fields::FIVE_TUPLE;

/// Choose the keys of `graph`'s nodes, of which `counts` tells how many instances they begin with. Edges with
/// the most traffic choose first, those between two split nodes before all others.
#[must_use]
pub fn keys(graph: &PGraph, splitting: &[Splitting], counts: &[u32]) -> Keys {
    let mut sets: Vec<usize> = (0..graph.nodes.len()).collect();
    // Of each set's root: its fields so far; None: any will do. Single nodes are in no set with others.
    let mut wish: Vec<Wish> = (0..graph.nodes.len())
        .map(|node| match splitting.get(node).map(|s| s.affinity) {
            None | Some(Affinity::Single) => Wish::Never,
            Some(Affinity::Any) => Wish::Free,
            // Packets that agree in no field at all are all packets.
            Some(Affinity::Fields(Fields(0))) => Wish::Never,
            Some(Affinity::Fields(fields)) => Wish::By(fields),
        })
        .collect();
    let split = |node: usize| counts.get(node).is_some_and(|&count| count > 1);
    let mut edges: Vec<(bool, &PEdge, usize, usize)> = graph
        .edges
        .iter()
        .filter_map(|edge| match (edge.from, edge.to) {
            (PEnd::Node(a), PEnd::Node(b)) if a.max(b) < wish.len() => Some((split(a) && split(b), edge, a, b)),
            _ => None,
        })
        .collect();
    edges.sort_by(|x, y| y.0.cmp(&x.0).then(y.1.bps.total_cmp(&x.1.bps)));
    for (both, edge, a, b) in edges {
        let (from, to) = (root(&mut sets, a), root(&mut sets, b));
        if from == to {
            continue;
        }
        let Some(joint) = wish[from].joined_to(wish[to], both) else { continue };
        let fields = if let Wish::By(fields) = joint { fields } else { USUAL };
        if disturbed(splitting, edge, fields) {
            continue;
        }
        sets[to] = from;
        wish[from] = joint;
    }
    (0..wish.len())
        .map(|node| match wish[root(&mut sets, node)] {
            Wish::Never => None,
            Wish::Free => Some(USUAL),
            Wish::By(fields) => Some(fields),
        })
        .collect()
}

/// Whether packets on `edge` show other values in `fields` to its two ends, because one rewrites them: a
/// forward packet that leaves a rewriting function, or a return packet that comes to one.
#[must_use]
pub fn disturbed(splitting: &[Splitting], edge: &PEdge, fields: Fields) -> bool {
    let outer = match edge.direction {
        Direction::Forward => edge.from,
        Direction::Return => edge.to,
    };
    match outer {
        PEnd::Node(node) => splitting.get(node).is_some_and(|s| s.rewrites.0 & fields.0 != 0),
        PEnd::Port(_) | PEnd::Drop => false,
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Wish {
    Never,
    Free,
    By(Fields),
}

impl Wish {
    /// The common fields if packets from `self` go to `next`. The split of `self` is kept: it satisfies
    /// `next` or nothing is joined. Unless both are split already, no fields are given up for the joint.
    fn joined_to(self, next: Wish, both_split: bool) -> Option<Wish> {
        match (self, next) {
            (Wish::Never, _) | (_, Wish::Never) => None,
            (Wish::Free, wish) | (wish, Wish::Free) => Some(wish),
            (Wish::By(a), Wish::By(b)) => {
                let satisfied = Affinity::Fields(a).satisfies(Affinity::Fields(b));
                (satisfied && (both_split || a == b)).then_some(Wish::By(a))
            }
        }
    }
}

fn root(sets: &mut [usize], mut node: usize) -> usize {
    while sets[node] != node {
        sets[node] = sets[sets[node]];
        node = sets[node];
    }
    node
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    const SOURCE: Affinity = Affinity::Fields(Fields::SOURCE);
    const FLOW: Affinity = Affinity::Fields(Fields::FIVE_TUPLE);

    fn of(affinities: &[Affinity], counts: &[u32]) -> Keys {
        let graph = sample::line(affinities.len(), 1.0);
        let splitting: Vec<Splitting> =
            affinities.iter().map(|&affinity| Splitting { affinity, rewrites: Fields(0) }).collect();
        keys(&graph, &splitting, counts)
    }

    #[test]
    fn a_satisfied_neighbour_takes_the_upstream_split() {
        assert_eq!(of(&[SOURCE, FLOW], &[2, 2]), [Some(Fields::SOURCE); 2]);
        // The other way round it is not satisfied.
        assert_eq!(of(&[FLOW, SOURCE], &[2, 2]), [Some(Fields::FIVE_TUPLE), Some(Fields::SOURCE)]);
        assert_eq!(of(&[Affinity::Any, SOURCE], &[2, 2]), [Some(Fields::SOURCE); 2]);
        assert_eq!(of(&[Affinity::Any, Affinity::Any], &[2, 2]), [Some(USUAL); 2]);
        assert_eq!(of(&[Affinity::Single, FLOW], &[1, 2]), [None, Some(Fields::FIVE_TUPLE)]);
    }

    #[test]
    fn unsplit_nodes_give_up_no_fields() {
        assert_eq!(of(&[SOURCE, FLOW], &[1, 2]), [Some(Fields::SOURCE), Some(Fields::FIVE_TUPLE)]);
    }

    #[test]
    fn rewritten_fields_join_nothing() {
        let graph = sample::line(2, 1.0);
        let mut splitting = [Splitting { affinity: SOURCE, rewrites: Fields::SOURCE }; 2];
        splitting[1] = Splitting { affinity: FLOW, rewrites: Fields(0) };
        assert_eq!(keys(&graph, &splitting, &[2, 2]), [Some(Fields::SOURCE), Some(Fields::FIVE_TUPLE)]);
        splitting[0].affinity = Affinity::Fields(Fields::DESTINATION);
        assert_eq!(keys(&graph, &splitting, &[2, 2]), [Some(Fields::DESTINATION); 2]);
    }
}

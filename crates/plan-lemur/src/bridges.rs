//! What lies between subgroups of a chain, for joining them (Lemur, §3.2, step 2).
//!
//! Which nodes come before and after each other does not depend on where they run: it is found once for a chain, as sets of bits.

use std::collections::HashSet;

use catena_plan_model::estimate::{Group, Layout, topological};
use catena_plan_model::placement::Site;
use catena_plan_model::problem::{Chain, NodeId};

#[cfg(test)]
mod tests;

/// Bits of a word.
const WORD: usize = 64;

/// A set of a chain's nodes.
#[derive(Clone, Debug)]
struct Nodes(Vec<u64>);

impl Nodes {
    fn none(nodes: usize) -> Nodes {
        Nodes(vec![0; nodes.div_ceil(WORD)])
    }

    fn add(&mut self, node: NodeId) {
        self.0[node / WORD] |= 1 << (node % WORD);
    }

    fn add_all(&mut self, other: &Nodes) {
        self.0.iter_mut().zip(&other.0).for_each(|(word, more)| *word |= more);
    }

    fn without(mut self, other: &Nodes) -> Nodes {
        self.0.iter_mut().zip(&other.0).for_each(|(word, less)| *word &= !less);
        self
    }

    /// What is in this set, in `other` and in `third`, ascending.
    fn common(&self, other: &Nodes, third: &Nodes) -> Vec<NodeId> {
        let mut nodes = Vec::new();
        for (n, ((a, b), c)) in self.0.iter().zip(&other.0).zip(&third.0).enumerate() {
            let mut word = a & b & c;
            while word != 0 {
                nodes.push(n * WORD + word.trailing_zeros() as usize);
                word &= word - 1;
            }
        }
        nodes
    }
}

/// Which nodes of a chain come before and after each other.
#[derive(Clone, Debug)]
pub struct Order {
    /// Nodes at the other ends of each node's edges, in the order of the edges.
    beside: Vec<Vec<NodeId>>,
    /// The nodes that edges lead to from each.
    after: Vec<Nodes>,
    /// The nodes from which edges lead to each.
    before: Vec<Nodes>,
}

impl Order {
    /// The order of `chain`.
    #[must_use]
    pub fn of(chain: &Chain) -> Order {
        let all = chain.nodes.len();
        let (mut beside, mut from, mut to) = (vec![Vec::new(); all], vec![Vec::new(); all], vec![Vec::new(); all]);
        for edge in &chain.edges {
            beside[edge.from].push(edge.to);
            beside[edge.to].push(edge.from);
            from[edge.to].push(edge.from);
            to[edge.from].push(edge.to);
        }
        let order = topological(chain);
        let closed = |order: &mut dyn Iterator<Item = &NodeId>, next: &[Vec<NodeId>]| {
            let mut sets = vec![Nodes::none(all); all];
            for &node in order {
                let mut set = Nodes::none(all);
                for &other in &next[node] {
                    set.add(other);
                    set.add_all(&sets[other]);
                }
                sets[node] = set;
            }
            sets
        };
        Order { beside, after: closed(&mut order.iter().rev(), &to), before: closed(&mut order.iter(), &from) }
    }

    /// The nodes after, and those before, all of `nodes` together, without these.
    fn around(&self, nodes: &mut dyn Iterator<Item = NodeId>) -> (Nodes, Nodes) {
        let all = self.beside.len();
        let (mut own, mut after, mut before) = (Nodes::none(all), Nodes::none(all), Nodes::none(all));
        for node in nodes {
            own.add(node);
            after.add_all(&self.after[node]);
            before.add_all(&self.before[node]);
        }
        (after.without(&own), before.without(&own))
    }
}

/// Sets of nodes that join two subgroups of a chain when they move to the server: for each two subgroups of one
/// server the shortest way between them, and all ways from the one to the other together; for each one all ways
/// to all others, or from them.
#[must_use]
pub fn bridges(chain: &Chain, order: &Order, sites: &[Site], layout: &Layout) -> Vec<(Site, Vec<NodeId>)> {
    let all = chain.nodes.len();
    let mut found: Vec<(Site, Vec<NodeId>)> = Vec::new();
    let mut known: HashSet<Vec<NodeId>> = HashSet::new();
    let mut add = |server, mut nodes: Vec<NodeId>| {
        nodes.sort_unstable();
        if !nodes.is_empty() && known.insert(nodes.clone()) {
            found.push((Site::Server(server), nodes));
        }
    };
    let off = |node: NodeId| !matches!(sites[node], Site::Server(_));
    let mut elsewhere = Nodes::none(all);
    (0..all).filter(|node| off(*node)).for_each(|node| elsewhere.add(node));
    // What lies between and is not on a server; None if some of it cannot be.
    let between = |after: &Nodes, before: &Nodes| {
        let nodes = after.common(before, &elsewhere);
        nodes.iter().all(|node| chain.nodes[*node].server.is_some()).then_some(nodes)
    };
    let around: Vec<(Nodes, Nodes)> =
        layout.groups.iter().map(|group| order.around(&mut group.nodes.iter().copied())).collect();
    let way = |reached: &Reached, to: &Group| {
        let end = to.nodes.iter().copied().min_by_key(|node| reached.met[*node])?;
        let mut here = (reached.met[end] < usize::MAX).then_some(end)?;
        let mut way = Vec::new();
        while let Some(before) = reached.from[here] {
            here = before;
            if off(here) && chain.nodes[here].server.is_some() {
                way.push(here);
            }
        }
        Some(way)
    };
    let mut inside: Vec<bool> = (0..all).map(|node| off(node) && chain.nodes[node].server.is_some()).collect();
    layout.groups.iter().flat_map(|group| &group.nodes).for_each(|node| inside[*node] = true);
    for (id, from) in layout.groups.iter().enumerate() {
        let reached = reach(order, &from.nodes, &inside);
        let later = layout.groups.iter().enumerate().skip(id + 1);
        for (other, to) in later.filter(|(_, to)| to.server == from.server) {
            if let Some(way) = way(&reached, to) {
                add(from.server, way);
            }
            for (a, b) in [(id, other), (other, id)] {
                if let Some(ways) = between(&around[a].0, &around[b].1) {
                    add(from.server, ways);
                }
            }
        }
        // Of parallel branches one join alone may make the others' packets later: all at once.
        let others = layout.groups.iter().filter(|g| g.server == from.server && g.nodes != from.nodes);
        let (after, before) = order.around(&mut others.flat_map(|group| group.nodes.iter().copied()));
        let ways = [between(&around[id].0, &before), between(&after, &around[id].1)];
        ways.into_iter().flatten().for_each(|ways| add(from.server, ways));
    }
    found
}

/// How nodes were reached.
struct Reached {
    /// When each node was reached: 0 is first.
    met: Vec<usize>,
    /// The node that each was reached from.
    from: Vec<Option<NodeId>>,
}

/// Nodes that edges connect with `start`, whichever way, through nodes that are `inside`.
fn reach(order: &Order, start: &[NodeId], inside: &[bool]) -> Reached {
    let mut reached = Reached { met: vec![usize::MAX; inside.len()], from: vec![None; inside.len()] };
    let mut queue = start.to_vec();
    start.iter().enumerate().for_each(|(n, node)| reached.met[*node] = n);
    let mut next = 0;
    while let Some(&here) = queue.get(next) {
        next += 1;
        for &node in &order.beside[here] {
            if inside[node] && reached.met[node] == usize::MAX {
                reached.met[node] = queue.len();
                reached.from[node] = Some(here);
                queue.push(node);
            }
        }
    }
    reached
}

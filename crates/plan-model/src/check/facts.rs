//! What follows from the sites of a chain's nodes, by the definitions in [`crate::problem`].

use crate::placement::Site;
use crate::problem::{Chain, NodeId, Problem, Replication, ServerId};
use crate::profile::FULL_BATCH;

/// Paths that are walked one by one; a chain with more is measured node by node.
const MOST_PATHS: usize = 10_000;

/// A chain's subgroups, stays and longest path.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Facts {
    pub subgroups: Vec<SubgroupFacts>,
    pub stays: Vec<StayFacts>,
    /// The part of the packets that passes no node.
    pub direct: f64,
    /// The longest path's nanoseconds.
    pub latency_ns: f64,
    /// The longest path.
    pub path: Vec<NodeId>,
    /// Nanoseconds of the longest path where each server has a full batch to do before it sends a packet on.
    pub batch_ns: f64,
}

/// "A maximal set of a chain's nodes on the same server that edges between them connect."
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SubgroupFacts {
    pub nodes: Vec<NodeId>,
    pub server: ServerId,
    pub visits: f64,
    /// Cycles per packet of the chain with one core.
    pub cost_alone: f64,
    /// The same with several.
    pub cost_spread: f64,
    pub replicable: bool,
}

/// "A maximal set of nodes on one server and on one of its SmartNICs that edges connect."
#[derive(Clone, Debug, PartialEq)]
pub(super) struct StayFacts {
    pub nodes: Vec<NodeId>,
    pub server: ServerId,
    /// The SmartNIC, if the stay has nodes on one.
    pub card: Option<usize>,
    pub visits: f64,
}

/// Work them out. Every site must exist, and its node be able to run there.
pub(super) fn facts(problem: &Problem, chain: &Chain, sites: &[Site]) -> Facts {
    let mut subgroups = Vec::new();
    for nodes in connected(chain, |a, b| sites[a] == sites[b]) {
        if let Site::Server(server) = sites[nodes[0]] {
            subgroups.push(subgroup(problem, chain, server, nodes));
        }
    }
    let cards = cards(problem, chain, sites, &subgroups);
    let mut stays = Vec::new();
    for nodes in connected(chain, |a, b| cards[a].is_some() && cards[a] == cards[b]) {
        if let Some((server, card)) = cards[nodes[0]] {
            stays.push(StayFacts { visits: visits(chain, &nodes), nodes, server, card });
        }
    }
    let (latency_ns, path) = Walk { problem, chain, sites, stays: &stays, packets: 1.0 }.longest();
    let (batch_ns, _) = Walk { problem, chain, sites, stays: &stays, packets: FULL_BATCH }.longest();
    let direct = chain.nodes.iter().fold(1.0, |rest, node| rest - node.entry);
    let direct = if direct < 1e-9 { 0.0 } else { direct };
    Facts { subgroups, stays, direct, latency_ns, path, batch_ns }
}

/// The maximal sets of nodes that edges between nodes that `belong` together connect, each ascending.
fn connected(chain: &Chain, belong: impl Fn(NodeId, NodeId) -> bool) -> Vec<Vec<NodeId>> {
    let mut seen = vec![false; chain.nodes.len()];
    let mut sets = Vec::new();
    for start in 0..chain.nodes.len() {
        if seen[start] {
            continue;
        }
        seen[start] = true;
        let (mut set, mut open) = (vec![start], vec![start]);
        while let Some(node) = open.pop() {
            let out = chain.edges.iter().filter(|edge| edge.from == node).map(|edge| edge.to);
            let into = chain.edges.iter().filter(|edge| edge.to == node).map(|edge| edge.from);
            for other in out.chain(into).filter(|&other| belong(node, other)) {
                if !std::mem::replace(&mut seen[other], true) {
                    set.push(other);
                    open.push(other);
                }
            }
        }
        set.sort_unstable();
        sets.push(set);
    }
    sets
}

/// "The shares of the edges that enter it from outside (entry nodes: the share of the chain that enters
/// there), summed."
fn visits(chain: &Chain, nodes: &[NodeId]) -> f64 {
    let mut sum = 0.0;
    for &node in nodes {
        sum += chain.nodes[node].entry;
        for edge in chain.edges.iter().filter(|edge| edge.to == node && !nodes.contains(&edge.from)) {
            sum += edge.share;
        }
    }
    sum
}

fn subgroup(problem: &Problem, chain: &Chain, server: ServerId, nodes: Vec<NodeId>) -> SubgroupFacts {
    let visits = visits(chain, &nodes);
    let (mut cost_alone, mut replicable) = (visits * problem.overheads.visit, true);
    for &node in &nodes {
        cost_alone += chain.nodes[node].share * chain.nodes[node].server.unwrap_or(f64::NAN);
        let out = chain.edges.iter().filter(|edge| edge.from == node).count();
        let into = chain.edges.iter().filter(|edge| edge.to == node).count();
        replicable &= match problem.replication {
            Replication::Paper => chain.nodes[node].replicable && out <= 1 && into <= 1,
            Replication::ByState => chain.nodes[node].replicable,
        };
    }
    let cost_spread = cost_alone + visits * problem.overheads.spread;
    SubgroupFacts { nodes, server, visits, cost_alone, cost_spread, replicable }
}

/// The server and the SmartNIC of each node's stay; None: it is on the switch. A subgroup that edges connect
/// to several SmartNICs of its server stays with the first of them.
fn cards(
    problem: &Problem,
    chain: &Chain,
    sites: &[Site],
    subgroups: &[SubgroupFacts],
) -> Vec<Option<(ServerId, Option<usize>)>> {
    let mut cards: Vec<Option<(ServerId, Option<usize>)>> = sites
        .iter()
        .map(|site| match *site {
            Site::SmartNic(card) => Some((problem.smart_nics[card].server, Some(card))),
            _ => None,
        })
        .collect();
    for group in subgroups {
        let mut first: Option<usize> = None;
        for edge in &chain.edges {
            for (inside, outside) in [(edge.from, edge.to), (edge.to, edge.from)] {
                let Site::SmartNic(card) = sites[outside] else { continue };
                if group.nodes.contains(&inside) && problem.smart_nics[card].server == group.server {
                    first = Some(first.map_or(card, |other| other.min(card)));
                }
            }
        }
        group.nodes.iter().for_each(|&node| cards[node] = Some((group.server, first)));
    }
    cards
}

/// A walk over a chain's paths.
struct Walk<'a> {
    problem: &'a Problem,
    chain: &'a Chain,
    sites: &'a [Site],
    stays: &'a [StayFacts],
    /// For how many packets a server computes before it sends one on.
    packets: f64,
}

impl Walk<'_> {
    /// Nanoseconds to run `node`.
    fn run(&self, node: NodeId) -> f64 {
        let cycles = |cycles: Option<f64>, hz: f64| cycles.unwrap_or(f64::NAN) / hz * 1e9;
        match self.sites[node] {
            Site::Switch => 0.0,
            Site::Server(s) => self.packets * cycles(self.chain.nodes[node].server, self.problem.servers[s].clock_hz),
            Site::SmartNic(n) => cycles(self.chain.nodes[node].smart_nic, self.problem.smart_nics[n].clock_hz),
        }
    }

    /// Nanoseconds to come to `to`: a pass through the switch or the way to a stay, unless `from` is in the
    /// same.
    fn come(&self, from: Option<NodeId>, to: NodeId) -> f64 {
        let stay = |node: NodeId| self.stays.iter().position(|stay| stay.nodes.contains(&node));
        match stay(to) {
            new if from.is_some_and(|from| stay(from) == new) => 0.0,
            None => self.problem.switch_ns,
            Some(id) => {
                let clock_hz = self.problem.servers[self.stays[id].server].clock_hz;
                self.problem.bounce_ns + self.packets * self.problem.overheads.visit / clock_hz * 1e9
            }
        }
    }

    fn longest(&self) -> (f64, Vec<NodeId>) {
        let mut best = (0.0, Vec::new());
        let mut left = MOST_PATHS;
        for node in (0..self.chain.nodes.len()).filter(|&node| self.chain.nodes[node].entry > 0.0) {
            let start = self.come(None, node) + self.run(node);
            if !self.follow(start, &mut vec![node], &mut best, &mut left) {
                return self.by_node();
            }
        }
        best
    }

    /// Go on from a path that took `ns` so far; false: there are too many.
    fn follow(&self, ns: f64, path: &mut Vec<NodeId>, best: &mut (f64, Vec<NodeId>), left: &mut usize) -> bool {
        let Some(&here) = path.last() else { return true };
        // What is not a number is the worst of all.
        if best.1.is_empty() || ns > best.0 || ns.is_nan() {
            *best = (ns, path.clone());
        }
        let Some(rest) = left.checked_sub(1) else { return false };
        *left = rest;
        for edge in self.chain.edges.iter().filter(|edge| edge.from == here) {
            path.push(edge.to);
            let fine = self.follow(ns + self.come(Some(here), edge.to) + self.run(edge.to), path, best, left);
            path.pop();
            if !fine {
                return false;
            }
        }
        true
    }

    /// The longest way to each node from those before it, until none grows.
    fn by_node(&self) -> (f64, Vec<NodeId>) {
        let count = self.chain.nodes.len();
        let mut to: Vec<Option<(f64, Option<NodeId>)>> = (0..count)
            .map(|node| (self.chain.nodes[node].entry > 0.0).then(|| (self.come(None, node) + self.run(node), None)))
            .collect();
        for _ in 0..count {
            for edge in &self.chain.edges {
                let Some((ns, _)) = to[edge.from] else { continue };
                let ns = ns + self.come(Some(edge.from), edge.to) + self.run(edge.to);
                if to[edge.to].is_none_or(|(old, _)| ns > old) {
                    to[edge.to] = Some((ns, Some(edge.from)));
                }
            }
        }
        let reached = (0..count).filter_map(|node| to[node].map(|(ns, _)| (ns, node)));
        let Some((ns, last)) = reached.max_by(|a, b| a.0.total_cmp(&b.0)) else { return (0.0, Vec::new()) };
        let mut path = vec![last];
        while let Some(before) = path.last().and_then(|&node| to[node]).and_then(|(_, before)| before) {
            if path.len() > count {
                break;
            }
            path.push(before);
        }
        path.reverse();
        (ns, path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::tests::{line, problem};

    #[test]
    fn many_paths_are_measured_node_by_node() {
        // Diamonds in a row: 2^16 paths.
        let mut problem = problem();
        let mut chain = line(&[1_000.0; 49]);
        chain.edges.clear();
        for diamond in 0..16 {
            let first = 3 * diamond;
            for (from, to) in [(0, 1), (0, 2), (1, 3), (2, 3)] {
                chain.edges.push(crate::problem::Edge { from: first + from, to: first + to, share: 0.5 });
            }
        }
        chain.nodes.iter_mut().skip(2).step_by(3).for_each(|node| node.server = Some(3_000.0));
        problem.overheads.visit = 0.0;
        problem.bounce_ns = 500.0;
        let found = facts(&problem, &chain, &[Site::Server(0); 49]);
        assert_eq!(found.latency_ns, 500.0 + 17.0 * 1_000.0 + 16.0 * 3_000.0);
        assert_eq!(found.path.len(), 33);
        assert_eq!((found.path[0], found.path[1], found.path[32]), (0, 2, 48));
    }
}

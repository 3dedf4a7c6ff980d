//! Patterns: where each node of each chain runs, before cores are given (Lemur, §3.2, "Enumerating
//! Placement Patterns").

use catena_plan_model::placement::Site;
use catena_plan_model::problem::{Chain, Node, Problem};

/// A site for every node, by chain and node.
pub type Pattern = Vec<Vec<Site>>;

/// All sites that `node` can run on: the switch, SmartNICs, servers.
#[must_use]
pub fn sites(problem: &Problem, node: &Node) -> Vec<Site> {
    let switch = problem.switch_runs(node).then_some(Site::Switch);
    let smart_nics = 0..if node.smart_nic.is_some() { problem.smart_nics.len() } else { 0 };
    let servers = 0..if node.server.is_some() { problem.servers.len() } else { 0 };
    switch.into_iter().chain(smart_nics.map(Site::SmartNic)).chain(servers.map(Site::Server)).collect()
}

/// A device class, in the order that a strategy prefers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The switch.
    Switch,
    /// A SmartNIC: the first, and others by [`super::servers`].
    SmartNic,
    /// A server: the first, and others by [`super::servers`].
    Server,
}

/// Every node on the first class of `preferred` that can run it; None if there is a node that none can.
#[must_use]
pub fn preferring(problem: &Problem, preferred: &[Class]) -> Option<Pattern> {
    let site = |node: &Node| {
        preferred.iter().find_map(|class| match class {
            Class::Switch => problem.switch_runs(node).then_some(Site::Switch),
            Class::SmartNic => {
                (node.smart_nic.is_some() && !problem.smart_nics.is_empty()).then_some(Site::SmartNic(0))
            }
            Class::Server => (node.server.is_some() && !problem.servers.is_empty()).then_some(Site::Server(0)),
        })
    };
    problem.chains.iter().map(|chain| chain.nodes.iter().map(site).collect()).collect()
}

/// Which nodes are on the switch.
#[must_use]
pub fn on_switch(pattern: &Pattern) -> Vec<Vec<bool>> {
    pattern.iter().map(|sites| sites.iter().map(|s| *s == Site::Switch).collect()).collect()
}

/// Nodes that edges connect, whichever way, through nodes of which `inside` is true: all that can be
/// reached from `from`, with the node each was reached from.
#[must_use]
pub fn reach(chain: &Chain, from: &[usize], inside: impl Fn(usize) -> bool) -> Vec<(usize, Option<usize>)> {
    let mut reached: Vec<(usize, Option<usize>)> = from.iter().map(|n| (*n, None)).collect();
    let mut next = 0;
    while let Some(&(here, _)) = reached.get(next) {
        next += 1;
        for edge in &chain.edges {
            for (a, b) in [(edge.from, edge.to), (edge.to, edge.from)] {
                if a == here && inside(b) && !reached.iter().any(|(n, _)| *n == b) {
                    reached.push((b, Some(here)));
                }
            }
        }
    }
    reached
}

//! Patterns: where each node of each chain runs, before cores are given (Lemur, §3.2, "Enumerating
//! Placement Patterns").

use catena_plan_model::placement::Site;
use catena_plan_model::problem::{Node, Problem};

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

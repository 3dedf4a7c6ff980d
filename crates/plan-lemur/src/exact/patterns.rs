//! Placement patterns of a chain (Lemur, §3.2): a site for every node.

use super::symmetry::{Swap, first_of_servers, first_of_swaps};
use catena_plan_model::placement::Site;
use catena_plan_model::problem::{Chain, Node, Problem};
use catena_plan_model::rack::SwitchKind;

/// The sites where `node` can run, the switch first.
#[must_use]
pub fn sites(problem: &Problem, node: &Node) -> Vec<Site> {
    let on_switch = match problem.switch.as_ref().map(|s| &s.kind) {
        Some(SwitchKind::Pisa(_)) => node.pisa.is_some(),
        Some(SwitchKind::OpenFlow { .. }) => node.openflow.is_some(),
        Some(SwitchKind::Plain { .. }) | None => false,
    };
    let mut sites = Vec::new();
    if on_switch {
        sites.push(Site::Switch);
    }
    if node.server.is_some() {
        sites.extend((0..problem.servers.len()).map(Site::Server));
    }
    if node.smart_nic.is_some() {
        let sound = |n: &usize| problem.smart_nics[*n].server < problem.servers.len();
        sites.extend((0..problem.smart_nics.len()).filter(sound).map(Site::SmartNic));
    }
    sites
}

/// How many patterns `chain` has, before any is left out; infinite if there are too many to count.
#[must_use]
pub fn count(problem: &Problem, chain: &Chain) -> f64 {
    chain.nodes.iter().map(|node| sites(problem, node).len() as f64).product()
}

/// Which patterns need not be looked at because of another one.
#[derive(Clone, Debug, Default)]
pub struct Symmetry {
    /// Exchanges of equal parts of the chain.
    pub swaps: Vec<Swap>,
    /// The class of each server, for at most one chain of a problem: where the servers' names are settled.
    pub classes: Option<Vec<usize>>,
    /// Only patterns that keep to one server, the switch and the server's SmartNICs.
    pub one_server: bool,
}

/// Call `visit` with every pattern of `chain` that `symmetry` leaves, in order, as long as it answers that it wants
/// more. Return whether all were visited.
pub fn enumerate(
    problem: &Problem,
    chain: &Chain,
    symmetry: &Symmetry,
    mut visit: impl FnMut(&[Site]) -> bool,
) -> bool {
    let choices: Vec<Vec<Site>> = chain.nodes.iter().map(|node| sites(problem, node)).collect();
    if choices.iter().any(Vec::is_empty) {
        return true;
    }
    extend(problem, &choices, symmetry, &mut Vec::with_capacity(choices.len()), &mut visit)
}

fn extend(
    problem: &Problem,
    choices: &[Vec<Site>],
    symmetry: &Symmetry,
    start: &mut Vec<Site>,
    visit: &mut impl FnMut(&[Site]) -> bool,
) -> bool {
    // What the first nodes break, no site of the others mends.
    let kept = first_of_swaps(start, &symmetry.swaps)
        && symmetry.classes.as_ref().is_none_or(|classes| first_of_servers(start, classes))
        && (!symmetry.one_server || on_one_server(problem, start));
    if !kept {
        return true;
    }
    let Some(sites) = choices.get(start.len()) else { return visit(start) };
    for &site in sites {
        start.push(site);
        let go_on = extend(problem, choices, symmetry, start, visit);
        start.pop();
        if !go_on {
            return false;
        }
    }
    true
}

fn on_one_server(problem: &Problem, pattern: &[Site]) -> bool {
    let mut servers = pattern.iter().filter_map(|site| match *site {
        Site::Switch => None,
        Site::Server(server) => Some(server),
        Site::SmartNic(nic) => problem.smart_nics.get(nic).map(|n| n.server),
    });
    let first = servers.next();
    servers.all(|server| Some(server) == first)
}

//! All of E2's steps in a row, for functions that stay whole: from the chains of a problem to a site for each of their functions.
//!
//! A plan has each function of a chain on one device, with all of its cores. So what is packed and swapped here are not
//! instances of one core (as in [`super::deploy`], which a rack of E2's own runs) but functions that take the cores of all their
//! instances together. How many cores each group of functions gets in the end, and at which rates, is decided by who reads the
//! sites: functions that lie on one server run to completion there, which E2 did not know.

use std::time::Instant;

use super::apart::Sites;
use super::balance;
use super::graph::{PGraph, PNodeId};
use super::instances::{IGraph, TooLarge};
use super::keys::Splitting;
use super::offload::{self, Offload};
use super::size;
use super::traffic::{NoRoom, Places, Traffic};
use catena_plan_model::catalogue::{Affinity, Fields};
use catena_plan_model::placement::Site;
use catena_plan_model::problem::{Node, Problem, Switch};
use catena_plan_model::switch::Feasible;

/// Parts of a core in which functions are packed where there are fewer cores than instances.
const PARTS: u32 = 1000;

/// Why E2 has no sites.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failed {
    /// A function that runs neither on a server nor on the switch, and how many more there are.
    Homeless(String, usize),
    /// More edges between functions than are handled.
    TooLarge(TooLarge),
    /// More instances than cores.
    NoRoom(NoRoom),
}

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failed::Homeless(node, 0) => {
                write!(f, "E2 has servers and a switch, and {node} cannot run there")
            }
            Failed::Homeless(node, more) => {
                write!(f, "E2 has servers and a switch, and {node} and {more} more cannot run there")
            }
            Failed::TooLarge(too_large) => too_large.fmt(f),
            Failed::NoRoom(no_room) => no_room.fmt(f),
        }
    }
}

impl std::error::Error for Failed {}

/// Sites for the nodes of `problem`, by chain and node; `switch` says what the switch holds.
///
/// # Errors
/// When a function runs neither on a server nor on the switch, or all of them are too many for the rack.
pub fn sites(problem: &Problem, switch: &dyn Feasible) -> Result<Vec<Vec<Site>>, Failed> {
    sites_until(problem, switch, None)
}

/// The same, where searches for something better end at `until`.
///
/// # Errors
/// As [`sites`].
pub fn sites_until(problem: &Problem, switch: &dyn Feasible, until: Option<Instant>) -> Result<Vec<Vec<Site>>, Failed> {
    let all = || problem.chains.iter().flat_map(|chain| chain.nodes.iter().map(move |node| (chain, node)));
    let mut homeless = all().filter(|(_, node)| node.server.is_none() && !problem.switch_runs(node));
    if let Some((chain, node)) = homeless.next() {
        let name = format!("{}.{} ({})", chain.name, node.name, node.function);
        return Err(Failed::Homeless(name, homeless.count()));
    }
    // What runs on the switch alone is there from the start.
    let is_fixed: Vec<bool> = all().map(|(_, node)| node.server.is_none()).collect();
    let policy = PGraph::of(problem);
    // A function may come to any server: it is sized for the slowest.
    let clock_hz = problem.servers.iter().map(|server| server.clock_hz).fold(f64::INFINITY, f64::min);
    let capacities: Vec<f64> =
        all().map(|(chain, node)| clock_hz * chain.packet_bits() / node.server.unwrap_or(0.0)).collect();
    let affinities: Vec<Affinity> = all().map(|(_, node)| affinity(node)).collect();
    let sizes = size::sizes(&policy, &capacities, &affinities);
    let splitting: Vec<Splitting> =
        affinities.iter().map(|affinity| Splitting { affinity: *affinity, rewrites: Fields(0) }).collect();
    let graph = IGraph::build(&policy, &splitting, &vec![1; policy.nodes.len()]).map_err(Failed::TooLarge)?;
    let (mut places, needs) = place(problem, &graph, &sizes, &is_fixed, until).map_err(Failed::NoRoom)?;
    let offload = to_the_switch(problem, switch, &policy, &graph, &places, &is_fixed);
    for &node in &offload.nodes {
        places.free[places.server[node]] += needs[node];
    }
    let sites = offload.sites(&graph, &places).into_iter().zip(&is_fixed);
    let mut sites = sites.map(|(site, is_fixed)| match site {
        offload::Site::Server(server) if !is_fixed => Site::Server(server),
        _ => Site::Switch,
    });
    let of = problem.chains.iter().map(|chain| sites.by_ref().take(chain.nodes.len()).collect()).collect();
    let mut needs = needs.into_iter();
    let needs = problem.chains.iter().map(|chain| needs.by_ref().take(chain.nodes.len()).collect()).collect();
    let mut sites = Sites { problem, switch, of, needs, free: places.free, until };
    sites.take_apart();
    Ok(sites.of)
}

fn affinity(node: &Node) -> Affinity {
    if node.replicable { Affinity::Any } else { Affinity::Single }
}

/// A server for each function: with cores of its own for each, as E2 has it, and where these are too few with its part of a core;
/// and what each takes of its server, in cores or such parts.
fn place(
    problem: &Problem,
    graph: &IGraph,
    sizes: &[size::Size],
    is_fixed: &[bool],
    until: Option<Instant>,
) -> Result<(Places, Vec<u32>), NoRoom> {
    let traffic = Traffic::of(graph);
    let links: Vec<f64> = (0..problem.servers.len()).map(|server| link_bps(problem, server)).collect();
    let place = |needs: &[u32], per_core: u32| {
        let cores: Vec<u32> = problem.servers.iter().map(|server| server.cores.saturating_mul(per_core)).collect();
        balance::place_sized(graph, &traffic.clone().sized(needs), &cores, &links, until)
    };
    let of = |need: &dyn Fn(&size::Size) -> u32| -> Vec<u32> {
        sizes.iter().zip(is_fixed).map(|(size, is_fixed)| if *is_fixed { 0 } else { need(size) }).collect()
    };
    let whole = of(&|size| size.instances);
    match place(&whole, 1) {
        Ok(places) => Ok((places, whole)),
        Err(no_room) => {
            let parts = of(&parts);
            place(&parts, PARTS).map(|places| (places, parts)).map_err(|_| no_room)
        }
    }
}

/// What a function takes of a core, in parts of it.
fn parts(size: &size::Size) -> u32 {
    // Casting saturates, and makes 0 of what is not a number.
    let parts = (size.load_bps / size.capacity_bps * f64::from(PARTS)).ceil() as u32;
    parts.clamp(1, size.instances.saturating_mul(PARTS))
}

/// What all its links carry together of packets without their tunnels' headers, bits per second each way.
fn link_bps(problem: &Problem, server: usize) -> f64 {
    let header = problem.switch.as_ref().map_or(0.0, Switch::header_bytes);
    let shortest = problem.chains.iter().map(|chain| chain.packet_bytes).fold(f64::INFINITY, f64::min);
    let own = problem.servers.get(server).map_or(0.0, |server| server.nics_bps.iter().sum());
    let all = own + problem.smart_nics.iter().filter(|nic| nic.server == server).map(|nic| nic.bps).sum::<f64>();
    all / (1.0 + header / shortest)
}

fn to_the_switch(
    problem: &Problem,
    switch: &dyn Feasible,
    policy: &PGraph,
    graph: &IGraph,
    places: &Places,
    is_fixed: &[bool],
) -> Offload {
    let chains = || problem.chains.iter().map(|chain| chain.nodes.len());
    let nodes: Vec<&Node> = problem.chains.iter().flat_map(|chain| &chain.nodes).collect();
    let able = |id: PNodeId| !is_fixed[id] && nodes.get(id).is_some_and(|node| problem.switch_runs(node));
    let mut room = |on: &[PNodeId]| {
        let mut all = (0..nodes.len()).map(|id| is_fixed[id] || on.contains(&id));
        let set: Vec<Vec<bool>> = chains().map(|nodes| all.by_ref().take(nodes).collect()).collect();
        switch.verdict(problem, &set).fits()
    };
    offload::offload(policy, graph, places, &able, &mut room)
}

#[cfg(test)]
mod tests;

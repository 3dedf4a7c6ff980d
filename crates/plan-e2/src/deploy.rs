//! E2's instances: from pipelines as one graph to instances, each on a core of its own of a server.
//!
//! Beyond the paper, functions are sized in slices ([`size::in_slices`]) if a server's link is overbooked otherwise:
//! a few instances more keep the traffic of a slice on its servers.

use super::balance;
use super::graph::PGraph;
use super::headroom::Headroom;
use super::instances::{IGraph, TooLarge};
use super::keys::Splitting;
use super::offload::Offload;
use super::size::{self, Size};
use super::traffic::{NoRoom, Places};

/// A slice is a server, two, or up to so many.
const SLICES: u32 = 4;

/// Why nothing can be deployed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failed {
    /// More edges between instances than are handled.
    TooLarge(TooLarge),
    /// More instances than cores.
    NoRoom(NoRoom),
}

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failed::TooLarge(too_large) => too_large.fmt(f),
            Failed::NoRoom(no_room) => no_room.fmt(f),
        }
    }
}

impl std::error::Error for Failed {}

/// Instances of pipelines, each on a server.
#[derive(Clone, Debug, PartialEq)]
pub struct Instances {
    /// How many each function has, and whether they carry the load.
    pub sizes: Vec<Size>,
    /// The instances.
    pub graph: IGraph,
    /// Their servers.
    pub places: Places,
}

/// Size the functions of `policy`, split them into instances, and place these. A core
/// carries so much of each function (`capacities`, bits per second); servers have so many `cores` and links of `link_bps`.
///
/// # Errors
/// When the instances do not fit.
pub fn instances(
    policy: &PGraph,
    capacities: &[f64],
    splitting: &[Splitting],
    cores: &[u32],
    link_bps: &[f64],
) -> Result<Instances, Failed> {
    let affinities: Vec<_> = splitting.iter().map(|s| s.affinity).collect();
    let mut sizes = size::sizes(policy, capacities, &affinities);
    let place = |counts: &[u32]| {
        let graph = IGraph::build(policy, splitting, counts).map_err(Failed::TooLarge)?;
        let places = balance::place(&graph, cores, link_bps).map_err(Failed::NoRoom)?;
        let sites = Offload::default().sites(&graph, &places);
        let room = Headroom::of(&graph, &sites, capacities, link_bps).links;
        Ok((room, graph, places))
    };
    let counts: Vec<u32> = sizes.iter().map(|s| s.instances).collect();
    let mut best = place(&counts)?;
    for slices in (1..=SLICES).map(|part| cores.len() as u32 / part).filter(|slices| *slices > 1) {
        if best.0 >= 1.0 {
            break;
        }
        let counts = size::in_slices(&sizes, &affinities, slices);
        // More instances than cores are no way out.
        if let Ok(sliced) = place(&counts)
            && sliced.0 > best.0
        {
            best = sliced;
        }
    }
    let (_, graph, places) = best;
    sizes.iter_mut().zip(&graph.of_node).for_each(|(size, ids)| size.instances = ids.len() as u32);
    Ok(Instances { sizes, graph, places })
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::super::traffic::Traffic;
    use super::*;
    use catena_plan_model::catalogue::{Affinity, Fields};

    /// Five functions that 2 Gbit/s pass, of which a core carries 1: ten instances, on two servers.
    fn deploy(cores: u32, link_bps: f64) -> Result<Instances, Failed> {
        let flow = Splitting { affinity: Affinity::Fields(Fields::FIVE_TUPLE), rewrites: Fields(0) };
        instances(&sample::line(5, 2e9), &[1e9; 5], &[flow; 5], &[cores; 2], &[link_bps; 2])
    }

    #[test]
    fn instances_carry_the_load_and_fit() {
        let done = deploy(8, 10e9).unwrap();
        assert!(done.sizes.iter().all(|size| size.instances == 2 && size.carries()));
        assert_eq!(done.places.free.iter().sum::<u32>(), 6);
        let failed = deploy(4, 10e9).unwrap_err();
        assert_eq!(failed.to_string(), "10 instances need a core each, and there are 8");
    }

    #[test]
    fn a_narrow_link_is_worth_an_instance_more() {
        // Three functions of two instances and one of three: a slice on each server needs four of that.
        let flow = Splitting { affinity: Affinity::Fields(Fields::FIVE_TUPLE), rewrites: Fields(0) };
        let place = |link_bps: f64| {
            let capacities = [1e9, 1e9, 0.7e9, 1e9];
            let done = instances(&sample::line(4, 2e9), &capacities, &[flow; 4], &[9; 2], &[link_bps; 2]).unwrap();
            (done.graph.instances.len(), Traffic::of(&done.graph).cross(&done.places.server))
        };
        assert_eq!(place(10e9).0, 9);
        assert_eq!(place(1.05e9), (10, 0));
    }
}

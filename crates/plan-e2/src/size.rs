//! Step 2: how many instances each function needs: "the initial estimate of the load on a NF (sum of all
//! incoming traffic streams), and its per-core capacity" (Lan's dissertation, §3.4.1). An instance runs on a
//! core of its own.

use super::graph::{PEnd, PGraph};
use catena_plan_model::catalogue::Affinity;

/// How many instances a node gets, and why.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Size {
    /// Bits per second that reach it, both ways.
    pub load_bps: f64,
    /// Bits per second that one instance carries.
    pub capacity_bps: f64,
    /// Instances, at least 1.
    pub instances: u32,
}

impl Size {
    /// Whether the instances carry the load: not so where there may be one only.
    #[must_use]
    pub fn carries(&self) -> bool {
        self.load_bps <= self.capacity_bps * f64::from(self.instances)
    }
}

/// The most instances of one node: what a wrong estimate must not exceed (a thousand racks' cores).
pub const MAX_INSTANCES: u32 = 1 << 20;

/// Size the nodes of `graph` from what each carries on one core, bits per second, and how it may be split.
#[must_use]
pub fn sizes(graph: &PGraph, capacities_bps: &[f64], affinities: &[Affinity]) -> Vec<Size> {
    let mut loads = vec![0.0; graph.nodes.len()];
    for edge in &graph.edges {
        if let PEnd::Node(to) = edge.to
            && let Some(load) = loads.get_mut(to)
        {
            *load += edge.bps;
        }
    }
    let size = |(node, load_bps): (usize, f64)| {
        let capacity_bps = capacities_bps.get(node).copied().unwrap_or(f64::INFINITY);
        let instances = match affinities.get(node) {
            Some(Affinity::Single) => 1,
            // Casting saturates, and makes 0 of what is not a number. The sum of rates may exceed a whole
            // number of cores by its rounding alone.
            _ => ((load_bps / capacity_bps - 1e-9).ceil() as u32).clamp(1, MAX_INSTANCES),
        };
        Size { load_bps, capacity_bps, instances }
    };
    loads.into_iter().enumerate().map(size).collect()
}

/// As many instances as `sizes` asks for, or a few more, so that each of `slices` equal slices of the hashes has
/// instances of its own of every function. Beyond the paper: one instance more here and there, but no traffic
/// between slices where functions split alike, so that a slice can be a server or a few.
#[must_use]
pub fn in_slices(sizes: &[Size], affinities: &[Affinity], slices: u32) -> Vec<u32> {
    let count = |(node, size): (usize, &Size)| match affinities.get(node) {
        Some(Affinity::Single) => 1,
        _ => size.instances.div_ceil(slices.max(1)).saturating_mul(slices.max(1)).min(MAX_INSTANCES),
    };
    sizes.iter().enumerate().map(count).collect()
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;
    use catena_plan_model::catalogue::Fields;

    #[test]
    fn load_over_capacity_rounded_up() {
        let graph = sample::line(2, 10e9);
        let affinities = [Affinity::Fields(Fields::FIVE_TUPLE), Affinity::Single];
        let sizes = sizes(&graph, &[3e9, 4e9], &affinities);
        assert_eq!((sizes[0].instances, sizes[0].carries()), (4, true));
        assert_eq!((sizes[1].instances, sizes[1].carries()), (1, false));
        assert_eq!(in_slices(&sizes, &affinities, 3), [6, 1]);
        assert_eq!(super::sizes(&graph, &[5e9, 11e9], &[])[0].instances, 2);
        assert_eq!(super::sizes(&graph, &[0.0, f64::NAN], &[]).iter().map(|s| s.instances).max(), Some(MAX_INSTANCES));
    }
}

//! By what factor the traffic of a deployment may grow until a core or a server's link is full; below 1 they are too
//! little for it. As E2 reckons: an instance has a core of its own, and a server's links count together.

use super::instances::{IEnd, IGraph};
use super::offload::Site;

/// What may grow by how much; infinite where nothing is used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Headroom {
    /// Until the fullest core is full.
    pub cores: f64,
    /// Until the fullest server's links are.
    pub links: f64,
}

impl Headroom {
    /// That of instances on `sites`, where node n's carry `capacities_bps[n]` each, and servers have links of
    /// `links_bps` each way. The switch's own functions cost no core.
    #[must_use]
    pub fn of(graph: &IGraph, sites: &[Site], capacities_bps: &[f64], links_bps: &[f64]) -> Headroom {
        let mut into = vec![0.0; links_bps.len()];
        let mut out_of = vec![0.0; links_bps.len()];
        let server = |end: IEnd| match end {
            IEnd::Instance(id) => sites.get(id).and_then(|site| match site {
                Site::Server(server) => Some(*server),
                Site::Switch => None,
            }),
            _ => None,
        };
        for edge in graph.edges.iter().filter(|edge| edge.to != IEnd::Drop) {
            let (from, to) = (server(edge.from), server(edge.to));
            if from != to {
                from.and_then(|s| out_of.get_mut(s)).into_iter().for_each(|bps| *bps += edge.bps);
                to.and_then(|s| into.get_mut(s)).into_iter().for_each(|bps| *bps += edge.bps);
            }
        }
        let room = |(load, link): (&f64, &f64)| if *load > 0.0 { link / load } else { f64::INFINITY };
        let links = into.iter().zip(links_bps).chain(out_of.iter().zip(links_bps)).map(room);
        let cores = graph.loads().into_iter().zip(graph.instances.iter().zip(sites));
        let cores = cores
            .filter(|(load, (_, site))| **site != Site::Switch && *load > 0.0)
            .map(|(load, (instance, _))| capacities_bps.get(instance.node).copied().unwrap_or(f64::INFINITY) / load);
        Headroom { cores: cores.fold(f64::INFINITY, f64::min), links: links.fold(f64::INFINITY, f64::min) }
    }

    /// Until anything is full.
    #[must_use]
    pub fn factor(&self) -> f64 {
        self.cores.min(self.links)
    }
}

#[cfg(test)]
mod tests {
    use super::super::keys::Splitting;
    use super::super::sample;
    use super::*;
    use catena_plan_model::catalogue::{Affinity, Fields};

    #[test]
    fn links_and_cores_are_told_apart() {
        let flow = Splitting { affinity: Affinity::Fields(Fields::FIVE_TUPLE), rewrites: Fields::default() };
        let graph = IGraph::build(&sample::line(2, 6.0), &[flow; 2], &[1, 1]).unwrap();
        let room = |a: Site, b: Site| Headroom::of(&graph, &[a, b], &[12.0, 18.0], &[9.0, 18.0]);
        let together = room(Site::Server(0), Site::Server(0));
        assert_eq!((together.cores, together.links, together.factor()), (2.0, 1.5, 1.5));
        assert_eq!(room(Site::Server(1), Site::Server(1)).links, 3.0);
        // What is on the switch takes no core.
        assert_eq!(room(Site::Switch, Site::Server(1)).cores, 3.0);
        assert_eq!(room(Site::Switch, Site::Switch).factor(), f64::INFINITY);
    }
}

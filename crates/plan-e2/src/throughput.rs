//! What a rack sustains: "the maximum cluster-wide throughput that a rack-scale E2 system could sustain before
//! any component – cores, server links, or switch capacity – of the system is saturated" (Lan's dissertation,
//! §3.6.2, Figure 3.8).

use super::graph::{PEnd, PGraph};
use super::instances::{IEnd, IGraph, TooLarge};
use super::keys::Splitting;
use super::size::{self, Size};
use super::traffic::{NoRoom, Places};
use catena_plan_model::catalogue::Affinity;

/// Halvings by which a bound is found: to the last bits of a rate.
const BISECTIONS: u32 = 50;

/// A rack of equal servers around one switch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cluster {
    /// Servers.
    pub servers: usize,
    /// Cores of each for functions.
    pub cores: u32,
    /// Bits per second of a server's link, each way.
    pub link_bps: f64,
    /// The switch's ports to the outside.
    pub ports: u32,
    /// Bits per second of each, each way.
    pub port_bps: f64,
    /// Bits per second that the switch forwards at most.
    pub switch_bps: f64,
}

impl Cluster {
    fn all_cores(&self) -> u64 {
        u64::from(self.cores) * self.servers as u64
    }
}

/// What saturates first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Component {
    /// A core: an instance cannot carry more.
    Core,
    /// A server's link.
    Link,
    /// The switch.
    Switch,
    /// The ports to the outside.
    Ports,
}

/// Bits per second through the rack's parts.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// Into each server.
    pub into: Vec<f64>,
    /// Out of each server.
    pub out_of: Vec<f64>,
    /// Through the switch.
    pub switch: f64,
    /// In by the ports.
    pub entering: f64,
    /// Out by the ports.
    pub leaving: f64,
}

/// What instances at their places make the rack's parts carry.
#[must_use]
pub fn load(graph: &IGraph, places: &Places) -> Load {
    let servers = places.free.len();
    let (into, out_of) = (vec![0.0; servers], vec![0.0; servers]);
    let mut load = Load { into, out_of, switch: 0.0, entering: 0.0, leaving: 0.0 };
    let server = |end: IEnd| if let IEnd::Instance(id) = end { places.server.get(id).copied() } else { None };
    for edge in &graph.edges {
        let (from, to) = (server(edge.from), server(edge.to));
        if edge.to == IEnd::Drop || (from.is_some() && from == to) {
            continue;
        }
        load.switch += edge.bps;
        match from.and_then(|s| load.out_of.get_mut(s)) {
            Some(out) => *out += edge.bps,
            None => load.entering += edge.bps,
        }
        match to.and_then(|s| load.into.get_mut(s)) {
            Some(into) => *into += edge.bps,
            None => load.leaving += edge.bps,
        }
    }
    load
}

/// By what factor all traffic may grow (or must shrink) until something saturates, and what. Instances of
/// node n carry `capacities_bps[n]` each.
#[must_use]
pub fn headroom(graph: &IGraph, places: &Places, capacities_bps: &[f64], cluster: &Cluster) -> (f64, Component) {
    let load = load(graph, places);
    let fullest = load.into.iter().chain(&load.out_of).fold(0.0, |a: f64, &b| a.max(b));
    let ports = f64::from(cluster.ports) * cluster.port_bps;
    let core = graph
        .loads()
        .into_iter()
        .zip(&graph.instances)
        .map(|(load, instance)| capacities_bps.get(instance.node).copied().unwrap_or(f64::INFINITY) / load);
    [
        (core.fold(f64::INFINITY, f64::min), Component::Core),
        (cluster.link_bps / fullest, Component::Link),
        (cluster.switch_bps / load.switch, Component::Switch),
        (ports / load.entering.max(load.leaving), Component::Ports),
    ]
    .into_iter()
    .fold((f64::INFINITY, Component::Core), |a, b| if b.0 < a.0 { b } else { a })
}

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sustained {
    /// Bits per second that enter the rack.
    pub bps: f64,
    /// What saturates.
    pub component: Component,
    /// Instances.
    pub instances: usize,
}

/// What is placed, and how much of it.
#[derive(Clone, Copy, Debug)]
pub struct Work<'a> {
    /// The functions; the rates say how the traffic divides.
    pub policy: &'a PGraph,
    /// How each function's traffic may be split.
    pub splitting: &'a [Splitting],
    /// Bits per second of a core with each function.
    pub capacities_bps: &'a [f64],
    /// Even steps of traffic that are tried, up to what all ports take in.
    pub steps: u32,
    /// Numbers of slices in which functions may be sized as well ([`size::in_slices`]); none: as the paper does.
    pub slices: &'a [u32],
}

impl Work<'_> {
    /// Bits per second that come in by the ports.
    fn entering(&self) -> f64 {
        self.policy.edges.iter().filter(|e| matches!(e.from, PEnd::Port(_))).map(|e| e.bps).sum()
    }

    /// The functions with `factor` times the traffic.
    fn scaled(&self, factor: f64) -> PGraph {
        let mut scaled = self.policy.clone();
        scaled.edges.iter_mut().for_each(|edge| edge.bps *= factor);
        scaled
    }
}

/// Bits per second that may enter at most, and what forbids more, wherever instances are put: as many instances as the
/// traffic needs have cores; all of it goes through the ports, from the switch to some server, and out of one.
#[must_use]
pub fn bound(work: &Work, cluster: &Cluster) -> Sustained {
    let entering = work.entering();
    let leaving: f64 = work.policy.edges.iter().filter(|e| matches!(e.to, PEnd::Port(_))).map(|e| e.bps).sum();
    let part = leaving / entering;
    let affinities: Vec<Affinity> = work.splitting.iter().map(|s| s.affinity).collect();
    let all_cores = cluster.all_cores();
    let sized = |target: f64| size::sizes(&work.scaled(target / entering), work.capacities_bps, &affinities);
    let instances = |target: f64| sized(target).iter().map(|s| u64::from(s.instances)).sum::<u64>();
    let fits = |target: f64| instances(target) <= all_cores && sized(target).iter().all(Size::carries);
    let ports = f64::from(cluster.ports) * cluster.port_bps / part.max(1.0);
    let (mut low, mut high) = (0.0, ports);
    for _ in 0..BISECTIONS {
        let middle = (low + high) / 2.0;
        if fits(middle) { low = middle } else { high = middle }
    }
    let (bps, component) = [
        (if fits(ports) { f64::INFINITY } else { high }, Component::Core),
        (cluster.link_bps * cluster.servers as f64 / part.max(1.0), Component::Link),
        (cluster.switch_bps / (1.0 + part), Component::Switch),
        (ports, Component::Ports),
    ]
    .into_iter()
    .fold((f64::INFINITY, Component::Core), |a, b| if b.0 < a.0 { b } else { a });
    Sustained { bps, component, instances: instances(bps) as usize }
}

/// The most that `cluster` can carry when `place` puts instances on servers with so many cores. For each
/// step of traffic, from the top, the functions are sized and placed; what a placement then sustains counts,
/// also if that is less than it was sized for. None: not even the least step has cores enough.
pub fn maximum(
    work: &Work,
    cluster: &Cluster,
    mut place: impl FnMut(&IGraph, &[u32]) -> Result<Places, NoRoom>,
) -> Option<Sustained> {
    let entering = work.entering();
    let affinities: Vec<Affinity> = work.splitting.iter().map(|s| s.affinity).collect();
    let cores = vec![cluster.cores; cluster.servers];
    let all_cores = cluster.all_cores();
    let most = f64::from(cluster.ports) * cluster.port_bps;
    let mut best: Option<Sustained> = None;
    for step in (1..=work.steps).rev() {
        let target = most * f64::from(step) / f64::from(work.steps);
        let scaled = work.scaled(target / entering);
        let sizes = size::sizes(&scaled, work.capacities_bps, &affinities);
        let plain = sizes.iter().map(|s| s.instances).collect();
        let sliced = work.slices.iter().map(|&slices| size::in_slices(&sizes, &affinities, slices));
        for counts in std::iter::once(plain).chain(sliced) {
            // Less than this can no longer be found.
            if best.is_some_and(|best| best.bps >= target) {
                return best;
            }
            if counts.iter().map(|&c| u64::from(c)).sum::<u64>() > all_cores {
                continue;
            }
            let Ok(graph): Result<IGraph, TooLarge> = IGraph::build(&scaled, work.splitting, &counts) else { continue };
            let Ok(places) = place(&graph, &cores) else { continue };
            let (factor, component) = headroom(&graph, &places, work.capacities_bps, cluster);
            // What it might carry beyond is for the next step, which is sized for it.
            let bps = target * factor.min(1.0);
            if best.is_none_or(|best| bps > best.bps) {
                best = Some(Sustained { bps, component, instances: graph.instances.len() });
            }
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::super::traffic::Traffic;
    use super::super::{pack, sample};
    use super::*;
    use catena_plan_model::catalogue::Fields;

    fn flow(nodes: usize) -> Vec<Splitting> {
        vec![Splitting { affinity: Affinity::Fields(Fields::FIVE_TUPLE), rewrites: Fields(0) }; nodes]
    }

    #[test]
    fn a_line_over_two_servers_crosses_three_times() {
        let policy = sample::line(2, 6.0);
        let graph = IGraph::build(&policy, &flow(2), &[1, 1]).unwrap();
        let together = load(&graph, &Places { server: vec![0, 0], free: vec![0, 2] });
        assert_eq!((together.switch, together.into[0], together.out_of[0]), (12.0, 6.0, 6.0));
        // "A flow processed by functions running at two servers will consume 50% more switching capacity."
        let apart = load(&graph, &Places { server: vec![0, 1], free: vec![1, 1] });
        assert_eq!((apart.switch, apart.into[1], apart.entering, apart.leaving), (18.0, 6.0, 6.0, 6.0));
    }

    #[test]
    fn each_component_can_be_what_saturates() {
        let policy = sample::line(2, 6.0);
        let graph = IGraph::build(&policy, &flow(2), &[1, 1]).unwrap();
        let places = Places { server: vec![0, 0], free: vec![0] };
        let ample = Cluster { servers: 1, cores: 2, link_bps: 60.0, ports: 1, port_bps: 60.0, switch_bps: 120.0 };
        let room = |cluster: &Cluster, capacity| headroom(&graph, &places, &[capacity; 2], cluster);
        assert_eq!(room(&ample, 12.0), (2.0, Component::Core));
        assert_eq!(room(&Cluster { link_bps: 18.0, ..ample }, 60.0), (3.0, Component::Link));
        assert_eq!(room(&Cluster { switch_bps: 48.0, ..ample }, 60.0), (4.0, Component::Switch));
        assert_eq!(room(&Cluster { port_bps: 30.0, ..ample }, 60.0), (5.0, Component::Ports));
    }

    #[test]
    fn no_placement_carries_more_than_the_bound() {
        let cluster = Cluster { servers: 3, cores: 4, link_bps: 10.0, ports: 3, port_bps: 10.0, switch_bps: 60.0 };
        let (policy, splitting) = (&sample::line(4, 1.0), &flow(4)[..]);
        let bounded = |capacities_bps: &[f64], cluster: &Cluster| {
            let work = Work { policy, splitting, capacities_bps, steps: 30, slices: &[] };
            let placed = maximum(&work, cluster, |graph, cores| pack::depth_first(&Traffic::of(graph), cores));
            let most = bound(&work, cluster);
            assert!(placed.unwrap().bps <= most.bps * (1.0 + 1e-9), "{most:?}");
            (most.bps.round(), most.component)
        };
        // Three instances of each function carry 12; where one is slower, two of each and four of that one carry 8.
        assert_eq!(bounded(&[4.0; 4], &cluster), (12.0, Component::Core));
        assert_eq!(bounded(&[4.0, 4.0, 4.0, 2.0], &cluster), (8.0, Component::Core));
        assert_eq!(bounded(&[40.0; 4], &cluster), (30.0, Component::Link));
        assert_eq!(bounded(&[40.0; 4], &Cluster { switch_bps: 40.0, ..cluster }), (20.0, Component::Switch));
        assert_eq!(bounded(&[40.0; 4], &Cluster { ports: 1, ..cluster }), (10.0, Component::Ports));
    }

    #[test]
    fn whole_lines_on_servers_are_bound_by_cores_alone() {
        let cluster = Cluster { servers: 3, cores: 4, link_bps: 10.0, ports: 3, port_bps: 10.0, switch_bps: 60.0 };
        let (policy, splitting, capacities_bps) = (&sample::line(4, 1.0), &flow(4)[..], &[4.0; 4][..]);
        let work = Work { policy, splitting, capacities_bps, steps: 30, slices: &[] };
        let found = maximum(&work, &cluster, |graph, cores| pack::depth_first(&Traffic::of(graph), cores));
        let found = found.unwrap();
        assert_eq!((found.bps.round(), found.instances), (12.0, 12));
    }
}

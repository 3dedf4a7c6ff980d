//! The graph that placement looks at: who exchanges how much with whom, in whole bits per second, so that sums
//! and comparisons are exact. And where the instances are.

use super::instances::{IEdge, IEnd, IGraph, InstanceId};
use catena_plan_model::problem::ServerId;

/// Bits per second between instances, both ways together; neighbours of an instance lie side by side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Cores that each takes.
    sizes: Vec<u32>,
    start: Vec<u32>,
    to: Vec<u32>,
    bps: Vec<i64>,
}

impl Traffic {
    /// That of an instance graph.
    #[must_use]
    pub fn of(graph: &IGraph) -> Traffic {
        let between = |e: &IEdge| match (e.from, e.to) {
            (IEnd::Instance(a), IEnd::Instance(b)) => Some((a, b, whole(e.bps))),
            _ => None,
        };
        let edges: Vec<(usize, usize, i64)> = graph.edges.iter().filter_map(between).collect();
        Traffic::between(graph.instances.len(), &edges)
    }

    /// That of `instances` instances, each on a core, between which `edges` carry so many bits per second. Edges of an
    /// instance to itself, or to none that is, do not count.
    #[must_use]
    pub fn between(instances: usize, edges: &[(InstanceId, InstanceId, i64)]) -> Traffic {
        let real = || edges.iter().filter(|&&(a, b, _)| a != b && a.max(b) < instances);
        let mut start = vec![0_u32; instances + 1];
        for &(a, b, _) in real() {
            start[a + 1] += 1;
            start[b + 1] += 1;
        }
        for i in 0..instances {
            start[i + 1] += start[i];
        }
        let mut next = start.clone();
        let mut ends = vec![(0_u32, 0_i64); start[instances] as usize];
        for &(a, b, bps) in real() {
            for (a, b) in [(a, b), (b, a)] {
                ends[next[a] as usize] = (b as u32, bps);
                next[a] += 1;
            }
        }
        let mut traffic = Traffic { sizes: vec![1; instances], start: vec![0], to: Vec::new(), bps: Vec::new() };
        for i in 0..instances {
            let own = &mut ends[start[i] as usize..start[i + 1] as usize];
            own.sort_unstable_by_key(|e| e.0);
            let first = traffic.to.len();
            for &mut (to, bps) in own {
                if traffic.to.len() > first && traffic.to.last() == Some(&to) {
                    if let Some(last) = traffic.bps.last_mut() {
                        *last += bps;
                    }
                } else {
                    traffic.to.push(to);
                    traffic.bps.push(bps);
                }
            }
            traffic.start.push(traffic.to.len() as u32);
        }
        traffic
    }

    /// The same between those that take so many cores each, or none, and stay on one server with all of them. Any unit will do
    /// that servers' cores are counted in, too.
    #[must_use]
    pub fn sized(mut self, sizes: &[u32]) -> Traffic {
        self.sizes.iter_mut().zip(sizes).for_each(|(own, size)| *own = *size);
        self
    }

    /// Cores that an instance takes.
    #[must_use]
    pub fn cores(&self, id: InstanceId) -> u32 {
        self.sizes.get(id).copied().unwrap_or(1)
    }

    /// Number of instances.
    #[must_use]
    pub fn len(&self) -> usize {
        self.start.len().saturating_sub(1)
    }

    /// Whether there is no instance.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The neighbours of an instance, ascending, with bits per second.
    pub fn of_instance(&self, id: InstanceId) -> impl Iterator<Item = (InstanceId, i64)> {
        let (from, to) = (self.start[id] as usize, self.start[id + 1] as usize);
        self.to[from..to].iter().zip(&self.bps[from..to]).map(|(&to, &bps)| (to as usize, bps))
    }

    /// Bits per second between two instances.
    #[must_use]
    pub fn pair(&self, a: InstanceId, b: InstanceId) -> i64 {
        let (from, to) = (self.start[a] as usize, self.start[a + 1] as usize);
        self.to[from..to].binary_search(&(b as u32)).map_or(0, |place| self.bps[from + place])
    }

    /// Bits per second between instances on different servers: what placement keeps small.
    #[must_use]
    pub fn cross(&self, servers: &[ServerId]) -> i64 {
        let of = |a: InstanceId| {
            self.of_instance(a).filter(|&(b, _)| a < b && servers[a] != servers[b]).map(|e| e.1).sum::<i64>()
        };
        (0..self.len()).map(of).sum()
    }
}

/// Bits per second as a whole number.
#[must_use]
pub(super) fn whole(bps: f64) -> i64 {
    // Casting saturates; a graph's sum must not: no network carries a quintillion bits per second.
    (bps.round() as i64).clamp(0, 1 << 40)
}

/// Where instances are, and what room is left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// The server of each instance.
    pub server: Vec<ServerId>,
    /// Cores left on each server.
    pub free: Vec<u32>,
}

/// More is needed than servers have cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRoom {
    /// Cores that all take.
    pub needed: u64,
    /// Of these, what one of them takes that no server has left.
    pub largest: u32,
    /// Cores.
    pub cores: u64,
}

impl NoRoom {
    /// Say so, if `traffic`'s instances do not fit on servers with so many `cores`, however they are packed.
    pub(super) fn check(traffic: &Traffic, cores: &[u32]) -> Result<(), NoRoom> {
        let no_room = NoRoom::of(traffic, cores);
        if no_room.needed > no_room.cores { Err(no_room) } else { Ok(()) }
    }

    /// What `traffic` needs, and what servers have.
    pub(super) fn of(traffic: &Traffic, cores: &[u32]) -> NoRoom {
        let sum = |each: &[u32]| each.iter().map(|&c| u64::from(c)).sum();
        let largest = traffic.sizes.iter().copied().max().unwrap_or(0);
        NoRoom { needed: sum(&traffic.sizes), largest, cores: sum(cores) }
    }
}

impl std::fmt::Display for NoRoom {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let NoRoom { needed, largest, cores } = self;
        match largest {
            0 | 1 => write!(f, "{needed} instances need a core each, and there are {cores}"),
            _ => write!(f, "functions need {needed} cores, one of them {largest} of one server, and there are {cores}"),
        }
    }
}

impl std::error::Error for NoRoom {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parallel_edges_add_up() {
        let traffic = Traffic::between(3, &[(0, 1, 5), (1, 0, 2), (2, 2, 9), (1, 2, 1), (1, 7, 3)]);
        assert_eq!(traffic.of_instance(1).collect::<Vec<_>>(), [(0, 7), (2, 1)]);
        assert_eq!((traffic.pair(0, 1), traffic.pair(0, 2)), (7, 0));
        assert_eq!((traffic.cross(&[0, 0, 1]), traffic.cross(&[0, 1, 0])), (1, 8));
    }
}

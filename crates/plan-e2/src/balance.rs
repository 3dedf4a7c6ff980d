//! Placement that also avoids "over-booking the CPU and NIC resources at the servers" (Lan's dissertation,
//! §3.1.1), beyond the paper's algorithm, which looks at the sum of what crosses and not at single links.
//!
//! Least traffic between servers comes first. If that overbooks a link, several beginnings are improved by
//! taking load from full links: the swap or move that eases its two servers most, again and again. The paper's own placement is among them, so that no rack sustains less than with it.

use std::time::Instant;

use super::instances::{IEnd, IGraph, InstanceId};
use super::traffic::{NoRoom, Places, Traffic};
use super::{pack, swap};
use catena_plan_model::problem::ServerId;

/// In larger racks, the fullest server exchanges instances only with so many of the least full servers, and
/// with those it has traffic with.
const OTHERS: usize = 32;
/// The power of what a link carries, relative to its capacity, by which placements are compared.
const POWER: i32 = 8;
/// At most so many exchanges for each server of the rack.
const EXCHANGES: usize = 16;

/// Place the instances of `graph` on servers with so many `cores` and links of `link_bps` each way.
///
/// # Errors
/// When there are fewer cores than instances.
pub fn place(graph: &IGraph, cores: &[u32], link_bps: &[f64]) -> Result<Places, NoRoom> {
    place_sized(graph, &Traffic::of(graph), cores, link_bps, None)
}

/// The same where the instances take as many cores as their `traffic` says. At `until`, where there is such a time, the best that
/// was found does.
///
/// # Errors
/// When they do not fit.
pub fn place_sized(
    graph: &IGraph,
    traffic: &Traffic,
    cores: &[u32],
    link_bps: &[f64],
    until: Option<Instant>,
) -> Result<Places, NoRoom> {
    let least = swap::place(traffic, cores)?;
    let fullness = |places: &Places| Links::new(graph, places, link_bps).fullest().0;
    let mut best = (fullness(&least), least.clone());
    if best.0 <= 1.0 {
        return Ok(least);
    }
    let mut beginnings = vec![swap::paper(traffic, cores)?, least];
    // Slices of the hashes are for instances of which each has a core.
    if (0..traffic.len()).all(|id| traffic.cores(id) == 1) {
        let ranges = pack::by_range(graph, cores)?;
        let mut swapped = ranges.clone();
        swap::improve(traffic, &mut swapped, true);
        beginnings.extend([swapped, ranges]);
    }
    let mut beginnings: Vec<_> = beginnings.into_iter().map(|places| (fullness(&places), places)).collect();
    beginnings.sort_by(|a, b| a.0.total_cmp(&b.0));
    for (before, mut places) in beginnings {
        if before < best.0 {
            best = (before, places.clone());
        }
        if best.0 <= 1.0 {
            break;
        }
        let after = relieve(graph, traffic, &mut places, link_bps, until);
        if after < best.0 {
            best = (after, places);
        }
    }
    Ok(best.1)
}

/// Take load from full links until none is overbooked, nothing helps or the time is over, and leave the best that was met.
/// Return how full the fullest link is: 1 is its capacity.
pub fn relieve(
    graph: &IGraph,
    traffic: &Traffic,
    places: &mut Places,
    link_bps: &[f64],
    until: Option<Instant>,
) -> f64 {
    let goes_on = |_: &ServerId| until.is_none_or(|until| Instant::now() < until);
    let mut links = Links::new(graph, places, link_bps);
    let mut best = (links.fullest().0, places.clone());
    for _ in 0..places.free.len() * EXCHANGES {
        if best.0 <= 1.0 {
            break;
        }
        let mut fullest: Vec<ServerId> = (0..links.loads.len()).collect();
        fullest.sort_by(|&a, &b| links.fullness(b).total_cmp(&links.fullness(a)).then(a.cmp(&b)));
        // When the fullest cannot be relieved, others may make room for it.
        let step = fullest
            .into_iter()
            .take(OTHERS)
            .take_while(goes_on)
            .find_map(|server| links.best(graph, traffic, places, server));
        let Some(step) = step else { break };
        links.take(traffic, places, step);
        let now = links.fullest().0;
        if now < best.0 {
            best = (now, places.clone());
        }
    }
    *places = best.1;
    // Sums that were changed a thousand times are no longer exact.
    Links::new(graph, places, link_bps).fullest().0
}

/// What a server's link carries, bits per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Both {
    into: f64,
    out_of: f64,
}

impl Both {
    fn plus(self, other: Both) -> Both {
        Both { into: self.into + other.into, out_of: self.out_of + other.out_of }
    }

    fn most(self) -> f64 {
        self.into.max(self.out_of)
    }
}

/// An instance goes to another server, and another may come back.
#[derive(Clone, Copy, Debug)]
struct Step {
    /// How much less the strain is then.
    eased: f64,
    goes: Option<InstanceId>,
    comes: Option<InstanceId>,
    server: ServerId,
    other: ServerId,
    /// What the two servers' links carry then.
    here: Both,
    there: Both,
}

struct Links<'a> {
    link_bps: &'a [f64],
    loads: Vec<Both>,
    members: Vec<Vec<InstanceId>>,
}

impl<'a> Links<'a> {
    fn new(graph: &IGraph, places: &Places, link_bps: &'a [f64]) -> Self {
        let mut loads = vec![Both::default(); places.free.len()];
        let at = |end: IEnd| if let IEnd::Instance(id) = end { places.server.get(id).copied() } else { None };
        for edge in graph.edges.iter().filter(|e| e.to != IEnd::Drop) {
            let (from, to) = (at(edge.from), at(edge.to));
            if from != to {
                from.into_iter().for_each(|s| loads[s].out_of += edge.bps);
                to.into_iter().for_each(|s| loads[s].into += edge.bps);
            }
        }
        let mut members = vec![Vec::new(); places.free.len()];
        places.server.iter().enumerate().for_each(|(id, &server)| members[server].push(id));
        Links { link_bps, loads, members }
    }

    fn link(&self, server: ServerId) -> f64 {
        // A link without any capacity is as bad as can be, but not infinitely so.
        self.link_bps.get(server).copied().unwrap_or(0.0).max(1.0)
    }

    fn fullness(&self, server: ServerId) -> f64 {
        self.loads[server].most() / self.link(server)
    }

    fn fullest(&self) -> (f64, ServerId) {
        let all = (0..self.loads.len()).map(|s| (self.fullness(s), s));
        all.fold((0.0, 0), |best, next| if next.0 > best.0 { next } else { best })
    }

    /// Large powers of what links carry: their sum falls when the fullest is relieved, and still tells apart
    /// placements in which it is not.
    fn strain(&self, server: ServerId, load: Both) -> f64 {
        let link = self.link(server);
        (load.into / link).powi(POWER) + (load.out_of / link).powi(POWER)
    }

    /// The step between `server` and another one that eases both most.
    fn best(&self, graph: &IGraph, traffic: &Traffic, places: &Places, server: ServerId) -> Option<Step> {
        let mut best: Option<Step> = None;
        for other in self.others(traffic, places, server) {
            let moves = |from: ServerId, to: ServerId| {
                let each = self.members[from].iter().map(move |&id| (Some(id), shift(graph, places, id, to)));
                // A free core is an instance without traffic.
                let nobody = (places.free[from] > 0).then(|| (None, (Both::default(), Both::default())));
                each.chain(nobody)
            };
            let cores = |id: Option<InstanceId>| id.map_or(0, |id| traffic.cores(id));
            let fits = |goes: Option<InstanceId>, comes: Option<InstanceId>| {
                cores(comes) <= places.free[server] + cores(goes) && cores(goes) <= places.free[other] + cores(comes)
            };
            let coming: Vec<_> = moves(other, server).collect();
            let now = self.strain(server, self.loads[server]) + self.strain(other, self.loads[other]);
            for (goes, (left, arrived)) in moves(server, other) {
                let (here, there) = (self.loads[server].plus(left), self.loads[other].plus(arrived));
                for &(comes, (gone, taken)) in coming.iter().filter(|(comes, _)| fits(goes, *comes)) {
                    let (mut here, mut there) = (here.plus(taken), there.plus(gone));
                    let least = best.map_or(now * 1e-9, |b| b.eased);
                    if now - self.strain(server, here) - self.strain(other, there) <= least {
                        continue;
                    }
                    if let (Some(a), Some(b)) = (goes, comes) {
                        // What they exchange crosses as before; each alone counted it as gone.
                        let exchanged = between(graph, a, b);
                        let both = Both { into: exchanged, out_of: exchanged };
                        (here, there) = (here.plus(both), there.plus(both));
                    }
                    let eased = now - self.strain(server, here) - self.strain(other, there);
                    if eased > least {
                        best = Some(Step { eased, goes, comes, server, other, here, there });
                    }
                }
            }
        }
        best
    }

    fn others(&self, traffic: &Traffic, places: &Places, server: ServerId) -> Vec<ServerId> {
        let mut others: Vec<ServerId> = (0..self.loads.len()).filter(|&s| s != server).collect();
        if others.len() > 2 * OTHERS {
            others.sort_by(|&a, &b| self.fullness(a).total_cmp(&self.fullness(b)).then(a.cmp(&b)));
            others.truncate(OTHERS);
            let near = self.members[server].iter().flat_map(|&id| traffic.of_instance(id));
            others.extend(near.map(|(n, _)| places.server[n]).filter(|&s| s != server).take(OTHERS * 4));
            others.sort_unstable();
            others.dedup();
        }
        others
    }

    fn take(&mut self, traffic: &Traffic, places: &mut Places, step: Step) {
        let server = step.server;
        for (id, from, to) in [(step.goes, server, step.other), (step.comes, step.other, server)] {
            let Some(id) = id else { continue };
            places.server[id] = to;
            self.members[from].retain(|&m| m != id);
            self.members[to].push(id);
            // One of two that change places may be larger than what is free before the other has left.
            places.free[from] = places.free[from].wrapping_add(traffic.cores(id));
            places.free[to] = places.free[to].wrapping_sub(traffic.cores(id));
        }
        self.loads[server] = step.here;
        self.loads[step.other] = step.there;
    }
}

/// What changes on the links of the server that `id` leaves and of the one it goes to; no other's changes.
fn shift(graph: &IGraph, places: &Places, id: InstanceId, to: ServerId) -> (Both, Both) {
    let (from, mut left, mut arrived) = (places.server[id], Both::default(), Both::default());
    for edge in graph.at[id].iter().map(|&e| &graph.edges[e]) {
        let leaving = edge.from == IEnd::Instance(id);
        let other = match if leaving { edge.to } else { edge.from } {
            IEnd::Drop => continue,
            IEnd::Port(_) => None,
            IEnd::Instance(other) => Some(places.server[other]),
        };
        let (out_of, into) = if leaving { (edge.bps, 0.0) } else { (0.0, edge.bps) };
        let (own, others) = (Both { into, out_of }, Both { into: out_of, out_of: into });
        let minus = |b: Both| Both { into: -b.into, out_of: -b.out_of };
        if other == Some(from) {
            left = left.plus(others);
            arrived = arrived.plus(own);
        } else if other == Some(to) {
            left = left.plus(minus(own));
            arrived = arrived.plus(minus(others));
        } else {
            left = left.plus(minus(own));
            arrived = arrived.plus(own);
        }
    }
    (left, arrived)
}

/// Bits per second from `a` to `b` and back, together.
fn between(graph: &IGraph, a: InstanceId, b: InstanceId) -> f64 {
    let b = IEnd::Instance(b);
    graph.at[a].iter().map(|&e| &graph.edges[e]).filter(|e| e.from == b || e.to == b).map(|e| e.bps).sum()
}

#[cfg(test)]
mod tests {
    use super::super::keys::Splitting;
    use super::super::sample;
    use super::*;
    use catena_plan_model::catalogue::{Affinity, Fields};

    #[test]
    fn a_link_that_is_overbooked_is_relieved() {
        // Four lines of two instances. The least crosses when they fill two servers of three; but then each
        // link carries two lines.
        let splitting = [Splitting { affinity: Affinity::Fields(Fields::SOURCE), rewrites: Fields(0) }; 2];
        let graph = IGraph::build(&sample::line(2, 12.0), &splitting, &[4, 4]).unwrap();
        let full = |links: &[f64]| {
            let places = place(&graph, &[4; 4], links).unwrap();
            let used = places.free.iter().filter(|&&free| free < 4).count();
            (used, Links::new(&graph, &places, links).fullest().0, Traffic::of(&graph).cross(&places.server))
        };
        assert_eq!(full(&[10.0; 4]), (2, 0.6, 0));
        assert_eq!(full(&[3.0; 4]), (4, 1.0, 0));
    }
}

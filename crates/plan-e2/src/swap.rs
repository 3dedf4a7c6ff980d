//! Step 4: swapping (Lan's dissertation, §3.4.1): "in each iteration, we swap a pair of vertices from two
//! different partitions. The pair selected for a swap is the one that leads to the greatest reduction in
//! cross-partition traffic. These iterations continue until no further improvement can be made."
//!
//! The same swaps in the same order as by looking at all pairs each time, but found incrementally: the best
//! pair of two servers changes only when a swap touches one of the two, because what an instance on a third
//! server exchanges with either is the same as before. And only servers with traffic between them have a pair
//! worth swapping. So each swap looks again at the pairs of two servers with their neighbours; the best of
//! each pair of servers waits in a heap. With n instances, c cores a server and k neighbours of a server that
//! is O(k c²) at worst a swap, and the heap's logarithm, instead of O(n²).
//!
//! Beyond the paper: then an instance may also move to a free core, as if it were swapped with an instance
//! that exchanges nothing; and [`place`] also improves a second beginning and keeps the better of both, so
//! that the result is never worse than the paper's.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::pack;
use super::traffic::{NoRoom, Places, Traffic};
use catena_plan_model::problem::ServerId;

/// What improving did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Improved {
    /// Pairs swapped.
    pub swaps: u64,
    /// Instances moved to free cores.
    pub moves: u64,
    /// Bits per second that no longer cross.
    pub saved_bps: i64,
}

/// Place instances on servers with so many `cores`: the paper's algorithm, moves, and a second beginning.
///
/// # Errors
/// When there are fewer cores than instances.
pub fn place(traffic: &Traffic, cores: &[u32]) -> Result<Places, NoRoom> {
    let mut paper = pack::depth_first(traffic, cores)?;
    improve(traffic, &mut paper, false);
    improve(traffic, &mut paper, true);
    // What takes several cores may find no room in this order, and be placed all the same.
    let Ok(mut grown) = pack::grow(traffic, cores) else { return Ok(paper) };
    improve(traffic, &mut grown, true);
    Ok(if traffic.cross(&grown.server) < traffic.cross(&paper.server) { grown } else { paper })
}

/// Place instances as the paper does: packed depth-first, then swapped.
///
/// # Errors
/// When there are fewer cores than instances.
pub fn paper(traffic: &Traffic, cores: &[u32]) -> Result<Places, NoRoom> {
    let mut places = pack::depth_first(traffic, cores)?;
    improve(traffic, &mut places, false);
    Ok(places)
}

/// Swap pairs, and if `moves` also move instances to free cores, until nothing reduces what crosses.
pub fn improve(traffic: &Traffic, places: &mut Places, moves: bool) -> Improved {
    Search::new(traffic, places, moves).run()
}

/// What may be done with two servers: `a` and `b` change places; `b` is [`NOBODY`] when `a` moves to the free
/// core of the other server. The best gains most; of equal ones that with the lowest numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Step {
    gain: i64,
    a: Reverse<usize>,
    b: Reverse<usize>,
    between: (ServerId, ServerId),
    /// How often each of the two servers had changed when this was found.
    changes: (u32, u32),
}

const NOBODY: usize = usize::MAX;

struct Search<'a> {
    traffic: &'a Traffic,
    places: &'a mut Places,
    moves: bool,
    members: Vec<Vec<usize>>,
    changes: Vec<u32>,
    heap: BinaryHeap<Step>,
    /// Scratch: which servers were met in this round.
    met: Vec<u32>,
    round: u32,
    /// Scratch: what moving over would gain, and who.
    left: Vec<(i64, usize)>,
    right: Vec<(i64, usize)>,
}

impl<'a> Search<'a> {
    fn new(traffic: &'a Traffic, places: &'a mut Places, moves: bool) -> Self {
        let servers = places.free.len();
        let mut members = vec![Vec::new(); servers];
        for (id, &server) in places.server.iter().enumerate() {
            members[server].push(id);
        }
        let (changes, met) = (vec![0; servers], vec![0; servers]);
        let (heap, left, right) = (BinaryHeap::new(), Vec::new(), Vec::new());
        Search { traffic, places, moves, members, changes, heap, met, round: 0, left, right }
    }

    fn run(mut self) -> Improved {
        let mut done = Improved::default();
        for server in 0..self.members.len() {
            self.look(server, |other| server < other);
        }
        while let Some(step) = self.heap.pop() {
            let (p, q) = step.between;
            if step.changes != (self.changes[p], self.changes[q]) {
                continue;
            }
            self.take(step);
            done.saved_bps += step.gain;
            *if step.b.0 == NOBODY { &mut done.moves } else { &mut done.swaps } += 1;
            self.look(p, |_| true);
            self.look(q, |other| other != p);
        }
        done
    }

    fn take(&mut self, step: Step) {
        let (p, q) = step.between;
        for id in [step.a.0, step.b.0].into_iter().filter(|&id| id != NOBODY) {
            let from = self.places.server[id];
            let to = if from == p { q } else { p };
            self.places.server[id] = to;
            self.members[from].retain(|&m| m != id);
            self.members[to].push(id);
            // One of two that change places may be larger than what is free before the other has left.
            self.places.free[from] = self.places.free[from].wrapping_add(self.traffic.cores(id));
            self.places.free[to] = self.places.free[to].wrapping_sub(self.traffic.cores(id));
        }
        self.changes[p] += 1;
        self.changes[q] += 1;
    }

    /// Find the best step between `server` and each of its neighbours that are wanted.
    fn look(&mut self, server: ServerId, wanted: impl Fn(ServerId) -> bool) {
        self.round += 1;
        self.met[server] = self.round;
        let mut others = Vec::new();
        for &id in &self.members[server] {
            for (n, _) in self.traffic.of_instance(id) {
                let other = self.places.server[n];
                if self.met[other] != self.round {
                    self.met[other] = self.round;
                    if wanted(other) {
                        others.push(other);
                    }
                }
            }
        }
        for other in others {
            if let Some(step) = self.best(server.min(other), server.max(other)) {
                self.heap.push(step);
            }
        }
    }

    /// The best step between two servers.
    fn best(&mut self, p: ServerId, q: ServerId) -> Option<Step> {
        let gains = |from: ServerId, to: ServerId, out: &mut Vec<(i64, usize)>| {
            out.clear();
            out.extend(self.members[from].iter().map(|&id| {
                let gain = self.traffic.of_instance(id).map(|(n, bps)| match self.places.server[n] {
                    s if s == to => bps,
                    s if s == from => -bps,
                    _ => 0,
                });
                (gain.sum::<i64>(), id)
            }));
            out.sort_unstable_by_key(|&(gain, id)| (Reverse(gain), id));
        };
        gains(p, q, &mut self.left);
        gains(q, p, &mut self.right);
        // A free core is an instance that nobody talks to.
        let room = |server: ServerId| (self.moves && self.places.free[server] > 0).then_some((0, NOBODY));
        let (room_p, room_q) = (room(p), room(q));
        let cores = |id: usize| if id == NOBODY { 0 } else { self.traffic.cores(id) };
        let (free_p, free_q) = (self.places.free[p], self.places.free[q]);
        // Who has as many cores as the other fits in its place.
        let fits = |a: usize, b: usize| cores(b) <= free_p + cores(a) && cores(a) <= free_q + cores(b);
        let mut best: Option<(i64, Reverse<usize>, Reverse<usize>)> = None;
        let top = self.right.first().copied().into_iter().chain(room_q).map(|e| e.0).max()?;
        for &(gain_a, a) in self.left.iter().chain(&room_p) {
            let least = best.map_or(1, |b| b.0);
            // Gains descend, but for the free core at the end.
            if gain_a + top < least {
                continue;
            }
            for &(gain_b, b) in self.right.iter().chain(&room_q) {
                if gain_a + gain_b < best.map_or(1, |b| b.0) {
                    if b == NOBODY || room_q.is_none() {
                        break;
                    }
                    continue;
                }
                if !fits(a, b) {
                    continue;
                }
                let alone = a == NOBODY || b == NOBODY;
                let gain = gain_a + gain_b - if alone { 0 } else { 2 * self.traffic.pair(a, b) };
                let step = (gain, Reverse(a.min(b)), Reverse(a.max(b)));
                if gain > 0 && best.is_none_or(|best| step > best) {
                    best = Some(step);
                }
            }
        }
        let changes = (self.changes[p], self.changes[q]);
        best.map(|(gain, a, b)| Step { gain, a, b, between: (p, q), changes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_swap_mends_a_bad_packing() {
        let traffic = Traffic::between(4, &[(0, 1, 5), (2, 3, 5), (0, 2, 1)]);
        let mut places = Places { server: vec![0, 1, 0, 1], free: vec![0, 0] };
        assert_eq!(improve(&traffic, &mut places, false), Improved { swaps: 1, moves: 0, saved_bps: 9 });
        assert_eq!((traffic.cross(&places.server), places.free), (1, vec![0, 0]));
    }

    #[test]
    fn moves_need_a_free_core() {
        let traffic = Traffic::between(3, &[(0, 1, 5), (1, 2, 4)]);
        let mut places = Places { server: vec![0, 0, 1], free: vec![0, 1] };
        assert_eq!(improve(&traffic, &mut places, true), Improved::default());
        places.free[0] = 1;
        assert_eq!(improve(&traffic, &mut places, true), Improved { swaps: 0, moves: 1, saved_bps: 4 });
        assert_eq!((places.server, places.free), (vec![0, 0, 0], vec![0, 2]));
    }
}

//! Where placement begins: "bin-packing vertices into partitions (servers) based on a depth-first search on
//! the IGraph" (Lan's dissertation, §3.4.1); and beyond the paper a second beginning that grows each server
//! around its heaviest traffic, and a third that cuts the hashes into slices.

use std::collections::BinaryHeap;

use super::instances::IGraph;
use super::traffic::{NoRoom, Places, Traffic};
use catena_plan_model::problem::ServerId;

/// Pack instances onto servers with so many `cores`, in the order of a depth-first search from the instance
/// with the lowest number; neighbours in ascending order. O(instances + edges).
///
/// # Errors
/// When there are fewer cores than instances.
pub fn depth_first(traffic: &Traffic, cores: &[u32]) -> Result<Places, NoRoom> {
    NoRoom::check(traffic, cores)?;
    let mut filling = Filling::new(traffic, cores);
    let mut seen = vec![false; traffic.len()];
    let mut stack = Vec::new();
    for root in 0..traffic.len() {
        stack.push(root);
        while let Some(id) = stack.pop() {
            if std::mem::replace(&mut seen[id], true) {
                continue;
            }
            filling.put(id)?;
            let above = stack.len();
            stack.extend(traffic.of_instance(id).map(|e| e.0).filter(|&n| !seen[n]));
            stack[above..].reverse();
        }
    }
    Ok(filling.places)
}

/// Fill one server after the other: each with an instance that is left, then always with the one that
/// exchanges most with it. O((instances + edges) log instances).
///
/// # Errors
/// When there are fewer cores than instances.
pub fn grow(traffic: &Traffic, cores: &[u32]) -> Result<Places, NoRoom> {
    NoRoom::check(traffic, cores)?;
    let mut filling = Filling::new(traffic, cores);
    let mut placed = vec![false; traffic.len()];
    let mut pull = vec![0_i64; traffic.len()];
    let mut pulled: Vec<usize> = Vec::new();
    let mut heap: BinaryHeap<(i64, std::cmp::Reverse<usize>)> = BinaryHeap::new();
    let mut next = 0;
    while next < traffic.len() {
        let server = filling.now();
        let best = std::iter::from_fn(|| heap.pop()).find(|&(bps, id)| !placed[id.0] && pull[id.0] == bps);
        let id = match best {
            Some((_, id)) => id.0,
            None if placed[next] => {
                next += 1;
                continue;
            }
            None => next,
        };
        placed[id] = true;
        if filling.put(id)? != server {
            // It was too large for what is left here.
            continue;
        }
        if filling.now() != server {
            heap.clear();
            pulled.drain(..).for_each(|n| pull[n] = 0);
            continue;
        }
        for (n, bps) in traffic.of_instance(id).filter(|e| !placed[e.0]) {
            pull[n] += bps;
            pulled.push(n);
            heap.push((pull[n], std::cmp::Reverse(n)));
        }
    }
    Ok(filling.places)
}

/// Give each server its slice of the hashes: instances in the order of the middle of their ranges, dealt out in
/// proportion to the cores. Where functions split alike, what belongs together is on one server, and all
/// links carry about the same. O(instances log instances).
///
/// # Errors
/// When there are fewer cores than instances.
pub fn by_range(graph: &IGraph, cores: &[u32]) -> Result<Places, NoRoom> {
    let instances = graph.instances.len();
    NoRoom::check(&Traffic::between(instances, &[]), cores)?;
    let mut order: Vec<usize> = (0..instances).collect();
    order.sort_by_key(|&id| (graph.instances[id].range.from + graph.instances[id].range.to, id));
    let all: u64 = cores.iter().map(|&c| u64::from(c)).sum();
    let mut places = Places { server: vec![0; instances], free: cores.to_vec() };
    let (mut server, mut passed) = (0, 0_u64);
    for (rank, id) in (0_u64..).zip(order) {
        // The core number `rank * all / instances` of all, counted from the first server on.
        let core = rank * all / instances as u64;
        while cores.get(server).is_some_and(|&c| passed + u64::from(c) <= core) {
            passed += u64::from(cores[server]);
            server += 1;
        }
        places.server[id] = server;
        places.free[server] -= 1;
    }
    Ok(places)
}

/// Servers that are filled one after the other.
struct Filling<'a> {
    traffic: &'a Traffic,
    no_room: NoRoom,
    places: Places,
    now: ServerId,
}

impl Filling<'_> {
    fn new<'a>(traffic: &'a Traffic, cores: &[u32]) -> Filling<'a> {
        let places = Places { server: vec![0; traffic.len()], free: cores.to_vec() };
        Filling { traffic, no_room: NoRoom::of(traffic, cores), places, now: 0 }
    }

    /// The server that gets the next instance of one core.
    fn now(&mut self) -> ServerId {
        while self.places.free.get(self.now) == Some(&0) {
            self.now += 1;
        }
        self.now
    }

    /// Put an instance on the first server that has room for it, and say which.
    fn put(&mut self, id: usize) -> Result<ServerId, NoRoom> {
        let (now, size) = (self.now(), self.traffic.cores(id));
        let free = self.places.free.iter_mut().enumerate().skip(now).find(|(_, free)| **free >= size);
        let Some((server, free)) = free else {
            return Err(NoRoom { largest: size, ..self.no_room });
        };
        *free -= size;
        self.places.server[id] = server;
        Ok(server)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two lines, 0-2-4 and 1-3-5, and a weak edge between them.
    fn lines() -> Traffic {
        Traffic::between(6, &[(0, 2, 5), (2, 4, 5), (1, 3, 5), (3, 5, 5), (0, 5, 1)])
    }

    #[test]
    fn a_line_stays_together() {
        let places = depth_first(&lines(), &[3, 3]).unwrap();
        assert_eq!(places.server, [0, 1, 0, 1, 0, 1]);
        assert_eq!(places.free, [0, 0]);
        assert_eq!(grow(&lines(), &[3, 3]).unwrap(), places);
        // Growing follows the traffic, depth-first the numbers.
        let star = Traffic::between(4, &[(0, 1, 1), (0, 2, 9), (0, 3, 5)]);
        assert_eq!(depth_first(&star, &[2, 2]).unwrap().server, [0, 0, 1, 1]);
        assert_eq!(grow(&star, &[2, 2]).unwrap().server, [0, 1, 0, 1]);
    }

    #[test]
    fn servers_without_cores_get_nothing_and_too_few_cores_are_said() {
        assert_eq!(depth_first(&lines(), &[0, 2, 0, 4, 0]).unwrap().free, [0; 5]);
        let error = depth_first(&lines(), &[2, 3]).unwrap_err();
        assert_eq!(error.to_string(), "6 instances need a core each, and there are 5");
        assert_eq!(grow(&lines(), &[2, 3]).unwrap_err(), error);
    }
}

//! One more instance, none moved: "we consider all possible partitions where the new instance may be placed,
//! and choose the one that will incur the least cross-partition traffic by simply enumerating all the
//! neighboring instances of the new NF instance" (Lan's dissertation, §3.4.1).

use super::instances::{IEnd, IGraph, InstanceId};
use super::traffic::{NoRoom, Places, whole};
use catena_plan_model::problem::ServerId;

/// Places to which instances are added.
#[derive(Clone, Debug)]
pub struct Growing {
    places: Places,
    /// Servers that had a free core when last looked at; the one to look at first comes last.
    open: Vec<ServerId>,
    /// Scratch: bits per second exchanged with each server, zero between calls.
    pull: Vec<i64>,
}

impl Growing {
    /// Begin with what is placed already.
    #[must_use]
    pub fn new(places: Places) -> Growing {
        let open = (0..places.free.len()).rev().filter(|&s| places.free[s] > 0).collect();
        let pull = vec![0; places.free.len()];
        Growing { places, open, pull }
    }

    /// Where everything is.
    #[must_use]
    pub fn places(&self) -> &Places {
        &self.places
    }

    /// Place the instance that comes next in number, which exchanges so many bits per second with the
    /// instances `neighbours`: on the server with a free core with which it exchanges most; of equal ones on
    /// the first. O(neighbours).
    ///
    /// # Errors
    /// When no core is free.
    pub fn add(&mut self, neighbours: impl IntoIterator<Item = (InstanceId, i64)>) -> Result<ServerId, NoRoom> {
        let mut met = Vec::new();
        for (neighbour, bps) in neighbours {
            let Some(&server) = self.places.server.get(neighbour) else { continue };
            if self.places.free[server] > 0 {
                self.pull[server] += bps;
                met.push(server);
            }
        }
        let best = met.iter().map(|&s| (self.pull[s], std::cmp::Reverse(s))).max().map(|(_, s)| s.0);
        met.into_iter().for_each(|s| self.pull[s] = 0);
        while self.open.last().is_some_and(|&s| self.places.free[s] == 0) {
            self.open.pop();
        }
        let placed = self.places.server.len() as u64;
        let full = NoRoom { needed: placed + 1, largest: 1, cores: placed };
        let server = best.or(self.open.last().copied()).ok_or(full)?;
        self.places.free[server] -= 1;
        self.places.server.push(server);
        Ok(server)
    }

    /// Place the last instance of `graph`, the others being placed.
    ///
    /// # Errors
    /// When no core is free.
    pub fn add_last(&mut self, graph: &IGraph) -> Result<ServerId, NoRoom> {
        let id = self.places.server.len();
        let neighbour = |&edge: &usize| {
            let edge = graph.edges.get(edge)?;
            let other = if edge.from == IEnd::Instance(id) { edge.to } else { edge.from };
            if let IEnd::Instance(other) = other { Some((other, whole(edge.bps))) } else { None }
        };
        self.add(graph.at.get(id).into_iter().flatten().filter_map(neighbour))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goes_where_most_traffic_is_and_then_anywhere() {
        let mut growing = Growing::new(Places { server: vec![0, 1, 2], free: vec![0, 1, 1] });
        // Most is exchanged with a full server; then 1 and 2 together outweigh nothing else.
        assert_eq!(growing.add([(0, 100), (1, 5), (2, 6)]), Ok(2));
        assert_eq!(growing.add([(0, 100)]), Ok(1));
        assert_eq!(growing.add([]), Err(NoRoom { needed: 6, largest: 1, cores: 5 }));
        assert_eq!(growing.places().server, [0, 1, 2, 2, 1]);
    }
}

//! Maglev hashing (Eisenbud et al., "Maglev: A Fast and Reliable Software Network Load Balancer", NSDI 2016, §3.4).
//!
//! Every server has its own order of preference for the places of a table, and the servers take turns in picking
//! their next free one. The table is filled evenly, and when a server goes, most places keep theirs.

use std::net::SocketAddr;

use catena_packet::wire::Seed;

/// "we recommend choosing M to be larger than 100 × N to ensure at most a 1% difference in hash space assigned to
/// backends" (§3.4); 65,537 is the size that the paper measures (§5.3).
const SMALLEST: usize = 65_537;
const PLACES_PER_SERVER: usize = 100;

/// A server as the table sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Server {
    /// What its order of preference depends on: the same for the same endpoint, wherever it stands in the list.
    pub(super) endpoint: SocketAddr,
    /// How often it takes its turn, compared with others; 0 for never.
    pub(super) weight: u32,
}

/// A table of servers, by hash.
#[derive(Clone, Debug)]
pub(super) struct Table {
    places: Box<[u16]>,
    seed: Seed,
    empty: bool,
}

impl Table {
    /// Make a table for up to `servers` servers, with none in it.
    pub(super) fn new(seed: Seed, servers: usize) -> Self {
        let size = prime_from(SMALLEST.max(servers * PLACES_PER_SERVER + 1));
        Table { places: vec![0; size].into(), seed, empty: true }
    }

    /// Fill the table anew (the paper's `POPULATE`, with turns by weight). Some ms: for commands, not for packets.
    pub(super) fn populate(&mut self, servers: &[Server]) {
        let size = self.places.len() as u64;
        let heaviest = servers.iter().map(|s| s.weight).max().unwrap_or(0);
        self.empty = heaviest == 0;
        if self.empty {
            return;
        }
        // offset ← h1(name) mod M, skip ← h2(name) mod (M - 1) + 1: as M is prime, the order visits every place.
        let order = |server: &Server| {
            let words = name(&server.endpoint);
            (self.seed.hash5(words) % size, self.seed.hash5([!words[0], words[1], 1, 2, words[4]]) % (size - 1) + 1)
        };
        let orders: Vec<(u64, u64)> = servers.iter().map(order).collect();
        let (mut next, mut credit) = (vec![0u64; servers.len()], vec![0u32; servers.len()]);
        const FREE: u16 = u16::MAX;
        self.places.fill(FREE);
        let mut filled = 0;
        loop {
            for (i, server) in servers.iter().enumerate() {
                credit[i] += server.weight;
                if credit[i] < heaviest {
                    continue;
                }
                credit[i] -= heaviest;
                let (offset, skip) = orders[i];
                let place = loop {
                    let place = ((offset + next[i] * skip) % size) as usize;
                    next[i] += 1;
                    if self.places[place] == FREE {
                        break place;
                    }
                };
                self.places[place] = i as u16;
                filled += 1;
                if filled == size {
                    return;
                }
            }
        }
    }

    /// Return the server for a hash; `None` when none has weight.
    #[inline]
    pub(super) fn pick(&self, hash: u64) -> Option<usize> {
        if self.empty {
            return None;
        }
        Some(usize::from(self.places[(hash % self.places.len() as u64) as usize]))
    }
}

fn name(endpoint: &SocketAddr) -> [u64; 5] {
    let bits = match endpoint {
        SocketAddr::V4(v4) => u128::from(v4.ip().to_bits()),
        SocketAddr::V6(v6) => v6.ip().to_bits(),
    };
    [(bits >> 64) as u64, bits as u64, 0, 0, u64::from(endpoint.port()) | u64::from(endpoint.is_ipv6()) << 32]
}

fn prime_from(number: usize) -> usize {
    let is_prime = |n: usize| (2..).take_while(|d| d * d <= n).all(|d| !n.is_multiple_of(d));
    (number..).find(|&n| is_prime(n)).unwrap_or(SMALLEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servers(weights: &[u32]) -> Vec<Server> {
        let endpoint = |i: usize| SocketAddr::from(([10, 0, 0, i as u8], 80));
        weights.iter().enumerate().map(|(i, &weight)| Server { endpoint: endpoint(i), weight }).collect()
    }

    fn table(weights: &[u32]) -> Table {
        let mut table = Table::new(Seed::from_number(0), weights.len());
        table.populate(&servers(weights));
        table
    }

    fn shares(table: &Table, count: usize) -> Vec<f64> {
        let mut shares = vec![0.0; count];
        table.places.iter().for_each(|&s| shares[usize::from(s)] += 1.0 / table.places.len() as f64);
        shares
    }

    #[test]
    fn places_are_shared_evenly_or_by_weight() {
        for share in shares(&table(&[1; 10]), 10) {
            assert!((share - 0.1).abs() < 0.001, "{share}");
        }
        let weighted = shares(&table(&[1, 2, 0, 5]), 4);
        for (share, expected) in weighted.iter().zip([0.125, 0.25, 0.0, 0.625]) {
            assert!((share - expected).abs() < 0.001, "{weighted:?}");
        }
    }

    /// §5.3: with 1,000 backends and M = 65,537 a failure of one disturbs about 2% of the entries at most.
    #[test]
    fn a_server_that_goes_disturbs_few_others() {
        let before = table(&[1; 20]);
        for gone in [0, 7, 19] {
            let mut weights = [1; 20];
            weights[gone] = 0;
            let after = table(&weights);
            let pairs = || before.places.iter().zip(&after.places);
            let disturbed = pairs().filter(|(b, a)| usize::from(**b) != gone && a != b).count();
            let moved = pairs().filter(|(b, a)| a != b).count();
            let size = before.places.len() as f64;
            assert!((disturbed as f64) < 0.03 * size, "{disturbed} of {size} disturbed");
            assert!((moved as f64) < (1.0 / 20.0 + 0.03) * size, "{moved} of {size} moved");
            assert!(after.places.iter().all(|&s| usize::from(s) != gone));
        }
    }

    #[test]
    fn the_table_depends_on_endpoints_not_on_their_order() {
        let mut list = servers(&[1, 1, 1]);
        let mut a = Table::new(Seed::from_number(0), 3);
        a.populate(&list);
        list.reverse();
        let mut b = Table::new(Seed::from_number(0), 3);
        b.populate(&list);
        let same = a.places.iter().zip(&b.places).filter(|(x, y)| **x == 2 - **y).count();
        assert!(same as f64 > 0.97 * a.places.len() as f64, "{same}");
    }

    #[test]
    fn an_empty_table_gives_nothing() {
        assert_eq!(table(&[0, 0]).pick(5), None);
        assert_eq!(Table::new(Seed::from_number(0), 0).pick(5), None);
    }
}

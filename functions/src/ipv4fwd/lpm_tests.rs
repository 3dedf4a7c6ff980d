//! The tries against a list of routes that is searched from the longest prefix down.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng};

use super::lpm::{FREE, NONE, child};
use super::{Address, InsertError, Lpm, Lpm4, NextHop, Prefix};

/// Longest-prefix match as it is defined: every length is tried, the longest first.
struct Naive<A> {
    routes: BTreeMap<(u8, A), NextHop>,
}

impl<A: Address> Naive<A> {
    fn lookup(&self, addr: A) -> NextHop {
        let found = (0..=A::BITS).rev().find_map(|len| self.routes.get(&(len, addr.truncate(len))));
        found.copied().unwrap_or(NextHop::NONE)
    }
}

/// Random numbers of either width.
trait Random: Address {
    fn random(rng: &mut TestRng) -> Self;
    fn flip(self, bit: u8) -> Self;
}

impl Random for u32 {
    fn random(rng: &mut TestRng) -> u32 {
        rng.next_u32()
    }
    fn flip(self, bit: u8) -> u32 {
        self ^ 1 << (31 - bit)
    }
}

impl Random for u128 {
    fn random(rng: &mut TestRng) -> u128 {
        u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64())
    }
    fn flip(self, bit: u8) -> u128 {
        self ^ 1 << (127 - bit)
    }
}

fn below(rng: &mut TestRng, n: usize) -> usize {
    (rng.next_u64() % n as u64) as usize
}

/// A prefix near earlier ones: nested, a sibling, or anywhere; short lengths are rare.
fn prefix<A: Random>(rng: &mut TestRng, known: &[Prefix<A>]) -> Prefix<A> {
    let any_len = below(rng, usize::from(A::BITS) + 1) as u8;
    let mut len = any_len.max(below(rng, usize::from(A::BITS) + 1) as u8);
    let mut addr = A::random(rng);
    if !known.is_empty() && below(rng, 4) > 0 {
        let near = known[below(rng, known.len())];
        match below(rng, 3) {
            0 => addr = near.addr(),
            1 => (addr, len) = (near.addr().flip(below(rng, usize::from(A::BITS)) as u8), near.len_bits()),
            _ => {
                // Agrees with `near` up to its length, or a little less, then random.
                let keep = near.len_bits().saturating_sub(below(rng, 3) as u8);
                addr = (0..keep).fold(addr, |a, bit| if a.common_bits(near.addr()) == bit { a.flip(bit) } else { a });
                len = len.max(keep);
            }
        }
    }
    Prefix::new(addr, len).unwrap()
}

/// An address at the edge of, inside, or outside of a known prefix.
fn address<A: Random>(rng: &mut TestRng, known: &[Prefix<A>]) -> A {
    let addr = A::random(rng);
    if known.is_empty() || below(rng, 8) == 0 {
        return addr;
    }
    let near = known[below(rng, known.len())];
    match below(rng, 4) {
        0 => near.addr(),
        1 => near.addr().flip(below(rng, usize::from(A::BITS)) as u8),
        _ => (0..near.len_bits()).fold(addr, |a, bit| if a.common_bits(near.addr()) == bit { a.flip(bit) } else { a }),
    }
}

/// Every node decides something, and there are at most twice as many as routes.
fn assert_minimal<A: Address>(lpm: &Lpm<A>) {
    let mut in_use = 0;
    for node in lpm.nodes.iter().filter(|node| node.shift != FREE) {
        let words = lpm.pool.unpack(&node.block);
        let children: Vec<usize> = words.iter().filter(|&&word| word < 0).map(|&word| child(word)).collect();
        let covered = children.iter().any(|&child| lpm.nodes[child].miss != NONE);
        let routes = words.iter().any(|&word| word >= 0 && word != NONE);
        assert!(routes || covered || children.len() > 1);
        in_use += 1;
    }
    assert!(in_use <= 2 * lpm.len());
}

/// Random inserts, changes and removals with look-ups between; then everything is taken out again.
/// Returns how many look-ups there were and how many nodes at most.
fn agrees<A: Random>(seed: u8, updates: usize, lookups_each: usize, keep: usize) -> (usize, usize) {
    let rng = &mut TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]);
    let mut naive = Naive { routes: BTreeMap::new() };
    let mut lpm = Lpm::new(1 << 20);
    let mut known: Vec<Prefix<A>> = Vec::new();
    let (mut addrs, mut hops) = (Vec::new(), Vec::new());
    let mut most_nodes = 0;
    for _ in 0..updates {
        if known.len() > below(rng, 2 * keep) {
            let p = known.swap_remove(below(rng, known.len()));
            assert_eq!(lpm.remove(p), naive.routes.remove(&(p.len_bits(), p.addr())));
            assert_eq!(lpm.remove(p), None);
        } else {
            let p = prefix(rng, &known);
            let hop = NextHop::new((rng.next_u32() % 5 * 13_106) as u16);
            let old = naive.routes.insert((p.len_bits(), p.addr()), hop);
            assert_eq!(lpm.insert(p, hop), Ok(old));
            if old.is_none() {
                known.push(p);
            }
        }
        assert_eq!(lpm.len(), known.len());
        addrs.clear();
        addrs.extend((0..lookups_each).map(|_| address(rng, &known)));
        hops.clear();
        hops.resize(lookups_each, NextHop::new(7));
        lpm.lookup_batch(&addrs, &mut hops);
        most_nodes = most_nodes.max(lpm.nodes.len());
        for (&addr, &hop) in addrs.iter().zip(&hops) {
            assert_eq!((addr, hop), (addr, naive.lookup(addr)));
            assert_eq!(lpm.lookup(addr), hop);
        }
    }
    assert!(lpm.routes().map(|(p, hop)| ((p.len_bits(), p.addr()), hop)).eq(naive.routes));
    assert_minimal(&lpm);
    for p in known {
        assert!(lpm.remove(p).is_some());
    }
    assert_minimal(&lpm);
    assert!(lpm.is_empty());
    (updates * lookups_each, most_nodes)
}

#[test]
fn ipv4_agrees_with_the_definition() {
    let runs =
        [agrees::<u32>(1, 40_000, 12, 20), agrees::<u32>(2, 20_000, 20, 2_000), agrees::<u32>(3, 40_000, 10, 40_000)];
    assert!(runs.iter().map(|(lookups, _)| lookups).sum::<usize>() >= 1_000_000, "{runs:?}");
    assert!(runs[2].1 * 64 > super::lookup::NEAR_BYTES, "large enough to fetch ahead: {runs:?}");
}

#[test]
fn ipv6_agrees_with_the_definition() {
    let runs = [
        agrees::<u128>(4, 30_000, 20, 20),
        agrees::<u128>(5, 20_000, 10, 2_000),
        agrees::<u128>(6, 40_000, 10, 40_000),
    ];
    assert!(runs.iter().map(|(lookups, _)| lookups).sum::<usize>() >= 1_000_000, "{runs:?}");
    assert!(runs[2].1 * 64 > super::lookup::NEAR_BYTES, "large enough to fetch ahead: {runs:?}");
}

#[test]
fn a_batch_may_have_any_length() {
    let mut lpm = Lpm4::new(10);
    lpm.insert(Prefix::new(0x0a00_0000, 8).unwrap(), NextHop::new(1)).unwrap();
    lpm.insert(Prefix::new(0x0a01_0200, 24).unwrap(), NextHop::new(2)).unwrap();
    for n in [0, 1, 31, 32, 33, 100] {
        let mut hops = vec![NextHop::new(9); n];
        lpm.lookup_batch(&vec![0x0a01_0203; n], &mut hops);
        assert_eq!(hops, vec![NextHop::new(2); n]);
    }
}

#[test]
fn a_full_table_refuses_and_still_changes() {
    let mut lpm = Lpm4::new(1);
    let (p, q) = (Prefix::new(0, 0).unwrap(), Prefix::new(1, 32).unwrap());
    assert_eq!(lpm.insert(p, NextHop::NONE), Err(InsertError::NoNextHop));
    assert_eq!(lpm.insert(p, NextHop::new(1)), Ok(None));
    assert_eq!(lpm.insert(q, NextHop::new(1)), Err(InsertError::Full { max_routes: 1 }));
    assert_eq!(lpm.insert(p, NextHop::new(65_534)), Ok(Some(NextHop::new(1))));
    assert_eq!(lpm.lookup(1), NextHop::new(65_534));
    assert_eq!(lpm.remove(q), None);
}

#[test]
fn memory_stays_within_its_bound_under_churn() {
    let rng = &mut TestRng::from_seed(RngAlgorithm::ChaCha, &[9; 32]);
    let mut lpm = Lpm::<u128>::new(1 << 20);
    let keep = 20_000;
    let mut ring: Vec<Prefix<u128>> = Vec::new();
    for i in 0..200_000 {
        let p = prefix(rng, &ring);
        lpm.insert(p, NextHop::new(i as u16 / 2)).unwrap();
        if ring.len() < keep {
            ring.push(p);
        } else {
            let gone = std::mem::replace(&mut ring[i % keep], p);
            lpm.remove(gone);
        }
    }
    let mut fresh = Lpm::<u128>::new(1 << 20);
    for (p, hop) in lpm.routes() {
        fresh.insert(p, hop).unwrap();
    }
    assert!(lpm.lookup_bytes() < fresh.lookup_bytes() * 3 / 2, "{} and {}", lpm.lookup_bytes(), fresh.lookup_bytes());
    // What the head of `lpm` promises, and the least that allocations grow by.
    let bound = (1 << 18) + 215 * (keep + 1) + 1024 * 64;
    assert!(lpm.len() <= keep && lpm.lookup_bytes() < bound, "{} routes, {} bytes", lpm.len(), lpm.lookup_bytes());
}

proptest! {
    /// Whatever the order in which routes come, the table is the same.
    #[test]
    fn order_does_not_matter(routes in prop::collection::vec((any::<u32>(), 0u8..33, 0u16..9), 0..60), mask in any::<u32>()) {
        let mut one = Lpm4::new(1000);
        let mut other = Lpm4::new(1000);
        let mut seen = BTreeMap::new();
        for &(addr, len, hop) in &routes {
            seen.entry(Prefix::new(addr & mask, len).unwrap()).or_insert(NextHop::new(hop));
        }
        for (&p, &hop) in &seen {
            one.insert(p, hop).unwrap();
        }
        for (&p, &hop) in seen.iter().rev() {
            other.insert(p, hop).unwrap();
        }
        for &(addr, ..) in &routes {
            for addr in [addr, addr & mask, !addr & mask] {
                prop_assert_eq!(one.lookup(addr), other.lookup(addr));
            }
        }
    }
}

//! What a look-up and an update cost, in cycles of the time-stamp counter, and what a table takes.
//!
//! `taskset -c 1 cargo bench -p catena-functions --bench lpm`
//!
//! Routes are spread as in the Internet's tables (mostly /24 and /22 in IPv4, /48, /44 and /32 in IPv6).
//! `warm`: 10,000 addresses within routes, over and over; `within`: 4 million addresses within random
//! routes; `random`: 4 million addresses anywhere in unicast space.

use std::arch::x86_64::_rdtsc;
use std::collections::BTreeSet;
use std::hint::black_box;
use std::time::Instant;

use catena_functions::ipv4fwd::{Address, Lpm, NextHop, Prefix, routes};
use catena_packet::random::SplitMix64;

/// What the benchmark needs to know of a family.
trait Family: Address {
    const NAME: &'static str;
    /// Prefix length and how many of 1,000 routes have it.
    const LENGTHS: &'static [(u8, u32)];
    fn anywhere(r: &mut SplitMix64) -> Self;
    /// An address of which `len` bits are in use: allocations are dense.
    fn allocated(r: &mut SplitMix64) -> Self;
    fn within(r: &mut SplitMix64, p: Prefix<Self>) -> Self;
}

impl Family for u32 {
    const NAME: &'static str = "IPv4";
    const LENGTHS: &'static [(u8, u32)] = &[
        (24, 590),
        (22, 120),
        (23, 100),
        (21, 50),
        (20, 45),
        (19, 30),
        (18, 15),
        (16, 15),
        (17, 10),
        (14, 5),
        (12, 3),
        (8, 1),
        (28, 6),
        (30, 5),
        (32, 5),
    ];
    fn anywhere(r: &mut SplitMix64) -> u32 {
        (1 + r.below(223)) << 24 | r.below(1 << 24)
    }
    fn allocated(r: &mut SplitMix64) -> u32 {
        Self::anywhere(r)
    }
    fn within(r: &mut SplitMix64, p: Prefix<u32>) -> u32 {
        p.addr() | u32::MAX.checked_shr(p.len_bits().into()).unwrap_or(0) & r.bits() as u32
    }
}

impl Family for u128 {
    const NAME: &'static str = "IPv6";
    const LENGTHS: &'static [(u8, u32)] = &[
        (48, 460),
        (32, 120),
        (44, 120),
        (40, 110),
        (36, 60),
        (29, 40),
        (33, 30),
        (46, 30),
        (56, 10),
        (64, 15),
        (128, 5),
    ];
    fn anywhere(r: &mut SplitMix64) -> u128 {
        1 << 125 | (u128::from(r.bits()) << 64 | u128::from(r.bits())) >> 3
    }
    fn allocated(r: &mut SplitMix64) -> u128 {
        // A few registries' /12 to /16, in them some 50,000 /32, in those what providers number densely.
        const BLOCKS: [u128; 6] = [0x2001, 0x2400, 0x2600, 0x2800, 0x2a00, 0x2c0f];
        let block = (BLOCKS[r.below(6) as usize] + u128::from(r.below(16))) << 112;
        let site = u128::from(r.below(1 << 9)) << 96 | u128::from(r.below(1 << 16)) << 80;
        block | site | u128::from(r.bits()) << 16 | u128::from(r.bits() as u16)
    }
    fn within(r: &mut SplitMix64, p: Prefix<u128>) -> u128 {
        let tail = u128::MAX.checked_shr(p.len_bits().into()).unwrap_or(0);
        p.addr() | tail & (u128::from(r.bits()) << 64 | u128::from(r.bits()))
    }
}

fn internet<A: Family>(r: &mut SplitMix64, n: usize) -> Vec<(Prefix<A>, NextHop)> {
    let all: u32 = A::LENGTHS.iter().map(|&(_, share)| share).sum();
    let mut routes = BTreeSet::new();
    while routes.len() < n {
        let mut at = r.below(all);
        let drawn = A::LENGTHS.iter().find(|&&(_, share)| {
            let here = at < share;
            at = at.wrapping_sub(share);
            here
        });
        let (len, _) = drawn.copied().unwrap_or(A::LENGTHS[0]);
        routes.extend(Prefix::new(A::allocated(r), len));
    }
    routes.into_iter().map(|p| (p, NextHop::new(r.below(256) as u16))).collect()
}

fn cycles() -> u64 {
    // SAFETY: reads a counter that every x86-64 processor has.
    unsafe { _rdtsc() }
}

/// Addresses that are timed together: so few that the median leaves out those during which another
/// process had the core.
const STRETCH: usize = 10_016;

fn median(mut runs: Vec<f64>) -> f64 {
    runs.sort_by(f64::total_cmp);
    runs[runs.len() / 2]
}

/// Cycles per look-up, the median over stretches; everything was looked up once before.
fn measure<A: Family>(lpm: &Lpm<A>, addrs: &[A], rounds: usize) -> f64 {
    let mut hops = [NextHop::NONE; 32];
    let mut runs = Vec::new();
    for round in 0..=rounds {
        for stretch in addrs.chunks_exact(STRETCH) {
            let start = cycles();
            for batch in stretch.chunks_exact(32) {
                lpm.lookup_batch(black_box(batch), &mut hops);
                black_box(&hops);
            }
            if round > 0 {
                runs.push((cycles() - start) as f64 / STRETCH as f64);
            }
        }
    }
    median(runs)
}

/// Cycles of a single look-up that waits for the one before it, the median of 100 runs.
fn latency<A: Family>(lpm: &Lpm<A>, addrs: &[A]) -> f64 {
    let runs = (0..100)
        .map(|_| {
            let start = cycles();
            let mut last = 0;
            for i in 0..addrs.len() {
                let hop = lpm.lookup(black_box(addrs[i ^ last]));
                last = usize::from(black_box(hop) == NextHop::new(65_000));
            }
            (cycles() - start) as f64 / addrs.len() as f64
        })
        .collect();
    median(runs)
}

fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or(0) * 4096
}

const MB: f64 = 1e6;

fn loaded<A: Family>(routes: &[(Prefix<A>, NextHop)]) -> (Lpm<A>, String) {
    let before = resident();
    let start = Instant::now();
    let mut lpm = Lpm::new(routes.len());
    for &(p, hop) in routes {
        lpm.insert(p, hop).expect("the table is large enough");
    }
    let took = format!(
        "load {:>5.0} ms  look-up data {:>5.1} MB  resident {:>5.1} MB",
        start.elapsed().as_secs_f64() * 1e3,
        lpm.lookup_bytes() as f64 / MB,
        resident().saturating_sub(before) as f64 / MB,
    );
    (lpm, took)
}

fn family<A: Family>(r: &mut SplitMix64) {
    for n in [1_000, 100_000, 1_000_000] {
        let routes = internet::<A>(r, n);
        let (mut lpm, took) = loaded(&routes);
        let some = |r: &mut SplitMix64, n| -> Vec<A> {
            (0..n)
                .map(|_| {
                    let (p, _) = routes[r.below(routes.len() as u32) as usize];
                    A::within(r, p)
                })
                .collect()
        };
        let warm = some(r, STRETCH);
        let within = some(r, 1 << 22);
        let random: Vec<A> = (0..1 << 22).map(|_| A::anywhere(r)).collect();
        let (warm, one) = (measure(&lpm, &warm, 300), latency(&lpm, &warm));
        let (within, random) = (measure(&lpm, &within, 2), measure(&lpm, &random, 2));
        let start = cycles();
        let updates = 20_000;
        for _ in 0..updates {
            let (p, hop) = routes[r.below(n as u32) as usize];
            lpm.remove(p);
            lpm.insert(p, hop).expect("there is room again");
        }
        let update = (cycles() - start) as f64 / f64::from(2 * updates);
        println!(
            "{} {n:>9} routes  {took}  cycles: warm {warm:>4.1} (single {one:>4.0})  within {within:>5.1}  \
             random {random:>5.1}  update {update:>6.0}",
            A::NAME,
        );
        if n == 1_000_000 {
            let text: String = routes.iter().map(|(p, hop)| format!("{p} {}\n", hop.id().unwrap_or(0))).collect();
            let start = Instant::now();
            let read = routes::parse(&text).expect("what was written is read");
            assert_eq!(read.ipv4.len() + read.ipv6.len(), n);
            println!("{} {n:>9} routes  read from text in {:.0} ms", A::NAME, start.elapsed().as_secs_f64() * 1e3);
        }
    }
    // What takes the most memory: hosts that share as few bits as can be.
    let hosts: BTreeSet<_> = (0..1_000_000).filter_map(|_| Prefix::new(A::anywhere(r), A::BITS).ok()).collect();
    let hosts: Vec<_> = hosts.into_iter().map(|p| (p, NextHop::new(r.below(256) as u16))).collect();
    let (lpm, took) = loaded(&hosts);
    let there: Vec<A> = (0..1 << 20).map(|_| hosts[r.below(hosts.len() as u32) as usize].0.addr()).collect();
    println!("{} 1,000,000 hosts   {took}  cycles: within {:>5.1}", A::NAME, measure(&lpm, &there, 2));
}

fn main() {
    let mut r = SplitMix64::new(1);
    family::<u32>(&mut r);
    family::<u128>(&mut r);
}

//! Made-up rule lists and packets for tests and benchmarks.
//!
//! The lists have the traits that Taylor and Turner found in real ones (*ClassBench: A Packet
//! Classification Benchmark*, INFOCOM 2005, §III–§V): addresses nest and cluster, ports are any,
//! exact, the ephemeral range or some range, wide rules lie under specific ones. Three styles follow
//! its families of seeds. Everything is drawn from a seed and the same on every machine.

use std::collections::HashSet;

use catena_packet::random::SplitMix64;

use super::key::{KeyV4, KeyV6};
use super::rule::{Action, Ports, Prefix, Protocols, Rule};

/// Which kind of list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Access lists of routers: specific destinations, source port rarely given.
    Acl,
    /// Firewalls: often any source or any destination, and port ranges.
    Fw,
    /// IP chains: between the two.
    Ipc,
}

impl Style {
    /// All styles.
    pub const ALL: [Self; 3] = [Self::Acl, Self::Fw, Self::Ipc];

    /// Percentages of source and destination prefix lengths 0, 1–15, 16–23, 24, 25–31, 32.
    fn lengths(self) -> [[u32; 6]; 2] {
        match self {
            Self::Acl => [[10, 3, 20, 25, 12, 30], [2, 1, 12, 25, 15, 45]],
            Self::Fw => [[30, 4, 16, 20, 8, 22], [25, 2, 13, 20, 10, 30]],
            Self::Ipc => [[8, 4, 28, 20, 10, 30], [8, 4, 28, 20, 10, 30]],
        }
    }

    /// Percentages of source and destination ports any, exact, 1024–65535, other range.
    fn ports(self) -> [[u32; 4]; 2] {
        match self {
            Self::Acl => [[97, 1, 1, 1], [35, 40, 8, 17]],
            Self::Fw => [[72, 6, 18, 4], [25, 48, 10, 17]],
            Self::Ipc => [[80, 10, 6, 4], [45, 35, 8, 12]],
        }
    }
}

/// An index into `weights`, drawn by weight.
fn choose<const N: usize>(random: &mut SplitMix64, weights: [u32; N]) -> usize {
    let mut rest = random.below(weights.iter().sum());
    weights
        .iter()
        .position(|&w| {
            rest < w || {
                rest -= w;
                false
            }
        })
        .unwrap_or(0)
}

/// A list of `count` different IPv4 rules; the last denies everything.
pub fn rules_v4(style: Style, count: usize, seed: u64) -> Vec<Rule> {
    let mut random = SplitMix64::new(seed ^ style as u64);
    let sites = 8 + count as u32 / 64;
    let salt = random.bits();
    let mut known = HashSet::new();
    let mut rules: Vec<(u32, Rule)> = Vec::with_capacity(count);
    while rules.len() + 1 < count {
        let rule = draw(style, sites, salt, &mut random);
        if known.insert(Rule { action: Action::Permit, ..rule }) {
            // Specific rules tend to stand first.
            let width = |p: Option<Prefix>| p.map_or(32, |p| 32 - u32::from(p.length()));
            rules.push((width(rule.src) + width(rule.dst) + random.below(24), rule));
        }
    }
    rules.sort_by_key(|r| r.0);
    let mut rules: Vec<Rule> = rules.into_iter().map(|r| r.1).collect();
    rules.push(Rule::any(Action::Deny));
    rules
}

/// The list of [`rules_v4`] with every IPv4 network turned into one under 2001:db8::/32.
pub fn rules_v6(style: Style, count: usize, seed: u64) -> Vec<Rule> {
    let mut rules = rules_v4(style, count, seed);
    for rule in &mut rules {
        rule.src = rule.src.map(lengthen);
        rule.dst = rule.dst.map(lengthen);
    }
    rules
}

fn lengthen(prefix: Prefix) -> Prefix {
    match prefix {
        Prefix::V4 { bits, length } => {
            let host = if length == 32 { SplitMix64::new(bits.into()).bits() } else { 0 };
            let address = 0x2001_0db8 << 96 | u128::from(bits) << 64 | u128::from(host);
            Prefix::v6(address, if length == 32 { 128 } else { 32 + length })
        }
        v6 => v6,
    }
}

fn draw(style: Style, sites: u32, salt: u64, random: &mut SplitMix64) -> Rule {
    let [src, dst] = style.lengths().map(|lengths| {
        let length = match choose(random, lengths) {
            0 => return None,
            1 => random.within(8, 15),
            2 => random.within(16, 23),
            3 => 24,
            4 => random.within(25, 31),
            _ => 32,
        };
        // Sites are /16 networks, some more used than others; hosts cluster in their low subnets.
        let site = random.below(sites).min(random.below(sites));
        let network = SplitMix64::new(salt ^ u64::from(site)).bits() as u32 & 0xffff_0000;
        let subnet = random.below(256).min(random.below(256)) << 8;
        Some(Prefix::v4(network | subnet | random.below(256), length as u8))
    });
    let protocol = [6, 17, 1, 0][choose(random, [65, 25, 4, 6])];
    let [sport, dport] = style.ports().map(|ports| match choose(random, ports) {
        _ if protocol < 2 => None,
        0 => None,
        1 => {
            const KNOWN: [u16; 12] = [80, 443, 53, 22, 25, 123, 161, 389, 445, 3306, 5060, 8080];
            let other = random.below(1 << 14) as u16;
            let port = if random.below(3) > 0 { KNOWN[random.below(12) as usize] } else { other };
            Some(Ports { first: port, last: port })
        }
        2 => Some(Ports { first: 1024, last: u16::MAX }),
        _ => {
            let first = random.below(20_000) as u16;
            Some(Ports { first, last: first + 1 + random.below(4000) as u16 })
        }
    });
    let protocols = if protocol == 0 { Protocols::ALL } else { Protocols::one(protocol) };
    let action = if random.below(3) == 0 { Action::Deny } else { Action::Permit };
    Rule { action, src, dst, sport, dport, protocols, line: 0 }
}

/// `count` IPv4 rules that overlap in every dimension: short prefixes and random ranges of ports.
/// No real list is like this; it is the worst for any search tree.
pub fn overlapping_v4(count: usize, seed: u64) -> Vec<Rule> {
    let mut random = SplitMix64::new(seed);
    (0..count)
        .map(|_| {
            let mut rule = Rule::any(Action::Permit);
            let mut short = || Some(Prefix::v4(random.bits() as u32, random.below(7) as u8));
            (rule.src, rule.dst) = (short(), short());
            let mut range = || {
                let (a, b) = (random.bits() as u16, random.bits() as u16);
                Some(Ports { first: a.min(b), last: a.max(b) })
            };
            (rule.sport, rule.dport) = (range(), range());
            rule
        })
        .collect()
}

/// Upper-layer fields of a packet inside `rule`, if it can have any.
fn upper(rule: &Rule, random: &mut SplitMix64) -> (u16, u16, u8, bool) {
    let mut protocol = random.within(rule.protocols.first.into(), rule.protocols.last.into()) as u8;
    if rule.protocols == Protocols::ALL {
        protocol = [6, 17, 1, 47][choose(random, [60, 30, 8, 2])];
    }
    let has_ports = rule.needs_ports() || [6, 17, 132].contains(&protocol);
    let mut port = |ports: Option<Ports>| {
        let Ports { first, last } = ports.unwrap_or(Ports::ALL);
        if has_ports { random.within(first.into(), last.into()) as u16 } else { 0 }
    };
    (port(rule.sport), port(rule.dport), protocol, has_ports)
}

/// `count` IPv4 packets, each inside some rule of the list drawn evenly (an earlier rule may win).
pub fn packets_v4(rules: &[Rule], count: usize, seed: u64) -> Vec<KeyV4> {
    let mut random = SplitMix64::new(seed);
    let inside = |prefix: Option<Prefix>, random: &mut SplitMix64| match prefix {
        Some(Prefix::V4 { bits, length }) => bits | (random.bits() as u32).checked_shr(length.into()).unwrap_or(0),
        _ => random.bits() as u32,
    };
    (0..count)
        .map(|_| {
            let rule = &rules[random.below(rules.len() as u32) as usize];
            let (src, dst) = (inside(rule.src, &mut random), inside(rule.dst, &mut random));
            let (sport, dport, protocol, has_ports) = upper(rule, &mut random);
            KeyV4 { src, dst, sport, dport, protocol, has_ports }
        })
        .collect()
}

/// `count` IPv6 packets; see [`packets_v4`].
pub fn packets_v6(rules: &[Rule], count: usize, seed: u64) -> Vec<KeyV6> {
    let mut random = SplitMix64::new(seed);
    let inside = |prefix: Option<Prefix>, random: &mut SplitMix64| {
        let noise = u128::from(random.bits()) << 64 | u128::from(random.bits());
        match prefix {
            Some(Prefix::V6 { bits, length }) => bits | noise.checked_shr(length.into()).unwrap_or(0),
            _ => noise,
        }
    };
    (0..count)
        .map(|_| {
            let rule = &rules[random.below(rules.len() as u32) as usize];
            let (src, dst) = (inside(rule.src, &mut random), inside(rule.dst, &mut random));
            let (sport, dport, protocol, has_ports) = upper(rule, &mut random);
            KeyV6 { src, dst, sport, dport, protocol, has_ports }
        })
        .collect()
}

//! The classifier against the plain reading of the list, rule by rule.

use super::*;
use crate::acl::rule::{Action, Ports, Prefix, Protocols};
use crate::acl::synthetic::{self, Style};
use catena_packet::random::SplitMix64;

/// Shapes of lists: each is hard in another way.
#[derive(Clone, Copy, Debug)]
enum Shape {
    /// Few bits: everything overlaps everything.
    Tiny,
    /// Prefixes of one address nested in each other.
    Nested,
    /// Ranges of ports only.
    PortsOnly,
    /// Rules with few constraints.
    Wild,
    /// The same few rules again and again.
    Repeated,
    /// Like real lists.
    Real(Style),
}

const SHAPES: [Shape; 8] = [
    Shape::Tiny,
    Shape::Nested,
    Shape::PortsOnly,
    Shape::Wild,
    Shape::Repeated,
    Shape::Real(Style::Acl),
    Shape::Real(Style::Fw),
    Shape::Real(Style::Ipc),
];

fn ports(random: &mut SplitMix64, bound: u32) -> Option<Ports> {
    match random.below(5) {
        0 => None,
        1 => Some(Ports::ALL),
        2 => {
            let p = random.below(bound) as u16;
            Some(Ports { first: p, last: p })
        }
        _ => {
            let (a, b) = (random.below(bound) as u16, random.below(bound) as u16);
            Some(Ports { first: a.min(b), last: a.max(b) })
        }
    }
}

fn prefix(random: &mut SplitMix64, address: u128, length: u32, six: bool) -> Option<Prefix> {
    match random.below(12) {
        0 => None,
        // A rule of the other family now and then.
        1 if random.below(4) == 0 => Some(if six { Prefix::v4(0, 0) } else { Prefix::v6(0, 0) }),
        _ if six => Some(Prefix::v6(address, length as u8)),
        _ => Some(Prefix::v4((address >> 96) as u32, length as u8)),
    }
}

fn list(shape: Shape, count: usize, six: bool, random: &mut SplitMix64) -> Vec<Rule> {
    let bits = if six { 128 } else { 32 };
    let mut rules: Vec<Rule> = Vec::new();
    while rules.len() < count {
        let mut rule = Rule::any(if random.below(2) == 0 { Action::Permit } else { Action::Deny });
        match shape {
            Shape::Tiny => {
                let mut address = || u128::from(random.below(4)) << 126 | u128::from(random.below(2));
                let (a, b) = (address(), address());
                let (la, lb) = (random.below(bits + 1), random.below(4));
                rule.src = prefix(random, a, la, six);
                rule.dst = prefix(random, b, lb, six);
                (rule.sport, rule.dport) = (ports(random, 4), ports(random, 4));
                let p = random.below(4) as u8;
                rule.protocols = Protocols { first: p, last: p + random.below(3) as u8 };
            }
            Shape::Nested => {
                let address = 0x0a0a_0a0a_ffff_0000_1234_5678_8000_0001_u128;
                let (la, lb) = (random.below(bits + 1), random.below(bits + 1));
                rule.src = prefix(random, address, la, six);
                rule.dst = prefix(random, !address, lb, six);
            }
            Shape::PortsOnly => (rule.sport, rule.dport) = (ports(random, 65536), ports(random, 65536)),
            Shape::Wild => match random.below(5) {
                0 => rule.sport = ports(random, 65536),
                1 => rule.dport = ports(random, 2000),
                2 => rule.protocols = Protocols::one(random.below(256) as u8),
                3 => {
                    let (a, l) = (u128::from(random.bits()) << 64, random.below(bits + 1));
                    rule.src = prefix(random, a, l, six);
                }
                _ => {
                    let (a, l) = (u128::from(random.bits()) << 64, random.below(9));
                    rule.dst = prefix(random, a, l, six);
                    rule.dport = ports(random, 100);
                }
            },
            Shape::Repeated if rules.len() >= 5 => rule = rules[random.below(5) as usize],
            Shape::Repeated => {
                let (a, l) = (u128::from(random.bits()) << 64, random.below(24));
                rule.src = prefix(random, a, l, six);
                rule.dport = ports(random, 1000);
            }
            Shape::Real(style) => {
                let make = if six { synthetic::rules_v6 } else { synthetic::rules_v4 };
                return make(style, count, random.bits());
            }
        }
        rules.push(rule);
    }
    rules
}

/// A value at, or one beside, an end of an interval; or anywhere in it.
fn near(random: &mut SplitMix64, lo: u32, hi: u32) -> u32 {
    match random.below(8) {
        0 => lo.wrapping_sub(1),
        1 => hi.wrapping_add(1),
        2 | 3 => lo,
        4 | 5 => hi,
        _ => random.within(lo, hi),
    }
}

/// Fields of a point near the borders of a box: source and destination words, ports, protocol.
fn beside<const W: usize>(rules: &[RuleBox<W>], random: &mut SplitMix64) -> [u32; W] {
    let mut fields = [0; W];
    let mut rule = rules.get(random.below(rules.len() as u32) as usize);
    for (d, field) in fields.iter_mut().enumerate() {
        // Sometimes each dimension near another rule.
        if random.below(16) == 0 {
            rule = rules.get(random.below(rules.len() as u32) as usize);
        }
        *field = rule.map_or(0, |r| near(random, r.spans[d].lo, r.spans[d].hi));
    }
    fields
}

fn check_v4(rules: &[Rule], packets: usize, random: &mut SplitMix64) {
    let classifier = Classifier::build(rules).unwrap();
    let boxes: Vec<RuleBox<V4>> = rules.iter().zip(0..).filter_map(|(r, i)| Point::enclose(r, i)).collect();
    let keys: Vec<KeyV4> = (0..packets)
        .map(|_| {
            let f = beside(&boxes, random);
            let (sport, dport, protocol) = (f[2] as u16, f[3] as u16, f[4] as u8);
            KeyV4 { src: f[0], dst: f[1], sport, dport, protocol, has_ports: random.below(8) > 0 }
        })
        .collect();
    let mut found = vec![0; keys.len()];
    classifier.classify_batch_v4(&keys, &mut found);
    for (key, &found) in keys.iter().zip(&found) {
        let expected = rules.iter().position(|r| r.matches_v4(key)).map(|i| i as u32);
        assert_eq!((found != NONE).then_some(found), expected, "{key:?}");
    }
    for (key, &found) in keys.iter().zip(&found).take(20) {
        assert_eq!(classifier.classify_v4(key), (found != NONE).then_some(found));
    }
}

fn check_v6(rules: &[Rule], packets: usize, random: &mut SplitMix64) {
    let classifier = Classifier::build(rules).unwrap();
    let boxes: Vec<RuleBox<V6>> = rules.iter().zip(0..).filter_map(|(r, i)| Point::enclose(r, i)).collect();
    let join = |w: &[u32]| w.iter().fold(0u128, |a, &x| a << 32 | u128::from(x));
    let keys: Vec<KeyV6> = (0..packets)
        .map(|_| {
            let f = beside(&boxes, random);
            let (sport, dport, protocol) = (f[8] as u16, f[9] as u16, f[10] as u8);
            let (src, dst) = (join(&f[..4]), join(&f[4..8]));
            KeyV6 { src, dst, sport, dport, protocol, has_ports: random.below(8) > 0 }
        })
        .collect();
    let mut found = vec![0; keys.len()];
    classifier.classify_batch_v6(&keys, &mut found);
    for (key, &found) in keys.iter().zip(&found) {
        let expected = rules.iter().position(|r| r.matches_v6(key)).map(|i| i as u32);
        assert_eq!((found != NONE).then_some(found), expected, "{key:?}");
    }
    for (key, &found) in keys.iter().zip(&found).take(20) {
        assert_eq!(classifier.classify_v6(key), (found != NONE).then_some(found));
    }
}

#[test]
fn first_match_as_by_hand_ipv4() {
    let mut random = SplitMix64::new(4);
    for round in 0..400 {
        let count = 1 + random.below(300) as usize;
        let rules = list(SHAPES[round % SHAPES.len()], count, false, &mut random);
        check_v4(&rules, 2000, &mut random);
    }
}

#[test]
fn first_match_as_by_hand_ipv6() {
    let mut random = SplitMix64::new(6);
    for round in 0..160 {
        let count = 1 + random.below(300) as usize;
        let rules = list(SHAPES[round % SHAPES.len()], count, true, &mut random);
        check_v6(&rules, 1500, &mut random);
    }
}

#[test]
fn long_lists_too() {
    let mut random = SplitMix64::new(8);
    for style in Style::ALL {
        check_v4(&synthetic::rules_v4(style, 10_000, 1), 1000, &mut random);
        check_v6(&synthetic::rules_v6(style, 3_000, 1), 1000, &mut random);
    }
}

#[test]
fn rules_hidden_by_others_cost_nothing() {
    let mut rule = Rule::any(Action::Permit);
    rule.dport = Some(Ports { first: 80, last: 80 });
    let mut rules = vec![rule; 20_000];
    rules.push(Rule::any(Action::Deny));
    let classifier = Classifier::build(&rules).unwrap();
    assert!(classifier.bytes().0 < 4096, "{}", classifier.bytes().0);
    let mut key = KeyV4 { dport: 80, has_ports: true, ..KeyV4::default() };
    assert_eq!(classifier.classify_v4(&key), Some(0));
    key.has_ports = false;
    assert_eq!(classifier.classify_v4(&key), Some(20_000));
}

#[test]
fn no_rules_match_nothing() {
    let classifier = Classifier::build(&[]).unwrap();
    assert_eq!(classifier.classify_v4(&KeyV4::default()), None);
    assert_eq!(classifier.classify_v6(&KeyV6::default()), None);
}

#[test]
fn memory_stays_in_bounds_whatever_the_rules() {
    let mut random = SplitMix64::new(7);
    let rules = synthetic::overlapping_v4(5000, 7);
    let classifier = Classifier::build(&rules).unwrap();
    let (v4, v6) = classifier.bytes();
    assert!(v4 <= BASE_BYTES + rules.len() * (BYTES_PER_RULE_V4 + 40), "{v4}");
    assert_eq!(v6, 0);
    check_v4(&rules, 2000, &mut random);
}

//! What is said of lists and rules as a whole, held against packets one by one.

use catena_packet::random::Random;

use super::*;
use crate::rules::key::{KeyV4, KeyV6};

fn ports(random: &mut Random) -> Option<Ports> {
    [None, None, Some(Ports::ALL), Some(Ports { first: 2, last: 5 }), Some(Ports { first: 4, last: 4 })]
        [random.below(5) as usize]
}

/// A rule over so few values that rules meet, cover each other, and meet packets.
fn rule(random: &mut Random) -> Rule {
    let mut prefix = |v4| match random.below(3) {
        0 => None,
        _ if v4 => Some(Prefix::v4(random.below(8) << 29, random.below(4) as u8)),
        _ => Some(Prefix::v6(u128::from(random.below(8)) << 125, random.below(4) as u8)),
    };
    let (src, dst) = (prefix(true), prefix(true));
    let (src6, dst6) = (prefix(false), prefix(false));
    let v4 = random.below(2) == 0;
    let protocols = [Protocols::ALL, Protocols::one(6), Protocols::one(17), Protocols { first: 6, last: 17 }];
    Rule {
        action: if random.below(2) == 0 { Action::Permit } else { Action::Deny },
        src: if v4 { src } else { src6 },
        dst: if v4 { dst } else { dst6 },
        sport: ports(random),
        dport: ports(random),
        protocols: protocols[random.below(4) as usize],
        line: 0,
    }
}

fn list(random: &mut Random) -> Verdicts {
    let rules: Vec<Rule> = (0..random.below(6)).map(|_| rule(random)).collect();
    let default = if random.below(2) == 0 { Action::Permit } else { Action::Deny };
    let unparsed = last_word(&rules, default);
    Verdicts { rules, default, unparsed, source_routes: Action::Permit }
}

/// A packet of either family.
#[derive(Debug)]
enum Packet {
    V4(KeyV4),
    V6(KeyV6),
}

impl Packet {
    fn random(random: &mut Random) -> Packet {
        let (src, dst) = (random.below(8), random.below(8));
        let has_ports = random.below(3) > 0;
        let mut port = || if has_ports { random.below(8) as u16 } else { 0 };
        let (sport, dport) = (port(), port());
        let protocol = [6, 17, 1, 10][random.below(4) as usize];
        if random.below(2) == 0 {
            Packet::V4(KeyV4 { src: src << 29, dst: dst << 29, sport, dport, protocol, has_ports })
        } else {
            let (src, dst) = (u128::from(src) << 125, u128::from(dst) << 125);
            Packet::V6(KeyV6 { src, dst, sport, dport, protocol, has_ports })
        }
    }

    fn matches(&self, rule: &Rule) -> bool {
        match self {
            Packet::V4(key) => rule.matches_v4(key),
            Packet::V6(key) => rule.matches_v6(key),
        }
    }

    fn passes(&self, list: &Verdicts) -> bool {
        list.rules.iter().find(|rule| self.matches(rule)).map_or(list.default, |rule| rule.action) == Action::Permit
    }
}

#[test]
fn what_is_said_of_rules_holds_for_every_packet() {
    let mut random = Random::new(1);
    let (mut covered, mut apart) = (0, 0);
    for _ in 0..20_000 {
        let (one, other) = (rule(&mut random), rule(&mut random));
        let (covers, meets) = (one.covers(&other), one.meets(&other));
        if covers {
            covered += 1;
        }
        if !meets {
            apart += 1;
        }
        assert!(one.covers(&one) && one.meets(&one) && meets == other.meets(&one));
        for _ in 0..50 {
            let packet = Packet::random(&mut random);
            let both = (packet.matches(&one), packet.matches(&other));
            assert!(!covers || both != (false, true), "{one} does not cover {other}: {packet:?}");
            assert!(meets || both != (true, true), "{one} meets {other}: {packet:?}");
        }
    }
    assert!(covered > 500 && apart > 500, "{covered} covered, {apart} apart");
}

#[test]
fn what_is_said_of_lists_holds_for_every_packet() {
    let mut random = Random::new(2);
    let (mut barred, mut permitted) = (0, 0);
    for _ in 0..20_000 {
        let (list, rule) = (list(&mut random), rule(&mut random));
        let (reaches, permits) = (list.lets_reach(&rule), list.permits_all(&rule));
        if !reaches {
            barred += 1;
        }
        if permits {
            permitted += 1;
        }
        let boxes = list.permitted();
        for _ in 0..50 {
            let packet = Packet::random(&mut random);
            let (passes, matches) = (packet.passes(&list), packet.matches(&rule));
            assert!(reaches || !(passes && matches), "{list:?} lets {packet:?} reach {rule}");
            assert!(!permits || !matches || passes, "{list:?} does not permit all of {rule}: {packet:?}");
            assert!(!passes || boxes.iter().any(|rule| packet.matches(rule)), "{list:?} permits {packet:?}");
        }
    }
    assert!(barred > 500 && permitted > 500, "{barred} barred, {permitted} permitted");
}

#[test]
fn only_fields_that_rules_ask_for_are_read() {
    let mut rule = Rule::any(Action::Deny);
    let permit = Action::Permit;
    let list = |rule| Verdicts { rules: vec![rule], default: permit, unparsed: permit, source_routes: permit };
    let reads = |rule: Rule| list(rule).reads();
    assert_eq!(reads(rule), Fields::NETWORK);
    rule.src = Some(Prefix::v4(0, 0));
    assert_eq!(reads(rule), Fields::NETWORK, "the family is the network layer");
    rule.dst = Some(Prefix::v4(0, 8));
    rule.dport = Some(Ports::ALL);
    assert_eq!(reads(rule), Fields::NETWORK | Fields::DESTINATION | Fields::PORTS);
    rule.protocols = Protocols::one(6);
    assert_eq!(reads(rule), Fields::NETWORK | Fields::DESTINATION | Fields::PORTS | Fields::PROTOCOL);
}

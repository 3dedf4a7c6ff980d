//! Packets whose destination address is only the first stop of their way: a rule that denies the last one must hold.

use super::*;
use crate::effects::{Spared, Way};

const ROUTE: &str = "source route";

/// UDP to 192.0.2.9 with these options of IPv4, a multiple of 4 bytes.
fn v4(options: &[u8]) -> Vec<u8> {
    let mut frame = craft("udp 10.0.0.1:4000 > 192.0.2.9:53");
    frame[14] += (options.len() / 4) as u8;
    frame[17] += options.len() as u8;
    frame.splice(34..34, options.iter().copied());
    frame
}

/// UDP to 2001:db8::2 behind a routing header of this type that leads to 2001:db8:bad::1.
fn v6(kind: u8, left: u8) -> Vec<u8> {
    let mut frame = craft("udp [2001:db8::1]:4000 > [2001:db8::2]:53");
    let last = [0x20, 1, 0xd, 0xb8, 0xb, 0xad, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    let header = [&[17, 2, kind, left, 0, 0, 0, 0][..], &last].concat();
    frame[20] = 43;
    frame[19] += header.len() as u8;
    frame.splice(54..54, header);
    frame
}

/// Packets that lead on to what a rule denies, and such that do not.
fn packets() -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let routed = vec![
        v4(&[131, 7, 4, 203, 0, 113, 1, 0]),
        v4(&[1, 137, 7, 4, 203, 0, 113, 1]),
        v4(&[7, 1, 131, 7, 4, 203, 0, 113, 1, 0, 0, 0]),
        v6(0, 1),
        v6(4, 1),
        v6(3, 1),
        v6(253, 1),
    ];
    let plain = vec![v4(&[]), v4(&[0x94, 4, 0, 0]), v4(&[7, 7, 4, 0, 0, 0, 0, 0]), v6(0, 0), v6(4, 0), v6(2, 1)];
    (routed, plain)
}

fn rules() -> Args {
    list(&["deny to 203.0.113.1", "deny to 2001:db8:bad::1", "permit any"])
}

#[test]
fn a_route_to_what_is_denied_is_dropped() {
    let (routed, plain) = packets();
    let mut harness = Harness::of(&DESCRIPTOR, &rules());
    for gate in [0, 1] {
        for frame in &routed {
            assert_eq!(harness.send_one(gate, 1, frame), Fate::Dropped(ROUTE), "{frame:02x?}");
        }
        for frame in &plain {
            assert_eq!(harness.send_one(gate, 1, frame), Fate::Out(gate, frame.clone()));
        }
    }
    harness.end();
}

#[test]
fn only_packets_with_a_route_are_dropped_of_a_batch() {
    let (routed, plain) = packets();
    let all: Vec<_> = plain.iter().zip(&routed).flat_map(|(a, b)| [(1, a.clone()), (1, b.clone())]).collect();
    let mut harness = Harness::of(&DESCRIPTOR, &rules());
    assert_eq!(harness.send(0, &all).len(), plain.len());
    assert_eq!(harness.drops(), [(ROUTE, plain.len() as u64)].into());
    harness.end();
}

#[test]
fn the_rules_judge_routes_where_one_says_so() {
    let (routed, plain) = packets();
    let args = rules().with("source_routes", Value::Word("pass".to_owned()));
    let mut harness = Harness::of(&DESCRIPTOR, &args);
    for frame in routed.iter().chain(&plain) {
        assert_eq!(harness.send_one(0, 1, frame), Fate::Out(0, frame.clone()));
    }
    harness.end();
}

/// One whose rules permit all that comes is not spared that.
#[test]
fn a_route_is_dropped_by_an_acl_that_does_not_search() {
    let (routed, plain) = packets();
    let mut attributes = catena_dataplane::attribute::Attributes::default();
    let seed = catena_packet::wire::Seed::from_number(1);
    let mut build = Build {
        instance: "it",
        seed,
        share: Share::WHOLE,
        team: None,
        attributes: &mut attributes,
        taken: &[],
        tables: &crate::Tables::default(),
    };
    let spared = Spared { ways: [Way::Permits, Way::Permits], ..Spared::default() };
    let module = (DESCRIPTOR.spared.unwrap())(&rules(), &spared, &mut build).unwrap();
    let mut harness = Harness::new(module, 2);
    for frame in &routed {
        assert_eq!(harness.send_one(0, 1, frame), Fate::Dropped(ROUTE), "{frame:02x?}");
    }
    for frame in &plain {
        assert_eq!(harness.send_one(0, 1, frame), Fate::Out(0, frame.clone()));
    }
    harness.end();
}

#[test]
fn denied_routes_take_the_edge_of_denied_packets() {
    let module = build_taking(&["deny"], &DESCRIPTOR, &rules(), Share::WHOLE).unwrap();
    let mut harness = Harness::new(module, 4);
    assert!(matches!(harness.send_one(0, 1, &v6(0, 1)), Fate::Out(2, _)));
    assert!(matches!(harness.send_one(1, 1, &v4(&[131, 7, 4, 203, 0, 113, 1, 0])), Fate::Out(3, _)));
    harness.end();
}

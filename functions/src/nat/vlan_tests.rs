//! NAT between trunks: hosts of different VLANs are different hosts, whatever their addresses.

use super::*;
use crate::Value;
use crate::testing::engines::{Late, tests};
use crate::testing::{Fate, Harness, SECOND, START, craft, describe};
use proptest::prelude::*;

/// Stacks of tags that stand for different VLANs, the first for none.
const VLANS: [&[&str]; 6] =
    [&[], &["8100:10"], &["88a8:10"], &["8100:20"], &["88a8:10", "8100:20"], &["88a8:20", "8100:10"]];

fn args(v6: bool) -> Args {
    let address = if v6 { "2001:db8:99::1" } else { "198.51.100.1" };
    Args::default().with("pool", Value::Address(address.parse().unwrap()))
}

/// Return a line behind tags.
fn behind(tags: &[&str], line: &str) -> String {
    tags.iter().rev().fold(line.to_owned(), |line, tag| format!("tag {tag} {{ {line} }}"))
}

fn send(harness: &mut Harness, gate: u16, tags: &[&str], line: &str) -> Result<String, &'static str> {
    match harness.send_one(gate, START, &craft(&behind(tags, line))) {
        Fate::Out(_, bytes) => Ok(describe(&bytes)),
        Fate::Dropped(reason) => Err(reason),
    }
}

/// Return the external source of a line that left behind tags.
fn source(tags: &[&str], line: &str) -> String {
    line.split(' ').nth(3 * tags.len() + 1).unwrap().to_owned()
}

const OTHER: &str = "VLAN that is not that of the mapping";

#[test]
fn an_endpoint_of_each_vlan_has_its_own_port_and_its_own_answers() {
    for filtering in ["independent", "address", "address_port"] {
        for (v6, inside, server) in
            [(false, "10.0.0.1:5000", "192.0.2.9:53"), (true, "[2001:db8:1::1]:5000", "[2001:db8:9::1]:53")]
        {
            let mut harness = Harness::of(&DESCRIPTOR, &args(v6).with("filtering", Value::Word(filtering.into())));
            let out = format!("udp {inside} > {server}");
            let ports = VLANS.map(|tags| source(tags, &send(&mut harness, 0, tags, &out).unwrap()));
            for (i, external) in ports.iter().enumerate() {
                // It keeps its port, whoever of the others sends.
                let again = send(&mut harness, 0, VLANS[i], &out).unwrap();
                assert_eq!(again, behind(VLANS[i], &format!("udp {external} > {server}")));
                for (j, tags) in VLANS.iter().enumerate() {
                    assert!(i == j || ports[j] != *external, "{:?} and {tags:?} share {external}", VLANS[i]);
                    let answer = send(&mut harness, 1, tags, &format!("udp {server} > {external}"));
                    let expected =
                        if i == j { Ok(behind(tags, &format!("udp {server} > {inside}"))) } else { Err(OTHER) };
                    assert_eq!(answer, expected, "an answer to {:?} in {tags:?}", VLANS[i]);
                }
            }
            harness.end();
        }
    }
}

#[test]
fn errors_and_queries_stay_in_their_vlan() {
    let mut harness = Harness::of(&DESCRIPTOR, &args(false));
    let [a, b] = [VLANS[1], VLANS[3]];
    let external = source(a, &send(&mut harness, 0, a, "udp 10.0.0.1:5000 > 192.0.2.9:53").unwrap());
    let error = format!("icmp 192.0.2.254 > 198.51.100.1 exceeded {{ udp {external} > 192.0.2.9:53 }}");
    let inside = "icmp 192.0.2.254 > 10.0.0.1 exceeded { udp 10.0.0.1:5000 > 192.0.2.9:53 }";
    assert_eq!(send(&mut harness, 1, a, &error), Ok(behind(a, inside)));
    assert_eq!(send(&mut harness, 1, b, &error), Err(OTHER));
    assert_eq!(send(&mut harness, 1, &[], &error), Err(OTHER));
    // From inside: the host of the other VLAN was sent nothing.
    let error = "icmp 10.0.0.1 > 192.0.2.9 unreachable { udp 192.0.2.9:53 > 10.0.0.1:5000 }";
    let outside = format!("icmp 198.51.100.1 > 192.0.2.9 unreachable {{ udp 192.0.2.9:53 > {external} }}");
    assert_eq!(send(&mut harness, 0, a, error), Ok(behind(a, &outside)));
    assert_eq!(send(&mut harness, 0, b, error), Err("no mapping"));
    let [x, y] = [a, b].map(|tags| send(&mut harness, 0, tags, "icmp 10.0.0.1 > 192.0.2.9 echo 7").unwrap());
    assert_ne!(x.split(' ').nth(8), y.split(' ').nth(8), "{x}, {y}");
    harness.end();
}

#[test]
fn later_fragments_follow_a_first_of_their_vlan() {
    let mut harness = Harness::of(&DESCRIPTOR, &args(false));
    let [a, b] = [VLANS[1], VLANS[3]];
    let first = |tags, harness: &mut Harness| {
        let line = send(harness, 0, tags, "udp 10.0.0.1:5000 > 192.0.2.9:53 len 16 id 5 first").unwrap();
        line.split(" id ").nth(1).unwrap().split(' ').next().unwrap().to_owned()
    };
    let later = "ip 10.0.0.1 > 192.0.2.9 proto 17 len 8 id 5 later 24";
    let of_a = first(a, &mut harness);
    assert_eq!(send(&mut harness, 0, b, later), Err("fragment without its first"));
    let of_b = first(b, &mut harness);
    for (tags, ident) in [(a, of_a), (b, of_b)] {
        let expected = behind(tags, &format!("ip 198.51.100.1 > 192.0.2.9 proto 17 len 8 id {ident} later 24"));
        assert_eq!(send(&mut harness, 0, tags, later), Ok(expected));
    }
    // From outside likewise.
    let back = "udp 192.0.2.9:53 > 198.51.100.1:1024 len 16 id 6 first";
    assert!(send(&mut harness, 1, a, back).is_ok());
    let later = "ip 192.0.2.9 > 198.51.100.1 proto 17 len 8 id 6 later 24";
    assert_eq!(send(&mut harness, 1, b, later), Err("fragment without its first"));
    assert_eq!(send(&mut harness, 1, a, later), Ok(behind(a, "ip 192.0.2.9 > 10.0.0.1 proto 17 len 8 id 6 later 24")));
    harness.end();
}

#[test]
fn hairpins_stay_in_their_vlan() {
    let mut harness = Harness::of(&DESCRIPTOR, &args(false));
    let [a, b] = [VLANS[1], VLANS[3]];
    let external = source(a, &send(&mut harness, 0, a, "udp 10.0.0.1:5000 > 192.0.2.9:53").unwrap());
    let line = format!("udp 10.0.0.2:6000 > {external}");
    assert!(send(&mut harness, 0, a, &line).unwrap().ends_with("> 10.0.0.1:5000 }"));
    assert_eq!(send(&mut harness, 0, b, &line), Err(OTHER));
    harness.end();
}

#[test]
fn a_priority_alone_is_no_vlan() {
    let mut harness = Harness::of(&DESCRIPTOR, &args(false));
    let out = "udp 10.0.0.1:5000 > 192.0.2.9:53";
    let external = source(&[], &send(&mut harness, 0, &[], out).unwrap());
    assert_eq!(source(&["8100:0"], &send(&mut harness, 0, &["8100:0"], out).unwrap()), external);
    // Answers have the priority that the network gives them.
    let external = source(VLANS[1], &send(&mut harness, 0, VLANS[1], out).unwrap());
    let mut answer = craft(&behind(VLANS[1], &format!("udp 192.0.2.9:53 > {external}")));
    answer[14] |= 0xf0;
    assert!(matches!(harness.send_one(1, START, &answer), Fate::Out(1, _)));
    harness.end();
}

#[test]
fn more_vlans_than_two_are_refused_by_name() {
    let mut harness = Harness::of(&DESCRIPTOR, &args(false));
    let deep = ["88a8:10", "8100:20", "8100:30"];
    for (gate, line) in [(0, "udp 10.0.0.1:5000 > 192.0.2.9:53"), (1, "udp 192.0.2.9:53 > 198.51.100.1:1024")] {
        assert_eq!(send(&mut harness, gate, &deep, line), Err("more than two VLAN tags"));
    }
    // What NAT does not translate passes.
    assert_eq!(send(&mut harness, 0, &deep, "arp"), Ok(behind(&deep, "arp")));
    harness.end();
}

#[test]
fn a_host_of_one_vlan_uses_up_nothing_of_another() {
    let filtered = args(false).with("filtering", Value::Word("address_port".into()));
    let limited = filtered.with("max_per_host", Value::Integer(4)).with("max_mappings", Value::Integer(500));
    let mut harness = Harness::of(&DESCRIPTOR, &limited);
    let [a, b] = [VLANS[1], VLANS[3]];
    let sends = |harness: &mut Harness, tags, port: u16| {
        send(harness, 0, tags, &format!("udp 10.0.0.1:{port} > 192.0.2.9:53")).map(|line| source(tags, &line))
    };
    for port in 0..4 {
        assert!(sends(&mut harness, a, 5000 + port).is_ok());
    }
    assert_eq!(sends(&mut harness, a, 6000), Err("host has as many ports as it may"));
    // It also takes its part of the sessions.
    let mut last = Ok(String::new());
    for server in 0..2000 {
        last = send(&mut harness, 0, a, &format!("udp 10.0.0.1:5000 > 192.0.3.{}:{}", server % 250, 1 + server / 250));
    }
    assert_eq!(last, Err("host has as many sessions as it may"));
    for port in 0..4 {
        let external = sends(&mut harness, b, 5000 + port).unwrap();
        let answer = format!("udp 192.0.2.9:53 > {external}");
        assert!(send(&mut harness, 1, b, &answer).is_ok());
    }
    assert_eq!(harness.gauges()["hosts"], 2);
    // All is given back.
    harness.tick(START + 400 * SECOND);
    assert_eq!((harness.gauges()["hosts"], harness.gauges()["mappings"]), (0, 0));
    harness.end();
}

proptest! {
    /// Behind a tag NAT does what it does without one.
    #[test]
    fn a_tag_changes_nothing_else(
        lines in prop::collection::vec((0..8usize, 1..4u8, 0..2u16), 1..40),
        tags in prop::sample::select(&VLANS[1..]),
    ) {
        let kinds = [
            "udp 10.0.0.N:4000 > 192.0.2.9:53 len 3", "tcp 10.0.0.N:4000 > 192.0.2.9:80 S", "icmp 10.0.0.N > 192.0.2.9 echo 7",
            "udp 10.0.0.N:4000 > 192.0.2.9:53 len 16 id 5 first", "ip 10.0.0.N > 192.0.2.9 proto 17 len 8 id 5 later 24",
            "udp 192.0.2.9:53 > 198.51.100.1:1024 nosum", "ip 10.0.0.N > 192.0.2.9 proto 47 len 9", "udp 10.0.0.N:1 > 198.51.100.1:1024",
        ];
        let [mut bare, mut tagged] = [(); 2].map(|()| Harness::of(&DESCRIPTOR, &args(false)));
        for (kind, host, gate) in lines {
            let line = kinds[kind].replace('N', &host.to_string());
            let expected = send(&mut bare, gate, &[], &line).map(|line| behind(tags, &line));
            prop_assert_eq!(send(&mut tagged, gate, tags, &line), expected);
        }
        bare.end();
        tagged.end();
    }
}

pub(super) const LATE: Late = Late {
    source: include_str!("vlan_tests.rs"),
    quick: tests![
        an_endpoint_of_each_vlan_has_its_own_port_and_its_own_answers,
        errors_and_queries_stay_in_their_vlan,
        later_fragments_follow_a_first_of_their_vlan,
        hairpins_stay_in_their_vlan,
        a_priority_alone_is_no_vlan,
        more_vlans_than_two_are_refused_by_name,
        a_host_of_one_vlan_uses_up_nothing_of_another,
    ],
    slow: tests![a_tag_changes_nothing_else,],
    apart: &[],
};

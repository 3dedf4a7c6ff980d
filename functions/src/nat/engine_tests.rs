//! NAT on engines that are late.

use super::DESCRIPTOR;
use crate::testing::agreement::declares_and_gives_up;
use crate::testing::engines::{SEEDS, on_delayed};
use crate::testing::{Harness, START, craft, describe};
use crate::{Args, Value};
use catena_packet::wire::{Seed, checksum};

/// One test for each file: they are long, and run side by side.
macro_rules! late {
    ($($name:ident: $file:ident),* $(,)?) => {
        $(#[test]
        fn $name() {
            super::$file::LATE.run();
        })*
    };
}

late! {
    tests_on_engines_that_are_late: tests,
    vlan_tests_on_engines_that_are_late: vlan_tests,
    hostile_tests_on_engines_that_are_late: hostile_tests,
    identification_tests_on_engines_that_are_late: identification_tests,
    model_tests_on_engines_that_are_late: model_tests,
    full_tests_on_engines_that_are_late: full_tests,
}

/// Make a packet that no router may fragment.
fn atomic(line: &str) -> Vec<u8> {
    let mut frame = craft(line);
    if frame[12..14] == [8, 0] {
        frame[20] |= 0x40;
        frame[24..26].fill(0);
        let sum = !checksum::sum(&frame[14..34]);
        frame[24..26].copy_from_slice(&sum.to_be_bytes());
    }
    frame
}

/// One address of IPv4, and a subnet of IPv6.
fn args(filtering: &'static str) -> Args {
    let pool = Value::List(vec![
        Value::Prefix("198.51.100.7".parse().unwrap(), 32),
        Value::Prefix("2001:db8:99::".parse().unwrap(), 64),
    ]);
    Args::default().with("pool", pool).with("filtering", Value::Word(filtering.into()))
}

/// Packets of hosts that have their ports already: which ports new ones get depends on who comes first. None may be
/// fragmented, as identifications are given in order of arrival too.
fn run(filtering: &'static str, seed: u64) -> Vec<Vec<(usize, u16, Vec<u8>)>> {
    let mut harness = Harness::of(&DESCRIPTOR, &args(filtering));
    let words = Seed::from_number(seed);
    let mut number = 0;
    let mut draw = |below: u64| {
        number += 1;
        (words.hash2([number, seed]) >> 33) % below
    };
    let inside = |n: usize| match n % 3 {
        0 => (format!("[2001:db8::{}]:4000", n + 1), "[2001:db8:9::9]:53".to_owned()),
        _ => (format!("10.0.0.{}:4000", n + 1), "192.0.2.9:53".to_owned()),
    };
    let mut external = Vec::new();
    for n in 0..6 {
        let (from, to) = inside(n);
        let left = harness.send(0, &[(START, atomic(&format!("udp {from} > {to}")))]);
        let line = describe(&left[0].2);
        external.push(line.split(' ').nth(1).unwrap().to_owned());
    }
    // All have spoken to each other: whom a packet is let in from depends on who spoke first.
    for n in 0..6 {
        harness.send(0, &[(START, atomic(&format!("udp {} > {}", inside(n).0, external[(n + 3) % 6])))]);
    }
    let nobodys = |external: &str| external.rsplit_once(':').map(|(address, _)| format!("{address}:9")).unwrap();
    let mut left = Vec::new();
    for gate in [0, 1, 0, 1] {
        let mut piece = Vec::new();
        for _ in 0..50 {
            let n = draw(6) as usize;
            let (ours, theirs) = inside(n);
            let length = draw(40);
            // To who was spoken to, to a stranger, to another host by its external endpoint; what comes in likewise.
            let stranger = theirs.replace(":53", ":54");
            let line = match (gate, draw(4)) {
                (0, 0) => format!("udp {ours} > {} len {length}", external[(n + 3) % 6]),
                (0, _) => format!("udp {ours} > {theirs} len {length}"),
                (_, 0) => format!("udp {stranger} > {} len {length}", external[n]),
                (_, 1) => format!("udp {theirs} > {} len {length}", nobodys(&external[n])),
                _ => format!("udp {theirs} > {} len {length}", external[n]),
            };
            piece.push((START + length, atomic(&line)));
        }
        left.push(harness.send(gate, &piece));
    }
    harness.end();
    left
}

#[test]
fn nobody_notices_that_packets_wait() {
    for filtering in ["independent", "address", "address_port"] {
        for seed in 0..SEEDS {
            let (expected, came) = (run(filtering, seed), on_delayed(seed, || run(filtering, seed)));
            let differs =
                came.iter().flatten().zip(expected.iter().flatten()).find(|(came, expected)| came != expected);
            assert_eq!(differs, None, "{filtering}, seed {seed}");
            assert_eq!(came.concat().len(), expected.concat().len(), "{filtering}, seed {seed}");
        }
    }
}

#[test]
fn every_object_is_declared_and_packets_are_counted_where_all_are_gone() {
    for filtering in ["independent", "address", "address_port"] {
        declares_and_gives_up(&DESCRIPTOR, &args(filtering), |seed| drop(run(filtering, seed)));
    }
}

#[test]
fn packets_that_find_no_place_to_wait_take_nothing_along() {
    let pool = Value::Prefix("198.51.100.0".parse().unwrap(), 24);
    let args = Args::default().with("pool", pool).with("filtering", Value::Word("address".into()));
    on_delayed(1, || {
        let mut harness = Harness::of(&DESCRIPTOR, &args);
        // As many as find room, several times over: what one holds while it waits is given back.
        let mut mapped = 0;
        for round in 0..4 {
            let frames: Vec<_> = (0..2_000)
                .map(|n| (START, craft(&format!("udp 10.{round}.{}.{}:4000 > 192.0.2.9:53", n >> 8, n & 255))))
                .collect();
            let before = harness.drops();
            let left = harness.send(0, &frames).len() as u64;
            let lost = |drops: &std::collections::BTreeMap<_, u64>| drops.get("too many wait for their state").copied();
            let lost = lost(&harness.drops()).unwrap_or_default() - lost(&before).unwrap_or_default();
            assert!(lost > 0 && left >= 256, "round {round}: {left} left, {lost} found no place");
            assert_eq!(left + lost, 2_000, "round {round}");
            // A host each: who has left has a mapping and its ports, and nobody else has.
            mapped += left;
            let gauges = harness.gauges();
            assert_eq!((gauges["mappings"], gauges["hosts"]), (mapped, mapped), "round {round}");
        }
        harness.end();
    });
}

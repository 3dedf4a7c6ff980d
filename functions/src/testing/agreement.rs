//! What a function does on an engine that is late is what it does on the local one, packet by packet.

use std::collections::BTreeMap;

use catena_packet::wire::Seed;

use super::engines::{SEEDS, on_delayed};
use super::{Harness, SECOND, START, craft};
use crate::{Args, Descriptor};

/// Packets of a run, in pieces that enter by one gate.
pub type Traffic = Vec<(u16, Vec<(u64, Vec<u8>)>)>;

/// Few hosts and ports, so that flows meet again; every piece is more than a batch.
pub fn traffic(seed: u64) -> Traffic {
    let words = Seed::from_number(seed);
    let mut number = 0;
    let mut draw = |below: u64| {
        number += 1;
        (words.hash2([number, seed]) >> 33) % below
    };
    let mut time = START;
    let mut piece = |gate: u16| {
        let mut packet = || {
            time += draw(SECOND / 100);
            let (host, port) = (1 + draw(4), 4000 + draw(3));
            let (ours, theirs) = match draw(4) {
                0 => (format!("[2001:db8::{host}]:{port}"), "[2001:db8:9::9]:53".to_owned()),
                1 => (format!("10.0.0.{host}:{port}"), "192.0.2.10:80".to_owned()),
                _ => (format!("10.0.0.{host}:{port}"), "192.0.2.9:53".to_owned()),
            };
            // What comes back does so from where it was sent to, and from a balancer's servers.
            let theirs = if gate == 1 && theirs.ends_with(":80") { "10.9.0.1:80".to_owned() } else { theirs };
            let (from, to) = if gate == 0 { (&ours, &theirs) } else { (&theirs, &ours) };
            let line = match draw(5) {
                0 => format!("tcp {from} > {to} S"),
                1 => format!("tcp {from} > {to} A len {}", draw(50)),
                2 => format!("tcp {from} > {to} FA"),
                _ => format!("udp {from} > {to} len {}", draw(50)),
            };
            (time, craft(&line))
        };
        (gate, (0..40).map(|_| packet()).collect::<Vec<_>>())
    };
    [0, 1, 0, 1].map(&mut piece).into()
}

/// What came of a run: what left, by piece and packet, drops by reason, gauges.
type Outcome = (Vec<Vec<(usize, u16, Vec<u8>)>>, BTreeMap<&'static str, u64>, BTreeMap<&'static str, u64>);

fn run(descriptor: &Descriptor, args: &Args, traffic: &Traffic) -> Outcome {
    let mut harness = Harness::of(descriptor, args);
    let left = traffic.iter().map(|(gate, frames)| harness.send(*gate, frames)).collect();
    let outcome = (left, harness.drops(), harness.gauges());
    harness.end();
    outcome
}

/// Hold a function to the same outcome on every engine, of other packets for every seed.
///
/// # Panics
/// Where it differs.
pub fn agrees(descriptor: &Descriptor, args: &Args) {
    for seed in 0..SEEDS {
        let traffic = traffic(seed);
        let expected = run(descriptor, args, &traffic);
        let came = on_delayed(seed, || run(descriptor, args, &traffic));
        assert_eq!(came.1, expected.1, "drops of {} with seed {seed}", descriptor.name);
        assert_eq!(came.2, expected.2, "gauges of {} with seed {seed}", descriptor.name);
        for (piece, (came, expected)) in came.0.iter().zip(&expected.0).enumerate() {
            let differs = came.iter().zip(expected).find(|(came, expected)| came != expected);
            assert_eq!(differs, None, "{} with seed {seed}, piece {piece}", descriptor.name);
            assert_eq!(came.len(), expected.len(), "{} with seed {seed}, piece {piece}", descriptor.name);
        }
    }
}

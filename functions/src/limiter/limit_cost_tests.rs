//! A packet whose key finds no room costs at most twice what a packet of a known key costs; in optimised builds only.

use std::time::Instant;

use catena_packet::wire::Seed;
use catena_packet::{Depot, Packet, Pool};
use catena_state::{Local, Share};

use super::*;
use crate::config::Value;
use crate::testing::{START, craft};

const KEYS: usize = 1000;
const PACKETS: usize = 128;
const ROUNDS: usize = 400;

fn packet(pool: &mut Pool, number: usize) -> Packet {
    let bytes = craft(&format!("udp 10.{}.{}.{}:4000 > 192.0.2.9:53", number >> 16, number >> 8 & 255, number & 255));
    let mut packet = pool.take(bytes.len()).unwrap();
    packet.fill(&bytes);
    packet.parse().unwrap();
    packet
}

/// Process packets batch by batch, as they come at ten million a second; returns how many pass.
fn process(limiter: &mut Limiter<Local>, now: &mut u64, packets: &mut [Packet]) -> usize {
    let mut passed = 0;
    for batch in packets.chunks_mut(32) {
        *now += 3200;
        let at = At { tx: (), now: *now, gate: 0 };
        let mut plans: Vec<_> = batch.iter().map(|packet| limiter.prepare(at, packet)).collect();
        plans.iter_mut().for_each(|plan| Function::<Local>::warm(limiter, plan));
        for (packet, plan) in batch.iter_mut().zip(&mut plans) {
            if limiter.finish(at, packet, plan) == Step::Done(Verdict::Gate(0)) {
                passed += 1;
            }
        }
        limiter.tidy(*now, false);
    }
    passed
}

#[test]
fn no_room_is_refused_cheaply() {
    let args = Args::default()
        .with("rate", Value::PacketRate(1000))
        .with("burst", Value::Integer(1_000_000))
        .with("per", Value::Word("src".into()))
        .with("max_keys", Value::Integer(KEYS as i64));
    let mut limiter = Limiter::new(&mut Local::new(Seed::from_number(1), Share::WHOLE), &args, &[]).unwrap();
    let (mut pool, mut now, mut number) = (Depot::map(1024, 0).unwrap().pool(), START, KEYS);
    // Every key has taken more than a second's rate, so that none is forgotten.
    for _ in 0..1100 {
        for first in (0..KEYS).step_by(100) {
            let mut packets: Vec<_> = (first..first + 100).map(|key| packet(&mut pool, key)).collect();
            assert_eq!(process(&mut limiter, &mut now, &mut packets), 100);
        }
    }
    let mut tries = Vec::new();
    for _ in 0..3 {
        let mut rounds: [Vec<u128>; 2] = [Vec::new(), Vec::new()];
        for round in 0..2 * ROUNDS {
            let is_known = round % 2 == 0;
            let numbers = (0..PACKETS).map(|i| if is_known { (round * 77 + i * 13) % KEYS } else { number + i });
            let mut packets: Vec<_> = numbers.map(|number| packet(&mut pool, number)).collect();
            number += PACKETS;
            let start = Instant::now();
            let passed = process(&mut limiter, &mut now, &mut packets);
            rounds[usize::from(!is_known)].push(start.elapsed().as_nanos());
            assert_eq!(passed, if is_known { PACKETS } else { 0 });
        }
        tries.push(rounds.map(|mut times| {
            times.sort_unstable();
            times[ROUNDS / 2]
        }));
    }
    // A busy machine may disturb one try, not three.
    assert!(tries.iter().any(|[known, refused]| *refused <= 2 * known), "{tries:?}");
}

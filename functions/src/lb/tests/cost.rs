//! Strangers that a balancer refuses take nothing from it, however many come: what it knows still passes, and no table
//! grows. What a refusal costs is a benchmark's matter, not a test's: times depend on what else the machine does.

use super::hostile::{Random, TCP, bench, client, vip};
use super::*;

const CONNECTIONS: u16 = 1000;
const PACKETS: usize = 128;
const ROUNDS: usize = 400;

/// Send packets of known connections and of strangers in turns: all of the first pass, and none of the second.
fn assert_refused(what: &str, bench: &mut Bench) {
    let before = [bench.gauge("connections"), bench.gauge("evicted")];
    let mut random = Random(5);
    for round in 0..2 * ROUNDS {
        let is_known = round % 2 == 0;
        let senders = (0..PACKETS).map(|_| match is_known {
            true => client(random.next() as u16 % CONNECTIONS),
            false => random.stranger(),
        });
        let frames: Vec<_> = senders.map(|from| frame(TCP, from, vip(), if is_known { ACK } else { SYN })).collect();
        let mut packets: Vec<_> = frames.iter().map(|bytes| bench.packet(bytes)).collect();
        for packet in &mut packets {
            packet.reparse();
            packet.parse().unwrap();
        }
        assert_eq!(process(bench, &mut packets), if is_known { PACKETS } else { 0 }, "{what}, round {round}");
    }
    assert_eq!([bench.gauge("connections"), bench.gauge("evicted")], before, "{what}");
}

/// Process packets batch by batch, as they come at ten million a second; returns how many pass.
#[inline(never)]
fn process(bench: &mut Bench, packets: &mut [Packet]) -> usize {
    let mut passed = 0;
    for batch in packets.chunks_mut(32) {
        bench.now += 3200;
        let at = At { tx: (), now: bench.now, gate: 0 };
        let mut plans: Vec<_> = batch.iter().map(|packet| bench.balancer.prepare(at, packet)).collect();
        plans.iter_mut().for_each(|plan| Function::<Local>::warm(&mut bench.balancer, plan));
        for (packet, plan) in batch.iter_mut().zip(&mut plans) {
            let verdict = loop {
                if let Step::Done(verdict) = bench.balancer.finish(at, packet, plan) {
                    break verdict;
                }
            };
            if let Verdict::Gate(0) = verdict {
                passed += 1;
            }
        }
        bench.balancer.tidy(bench.now, false);
    }
    passed
}

fn full() -> Bench {
    filled(bench(CONNECTIONS.into()))
}

fn filled(mut bench: Bench) -> Bench {
    (0..CONNECTIONS).for_each(|i| _ = bench.connect(client(i)).unwrap());
    bench
}

#[test]
fn a_full_table_refuses_strangers() {
    let mut bench = full();
    assert_refused("table full", &mut bench);
    assert_eq!((bench.gauge("connections"), bench.gauge("evicted")), (CONNECTIONS.into(), 0));
}

#[test]
fn a_full_table_of_many_addresses_refuses_strangers() {
    let vips: Vec<String> = (1..=63).map(|n| format!("192.0.3.{n}:80")).chain([vip().to_string()]).collect();
    let args = args(&vips.join(" "), "10.0.0.1:8080 10.0.0.2:8080 10.0.0.3:8080");
    let most = Value::Integer(CONNECTIONS.into());
    assert_refused("64 VIPs, table full", &mut filled(Bench::new(&args.with("max_connections", most))));
}

/// For callgrind, which counts instructions within `process`.
#[test]
fn known_packets_only() {
    let mut bench = full();
    let mut random = Random(5);
    for _ in 0..100 {
        let senders = (0..PACKETS).map(|_| client(random.next() as u16 % CONNECTIONS));
        let frames: Vec<_> = senders.map(|from| frame(TCP, from, vip(), ACK)).collect();
        let mut packets: Vec<_> = frames.iter().map(|bytes| bench.packet(bytes)).collect();
        for packet in &mut packets {
            packet.reparse();
            packet.parse().unwrap();
        }
        assert_eq!(process(&mut bench, &mut packets), PACKETS);
    }
}

#[test]
fn servers_that_are_down_refuse_strangers() {
    let mut bench = full();
    (1..=3).for_each(|number| assert!(bench.balancer.set_backend(number, false)));
    assert_refused("no backend up", &mut bench);
}

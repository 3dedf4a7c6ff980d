//! Who asks for the same room at the same time.

use super::*;
use crate::function::Runner;
use crate::testing::{Harness, START, craft};

const METHODS: [&str; 2] = ["least_connections", "consistent_hash"];

/// A balancer with room for four connections.
fn of_four(method: &str) -> Args {
    let args = args("192.0.2.10:80", "10.0.0.1 10.0.0.2 10.0.0.3").with("max_connections", Value::Integer(4));
    args.with("method", Value::Word(method.into()))
}

/// The SYNs of sixteen clients.
fn syns() -> impl Iterator<Item = Vec<u8>> {
    (1..=16).map(|host| craft(&format!("tcp 7.0.0.{host}:4000 > 192.0.2.10:80 S")))
}

/// Take a step with each of many packets, then the next one: each has read the table before any has written to it. Returns
/// their fates.
fn side_by_side<E: Engine>(on: &mut On<E>, packets: Vec<Packet>) -> Vec<Verdict> {
    let mut waiting: Vec<_> = packets
        .into_iter()
        .map(|packet| {
            let mut tx = on.begin(START, 0);
            let plan = on.balancer.prepare(&mut tx, &packet);
            (tx, plan, packet)
        })
        .collect();
    let On { engine, balancer, .. } = on;
    let mut fates = Vec::new();
    while !waiting.is_empty() {
        waiting.iter_mut().for_each(|(tx, ..)| engine.issue(tx));
        while !waiting.iter().all(|(tx, ..)| engine.is_ready(tx)) {
            engine.poll();
        }
        for (mut tx, mut plan, mut packet) in std::mem::take(&mut waiting) {
            engine.step(&mut tx);
            match balancer.finish(&mut tx, &mut packet, &mut plan) {
                Step::Done(fate) => {
                    engine.end(tx);
                    fates.push(fate);
                }
                Step::Again => waiting.push((tx, plan, packet)),
            }
        }
    }
    fates
}

#[test]
fn no_more_are_let_in_than_there_is_room_for() {
    let slot = Attributes::default().slot("backend").unwrap();
    let engine = Delayed::new(Seed::from_number(1), Share::WHOLE, 1).slow(20);
    let mut on = On::new(engine, &of_four("least_connections"), slot);
    let mut pool = Depot::map(64, 0).unwrap().pool();
    let packets = syns().map(|bytes| {
        let mut packet = pool.take(bytes.len()).unwrap();
        packet.fill(&bytes);
        packet.parse().unwrap();
        packet
    });
    let fates = side_by_side(&mut on, packets.collect());
    let count = |of| fates.iter().filter(|fate| **fate == of).count();
    assert_eq!((count(Verdict::Gate(0)), count(Verdict::Drop(TABLE_FULL))), (4, 12));
    let mut gauges = HashMap::new();
    on.gauges(&mut |name, value| _ = gauges.insert(name, value));
    assert_eq!(["connections", "opened", "evicted"].map(|name| gauges[name]), [4, 4, 0]);
    let active: Vec<_> = on.backends().map(|backend| backend.connections).collect();
    assert_eq!(active, [2, 1, 1]);
}

/// A half-open connection gives way to the next as soon as it is in the table: how many are refused depends on who waits
/// how long. But each is opened or refused, and never are there more than four.
#[test]
fn whoever_waits_how_long_there_are_never_more_than_there_is_room_for() {
    let mut most_refused = 0;
    for (method, seed) in METHODS.into_iter().flat_map(|method| (0..100).map(move |seed| (method, seed))) {
        let engine = Delayed::new(Seed::from_number(1), Share::WHOLE, seed).slow(20);
        most_refused = most_refused.max(on_delayed(seed, || refused(engine, method)));
    }
    assert_eq!(refused(Local::new(Seed::from_number(1), Share::WHOLE), METHODS[0]), 0, "nobody waits");
    assert!((1..=12).contains(&most_refused), "{most_refused}");
}

/// Send the SYNs at once; returns how many are refused.
fn refused<E: Engine>(mut engine: E, method: &str) -> u64 {
    let slot = Attributes::default().slot("backend").unwrap();
    let balancer = Balancer::new(&mut engine, Settings::read(&of_four(method), Share::WHOLE).unwrap(), slot).unwrap();
    let mut harness = Harness::new(Box::new(Runner::new(engine, balancer)), 2);
    let packets: Vec<_> = syns().map(|bytes| (START, bytes)).collect();
    let left = harness.send(0, &packets).len() as u64;
    let refused = harness.drops().get("connection table full").copied().unwrap_or(0);
    let gauges = harness.gauges();
    assert_eq!((left + refused, gauges["opened"], gauges["connections"]), (16, left, 4));
    assert_eq!(gauges["evicted"], left - 4);
    let balancer = harness.module::<Runner<E, Balancer<E>>>().function_mut();
    assert_eq!(balancer.backends().map(|backend| backend.connections).sum::<i64>(), 4);
    harness.end();
    refused
}

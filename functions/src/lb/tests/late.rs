//! State that is late: packets of many connections wait side by side, in any order.

use super::super::admission::{Active, Inside};
use super::super::balancer::Shared;
use super::super::connection::{Connection, State};
use super::super::family::Balance;
use super::super::side::{Side, way_back};
use super::*;
use crate::family::V4;
use crate::function::Runner;
use crate::rewrite::Change;
use crate::testing::agreement::agrees;
use crate::testing::{Harness, START, craft, engines};
use catena_dataplane::Module;
use catena_packet::random::SplitMix64;
use catena_state::{Crashes, FOREVER, FlowMap, Intent, Shared as _, TwoKeyMap};
use std::collections::BTreeMap;

/// A hash of the connection names its server, whoever came before; and who has one server has no choice. No two addresses
/// meet at one server and port here: there the younger connection is meant, and which one that is depends on who comes first.
#[test]
fn late_state_changes_nothing() {
    let hash = |args: Args| args.with("method", Value::Word("consistent_hash".into()));
    let any_port = |backends| args("192.0.2.9 192.0.2.10:80 2001:db8:9::9", backends);
    agrees(&DESCRIPTOR, &hash(any_port("10.9.0.1 10.9.0.2 10.9.0.3 fd00::1 fd00::2")));
    agrees(&DESCRIPTOR, &any_port("10.9.0.1 fd00::1"));
    let one_port = args("192.0.2.10:80 [2001:db8:9::9]:53", "10.9.0.1:80 [fd00::1]:5353");
    agrees(&DESCRIPTOR, &one_port.with("drain", Value::Bool(false)));
}

/// Who has the fewest connections, and whose place is taken in a full table, depends on who comes first; and of those that
/// wait, anyone may. But what is counted is what is there, on every engine.
#[test]
fn counts_add_up_whoever_comes_first() {
    let backends = "10.9.0.1 10.9.0.2 10.9.0.3:81 fd00::1 fd00::2";
    let args = args("192.0.2.9 192.0.2.10:80 2001:db8:9::9", backends);
    for (most, drain, method) in [
        (4, true, "least_connections"),
        (9, false, "least_connections"),
        (9, false, "consistent_hash"),
        (1000, true, "least_connections"),
    ] {
        let args = args.clone().with("max_connections", Value::Integer(most)).with("drain", Value::Bool(drain));
        let args = args.with("method", Value::Word(method.into()));
        count(Local::new(Seed::from_number(1), Share::WHOLE), &args, 0);
        for seed in 0..40 {
            // Some are so late that many wait together.
            let engine = Delayed::new(Seed::from_number(1), Share::WHOLE, seed).slow(1 + seed % 16);
            on_delayed(seed, || count(engine, &args, seed));
        }
    }
}

/// Send hostile and honest packets, both ways, while servers go down and come up and time jumps.
fn count<E: Engine>(mut engine: E, args: &Args, seed: u64) {
    let slot = Attributes::default().slot("backend").unwrap();
    let settings = Settings::read(args, Share::WHOLE).unwrap();
    let backends: Vec<_> = settings.backends.iter().map(|backend| (backend.ip, backend.port)).collect();
    let balancer = Balancer::new(&mut engine, settings, slot).unwrap();
    let module: Box<dyn Module> = Box::new(Runner::new(engine, balancer));
    let mut harness = Harness::new(module, 2);
    let mut random = SplitMix64::new(seed);
    let (mut now, mut sent, mut left) = (START, 0, 0);
    for _ in 0..12 {
        let mut piece = |gate: u16| {
            let mut packet = || {
                now += random.bits() % (SECOND / 100);
                (now, packet(gate, &backends, &mut random))
            };
            (gate, (0..70).map(|_| packet()).collect::<Vec<_>>())
        };
        for (gate, frames) in [0, 1].map(&mut piece) {
            sent += frames.len() as u64;
            left += harness.send(gate, &frames).len() as u64;
            let dropped: u64 = harness.drops().values().sum();
            assert_eq!(left + dropped, sent, "every packet leaves or is counted");
            harness.module::<Runner<E, Balancer<E>>>().command(now, add_up);
        }
        let number = (1 + random.bits() % 5) as u16;
        let up = random.bits().is_multiple_of(2);
        let runner = harness.module::<Runner<E, Balancer<E>>>();
        runner.command(now, |balancer, tx| balancer.set_backend(tx, number, up));
        if random.bits().is_multiple_of(4) {
            now += random.bits() % (400 * SECOND);
            harness.tick(now);
        }
    }
    // When all is over, nothing is left behind.
    now += 20_000 * SECOND;
    (0..200).for_each(|_| harness.tick(now));
    let runner = harness.module::<Runner<E, Balancer<E>>>();
    runner.command(now, add_up);
    let balancer = runner.function();
    let loads: i64 = balancer.backends().map(|backend| backend.connections).sum();
    let entries = balancer.v4.connections.len()
        + balancer.v4.parts.len()
        + balancer.v6.connections.len()
        + balancer.v6.parts.len();
    assert_eq!((loads, entries), (0, 0));
    harness.end();
}

/// A server that goes down or comes up while packets wait does so between two of them, as on local state: whoever came before it
/// finds it as it was, also when an instance is lost and its packets begin once more.
#[test]
fn a_server_that_goes_down_while_packets_wait_does_so_between_two_of_them() {
    // No two addresses meet at one server and port.
    let args = args("192.0.2.10:80 2001:db8:9::9", "10.9.0.1 10.9.0.2 10.9.0.3:81 fd00::1 fd00::2");
    for (drain, method) in [
        (true, "consistent_hash"),
        (false, "consistent_hash"),
        (true, "least_connections"),
        (false, "least_connections"),
    ] {
        let args = args.clone().with("method", Value::Word(method.into())).with("drain", Value::Bool(drain));
        for seed in 0..if cfg!(debug_assertions) { 2 } else { 10 } {
            let expected = changing(Local::new(Seed::from_number(1), Share::WHOLE), &args, seed);
            for crashes in [Crashes::Never, Crashes::OneIn(40), Crashes::OneIn(400)] {
                let lost = engines::lost();
                let engine = Delayed::new(Seed::from_number(1), Share::WHOLE, seed).slow(5).crashing(crashes);
                let came = changing(engine, &args, seed);
                assert_eq!(engines::lost() > lost, crashes != Crashes::Never);
                // Who has the fewest connections depends on who comes first.
                if method == "consistent_hash" {
                    assert_eq!(came, expected, "{crashes:?}, drain {drain}, seed {seed}");
                }
            }
        }
    }
}

/// What came of a run: what left, sorted; drops; gauges.
type Came = (Vec<(usize, u16, Vec<u8>)>, BTreeMap<&'static str, u64>, BTreeMap<&'static str, u64>);

/// Send packets, both ways, while servers go down and come up. Nobody waits for those that wait.
fn changing<E: Engine>(engine: E, args: &Args, seed: u64) -> Came {
    let slot = Attributes::default().slot("backend").unwrap();
    let settings = Settings::read(args, Share::WHOLE).unwrap();
    let backends: Vec<_> = settings.backends.iter().map(|backend| (backend.ip, backend.port)).collect();
    let made = args.clone();
    let make = move |engine: &mut E| {
        engine.make_for("it");
        Balancer::new(engine, Settings::read(&made, Share::WHOLE).unwrap(), slot)
    };
    let mut harness = Harness::new(Box::new(Runner::that_goes_on(engine, make).unwrap()), 2);
    let mut random = SplitMix64::new(seed);
    let (mut now, mut left) = (START, Vec::new());
    for round in 0..24 {
        let gate = round % 2;
        let mut packet = || {
            now += random.bits() % (SECOND / 100);
            (now, packet(gate, &backends, &mut random))
        };
        let packets: Vec<_> = (0..30).map(|_| packet()).collect();
        harness.send_to(gate, &packets, &mut left);
        let (number, up) = ((1 + random.bits() % 5) as u16, random.bits().is_multiple_of(2));
        let runner = harness.module::<Runner<E, Balancer<E>>>();
        assert!(runner.command(now, |balancer, tx| balancer.set_backend(tx, number, up)));
    }
    left.extend(harness.finish());
    left.sort();
    let came = (left, harness.drops(), harness.gauges());
    harness.end();
    came
}

/// A packet of one of a few clients or their servers: of any kind that does something.
fn packet(gate: u16, backends: &[(IpAddr, Option<u16>)], random: &mut SplitMix64) -> Vec<u8> {
    let mut draw = |below: u64| (random.bits() >> 33) % below;
    let (host, port, is_v6) = (1 + draw(6), 4000 + draw(4), draw(4) == 0);
    let client = if is_v6 { format!("2001:db8::{host}") } else { format!("10.0.0.{host}") };
    let family: Vec<_> = backends.iter().filter(|(ip, _)| ip.is_ipv6() == is_v6).collect();
    let (ip, own) = family[draw(family.len() as u64) as usize];
    let (vip, vport) = match draw(3) {
        _ if is_v6 => ("2001:db8:9::9", 80),
        // Two addresses that meet at one server and port.
        0 => ("192.0.2.9", 80),
        _ => ("192.0.2.10", 80),
    };
    let at = |ip: &str, port: u64| if is_v6 { format!("[{ip}]:{port}") } else { format!("{ip}:{port}") };
    let (from, to) = match gate {
        0 => (at(&client, port), at(vip, vport)),
        _ => (at(&ip.to_string(), own.unwrap_or(80).into()), at(&client, port)),
    };
    let (src, dst) = match gate {
        0 => (client, vip.to_owned()),
        _ => (ip.to_string(), client),
    };
    craft(&match draw(12) {
        0..3 if gate == 0 => format!("tcp {from} > {to} S"),
        0..3 => format!("tcp {from} > {to} SA"),
        3 => format!("tcp {from} > {to} A len {}", draw(50)),
        4 => format!("tcp {from} > {to} A"),
        5 => format!("tcp {from} > {to} FA"),
        6 => format!("tcp {from} > {to} R"),
        7 => format!("udp {from} > {to} len 120 id {} first", 1 + draw(3)),
        8 => format!("ip {src} > {dst} proto 17 len 8 id {} later 128", 1 + draw(3)),
        _ => format!("udp {from} > {to} len {}", draw(50)),
    })
}

/// Hold what is counted to what is there.
fn add_up<E: Engine>(balancer: &mut Balancer<E>, tx: &mut Tx) {
    let Balancer { v4, v6, shared } = balancer;
    let (connections, fragmented) = shared.admission.look(Inside);
    let let_in = (connections as usize, fragmented as usize);
    let (connections, fragmented) =
        [entries(v4, shared, tx), entries(v6, shared, tx)].into_iter().fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
    assert_eq!(let_in, (connections, fragmented), "connections, fragmented datagrams");
}

/// Return how many connections and fragmented datagrams one IP version has. Servers count the connections that say so.
fn entries<E: Engine, F: Balance>(side: &mut Side<E, F>, shared: &Shared<E>, tx: &mut Tx) -> (usize, usize) {
    let mut all = Vec::new();
    side.connections.sweep(tx, usize::MAX, |_, _, entry| {
        all.push(*entry);
        false
    });
    for (number, _, connections) in side.servers.list(|question: Active| shared.admission.look(question)) {
        let counts = |entry: &Connection<_>| entry.server == number && entry.state.has(State::COUNTED);
        let counted = all.iter().filter(|entry| counts(entry)).count();
        assert_eq!(connections, counted as i64, "connections of server {}", number + 1);
    }
    (all.len(), side.parts.len())
}

/// A packet that finds no place to wait is dropped before its connection opens, not in the middle.
#[test]
fn no_connection_is_left_half_open_for_want_of_a_place_to_wait() {
    let args = args("192.0.2.10:80", "10.0.0.1 10.0.0.2").with("method", Value::Word("consistent_hash".into()));
    let mut engine = Delayed::new(Seed::from_number(1), Share::WHOLE, 3).slow(100);
    let slot = Attributes::default().slot("backend").unwrap();
    let balancer = Balancer::new(&mut engine, Settings::read(&args, Share::WHOLE).unwrap(), slot).unwrap();
    let mut harness = Harness::new(Box::new(Runner::new(engine, balancer)), 2);
    let packets: Vec<_> =
        (0..2000).map(|port| (START, frame_of(&format!("udp 7.0.0.1:{} > 192.0.2.10:80", 1000 + port)))).collect();
    let mut left = on_delayed(3, || harness.send(0, &packets)).len();
    left += harness.finish().len();
    let dropped = harness.drops()["too many wait for their state"];
    assert!(dropped > 100 && left as u64 + dropped == 2000, "{left} left, {dropped} dropped");
    let runner = harness.module::<Runner<Delayed, Balancer<Delayed>>>();
    assert_eq!(runner.function().v4.connections.len(), left);
    runner.command(START, add_up);
    harness.end();
}

/// A balancer of one connection at a time, on late state, and a packet that asks it for another.
fn of_one(words: &str) -> (On<Delayed>, Packet, Pool) {
    let args = args("192.0.2.10:80", "10.0.0.1 10.0.0.2").with("max_connections", Value::Integer(1));
    let slot = Attributes::default().slot("backend").unwrap();
    let on = On::new(Delayed::new(Seed::from_number(1), Share::WHOLE, 5), &args, slot);
    let mut pool = Depot::map(64, 0).unwrap().pool();
    let packet = filled(&mut pool, words);
    (on, packet, pool)
}

fn filled(pool: &mut Pool, words: &str) -> Packet {
    let bytes = frame_of(words);
    let mut packet = pool.take(bytes.len()).unwrap();
    packet.fill(&bytes);
    packet.parse().unwrap();
    packet
}

#[test]
fn who_is_refused_after_a_wait_counts_nowhere() {
    let (mut on, mut packet, mut pool) = of_one("tcp 7.0.0.2:1 > 192.0.2.10:80 S");
    let mut tx = on.begin(START, 0);
    let mut plan = on.balancer.prepare(&mut tx, &packet);
    wait(&mut on.engine, &mut tx);
    on.engine.step(&mut tx);
    assert_eq!(
        on.balancer.finish(&mut tx, &mut packet, &mut plan),
        Step::Again,
        "there is room, and it asks to be let in"
    );
    // Meanwhile another takes the room, and is established.
    for (gate, words) in [(0, "tcp 7.0.0.1:1 > 192.0.2.10:80 S"), (1, "tcp 10.0.0.1:80 > 7.0.0.1:1 FA")] {
        let mut packet = filled(&mut pool, words);
        assert_eq!(on.run(START, gate, &mut packet), Verdict::Gate(gate));
    }
    wait(&mut on.engine, &mut tx);
    on.engine.step(&mut tx);
    assert_eq!(on.balancer.finish(&mut tx, &mut packet, &mut plan), Step::Done(Verdict::Drop(TABLE_FULL)));
    on.engine.commit(&mut tx);
    assert_eq!(on.balancer.backends().map(|backend| backend.connections).collect::<Vec<_>>(), [1, 0]);
    let mut tx = on.begin(START, 0);
    on.engine.step(&mut tx);
    add_up(&mut on.balancer, &mut tx);
}

#[test]
fn a_connection_that_finds_no_room_leaves_nothing() {
    let (mut on, mut packet, _pool) = of_one("tcp 7.0.0.2:1 > 192.0.2.10:80 S");
    let mut tx = on.begin(START, 0);
    // Nobody was let in, and yet somebody is there.
    let rewrite = Change::new::<V4>((0, 0), (0, 0));
    let entry = Connection { rewrite, due: 0, proof: 0, place: 0, server: 0, state: State::new(0) };
    let connections = &mut on.balancer.v4.connections;
    let key = connections.want(&mut tx, [1, 0], Intent::Create);
    let other = connections.want_other(&mut tx, way_back::<V4>(&[1, 0], (0, 0)), Intent::Create);
    wait(&mut on.engine, &mut tx);
    on.engine.step(&mut tx);
    assert!(connections.insert_both(&mut tx, (&key, &other), entry, FOREVER).is_ok());
    assert_eq!(on.run(START, 0, &mut packet), Verdict::Drop(TABLE_FULL));
    assert_eq!(on.balancer.backends().map(|backend| backend.connections).sum::<i64>(), 0);
    assert_eq!(on.balancer.v4.connections.len(), 1);
    assert_eq!(on.balancer.shared.admission.look(Inside).0, 0);
}

//! What a function does on an engine that is late is what it does on the local one, packet by packet.

use std::collections::BTreeMap;

use catena_packet::wire::Seed;

use super::engines::{LOSING, SEEDS, losses, lost, made, on_delayed, on_going, on_local, on_losing, on_team};
use super::{Harness, SECOND, START, craft, describe};
use crate::descriptor::Affinity;
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
            let line = match draw(7) {
                0 => format!("tcp {from} > {to} S"),
                1 => format!("tcp {from} > {to} A len {}", draw(50)),
                2 => format!("tcp {from} > {to} FA"),
                3 => format!("tcp {from} > {to} SA"),
                4 => format!("tcp {from} > {to} R"),
                _ => format!("udp {from} > {to} len {}", draw(50)),
            };
            (time, craft(&line))
        };
        (gate, (0..40).map(|_| packet()).collect::<Vec<_>>())
    };
    [0, 1, 0, 1].map(&mut piece).into()
}

/// What left, by number: by which gate, with which bytes.
type Left = BTreeMap<usize, (u16, Vec<u8>)>;

/// What came of a run.
struct Outcome {
    /// By piece.
    left: Vec<Left>,
    drops: BTreeMap<&'static str, u64>,
    gauges: BTreeMap<&'static str, u64>,
}

fn run(descriptor: &Descriptor, args: &Args, traffic: &Traffic) -> Outcome {
    let mut harness = Harness::of(descriptor, args);
    let by_number = |left: Vec<(usize, u16, Vec<u8>)>| left.into_iter().map(|(n, gate, bytes)| (n, (gate, bytes)));
    let left = traffic.iter().map(|(gate, frames)| by_number(harness.send(*gate, frames)).collect()).collect();
    let outcome = Outcome { left, drops: harness.drops(), gauges: harness.gauges() };
    harness.end();
    outcome
}

/// Hold a function's runner to its word where whoever holds the objects is gone for good: each packet leaves or is dropped, those that
/// come later all for that, and the end says it.
fn gives_up(descriptor: &Descriptor, args: &Args, traffic: &Traffic) {
    const LOST: &str = "its state is lost";
    let (mut harness, name) = (Harness::of(descriptor, args), descriptor.name);
    let sent: usize = traffic.iter().map(|(_, frames)| frames.len()).sum();
    let mut left = 0;
    for (gate, frames) in traffic.iter().filter(|(_, frames)| !frames.is_empty()) {
        left += harness.send(*gate, frames).len();
    }
    let dropped: u64 = harness.drops().values().sum();
    assert_eq!(left as u64 + dropped, sent as u64, "{name}: packets are lost with their state");
    // However few have come, it is gone by now.
    (0..SEEDS).for_each(|_| harness.tick(START + SECOND));
    let (gate, frames) = &traffic[0];
    assert!(harness.send(*gate, frames).is_empty(), "{name}: packets leave that have no state");
    assert!(
        harness.drops().get(LOST).is_some_and(|lost| *lost >= frames.len() as u64),
        "{name}: {:?}",
        harness.drops()
    );
    let error = harness.finish_error();
    assert!(error.contains("who holds the shared objects is gone"), "{name}: {error}");
    harness.end();
}

/// Hold a function to the objects that it declares: the last one made on a delayed engine made each of them, and no others.
fn makes_what_it_declares(descriptor: &Descriptor, args: &Args) {
    let made = made();
    // Of a function in C they are declared where it is loaded.
    if matches!(descriptor.affinity, Affinity::Manifest { .. }) {
        return;
    }
    for object in &made {
        let declared = descriptor.state.iter().map(|known| (descriptor.declared)(args, *known));
        // Which part it is may depend on arguments.
        let is_it = declared.into_iter().any(|known| known.part(object.part) == *object);
        assert!(is_it, "{}: {object:?} is not declared with these arguments", descriptor.name);
    }
    for object in descriptor.state {
        let is_made = made.iter().any(|known| known.name == object.name);
        assert!(is_made, "{}: {object} is declared, but never made", descriptor.name);
    }
}

/// Hold a function that does not [agree](agrees), as what it gives out depends on who comes first, to what it declares when it is `run` with a
/// seed, and to its word where who holds the objects is gone.
pub fn declares_and_gives_up(descriptor: &Descriptor, args: &Args, run: impl Fn(u64)) {
    for seed in 0..SEEDS {
        made();
        on_delayed(seed, || run(seed));
        makes_what_it_declares(descriptor, args);
        on_going(seed, 1 + seed, || gives_up(descriptor, args, &traffic(seed)));
    }
}

/// Hold a function to the same outcome on every engine, of other packets for every seed. Returns the local engine's drops in
/// all runs, so that a test can see that its arguments make the function drop something.
///
/// # Panics
/// Where it differs.
pub fn agrees(descriptor: &Descriptor, args: &Args) -> BTreeMap<&'static str, u64> {
    let mut drops = BTreeMap::new();
    for seed in 0..SEEDS {
        let traffic = traffic(seed);
        let local = on_local(|| run(descriptor, args, &traffic));
        let late = on_delayed(seed, || run(descriptor, args, &traffic));
        makes_what_it_declares(descriptor, args);
        // One in C has memory of its own, and is never lost.
        let may_be_lost = seed < LOSING && !matches!(descriptor.affinity, Affinity::Manifest { .. });
        let lost_before = lost();
        let losing = may_be_lost.then(|| on_losing(seed, losses(seed), || run(descriptor, args, &traffic)));
        assert!(!may_be_lost || lost() > lost_before, "{} with seed {seed}: no instance was lost", descriptor.name);
        on_going(seed, 1 + seed, || gives_up(descriptor, args, &traffic));
        let shared = on_team(|| run(descriptor, args, &traffic));
        let outcomes =
            [("late", Some(&late)), ("late, and lost at times,", losing.as_ref()), ("of a team", Some(&shared))];
        for (how, outcome) in outcomes {
            if let Some((what, late, local)) = outcome.and_then(|outcome| difference(outcome, &local)) {
                panic!("{what} of {} with seed {seed}: {how} {late}, local {local}; {HINT}", descriptor.name);
            }
        }
        local.drops.into_iter().for_each(|(reason, count)| *drops.entry(reason).or_default() += count);
    }
    drops
}

/// What most often makes the difference.
const HINT: &str =
    "does *prepare* change something, does it matter which flow comes first, or has the function state of its own?";

/// Say what differs, and what it is on each engine.
fn difference(late: &Outcome, local: &Outcome) -> Option<(String, String, String)> {
    for (what, late, local) in [("drops", &late.drops, &local.drops), ("gauges", &late.gauges, &local.gauges)] {
        if late != local {
            return Some((what.to_owned(), format!("{late:?}"), format!("{local:?}")));
        }
    }
    for (piece, (late, local)) in late.left.iter().zip(&local.left).enumerate() {
        let mut numbers = late.keys().chain(local.keys());
        let Some(number) = numbers.find(|number| late.get(number) != local.get(number)) else { continue };
        let [late, local] = [late, local].map(|left| match left.get(number) {
            Some((gate, bytes)) => format!("by gate {gate} as {} {bytes:02x?}", describe(bytes)),
            None => "dropped".to_owned(),
        });
        return Some((format!("packet {number} in piece {piece}"), late, local));
    }
    None
}

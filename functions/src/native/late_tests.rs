//! C functions whose state comes late.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use catena_packet::wire::Seed;
use catena_state::Share;

use super::DESCRIPTOR;
use super::tests::{Bench, Fate, LATE, build, library, packet, refusal};
use crate::config::{Args, Value};
use crate::testing::agreement::agrees;
use crate::testing::engines::{on_delayed, on_every_engine};

#[test]
fn all_of_it_on_engines_that_are_late() {
    LATE.run();
}

/// A packet of a source, and what it asks `hops` for.
fn asks(source: u8, what: [u8; 3]) -> Vec<u8> {
    let mut bytes = packet(what[0], source);
    let payload = bytes.len() - 4;
    bytes[payload..payload + 3].copy_from_slice(&what);
    bytes
}

fn hops(symbol: &str) -> Option<Bench> {
    Some(Bench::new(build(&library("hops")?.path, &[], &[("name", symbol)], Share::WHOLE).unwrap()))
}

fn marks(fates: &[Fate]) -> Vec<u32> {
    let mark = |fate: &Fate| match fate {
        Fate::Out { mark, .. } => *mark,
        Fate::Dropped(reason) => panic!("{reason}"),
    };
    fates.iter().map(mark).collect()
}

/// One entry tells which is wanted next: the function begins once more when that is there.
#[test]
fn entries_that_entries_tell_of_are_waited_for() {
    for symbol in ["hops", "unprepared"] {
        on_every_engine(|| {
            let Some(mut bench) = hops(symbol) else { return };
            // Packets of one flow: each sees what those before it did.
            let mut links = HashMap::new();
            let words = Seed::from_number(5);
            for round in 0..4 {
                let mut expected = Vec::new();
                let frames = (0..16).map(|n| {
                    // Links lead on by tens, so that a walk has at most five.
                    let draw = words.hash2([round, n]);
                    let from = (draw >> 20) as u8 % 60;
                    let to = (from / 10 + 1) * 10 + (draw >> 40) as u8 % 10;
                    if n % 2 == 0 {
                        links.insert(from, to);
                        expected.push(0);
                        return asks(1, [b's', from, to]);
                    }
                    let mut at = from;
                    while let Some(next) = links.get(&at) {
                        at = *next;
                    }
                    expected.push(at.into());
                    asks(1, [b'g', from, 0])
                });
                let frames: Vec<_> = frames.collect();
                assert_eq!(marks(&bench.send(0, &frames)), expected);
            }
            // Nothing changes any more, and packets of all flows go their own ways.
            let end = |mut at: u8| {
                while let Some(next) = links.get(&at) {
                    at = *next;
                }
                u32::from(at)
            };
            let frames: Vec<_> = (0..32).map(|n| asks(n, [b'g', n, 0])).collect();
            assert_eq!(marks(&bench.send(0, &frames)), (0..32).map(end).collect::<Vec<_>>());
            assert_eq!((bench.gauge("walks"), bench.gauge("mistakes")), (Some(64), None));
            assert!(bench.end().is_empty());
        });
    }
}

#[test]
fn who_does_not_ask_first_is_refused() {
    let Some(lib) = library("hops") else { return };
    on_delayed(1, || {
        let refusal = refusal(&lib.path, &[], &[("name", "hasty")]);
        assert!(refusal.contains("function `hasty` asks for state and uses it at once"), "{refusal}");
        let args = Args::default().with("lib", Value::Text(lib.path.display().to_string()));
        let args = args.with("name", Value::Text("hops".to_owned())).with("watch", Value::Bool(true));
        let refusal = crate::testing::build(&DESCRIPTOR, &args, Share::WHOLE).err().unwrap().to_string();
        assert!(refusal.contains("a new build can take over on local state only"), "{refusal}");
        // Only the first entry is expected.
        let mut bench = hops("impatient").unwrap();
        assert_eq!(marks(&bench.send(0, &[asks(1, [b's', 1, 3]), asks(1, [b's', 3, 4])])), [0, 0]);
        assert_eq!(bench.send(0, &[asks(1, [b'g', 1, 0])]), [Fate::Dropped("no room")]);
        assert_eq!(bench.gauge("mistakes"), Some(1));
        assert!(bench.end().is_empty());
    });
}

#[test]
fn who_never_comes_to_an_end_is_dropped() {
    on_every_engine(|| {
        let Some(mut bench) = hops("endless") else { return };
        assert_eq!(bench.send(0, &[packet(0, 1)]), [Fate::Dropped("function gave a bad verdict")]);
        assert!(bench.end().is_empty());
    });
}

/// What a function must not do shows.
#[test]
fn violations_are_found() {
    if library("hops").is_none() {
        return;
    }
    // It adds to a counter in *prepare*: each time that is called.
    on_delayed(1, || {
        let mut bench = hops("counts").unwrap();
        bench.send(0, &[asks(1, [b'g', 1, 0])]);
        assert_eq!((bench.gauge("walks"), bench.gauge("mistakes")), (Some(1), Some(2)));
        assert!(bench.end().is_empty());
    });
    let scribbles = |seed| {
        let run = || hops("scribbles").unwrap().send(0, &[asks(1, [b'g', 1, 0])]);
        on_delayed(seed, || catch_unwind(AssertUnwindSafe(run)))
    };
    let said = scribbles(1).unwrap_err();
    let said = said.downcast_ref::<String>().unwrap();
    assert!(said.contains("a packet was changed before its verdict, in a step that returned Step::Again"), "{said}");
}

#[test]
fn the_example_does_on_late_state_what_it_does_on_local_state() {
    let Some(lib) = library("synguard") else { return };
    let args = Args::default().with("lib", Value::Text(lib.path.display().to_string()));
    let limit = Value::Record(vec![("limit".to_owned(), Value::Integer(2))]);
    agrees(&DESCRIPTOR, &args.with("args", limit).with("log", Value::Word("error".into())));
}

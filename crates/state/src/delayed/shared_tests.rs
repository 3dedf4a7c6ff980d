//! Shared objects on an engine that is late: applied in order, none lost, and misuse found.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::super::Delayed;
use super::*;
use crate::declare::{Access, Declaration, Scope};
use crate::engine::{Engine, Share};
use crate::local::Local;
use crate::shared_map::Place;
use catena_packet::wire::Seed;
use proptest::prelude::*;

const LIST: Declaration = Declaration::shared("list", "numbers", Scope::Global, Access::ReadWrite);
const TOLD: Declaration = Declaration::shared_map("told", "numbers", Scope::Source, Access::ReadWrite);

/// Append a number; answers how many there are then.
#[derive(Clone, Copy, Plain)]
struct Append(u32);

impl Op<Vec<u32>> for Append {
    type Reply = u32;

    fn apply(self, list: &mut Vec<u32>) -> u32 {
        list.push(self.0);
        list.len() as u32
    }
}

/// The same, and answers nothing.
#[derive(Clone, Copy, Plain)]
struct Note(u32);

/// What stands at this place?
#[derive(Clone, Copy, Plain)]
struct At(u32);

impl Look<Vec<u32>> for At {
    type Reply = Option<u32>;

    fn look(self, list: &Vec<u32>) -> Option<u32> {
        list.get(self.0 as usize).copied()
    }
}

crate::operations!("numbers": Vec<u32> { 0 => Append, 1 => Note } looks { 2 => At });

impl Op<Vec<u32>> for Note {
    type Reply = ();

    fn apply(self, list: &mut Vec<u32>) {
        list.push(self.0);
    }
}

/// The operations of anyone.
fn anyone() -> Tx {
    Tx::new(0, 0, 0)
}

fn late(seed: u64) -> (Delayed, DelayedShared<Vec<u32>>) {
    let mut engine = Delayed::new(Seed::from_number(1), Share::WHOLE, seed);
    let list = engine.shared(&LIST, Vec::new());
    (engine, list)
}

#[test]
fn operations_are_applied_late_but_in_order_and_all_of_them() {
    let mut was_late = false;
    for seed in 0..100 {
        let (mut engine, mut list) = late(seed);
        let mut waiting = Vec::new();
        for n in 0..50 {
            let mut tx = engine.begin(Tx::new(1 + u64::from(n), 0, 0));
            let ticket = (n % 3 == 0).then(|| list.want(&mut tx, Append(n)));
            engine.issue(&mut tx);
            engine.step(&mut tx);
            match ticket {
                Some(ticket) => waiting.push((tx, ticket, n)),
                None => {
                    list.send(&mut tx, Note(n));
                    engine.end(tx);
                }
            }
            for (mut tx, ticket, n) in std::mem::take(&mut waiting) {
                if engine.is_ready(&tx) {
                    assert_eq!(list.got(&mut tx, &ticket), n + 1);
                    engine.end(tx);
                } else {
                    waiting.push((tx, ticket, n));
                }
            }
            was_late |= waiting.len() > 1;
            engine.poll();
        }
        assert!((0..50).all(|n| list.look(At(n)) == Some(n)) && list.look(At(50)).is_none());
    }
    assert!(was_late);
}

#[test]
fn who_is_given_up_has_done_nothing() {
    let (mut engine, mut list) = late(1);
    let mut tx = engine.begin(Tx::new(1, 0, 0));
    list.want(&mut tx, Append(1));
    engine.end(tx);
    assert_eq!(list.look(At(0)), None);
}

/// A packet that is turned round behind a function passes it by both gates, with one clock: both passes are done.
#[test]
fn a_packet_that_comes_back_does_all_once_more() {
    for seed in 0..8 {
        let (mut engine, mut list) = late(seed);
        for gate in [0, 1] {
            let mut tx = engine.begin(Tx::new(1, 0, gate));
            let ticket = list.want(&mut tx, Append(7));
            engine.issue(&mut tx);
            (0..100).for_each(|_| _ = engine.poll());
            engine.step(&mut tx);
            assert_eq!(list.got(&mut tx, &ticket), 1 + 2 * u32::from(gate));
            list.send(&mut tx, Note(8));
            engine.commit(&mut tx);
            engine.end(tx);
        }
        assert_eq!([0, 1, 2, 3, 4].map(|at| list.look(At(at))), [Some(7), Some(8), Some(7), Some(8), None]);
    }
}

/// What is told of an object in the middle of a packet may be old; what is looked at between packets is all that was told.
#[test]
fn a_glance_tells_what_has_come() {
    let is_old = (0..20).any(|seed| {
        let (mut engine, mut list) = late(seed);
        let mut tx = engine.begin(Tx::new(1, 0, 0));
        engine.issue(&mut tx);
        engine.step(&mut tx);
        list.send(&mut tx, Note(7));
        let glanced = list.glance(At(0));
        engine.commit(&mut tx);
        engine.end(tx);
        assert_eq!(list.look(At(0)), Some(7));
        glanced.is_none()
    });
    assert!(is_old);
}

#[test]
fn what_a_function_must_not_do_is_found() {
    let said = |wrong: fn(&mut Delayed, &mut DelayedShared<Vec<u32>>)| {
        let (mut engine, mut list) = late(1);
        let panic = catch_unwind(AssertUnwindSafe(|| wrong(&mut engine, &mut list))).unwrap_err();
        panic.downcast_ref::<String>().cloned().unwrap()
    };
    let at_once = said(|engine, list| {
        let mut tx = engine.begin(Tx::new(1, 0, 0));
        let ticket = list.want(&mut tx, Append(1));
        list.got(&mut tx, &ticket);
    });
    assert!(at_once.starts_with("list: a ticket is used in prepare, at "), "{at_once}");
    let twice = said(|engine, list| {
        let mut tx = engine.begin(Tx::new(1, 0, 0));
        let ticket = list.want(&mut tx, Append(1));
        engine.issue(&mut tx);
        (0..10).for_each(|_| _ = engine.poll());
        engine.step(&mut tx);
        list.got(&mut tx, &ticket);
        list.got(&mut tx, &ticket);
    });
    assert!(twice.starts_with("list: a ticket is used twice, at "), "{twice}");
    let left = said(|engine, list| {
        let mut tx = engine.begin(Tx::new(1, 0, 0));
        list.want(&mut tx, Append(1));
        engine.issue(&mut tx);
        engine.end(tx);
    });
    assert_eq!(left, "list: nobody has taken the reply of an operation");
    let early = said(|engine, list| {
        let mut tx = engine.begin(Tx::new(1, 0, 0));
        list.send(&mut tx, Note(1));
    });
    assert!(early.starts_with("list: changed in prepare, at "), "{early}");
    let nobodys = said(|engine, list| {
        let mut tx = engine.begin(Tx::new(0, 0, 0));
        list.want(&mut tx, Append(1));
    });
    let expected = "list: two operations of one name, as clock 0 is no packet's, at ";
    assert!(nobodys.starts_with(expected), "{nobodys}");
    let same = said(|engine, list| {
        for _ in 0..2 {
            let mut tx = engine.begin(Tx::new(1, 0, 0));
            engine.step(&mut tx);
            list.send(&mut tx, Note(1));
            engine.end(tx);
        }
    });
    let expected = "list: two operations of one name, Name { pass: Pass { clock: 1, gate: 0 }, index: 0 }, at ";
    assert!(same.starts_with(expected), "{same}");
    let less = said(|engine, list| {
        let mut tx = engine.begin(Tx::new(1, 0, 0));
        list.want(&mut tx, Append(1));
        engine.end(tx);
        let mut tx = engine.begin(Tx::new(1, 0, 0));
        engine.issue(&mut tx);
    });
    assert_eq!(less, "list: prepare asks for something else when it is asked again");
    let waited_for = said(|engine, _| {
        let log = Declaration { name: "log", access: Access::WriteMostly, ..LIST };
        let mut log = engine.shared(&log, Vec::new());
        let mut tx = engine.begin(Tx::new(1, 0, 0));
        log.want(&mut tx, Append(1));
    });
    assert!(waited_for.starts_with("log: waited for, and declared as one that is written mostly, at "), "{waited_for}");
    let out_of_turn = said(|engine, list| {
        let mut tx = engine.begin(Tx::new(1, 0, 0));
        let [_, second] = [1, 2].map(|n| list.want(&mut tx, Append(n)));
        engine.issue(&mut tx);
        (0..100).for_each(|_| _ = engine.poll());
        engine.step(&mut tx);
        list.got(&mut tx, &second);
    });
    let expected = "list: replies are taken in another order than they were asked for, at ";
    assert!(out_of_turn.starts_with(expected), "{out_of_turn}");
    for steps in [0, 1] {
        let looked = match steps {
            0 => said(|engine, list| {
                engine.begin(Tx::new(1, 0, 0));
                list.look(At(0));
            }),
            _ => said(|engine, list| {
                let mut event = engine.begin(Tx::new(2, 0, 0));
                engine.step(&mut event);
                assert_eq!(list.look(At(0)), None);
                let mut tx = engine.begin(Tx::new(1, 0, 0));
                engine.issue(&mut tx);
                engine.step(&mut tx);
                assert_eq!(list.glance(At(0)), None);
                list.look(At(0));
            }),
        };
        assert!(looked.starts_with("list: looked at for a packet's fate, at "), "{looked}");
    }
    let only_told = said(|engine, list| {
        for n in 0..100 {
            let mut tx = engine.begin(Tx::new(1 + n, 0, 0));
            engine.step(&mut tx);
            list.send(&mut tx, Note(1));
            engine.end(tx);
        }
    });
    let expected =
        "list: told more than it is asked, and declared as written and read often: told 64 times, asked 0, at ";
    assert!(only_told.starts_with(expected), "{only_told}");
    let told_more = said(|engine, _| {
        let names = Declaration { name: "names", access: Access::ReadMostly, ..LIST };
        let mut names = engine.shared(&names, Vec::new());
        for n in 0..100 {
            let mut tx = engine.begin(Tx::new(1 + n, 0, 0));
            let ticket = (n % 4 == 0).then(|| names.want(&mut tx, At(0)));
            engine.issue(&mut tx);
            (0..100).for_each(|_| _ = engine.poll());
            engine.step(&mut tx);
            if let Some(ticket) = ticket {
                names.got(&mut tx, &ticket);
            }
            names.send(&mut tx, Note(1));
            engine.end(tx);
        }
    });
    let expected = "names: told more than it is asked, and declared as read mostly: told 64 times, asked 16, at ";
    assert!(told_more.starts_with(expected), "{told_more}");
}

/// The numbers told of a key, the last first; over once the last is old.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Plain)]
struct Told {
    numbers: [u32; 3],
    at: u64,
}

impl Entry for Told {
    /// The age.
    type Rules = u64;

    fn end(&self, age: &u64) -> u64 {
        self.at + age
    }
}

/// Tell a number; answers what was told before, or nothing where there is no room.
#[derive(Clone, Copy, Plain)]
struct TellOf(u32, u64);

crate::entry_operations!("told": Told { 0 => TellOf });

impl EntryOp<Told> for TellOf {
    type Reply = Option<[u32; 3]>;

    fn apply(self, slot: &mut impl Place<Told>) -> Option<[u32; 3]> {
        let TellOf(number, at) = self;
        let age = *slot.rules();
        let before = slot.get().filter(|told| !told.is_over(&age, at)).map_or([0; 3], |told| told.numbers);
        let told = Told { numbers: [number, before[0], before[1]], at };
        match slot.get() {
            Some(known) => *known = told,
            None => {
                if slot.insert(at, told).is_err() {
                    slot.tally(0);
                    return None;
                }
            }
        }
        Some(before)
    }
}

proptest! {
    /// Each key's operations are applied in order, on both engines, whatever becomes of those of others; what is over is as
    /// if it had never been, whenever it is forgotten.
    #[test]
    fn entries_are_shared_in_the_order_of_their_keys(
        steps in prop::collection::vec((0u64..5, 0u64..40, any::<bool>()), 1..120),
        seed in any::<u64>(),
    ) {
        let mut model: std::collections::HashMap<u64, Told> = std::collections::HashMap::new();
        let mut local = Local::new(Seed::from_number(1), Share::WHOLE);
        let mut near: LocalSharedMap<u64, Told> = local.shared_map(&TOLD, 5, 50).unwrap();
        let mut engine = Delayed::new(Seed::from_number(1), Share::WHOLE, seed);
        let mut far: DelayedSharedMap<u64, Told> = engine.shared_map(&TOLD, 5, 50).unwrap();
        let mut waiting = Vec::new();
        let mut now = 0;
        for (number, (key, passed, tidies)) in steps.into_iter().enumerate() {
            now += passed;
            let told = TellOf(number as u32 + 1, now);
            let before = model.get(&key).filter(|told| !told.is_over(&50, now)).map_or([0; 3], |told| told.numbers);
            model.insert(key, Told { numbers: [told.0, before[0], before[1]], at: now });
            let mut ticket = near.want(&mut anyone(), key, told);
            near.warm(&mut ticket);
            prop_assert_eq!(near.got(&mut anyone(), &ticket), Some(before));
            let mut tx = engine.begin(Tx::new(1 + 2 * number as u64, 0, 0));
            let ticket = far.want(&mut tx, key, told);
            engine.issue(&mut tx);
            engine.step(&mut tx);
            waiting.push((tx, ticket, before));
            if tidies {
                near.tidy(&mut anyone(), 2, now);
                let mut tx = engine.begin(Tx::new(2 + 2 * number as u64, 0, 0));
                engine.step(&mut tx);
                far.tidy(&mut tx, 2, now);
                engine.end(tx);
            }
            for (mut tx, ticket, before) in std::mem::take(&mut waiting) {
                if engine.is_ready(&tx) {
                    assert_eq!(far.got(&mut tx, &ticket), Some(before));
                    engine.end(tx);
                } else {
                    waiting.push((tx, ticket, before));
                }
            }
            engine.poll();
        }
    }
}

#[test]
fn replies_of_different_keys_are_taken_in_any_order() {
    let mut engine = Delayed::new(Seed::from_number(1), Share::WHOLE, 1);
    let mut map: DelayedSharedMap<u64, Told> = engine.shared_map(&TOLD, 5, 50).unwrap();
    let mut tx = engine.begin(Tx::new(1, 0, 0));
    let [first, second] = [1, 2].map(|key| map.want(&mut tx, key, TellOf(1, 1)));
    engine.issue(&mut tx);
    (0..100).for_each(|_| _ = engine.poll());
    engine.step(&mut tx);
    assert_eq!([second, first].map(|ticket| map.got(&mut tx, &ticket)), [Some([0; 3]); 2]);
    engine.end(tx);
}

#[test]
fn a_map_that_is_made_anew_is_the_same_one() {
    let anew = |capacity, rules| {
        let mut engine = Delayed::new(Seed::from_number(1), Share::WHOLE, 1);
        engine.shared_map::<u64, Told>(&TOLD, 5, 50).unwrap();
        engine.begin_again();
        engine.shared_map::<u64, Told>(&TOLD, capacity, rules).is_ok()
    };
    assert!(anew(5, 50));
    let is_refused = |capacity, rules| catch_unwind(|| anew(capacity, rules)).is_err();
    assert!(is_refused(6, 50) && is_refused(5, 51));
}

#[test]
fn operations_on_different_keys_overtake_each_other() {
    let overtakes = (0..100).any(|seed| {
        let mut engine = Delayed::new(Seed::from_number(1), Share::WHOLE, seed);
        let mut map: DelayedSharedMap<u64, Told> = engine.shared_map(&TOLD, 5, 50).unwrap();
        let asked = [1, 2].map(|key| {
            let mut tx = engine.begin(Tx::new(key, 0, 0));
            let ticket = map.want(&mut tx, key, TellOf(1, 1));
            engine.issue(&mut tx);
            (tx, ticket)
        });
        let [first, second] = [0, 1].map(|i: usize| engine.is_ready(&asked[i].0));
        (0..10).for_each(|_| _ = engine.poll());
        for (mut tx, ticket) in asked {
            engine.step(&mut tx);
            map.got(&mut tx, &ticket);
            engine.end(tx);
        }
        second && !first
    });
    assert!(overtakes);
}

/// A full map makes room of what is over, and else refuses; both are counted by whoever holds it.
#[test]
fn a_full_map_makes_room_of_what_is_over() {
    let mut local = Local::new(Seed::from_number(1), Share::WHOLE);
    let mut map: LocalSharedMap<u64, Told> = local.shared_map(&TOLD, 2, 1_000_000_000).unwrap();
    let mut tell = |key, now| {
        let ticket = map.want(&mut anyone(), key, TellOf(1, now));
        let told = map.got(&mut anyone(), &ticket);
        (told.is_some(), map.tally(0), map.len())
    };
    assert_eq!((tell(1, 0), tell(2, 500_000_000)), ((true, 0, 1), (true, 0, 2)));
    assert_eq!(tell(3, 900_000_000), (false, 1, 2));
    // It is looked for some milliseconds later at most.
    assert_eq!(tell(3, 1_005_000_000), (true, 1, 2));
}

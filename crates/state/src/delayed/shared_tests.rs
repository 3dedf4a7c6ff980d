//! Shared objects on an engine that is late: applied in order, none lost, and misuse found.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::super::Delayed;
use super::*;
use crate::declare::{Access, Declaration, Scope};
use crate::engine::{Engine, Share};
use crate::local::Local;
use crate::shared_map::Slot;
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

crate::operations!(Vec<u32> { 0 => Append, 1 => Note } looks { 2 => At });

impl Op<Vec<u32>> for Note {
    type Reply = ();

    fn apply(self, list: &mut Vec<u32>) {
        list.push(self.0);
    }
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
            let tx = engine.begin(0);
            let ticket = (n % 3 == 0).then(|| list.want(tx, Append(n)));
            engine.issue(tx);
            engine.step(tx);
            match ticket {
                Some(ticket) => waiting.push((tx, ticket, n)),
                None => {
                    list.send(tx, Note(n));
                    engine.end(tx);
                }
            }
            waiting.retain(|(tx, ticket, n)| {
                let waits = !engine.is_ready(*tx);
                if !waits {
                    assert_eq!(list.got(*tx, ticket), *n + 1);
                    engine.end(*tx);
                }
                waits
            });
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
    let tx = engine.begin(0);
    list.want(tx, Append(1));
    engine.end(tx);
    assert_eq!(list.look(At(0)), None);
}

#[test]
fn what_a_function_must_not_do_is_found() {
    let said = |wrong: fn(&mut Delayed, &mut DelayedShared<Vec<u32>>)| {
        let (mut engine, mut list) = late(1);
        let panic = catch_unwind(AssertUnwindSafe(|| wrong(&mut engine, &mut list))).unwrap_err();
        panic.downcast_ref::<String>().cloned().unwrap()
    };
    let at_once = said(|engine, list| {
        let tx = engine.begin(0);
        let ticket = list.want(tx, Append(1));
        list.got(tx, &ticket);
    });
    assert!(at_once.starts_with("list: a ticket is used in prepare, at "), "{at_once}");
    let twice = said(|engine, list| {
        let tx = engine.begin(0);
        let ticket = list.want(tx, Append(1));
        engine.issue(tx);
        (0..10).for_each(|_| engine.poll());
        engine.step(tx);
        list.got(tx, &ticket);
        list.got(tx, &ticket);
    });
    assert!(twice.starts_with("list: a ticket is used twice, at "), "{twice}");
    let left = said(|engine, list| {
        let tx = engine.begin(0);
        list.want(tx, Append(1));
        engine.issue(tx);
        engine.end(tx);
    });
    assert_eq!(left, "list: nobody has taken the reply of an operation");
    let early = said(|engine, list| {
        let tx = engine.begin(0);
        list.send(tx, Note(1));
    });
    assert!(early.starts_with("list: changed in prepare, at "), "{early}");
    let waited_for = said(|engine, _| {
        let log = Declaration { name: "log", access: Access::WriteMostly, ..LIST };
        let mut log = engine.shared(&log, Vec::new());
        let tx = engine.begin(0);
        log.want(tx, Append(1));
    });
    assert!(waited_for.starts_with("log: waited for, and declared as one that is written mostly, at "), "{waited_for}");
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

    fn is_over(&self, age: &u64, now: u64) -> bool {
        now.saturating_sub(self.at) >= *age
    }
}

/// Tell a number; answers what was told before, or nothing where there is no room.
#[derive(Clone, Copy, Plain)]
struct TellOf(u32, u64);

crate::entry_operations!(Told { 0 => TellOf });

impl EntryOp<Told> for TellOf {
    type Reply = Option<[u32; 3]>;

    fn apply(self, slot: &mut impl Slot<Told>) -> Option<[u32; 3]> {
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
            let mut ticket = near.want((), key, told);
            near.warm(&mut ticket);
            prop_assert_eq!(near.got((), &ticket), Some(before));
            let tx = engine.begin(0);
            let ticket = far.want(tx, key, told);
            engine.issue(tx);
            engine.step(tx);
            waiting.push((tx, ticket, before));
            if tidies {
                near.tidy((), 2, now);
                let tx = engine.begin(0);
                engine.step(tx);
                far.tidy(tx, 2, now);
                engine.end(tx);
            }
            waiting.retain(|(tx, ticket, before)| {
                let is_ready = engine.is_ready(*tx);
                if is_ready {
                    assert_eq!(far.got(*tx, ticket), Some(*before));
                    engine.end(*tx);
                }
                !is_ready
            });
            engine.poll();
        }
    }
}

#[test]
fn operations_on_different_keys_overtake_each_other() {
    let overtakes = (0..100).any(|seed| {
        let mut engine = Delayed::new(Seed::from_number(1), Share::WHOLE, seed);
        let mut map: DelayedSharedMap<u64, Told> = engine.shared_map(&TOLD, 5, 50).unwrap();
        let asked = [1, 2].map(|key| {
            let tx = engine.begin(0);
            let ticket = map.want(tx, key, TellOf(1, 1));
            engine.issue(tx);
            (tx, ticket)
        });
        let [first, second] = asked.map(|(tx, _)| engine.is_ready(tx));
        (0..10).for_each(|_| engine.poll());
        for (tx, ticket) in asked {
            engine.step(tx);
            map.got(tx, &ticket);
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
    let mut map: LocalSharedMap<u64, Told> = local.shared_map(&TOLD, 2, 1_000_000).unwrap();
    let mut tell = |key, now| {
        let ticket = map.want((), key, TellOf(1, now));
        let told = map.got((), &ticket);
        (told.is_some(), map.tally(0), map.len())
    };
    assert_eq!((tell(1, 0), tell(2, 500_000)), ((true, 0, 1), (true, 0, 2)));
    assert_eq!(tell(3, 900_000), (false, 1, 2));
    assert_eq!(tell(3, 1_000_000), (true, 1, 2));
}

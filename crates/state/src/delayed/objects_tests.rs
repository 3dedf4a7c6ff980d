//! What a packet does with an entry, against what it asked for and what the object is declared as.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::super::Delayed;
use super::*;
use crate::declare::{Declaration, Scope};
use crate::engine::{Engine, FOREVER, Share};
use crate::value::Counts;

const COUNTS: Declaration = Declaration::flow_map("counts", "numbers", Scope::Connection, Access::ReadWrite);
const NAMES: Declaration = Declaration::flow_map("names", "numbers", Scope::Connection, Access::ReadMostly);

type Map = DelayedMap<u64, u64>;

/// Ask for an entry, and use it in the next step.
fn with(
    object: &Declaration,
    intent: Intent,
    then: impl FnOnce(&mut Map, &mut Tx, &DelayedTicket<u64>),
) -> Option<String> {
    let mut engine = Delayed::new(Seed::from_number(1), Share::WHOLE, 1);
    let mut map = engine.flow_map(object, 10).unwrap();
    let mut filled = engine.begin(Tx::new(1, 0, 0));
    let ticket = map.want(&mut filled, 1, Intent::Create);
    engine.step(&mut filled);
    (0..10).for_each(|_| _ = engine.poll());
    map.insert(&mut filled, &ticket, 7, FOREVER).unwrap();
    engine.end(filled);
    let mut tx = engine.begin(Tx::new(2, 0, 0));
    let ticket = map.want(&mut tx, 1, intent);
    engine.step(&mut tx);
    (0..10).for_each(|_| _ = engine.poll());
    let panic = catch_unwind(AssertUnwindSafe(|| then(&mut map, &mut tx, &ticket))).err()?;
    panic.downcast_ref::<String>().map(|said| said.split(", at ").next().unwrap_or_default().to_owned())
}

#[test]
fn an_entry_is_used_as_it_was_asked_for() {
    let change = |map: &mut Map, tx: &mut Tx, ticket: &_| *map.get(tx, ticket).unwrap() += 1;
    let read = |map: &mut Map, tx: &mut Tx, ticket: &_| assert_eq!(map.read(tx, ticket), Some(&7));
    let look = |map: &mut Map, tx: &mut Tx, ticket: &_| assert_eq!(*map.get(tx, ticket).unwrap(), 7);
    let take = |map: &mut Map, tx: &mut Tx, ticket: &_| assert_eq!(map.remove(tx, ticket), Some(7));
    let put = |map: &mut Map, tx: &mut Tx, ticket: &_| assert_eq!(*map.insert(tx, ticket, 8, FOREVER).unwrap(), 8);
    let wrong = |what: &str, asked: &str| Some(format!("counts: used to {what}, and asked for to {asked}"));
    for intent in [Intent::Read, Intent::Change, Intent::Create] {
        assert_eq!(with(&COUNTS, intent, read), None);
    }
    assert_eq!(with(&COUNTS, Intent::Read, change), wrong("Change", "Read"));
    assert_eq!(with(&COUNTS, Intent::Read, take), wrong("Change", "Read"));
    assert_eq!(with(&COUNTS, Intent::Change, put), wrong("Create", "Change"));
    assert_eq!(with(&COUNTS, Intent::Change, change), None);
    assert_eq!(with(&COUNTS, Intent::Create, put), None);
    // What is read mostly is made and taken out, but not changed all the time.
    assert_eq!(with(&NAMES, Intent::Create, put), None);
    assert_eq!(with(&NAMES, Intent::Change, take), None);
    assert_eq!(with(&NAMES, Intent::Change, look), None);
    assert_eq!(
        with(&NAMES, Intent::Change, change),
        Some("names: changed in place, and declared as read mostly".to_owned())
    );
}

#[test]
fn objects_are_made_as_they_are_declared_and_once() {
    let said = |make: fn(&mut Delayed)| {
        let mut engine = Delayed::new(Seed::from_number(1), Share::WHOLE, 1);
        let panic = catch_unwind(AssertUnwindSafe(|| make(&mut engine))).unwrap_err();
        panic.downcast_ref::<String>().unwrap().split(", at ").next().unwrap().to_owned()
    };
    let other_kind = said(|engine| _ = engine.shared(&COUNTS, Counts::new(1)));
    assert_eq!(other_kind, "counts: made as another kind of object than it is declared as");
    let twice = said(|engine| {
        for part in [1, 2, 1] {
            engine.flow_map::<u64, u64>(&COUNTS.part(part), 10).unwrap();
        }
    });
    assert_eq!(twice, "counts (1): made twice");
    // Two instances of a function have an object each; two of one name are one.
    let of_two = |names: [&str; 2]| {
        let mut engine = Delayed::new(Seed::from_number(1), Share::WHOLE, 1);
        for name in names {
            engine.make_for(name);
            engine.flow_map::<u64, u64>(&COUNTS, 10).unwrap();
        }
        engine.objects().len()
    };
    assert_eq!(of_two(["inside", "outside"]), 2);
    assert!(catch_unwind(|| of_two(["inside", "inside"])).is_err());
}

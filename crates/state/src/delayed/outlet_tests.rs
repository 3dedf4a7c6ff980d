//! What is put leaves once, in order, after the commit; and nothing else leaves.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::super::Delayed;
use super::*;
use crate::declare::Declaration;
use crate::engine::{Engine, Share};
use crate::tx::Pass;
use catena_packet::wire::Seed;

const NOTES: Declaration = Declaration::outlet("notes", "numbers");
const OTHERS: Declaration = Declaration::outlet("others", "numbers");

/// Has room for so many.
struct Page {
    most: usize,
    records: Vec<u32>,
}

impl Page {
    fn of(most: usize) -> Page {
        Page { most, records: Vec::new() }
    }
}

impl Sink for Page {
    type Record = u32;

    fn has_room(&mut self) -> bool {
        self.records.len() < self.most
    }

    fn put(&mut self, record: u32) {
        self.records.push(record);
    }
}

fn late(seed: u64) -> (Delayed, DelayedOutlet<Page>) {
    let mut engine = Delayed::new(Seed::from_number(1), Share::WHOLE, seed);
    let outlet = engine.outlet(&NOTES, Page::of(3));
    (engine, outlet)
}

/// Begin the operations of a packet, in its first step.
fn begin(engine: &mut Delayed, clock: u64) -> Tx {
    let mut tx = engine.begin(Tx::new(clock, 0, 0));
    engine.step(&mut tx);
    tx
}

fn records(outlet: &DelayedOutlet<Page>) -> Vec<u32> {
    outlet.with(|page| page.records.clone())
}

#[test]
fn what_is_committed_leaves_once_and_in_order() {
    for seed in 0..50 {
        let (mut engine, mut outlet) = late(seed);
        let mut others = engine.outlet(&OTHERS, Page::of(0));
        let (mut first, mut second) = (begin(&mut engine, 1), begin(&mut engine, 2));
        for record in 0..20 {
            outlet.put(&mut first, record);
            others.put(&mut first, 100 + record);
            outlet.put(&mut second, 200 + record);
        }
        assert!(outlet.has_room(&mut first) && !others.has_room(&mut first));
        assert!(records(&outlet).is_empty() && records(&others).is_empty(), "nothing is committed");
        engine.commit(&mut second);
        assert!(records(&outlet).into_iter().eq(200..220));
        engine.end(second);
        engine.commit(&mut first);
        engine.end(first);
        assert!(records(&outlet).into_iter().eq((200..220).chain(0..20)));
        assert!(records(&others).into_iter().eq(100..120));
    }
}

#[test]
fn what_is_given_up_never_leaves() {
    let (mut engine, mut outlet) = late(1);
    let mut tx = begin(&mut engine, 1);
    outlet.put(&mut tx, 1);
    engine.end(tx);
    let mut tx = begin(&mut engine, 2);
    engine.commit(&mut tx);
    engine.end(tx);
    engine.close().unwrap();
    assert!(records(&outlet).is_empty());
}

#[test]
fn what_comes_twice_is_taken_once() {
    let (engine, outlet) = late(1);
    let put = |clock, index, record: u32| {
        let put =
            Put { sink: outlet.number, name: Name { pass: Pass { clock, gate: 0 }, index }, record: bytes(&record) };
        engine.watch().sinks.deliver(&put);
    };
    put(1, 0, 7);
    put(1, 1, 8);
    put(1, 0, 7);
    put(2, 0, 9);
    put(1, 1, 8);
    assert_eq!(records(&outlet), [7, 8, 9]);
}

/// About one record in eight comes twice to a sink that does not know names.
#[test]
fn some_records_come_twice() {
    let came = |seed| {
        let (mut engine, mut outlet) = late(seed);
        let mut tx = begin(&mut engine, 1);
        (0..400).for_each(|record| outlet.put(&mut tx, record));
        let twice = Arc::new(Mutex::new(0));
        let count = Count { came: Arc::clone(&twice) };
        engine.watch().sinks.0[0].1 = Box::new(count);
        engine.commit(&mut tx);
        *twice.lock().unwrap()
    };
    for seed in 0..20 {
        let came = came(seed);
        assert!((420..500).contains(&came), "{came} of 400");
    }
}

/// Counts what comes.
struct Count {
    came: Arc<Mutex<u32>>,
}

impl Taking for Count {
    fn take(&self, _name: Name, _record: &[u8]) {
        *self.came.lock().unwrap() += 1;
    }
}

/// Records go on to the sink that was there before, which the instance that made it does not take along.
#[test]
fn a_sink_outlives_the_outlet() {
    let (mut engine, mut outlet) = late(1);
    let mut tx = begin(&mut engine, 1);
    outlet.put(&mut tx, 1);
    let (object, watch) = (outlet.object, Arc::clone(&outlet.watch));
    drop(outlet);
    engine.commit(&mut tx);
    engine.end(tx);
    let outlet = DelayedOutlet::new(Page::of(1), object, &watch);
    assert_eq!(records(&outlet), [1]);
}

#[test]
fn misuse_is_found() {
    let said = |wrong: &dyn Fn(&mut Delayed, &mut DelayedOutlet<Page>)| {
        let (mut engine, mut outlet) = late(1);
        let panic = catch_unwind(AssertUnwindSafe(|| wrong(&mut engine, &mut outlet))).unwrap_err();
        let said = panic.downcast_ref::<String>().cloned().unwrap();
        assert!(said.contains("outlet_tests.rs"), "{said}");
        said.split(", at ").next().unwrap().to_owned()
    };
    let changed = "notes: changed in prepare";
    let prepare = |engine: &mut Delayed| engine.begin(Tx::new(1, 0, 0));
    assert_eq!(said(&|engine, outlet| outlet.put(&mut prepare(engine), 1)), changed);
    assert_eq!(said(&|engine, outlet| _ = outlet.has_room(&mut prepare(engine))), changed);
    let alone = |engine: &mut Delayed, outlet: &mut DelayedOutlet<Page>| {
        let _tx = prepare(engine);
        outlet.with_mut(|page| page.most = 7);
    };
    assert_eq!(said(&alone), changed);
    let late = |engine: &mut Delayed, outlet: &mut DelayedOutlet<Page>| {
        let mut tx = begin(engine, 1);
        engine.commit(&mut tx);
        outlet.put(&mut tx, 1);
    };
    assert_eq!(said(&late), "notes: asked for by a packet whose operations are over");
}

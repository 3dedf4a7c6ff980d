//! Pipelines end to end: branches and merges, edits under traffic, nothing lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use catena_packet::clock::Root;
use catena_packet::{BATCH, Batch, Depot, DepotHandle};

use super::*;
use crate::module::{Module, Pulled, Reason, Source, Verdict};
use crate::queue::queue;
use crate::schedule::{Tree, Unit};
use crate::{Inlet, Worker};

/// Gives so many packets, then is done.
struct Numbers(u64);

impl Source for Numbers {
    fn pull(&mut self, cx: &mut Context, batch: &mut Batch) -> Pulled {
        self.0 -= cx.pool().take_batch(batch, self.0.min(BATCH as u64) as usize, 60) as u64;
        if self.0 == 0 { Pulled::Done } else { Pulled::More }
    }
}

/// A task with so many packets, numbered by their clocks.
fn numbers(name: &str, count: u64, inlet: impl Into<Inlet>) -> Task {
    Task::new(name, Box::new(Numbers(count)), inlet).rooted(Root::first())
}

/// Sends a packet to the gate that its number modulo `ways` names.
struct Spread {
    ways: u64,
}

impl Module for Spread {
    fn process(&mut self, cx: &mut Context, batch: &mut Batch) {
        let ways = self.ways;
        cx.decide(batch, |_, packet| Verdict::Gate((packet.meta().clock.count() % ways) as u16));
    }
}

/// Counts and adds up the numbers, and notes the largest batch.
#[derive(Default)]
struct Tally {
    packets: Arc<AtomicU64>,
    sum: Arc<AtomicU64>,
    largest: Arc<AtomicU64>,
}

impl Module for Tally {
    fn process(&mut self, cx: &mut Context, batch: &mut Batch) {
        self.packets.fetch_add(batch.len() as u64, Relaxed);
        self.sum.fetch_add(batch.iter().map(|p| p.meta().clock.count()).sum(), Relaxed);
        self.largest.fetch_max(batch.len() as u64, Relaxed);
        cx.pool().put_batch(batch);
    }

    fn is_exit(&self) -> bool {
        true
    }
}

/// Emits every packet three times over.
struct Triple;

impl Module for Triple {
    fn process(&mut self, cx: &mut Context, batch: &mut Batch) {
        for packet in batch.drain() {
            for _ in 0..2 {
                let mut copy = cx.pool().take(packet.len()).expect("the test has enough buffers");
                copy.copy_from(&packet);
                cx.emit(0, copy);
            }
            cx.emit(0, packet);
        }
    }
}

fn depot() -> DepotHandle {
    Depot::map(4096, 0).unwrap()
}

fn run_to_end(pipeline: &mut Pipeline, cx: &mut Context) {
    while !pipeline.is_done() {
        pipeline.step(cx);
    }
}

#[test]
fn ways_part_and_join() {
    let depot = depot();
    let mut cx = Context::new(&depot, 0);
    let mut pipeline = Pipeline::new(Time::Packets);
    let graph = &mut pipeline.graph;
    let tally = Tally::default();
    let (packets, sum, largest) = (tally.packets.clone(), tally.sum.clone(), tally.largest.clone());
    let spread = graph.add("spread", Box::new(Spread { ways: 4 }));
    let join = graph.add("join", Box::new(Spread { ways: 1 }));
    let tally = graph.add("tally", Box::new(tally));
    // The last gate (3) leads nowhere; the middle ones pass by another module.
    graph.connect(spread, 0, join);
    for gate in [1, 2] {
        let middle = graph.add("middle", Box::new(Spread { ways: 1 }));
        graph.connect(spread, gate, middle);
        graph.connect(middle, 0, join);
    }
    graph.connect(join, 0, tally);
    pipeline.add_task(numbers("in", 4000, spread));
    run_to_end(&mut pipeline, &mut cx);
    assert_eq!(packets.load(Relaxed), 3000);
    assert_eq!(sum.load(Relaxed), (1..=4000).filter(|n| n % 4 != 3).sum::<u64>());
    assert_eq!(largest.load(Relaxed), 24, "joined ways are one batch again");
    let nodes = pipeline.graph.nodes();
    assert_eq!(nodes[0].1.counters.drops.iter().collect::<Vec<_>>(), [(Reason::NO_GATE, 1000)]);
    assert_eq!(nodes[0].1.gates[1].packets.get(), 1000);
    assert_eq!(nodes[2].1.counters.input.bytes.get(), 3000 * 60);
    assert!(nodes[2].1.counters.latency.count() > 0);
}

#[test]
fn a_module_may_make_more_than_a_batch() {
    let depot = depot();
    let mut cx = Context::new(&depot, 0);
    let mut pipeline = Pipeline::new(Time::Packets);
    let tally = Tally::default();
    let packets = tally.packets.clone();
    let triple = pipeline.graph.add("triple", Box::new(Triple));
    let again = pipeline.graph.add("again", Box::new(Triple));
    let tally = pipeline.graph.add("tally", Box::new(tally));
    pipeline.graph.connect(triple, 0, again);
    pipeline.graph.connect(again, 0, tally);
    pipeline.add_task(numbers("in", 100, triple));
    run_to_end(&mut pipeline, &mut cx);
    assert_eq!(packets.load(Relaxed), 900);
    drop((pipeline, cx));
    assert!(depot.all_home());
}

#[test]
fn a_loop_ends_in_a_counted_drop() {
    let depot = depot();
    let mut cx = Context::new(&depot, 0);
    let mut pipeline = Pipeline::new(Time::Packets);
    let (a, b) =
        (pipeline.graph.add("a", Box::new(Spread { ways: 1 })), pipeline.graph.add("b", Box::new(Spread { ways: 2 })));
    pipeline.graph.connect(a, 0, b);
    pipeline.graph.connect(b, 0, a);
    pipeline.graph.connect(b, 1, a);
    pipeline.add_task(numbers("in", 50, a));
    run_to_end(&mut pipeline, &mut cx);
    let lost: u64 = pipeline.graph.nodes().iter().map(|(_, n)| n.counters.drops.get(Reason::LOOP)).sum();
    assert_eq!(lost, 50);
}

#[test]
fn a_task_whose_module_is_gone_drops_and_counts() {
    let depot = depot();
    let mut cx = Context::new(&depot, 0);
    let mut pipeline = Pipeline::new(Time::Packets);
    let keep = pipeline.graph.add("keep", Box::new(Spread { ways: 1 }));
    let gone = pipeline.graph.add("gone", Box::new(Spread { ways: 1 }));
    pipeline.add_task(numbers("in", 40, gone));
    pipeline.graph.connect(keep, 0, gone);
    assert!(pipeline.graph.remove(&mut cx, gone).is_some());
    run_to_end(&mut pipeline, &mut cx);
    assert_eq!(pipeline.graph.nodes()[0].1.counters.drops.get(Reason::NO_GATE), 40);
}

#[test]
fn one_module_serves_two_ways() {
    let depot = depot();
    let mut cx = Context::new(&depot, 0);
    let mut pipeline = Pipeline::new(Time::Packets);
    /// Leaves by the gate it came in by.
    struct Through;
    impl Module for Through {
        fn process(&mut self, cx: &mut Context, batch: &mut Batch) {
            let gate = cx.gate();
            cx.decide(batch, |_, _| Verdict::Gate(gate));
        }
    }
    let (there, back) = (Tally::default(), Tally::default());
    let (went, came) = (there.packets.clone(), back.packets.clone());
    let graph = &mut pipeline.graph;
    let (a, b) = (graph.add("a", Box::new(Through)), graph.add("b", Box::new(Through)));
    let (there, back) = (graph.add("there", Box::new(there)), graph.add("back", Box::new(back)));
    graph.connect(a, 0, Inlet { node: b, gate: 0 });
    graph.connect(b, 0, there);
    graph.connect(b, 1, Inlet { node: a, gate: 1 });
    graph.connect(a, 1, back);
    pipeline.add_task(numbers("in", 70, a));
    pipeline.add_task(numbers("out", 30, Inlet { node: b, gate: 1 }));
    run_to_end(&mut pipeline, &mut cx);
    assert_eq!((went.load(Relaxed), came.load(Relaxed)), (70, 30));
}

#[test]
fn a_pipeline_changes_under_traffic_without_loss() {
    let depot = depot();
    let count = 3_000_000;
    let tally = Tally::default();
    let (packets, sum) = (tally.packets.clone(), tally.sum.clone());
    let mut pipeline = Pipeline::new(Time::Packets);
    let (mut entrances, exit) = queue(256, 1);
    let entrance = entrances.remove(0);
    let room = entrance.room();
    let first = pipeline.graph.add("first", Box::new(Spread { ways: 1 }));
    let wait = pipeline.graph.add("wait", Box::new(entrance));
    let tally = pipeline.graph.add("tally", Box::new(tally));
    pipeline.graph.connect(first, 0, wait);
    let mut task = numbers("in", count, first);
    task.heed(room.clone());
    pipeline.add_task(task);
    pipeline.add_task(Task::new("rest", Box::new(exit), tally));
    let worker = Worker::new("test", pipeline, &depot, 0).start().unwrap();
    let mut edits = 0;
    // The worker may be far ahead of this thread when it first runs.
    while edits < 10 || packets.load(Relaxed) < count / 2 {
        let inserted = worker.edit(move |pipeline, _| {
            let middle = pipeline.graph.insert_after(first, 0, "middle", Box::new(Spread { ways: 2 }));
            pipeline.graph.connect(middle, 1, wait);
            middle
        });
        let Ok(middle) = inserted else { break };
        _ = worker.edit(move |pipeline, cx| pipeline.graph.remove(cx, middle).is_some());
        edits += 1;
    }
    assert!(edits >= 10);
    while packets.load(Relaxed) < count {
        std::thread::yield_now();
    }
    room.close();
    let ended = worker.join().unwrap();
    let drops: u64 = ended.pipeline.graph.nodes().iter().map(|(_, n)| n.counters.drops.total()).sum();
    assert_eq!((packets.load(Relaxed), drops), (count, 0));
    assert_eq!(sum.load(Relaxed), count * (count + 1) / 2);
    drop(ended);
    assert!(depot.all_home());
}

#[test]
fn a_removed_task_brings_through_what_its_queue_holds() {
    let depot = depot();
    let mut cx = Context::new(&depot, 0);
    let mut pipeline = Pipeline::new(Time::Packets);
    let (mut entrances, exit) = queue(256, 1);
    let tally = Tally::default();
    let packets = tally.packets.clone();
    let wait = pipeline.graph.add("wait", Box::new(entrances.remove(0)));
    let tally = pipeline.graph.add("tally", Box::new(tally));
    let feed = pipeline.add_task(numbers("in", 200, wait));
    let rest = pipeline.add_task(Task::new("rest", Box::new(exit), tally));
    pipeline.tree = Some(Tree::Task(feed));
    (0..10).for_each(|_| _ = pipeline.step(&mut cx));
    assert_eq!(packets.load(Relaxed), 0);
    assert!(pipeline.remove_task(&mut cx, rest, usize::MAX).is_some());
    assert_eq!(packets.load(Relaxed), 200);
    assert_eq!(pipeline.tasks().count(), 1);
}

#[test]
fn what_waits_between_tasks_is_brought_through_at_the_end() {
    let (mut entrances, exit) = queue(4096, 1);
    let tally = Tally::default();
    let (packets, sum) = (tally.packets.clone(), tally.sum.clone());
    let mut pipeline = Pipeline::new(Time::Wall);
    let enter = pipeline.graph.add("queue", Box::new(entrances.remove(0)));
    let end = pipeline.graph.add("end", Box::new(tally));
    let outer = pipeline.add_task(numbers("in", 2000, enter));
    let inner = pipeline.add_task(Task::inner("behind", Box::new(exit), end));
    // The inner task hardly ever has its turn: most packets still wait when the other one has ended.
    let slow = Tree::limit(Tree::Task(inner), Unit::Packets, 1, 1);
    pipeline.tree = Some(Tree::Priority(vec![Tree::Task(outer), slow]));
    Worker::new("drain", pipeline, &depot(), 1).start().unwrap().join().unwrap();
    assert_eq!(packets.load(Relaxed), 2000);
    assert_eq!(sum.load(Relaxed), 2000 * 2001 / 2);
}

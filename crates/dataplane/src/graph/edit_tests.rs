//! Modules that come and go, and what they hand on outside their turns.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use catena_packet::{Batch, Depot, DepotHandle};

use super::*;

fn depot() -> DepotHandle {
    Depot::map(256, 0).unwrap()
}

/// Counts the packets that come, by gate; hands some on by gate 1 on every tick and at its end.
#[derive(Default)]
struct Holder {
    came: Arc<[AtomicU64; 2]>,
    on_tick: usize,
    at_end: usize,
    fails: bool,
}

impl Module for Holder {
    fn process(&mut self, cx: &mut Context, batch: &mut Batch) {
        self.came[usize::from(cx.gate())].fetch_add(batch.len() as u64, Relaxed);
    }

    fn tick(&mut self, cx: &mut Context) {
        emit(cx, self.on_tick);
    }

    fn end(&mut self, cx: &mut Context) -> Result<(), String> {
        emit(cx, self.at_end);
        if self.fails { Err("no room".to_owned()) } else { Ok(()) }
    }
}

fn emit(cx: &mut Context, count: usize) {
    for _ in 0..count {
        let packet = cx.pool().take(64).expect("there are buffers");
        cx.emit(1, packet);
    }
}

fn send(graph: &mut Graph, cx: &mut Context, to: impl Into<Inlet>, count: usize) {
    let mut batch = Batch::new();
    cx.pool().take_batch(&mut batch, count, 64);
    graph.run(cx, to.into(), &mut batch);
}

fn read(came: &[AtomicU64; 2]) -> [u64; 2] {
    [0, 1].map(|gate| came[gate].load(Relaxed))
}

/// A module that hands packets on outside its turn leads by gate 1 to a second; the others by gate 1 to a third.
struct Bench {
    graph: Graph,
    cx: Context,
    nodes: [NodeId; 3],
    came: [Arc<[AtomicU64; 2]>; 3],
    depot: DepotHandle,
}

impl Bench {
    fn new(first: Holder) -> Bench {
        let depot = depot();
        let modules = [first, Holder::default(), Holder::default()];
        let came = [0, 1, 2].map(|at: usize| modules[at].came.clone());
        let mut graph = Graph::new();
        let [a, b, c] = modules.map(|module| Box::new(module) as Box<dyn Module>);
        // The order in which they are added is not that in which packets come to them.
        let (c, b, a) = (graph.add("c", c), graph.add("b", b), graph.add("a", a));
        graph.connect(a, 1, b);
        graph.connect(b, 1, c);
        graph.connect(c, 1, c);
        Bench { graph, cx: Context::new(&depot, 0), nodes: [a, b, c], came, depot }
    }
}

#[test]
fn what_a_tick_hands_on_leaves_by_its_own_gates() {
    let mut bench = Bench::new(Holder { on_tick: 40, ..Holder::default() });
    bench.graph.tick(&mut bench.cx);
    // Whatever runs next must not find it.
    send(&mut bench.graph, &mut bench.cx, bench.nodes[2], 3);
    assert_eq!(bench.came.each_ref().map(|came| read(came)), [[0, 0], [40, 0], [3, 0]]);
    assert_eq!(bench.graph.nodes()[2].1.gates[1].packets.get(), 40);
    drop(bench.graph);
    drop(bench.cx);
    assert!(bench.depot.all_home());
}

#[test]
fn what_the_end_hands_on_comes_to_those_after() {
    let mut bench = Bench::new(Holder { at_end: 7, fails: true, ..Holder::default() });
    let failed = bench.graph.end(&mut bench.cx);
    assert_eq!(failed, [("a".into(), "no room".to_owned())]);
    assert_eq!(read(&bench.came[1]), [7, 0]);
    drop((bench.graph, bench.cx));
    assert!(bench.depot.all_home());
}

#[test]
fn a_module_put_on_the_way_back_knows_the_way() {
    let mut bench = Bench::new(Holder::default());
    let [a, b, c] = bench.nodes;
    bench.graph.connect(a, 0, Inlet { node: b, gate: 1 });
    let tap = Holder::default();
    let came = tap.came.clone();
    let node = bench.graph.insert_after(a, 0, "tap", Box::new(tap));
    assert_eq!(bench.graph.next(a, 0), Some(Inlet { node, gate: 1 }));
    send(&mut bench.graph, &mut bench.cx, a, 5);
    assert_eq!((read(&came), read(&bench.came[1]), read(&bench.came[2])), ([0, 5], [0, 5], [5, 0]));
    assert_eq!(bench.graph.next(b, 1), Some(c.into()));
}

#[test]
fn a_module_that_goes_has_its_end_and_leaves_its_counts() {
    let mut bench = Bench::new(Holder { at_end: 2, fails: true, ..Holder::default() });
    let [a, b, _] = bench.nodes;
    bench.graph.connect(a, 0, b);
    send(&mut bench.graph, &mut bench.cx, a, 5);
    let removed = bench.graph.remove(&mut bench.cx, a).expect("it is there");
    assert_eq!(removed.failed.as_deref(), Some("no room"));
    assert!((removed.module as Box<dyn std::any::Any>).is::<Holder>());
    assert_eq!(read(&bench.came[1]), [7, 0], "five passed, and two that it held");
    let nodes = bench.graph.nodes();
    let of =
        |name: &str| nodes.iter().find(|(_, info)| &*info.name == name).map(|(_, i)| i.counters.input.packets.get());
    assert_eq!((nodes.len(), of("a"), of("b")), (3, Some(5), Some(7)));
    assert_eq!(bench.graph.find("a"), None);
    assert!(bench.graph.remove(&mut bench.cx, a).is_none());
}

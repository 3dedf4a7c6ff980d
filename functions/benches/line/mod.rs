//! A line to measure on: the generator, a function, the sink, on one pinned core.

use catena_dataplane::attribute::Attributes;
use catena_dataplane::generator::{Generator, Spec};
use catena_dataplane::pipeline::Time;
use catena_dataplane::port::Sink;
use catena_dataplane::task::Task;
use catena_dataplane::worker::pin_this_thread;
use catena_dataplane::{Context, Graph, Pipeline, clock};
use catena_functions::{Args, Build, Descriptor, Tables};
use catena_packet::wire::Seed;
use catena_packet::{BATCH, Depot};
use catena_state::Share;

/// Packets timed together: so few that the median leaves out those during which another process had the core.
const STRETCH: u64 = 32_000;
const STRETCHES: usize = 600;

/// Cycles per packet, the median over many stretches: on the whole line, and in the function alone.
pub fn measure(function: Option<(&Descriptor, &Args)>, traffic: &str) -> (f64, f64) {
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    if !pin_this_thread(cores - 1) {
        eprintln!("not pinned to a core");
    }
    let depot = Depot::map(4096, 0).expect("there is memory for the packets");
    let mut cx = Context::new(&depot, 1);
    let mut pipeline = Pipeline::new(Time::Wall);
    let sink = pipeline.graph.add("sink", Box::new(Sink));
    let inlet = function.map_or(sink, |(descriptor, args)| {
        let mut attributes = Attributes::default();
        let seed = Seed::from_number(11);
        let mut build = Build {
            instance: "it",
            seed,
            share: Share::WHOLE,
            team: None,
            attributes: &mut attributes,
            taken: &[],
            tables: &Tables::default(),
        };
        let module = (descriptor.build)(args, &mut build).unwrap_or_else(|error| panic!("{error}"));
        let node = pipeline.graph.add("function", module);
        pipeline.graph.connect(node, 0, sink);
        node
    });
    let spec: Spec = traffic.parse().unwrap_or_else(|error| panic!("{error}"));
    let source = Generator::new(&spec).unwrap_or_else(|(key, problem)| panic!("{key}: {problem:?}"));
    pipeline.add_task(Task::new("source", Box::new(source), inlet));
    let spent = |graph: &Graph| {
        let nodes = graph.nodes();
        nodes.iter().find(|(_, node)| &*node.name == "function").map_or(0, |(_, node)| node.counters.cycles.get())
    };
    let (mut whole, mut inside) = (Vec::new(), Vec::new());
    for stretch in 0..2 * STRETCHES {
        cx.set_now(clock::system_now());
        let (start, before) = (clock::cycles(), spent(&pipeline.graph));
        (0..STRETCH / BATCH as u64).for_each(|_| _ = pipeline.step(&mut cx));
        // The first half warms up.
        if stretch >= STRETCHES {
            whole.push((clock::cycles() - start) as f64 / STRETCH as f64);
            inside.push((spent(&pipeline.graph) - before) as f64 / STRETCH as f64);
        }
        pipeline.graph.tick(&mut cx);
    }
    let dropped: u64 = pipeline.graph.nodes().iter().map(|(_, node)| node.counters.drops.total()).sum();
    assert_eq!(dropped, 0, "only packets that pass are measured");
    (median(whole), median(inside))
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// Measure and print a line.
pub fn report(name: &str, function: Option<(&Descriptor, &Args)>, traffic: &str) {
    let (whole, inside) = measure(function, traffic);
    println!("{name:<44} {whole:>6.1} cycles a packet in all, {inside:>6.1} in the function");
}

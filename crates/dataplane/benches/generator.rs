//! Cycles per packet of the traffic generator: alone, and through a pipeline into a sink.
//!
//! Prints one JSON line a case, in the form that all benchmarks of the project share. Cycles are the
//! thread's time on its core times the time stamp counter's rate, medians over 21 passes. With an argument only cases that contain it run;
//! `PACKETS` sets the packets of a pass.

use catena_dataplane::clock::hertz;
use catena_dataplane::generator::{Generator, Spec};
use catena_dataplane::pipeline::Time;
use catena_dataplane::task::Task;
use catena_dataplane::worker::thread_cpu_ns;
use catena_dataplane::{Context, Module, Pipeline, Source};
use catena_packet::clock::Root;
use catena_packet::{Batch, Depot};

const PASSES: usize = 21;

const CASES: [(&str, &str); 15] = [
    ("64 bytes, 10k flows", "gen:"),
    ("64 bytes, 10k flows, wall time", "gen:time=wall"),
    ("64 bytes, 10k flows, random order", "gen:order=random"),
    ("64 bytes, 1M flows", "gen:flows=1M"),
    ("64 bytes, 1M flows, random order", "gen:flows=1M,order=random"),
    ("60 bytes, 10k flows", "gen:size=60"),
    ("128 bytes, 10k flows", "gen:size=128"),
    ("1500 bytes, 10k flows", "gen:size=1500"),
    ("64 bytes, IPv6", "gen:ipv6=100%"),
    ("64 bytes, IPv4 and IPv6, TCP and UDP", "gen:ipv6=50%,proto=udp+tcp"),
    ("64 bytes, 10 packets a flow", "gen:dist=fixed(10)"),
    ("64 bytes, Pareto flows", "gen:dist=pareto(1.3,10)"),
    ("IMIX", "gen:size=imix"),
    ("TCP sessions", "gen:proto=tcp,tcp=sessions,dist=geometric(20)"),
    ("TCP sessions, 1M flows", "gen:flows=1M,proto=tcp,tcp=sessions,dist=geometric(20)"),
];

struct Sink;

impl Module for Sink {
    fn process(&mut self, cx: &mut Context, batch: &mut Batch) {
        cx.pool().put_batch(batch);
    }

    fn is_exit(&self) -> bool {
        true
    }
}

fn main() {
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with("--")).unwrap_or_default();
    let packets = std::env::var("PACKETS").ok().and_then(|packets| packets.parse().ok()).unwrap_or(2_000_000u64);
    for (case, text) in CASES {
        let spec: Spec = text.parse().expect("the benchmark's own specification");
        if format!("alone: {case}").contains(&only) {
            alone(case, &spec, packets);
        }
        if format!("to sink: {case}").contains(&only) {
            to_sink(case, &spec, packets);
        }
    }
}

/// The generator, and the pool that its packets go back to.
fn alone(case: &str, spec: &Spec, packets: u64) {
    let depot = Depot::map(4096, 0).expect("memory");
    let mut cx = Context::new(&depot, 1);
    let mut generator = Generator::new(spec).expect("the specification was checked");
    let mut batch = Batch::new();
    report("alone", case, packets, || {
        let mut made = 0;
        while made < packets {
            generator.pull(&mut cx, &mut batch);
            made += batch.len() as u64;
            cx.pool().put_batch(&mut batch);
        }
        made
    });
}

/// The whole way: source, graph with its counters, sink.
fn to_sink(case: &str, spec: &Spec, packets: u64) {
    let depot = Depot::map(4096, 0).expect("memory");
    let mut cx = Context::new(&depot, 1);
    let mut pipeline = Pipeline::new(Time::Packets);
    let sink = pipeline.graph.add("sink", Box::new(Sink));
    let generator = Generator::new(spec).expect("the specification was checked");
    pipeline.add_task(Task::new("generator", Box::new(generator), sink).rooted(Root::first()));
    report("to sink", case, packets, || {
        let mut made = 0;
        while made < packets {
            made += pipeline.step(&mut cx).packets;
        }
        made
    });
}

fn report(path: &str, case: &str, packets: u64, mut pass: impl FnMut() -> u64) {
    let passes = if packets < 1_000_000 { 1 } else { PASSES };
    let mut values: Vec<f64> = (0..passes)
        .map(|_| {
            let start = thread_cpu_ns();
            let made = pass();
            (thread_cpu_ns() - start) as f64 * hertz() as f64 / 1e9 / made as f64
        })
        .collect();
    values.sort_by(f64::total_cmp);
    let (value, spread) = (values[passes / 2], values[passes * 3 / 4] - values[passes / 4]);
    println!(
        r#"{{"bench":"generator","case":"{path}: {case}","unit":"cycles/packet","value":{value:.1},"spread":{spread:.1}}}"#
    );
}

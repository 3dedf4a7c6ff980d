//! What Monitor and LB cost: cycles of on-CPU time per packet, source and sink included.
//!
//! `taskset -c 1 cargo bench -p catena-functions --bench flows [monitor|lb]`
//!
//! 64-byte packets in virtual time, half TCP and half UDP, written afresh each time, flows in random order.

use catena_dataplane::attribute::Attributes;
use catena_dataplane::generator::{Generator, Spec};
use catena_dataplane::pipeline::Time;
use catena_dataplane::port::Sink;
use catena_dataplane::task::Task;
use catena_dataplane::worker::thread_cpu_ns;
use catena_dataplane::{Context, Pipeline, clock};
use catena_functions::{Args, Build, Tables, Value, registry};
use catena_packet::Depot;
use catena_packet::wire::Seed;
use catena_state::Share;

const V4: &str = "size=64,proto=udp:1+tcp:1,dst=203.0.0.0/16,dport=1-60000";
const V6: &str = "size=64,proto=udp:1+tcp:1,ipv6=100%,dport=1-60000";

fn main() {
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    for (family, traffic) in [("IPv4", V4), ("IPv6", V6)] {
        for flows in ["10k", "1M"] {
            for name in ["", "Monitor", "LB"] {
                if only.as_ref().is_some_and(|only| !name.eq_ignore_ascii_case(only)) {
                    continue;
                }
                let cycles = measure(name, &format!("flows={flows},{traffic}"));
                let chain =
                    if name.is_empty() { "source -> sink".to_owned() } else { format!("source -> {name} -> sink") };
                println!("{chain:28} {family} {flows:>4} flows  {cycles:6.1} cycles/packet");
            }
        }
    }
}

fn arguments(name: &str) -> Args {
    let most = Value::Integer(1 << 21);
    if name == "Monitor" {
        return Args::default().with("max_flows", most);
    }
    let vips = [Value::Prefix([203, 0, 0, 0].into(), 16), Value::Prefix([0x2001, 0xdb8, 2, 0, 0, 0, 0, 0].into(), 48)];
    let v4 = (1..=16u8).map(|i| Value::Address([10, 1, 0, i].into()));
    let v6 = (1..=16u16).map(|i| Value::Address([0xfd00, 0, 0, 0, 0, 0, 0, i].into()));
    let backends = Value::List(v4.chain(v6).collect());
    Args::default().with("vip", Value::List(vips.into())).with("backends", backends).with("max_connections", most)
}

/// Run until every flow is known, then return the least of seven runs.
fn measure(name: &str, traffic: &str) -> f64 {
    let depot = Depot::map(16 * 1024, 16).expect("there is memory for packets");
    let mut pipeline = Pipeline::new(Time::Wall);
    let sink = pipeline.graph.add("sink", Box::new(Sink));
    let mut first = sink;
    if let Some(descriptor) = registry::find(name) {
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
        let module = (descriptor.build)(&arguments(name), &mut build).expect("the arguments are right");
        first = pipeline.graph.add(name, module);
        pipeline.graph.connect(first, 0, sink);
    }
    let spec: Spec = traffic.parse().expect("the traffic is well described");
    let source = Generator::new(&spec).expect("the traffic can be made");
    pipeline.add_task(Task::new("source", Box::new(source), first));
    let mut context = Context::new(&depot, 1);
    let mut run = |packets: u64| {
        let done = |pipeline: &Pipeline| pipeline.tasks().map(|(_, t)| t.counters().input.packets.get()).sum::<u64>();
        let (before, start) = (done(&pipeline), thread_cpu_ns());
        while done(&pipeline) - before < packets {
            (0..1000).for_each(|_| _ = pipeline.step(&mut context));
            pipeline.graph.tick(&mut context);
        }
        (thread_cpu_ns() - start) as f64 * clock::hertz() as f64 / 1e9 / (done(&pipeline) - before) as f64
    };
    run(16_000_000);
    (0..7).map(|_| run(1_000_000)).fold(f64::MAX, f64::min)
}

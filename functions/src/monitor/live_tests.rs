//! A monitor that joins a running pipeline exports from its first packet on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use catena_dataplane::pipeline::Time;
use catena_dataplane::port::Sink;
use catena_dataplane::task::Task;
use catena_dataplane::{Context, Pipeline, Pulled, Source, Worker};
use catena_packet::clock::Clock;
use catena_packet::{Batch, Depot};
use catena_state::Share;

use super::DESCRIPTOR;
use crate::config::{Args, Value};
use crate::testing::engines::{Late, tests};
use crate::testing::{build, craft};

/// Gives a packet at a time of one flow, counts them, and is done when it is told to.
struct Flow {
    bytes: Vec<u8>,
    given: Arc<AtomicU64>,
    over: Arc<AtomicBool>,
}

impl Source for Flow {
    fn pull(&mut self, cx: &mut Context, batch: &mut Batch) -> Pulled {
        if self.over.load(Relaxed) {
            return Pulled::Done;
        }
        let mut packet = cx.pool().take(self.bytes.len()).unwrap();
        packet.fill(&self.bytes);
        packet.meta_mut().clock = Clock::from_bits(1 + self.given.fetch_add(1, Relaxed));
        batch.push(packet);
        Pulled::More
    }
}

#[test]
fn a_monitor_that_joins_a_running_pipeline_exports() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("flows.json");
    let (given, over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let bytes = craft("udp 10.0.0.1:4000 > 192.0.2.9:53");
    let mut pipeline = Pipeline::new(Time::Wall);
    let first = pipeline.graph.add("first", Box::new(Pass));
    let sink = pipeline.graph.add("sink", Box::new(Sink));
    pipeline.graph.connect(first, 0, sink);
    let source = Flow { bytes, given: given.clone(), over: over.clone() };
    pipeline.add_task(Task::new("in", Box::new(source), first));
    let worker = Worker::new("live", pipeline, &Depot::map(1024, 16).unwrap(), 1).start().unwrap();

    let args = Args::default().with("export", Value::Text(path.to_str().unwrap().to_owned()));
    let monitor = build(&DESCRIPTOR, &args, Share::WHOLE).unwrap();
    assert!(!path.exists(), "building opens nothing");
    let count = given.clone();
    let before = worker.edit(move |pipeline, _| {
        pipeline.graph.insert_after(first, 0, "monitor", monitor);
        count.load(Relaxed)
    });
    let before = before.unwrap();
    assert!(path.exists(), "the monitor has opened its file when the edit is answered");
    while given.load(Relaxed) < before + 1_000 {
        std::thread::yield_now();
    }
    over.store(true, Relaxed);
    let ended = worker.join().unwrap();
    assert_eq!(ended.failed, []);
    let nodes = ended.pipeline.graph.nodes();
    let seen = |name: &str| nodes.iter().find(|(_, node)| &*node.name == name).unwrap().1.counters.input.packets.get();
    assert_eq!(seen("monitor"), seen("first") - before);
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.contains(&format!("\"orig_pkts\":{},", seen("monitor"))), "{text}");
}

/// Passes everything.
struct Pass;

impl catena_dataplane::Module for Pass {
    fn process(&mut self, _cx: &mut Context, _batch: &mut Batch) {}
}

pub(super) const LATE: Late = Late {
    source: include_str!("live_tests.rs"),
    quick: &[],
    slow: tests![a_monitor_that_joins_a_running_pipeline_exports],
    apart: &[],
};

//! Edits of a running pipeline: modules that join it are started before the next packet, once, and who edits hears
//! what could not be.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use catena_dataplane::pipeline::Time;
use catena_dataplane::port::{CaptureIn, CaptureOut, Sink};
use catena_dataplane::task::Task;
use catena_dataplane::worker::{EditError, Ended};
use catena_dataplane::{Context, Module, NodeId, Pipeline, Pulled, Source, Worker, WorkerHandle};
use catena_packet::{BATCH, Batch, Depot};

/// Gives packets of 60 bytes for ever, or as many as it is allowed.
struct Allowed(Arc<AtomicU64>);

impl Source for Allowed {
    fn pull(&mut self, cx: &mut Context, batch: &mut Batch) -> Pulled {
        let many = self.0.load(Relaxed).min(BATCH as u64);
        self.0.fetch_sub(many, Relaxed);
        cx.pool().take_batch(batch, many as usize, 60);
        Pulled::Idle
    }
}

/// Counts how often it is started, and packets that came before.
#[derive(Clone, Default)]
struct Careful {
    started: Arc<AtomicU64>,
    early: Arc<AtomicU64>,
    fails: bool,
}

impl Module for Careful {
    fn process(&mut self, _cx: &mut Context, batch: &mut Batch) {
        if self.started.load(Relaxed) == 0 {
            self.early.fetch_add(batch.len() as u64, Relaxed);
        }
    }

    fn start(&mut self, _time: Time) -> Result<(), String> {
        self.started.fetch_add(1, Relaxed);
        if self.fails { Err("the disk is full".to_owned()) } else { Ok(()) }
    }
}

/// A worker that runs `in -> first -> sink`, and what its source is allowed.
struct Bench {
    worker: WorkerHandle,
    first: NodeId,
    allowed: Arc<AtomicU64>,
    at_first: Careful,
}

impl Bench {
    fn new(packets: u64) -> Bench {
        let (allowed, at_first) = (Arc::new(AtomicU64::new(packets)), Careful::default());
        let mut pipeline = Pipeline::new(Time::Wall);
        let first = pipeline.graph.add("first", Box::new(at_first.clone()));
        let sink = pipeline.graph.add("sink", Box::new(Sink));
        pipeline.graph.connect(first, 0, sink);
        pipeline.add_task(Task::new("in", Box::new(Allowed(allowed.clone())), first));
        let worker = Worker::new("edited", pipeline, &Depot::map(1024, 16).unwrap(), 1).start().unwrap();
        Bench { worker, first, allowed, at_first }
    }

    fn insert(&self, name: &'static str, module: impl Module) -> Result<NodeId, EditError<NodeId>> {
        let first = self.first;
        self.worker.edit(move |pipeline, _| pipeline.graph.insert_after(first, 0, name, Box::new(module)))
    }

    /// Let these many packets through.
    fn send(&self, packets: u64) {
        self.allowed.store(packets, Relaxed);
        while self.allowed.load(Relaxed) > 0 {
            std::thread::yield_now();
        }
        // Between two batches, so that what was taken from the source has gone through.
        self.worker.edit(|_, _| ()).unwrap();
    }

    fn end(self) -> Ended {
        self.worker.stop();
        self.worker.join().unwrap()
    }
}

#[test]
fn a_module_that_joins_is_started_once_and_before_its_first_packet() {
    let bench = Bench::new(u64::MAX / 2);
    let joined: Vec<Careful> = (0..20).map(|_| Careful::default()).collect();
    for careful in &joined {
        bench.insert("careful", careful.clone()).unwrap();
    }
    for careful in joined.iter().chain([&bench.at_first]) {
        assert_eq!((careful.started.load(Relaxed), careful.early.load(Relaxed)), (1, 0));
    }
    assert!(bench.end().failed.is_empty());
}

#[test]
fn a_capture_that_joins_has_every_packet_from_then_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("live.pcap");
    let bench = Bench::new(0);
    let first = bench.first;
    let (to, file) = (path.clone(), CaptureOut::at(&path).unwrap());
    assert!(!path.exists());
    let out = bench.worker.edit(move |pipeline, _| {
        let out = pipeline.graph.add("out", Box::new(file));
        pipeline.graph.connect(first, 0, out);
        out
    });
    assert!(path.exists());
    bench.send(150);
    // What is led to anew is not started anew: that would empty its file.
    let out = out.unwrap();
    let moved = bench.worker.edit(move |pipeline, _| pipeline.graph.connect(first, 0, out));
    moved.unwrap();
    bench.send(50);
    let ended = bench.end();
    assert_eq!(ended.failed, []);
    let drops: u64 = ended.pipeline.graph.nodes().iter().map(|(_, node)| node.counters.drops.total()).sum();
    assert_eq!((drops, packets(&to)), (0, 200));
}

#[test]
fn who_edits_hears_what_could_not_be_started_and_the_end_tells_it_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nowhere/live.pcap");
    let bench = Bench::new(0);
    let error = bench.insert("out", CaptureOut::at(&path).unwrap()).unwrap_err();
    let EditError::NotStarted { answer, modules } = &error else { panic!("{error:?}") };
    assert_eq!((modules.len(), &*modules[0].0), (1, "out"));
    assert!(error.to_string().starts_with("out: ") && error.to_string().contains("nowhere/live.pcap"), "{error}");
    // It is told to nobody else, who could not help it, and not tried again.
    let fails = Careful { fails: true, ..Careful::default() };
    let other = bench.insert("other", fails.clone()).unwrap_err();
    let EditError::NotStarted { modules, .. } = &other else { panic!("{other:?}") };
    assert_eq!(modules, &[("other".into(), "the disk is full".to_owned())]);
    bench.worker.edit(|_, _| ()).unwrap();
    assert_eq!(fails.started.load(Relaxed), 1);
    // What is taken out again has no part in the end.
    let gone = *answer;
    assert!(bench.worker.edit(move |pipeline, cx| pipeline.graph.remove(cx, gone).is_some()).unwrap());
    assert_eq!(bench.end().failed, [("other".into(), "the disk is full".to_owned())]);
}

#[test]
fn a_capture_that_nobody_opened_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let mut out = CaptureOut::at(folder.path().join("never.pcap")).unwrap();
    let mut cx = Context::new(&Depot::map(16, 1).unwrap(), 1);
    assert_eq!(out.end(&mut cx).unwrap_err(), "the capture was not opened: no packet was written");
}

fn packets(path: &std::path::Path) -> u64 {
    let mut source = CaptureIn::open(path, 0).unwrap();
    let mut cx = Context::new(&Depot::map(1024, 16).unwrap(), 1);
    let (mut count, mut batch) = (0, Batch::new());
    loop {
        let pulled = source.pull(&mut cx, &mut batch);
        count += batch.len() as u64;
        cx.pool().put_batch(&mut batch);
        if pulled == Pulled::Done {
            return count;
        }
    }
}

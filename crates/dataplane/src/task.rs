//! A task: a source of packets and the inlet they enter the graph by; the unit of scheduling.

use std::sync::Arc;

use catena_packet::meta::STAMP_SHIFT;
use catena_packet::{BATCH, Batch};

use crate::clock::cycles;
use crate::counter::{Counter, Traffic};
use crate::graph::{Graph, Inlet};
use crate::module::{Context, Pulled, Source};
use crate::queue::Room;
use crate::schedule::Ran;

/// One run in this many is sampled for latency.
const SAMPLE_EVERY: u64 = 16;

/// What is counted at one task.
#[derive(Debug, Default)]
pub struct TaskCounters {
    /// Packets that its source gave.
    pub input: Traffic,
    /// Runs that found packets.
    pub runs: Counter,
    /// Cycles spent in runs that found packets, its source's and all modules' together.
    pub cycles: Counter,
}

/// A source and where its packets go.
pub struct Task {
    name: Arc<str>,
    source: Box<dyn Source>,
    inlet: Inlet,
    counters: Arc<TaskCounters>,
    /// Queues that this task fills and must not overfill.
    ahead: Vec<Room>,
    /// Whether its packets come from another task of the same pipeline.
    inner: bool,
    state: Pulled,
    batch: Batch,
}

impl Task {
    /// Make a task.
    pub fn new(name: &str, source: Box<dyn Source>, inlet: impl Into<Inlet>) -> Self {
        Task {
            name: name.into(),
            source,
            inlet: inlet.into(),
            counters: Arc::default(),
            ahead: Vec::new(),
            inner: false,
            state: Pulled::More,
            batch: Batch::new(),
        }
    }

    /// Make a task whose packets come by a queue from another task of the same pipeline: it does not keep a
    /// pipeline running, and when that ends, it brings through what waits.
    pub fn inner(name: &str, source: Box<dyn Source>, inlet: impl Into<Inlet>) -> Self {
        Task { inner: true, ..Task::new(name, source, inlet) }
    }

    /// Return whether its packets come from another task of the same pipeline.
    pub fn is_inner(&self) -> bool {
        self.inner
    }

    /// Let the task rest while a queue ahead has no room for a batch, rather than lose packets there.
    pub fn heed(&mut self, room: Room) {
        self.ahead.push(room);
    }

    /// Return whether a queue ahead has no room for what it might bring.
    pub fn is_held_up(&self) -> bool {
        self.ahead.iter().any(|room| room.packets() < 2 * BATCH)
    }

    /// Return the name.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Return the counters.
    pub fn counters(&self) -> &Arc<TaskCounters> {
        &self.counters
    }

    /// Return the source.
    pub fn source(&self) -> &dyn Source {
        &*self.source
    }

    /// Return what the source said last.
    pub fn state(&self) -> Pulled {
        self.state
    }

    /// Run once: one batch, to completion.
    pub(crate) fn run(&mut self, cx: &mut Context, graph: &mut Graph) -> Ran {
        if self.state == Pulled::Done {
            return Ran::default();
        }
        if self.is_held_up() {
            self.state = Pulled::Idle;
            return Ran::default();
        }
        let start = cycles();
        self.state = self.source.pull(cx, &mut self.batch);
        if self.batch.is_empty() {
            return Ran::default();
        }
        let stamp = (start >> STAMP_SHIFT) as u32;
        for packet in self.batch.iter_mut() {
            // Without a branch: a task may find packets of both kinds.
            let old = packet.meta().stamp;
            packet.meta_mut().stamp = if old == 0 { stamp } else { old };
        }
        let bytes = self.batch.bytes();
        let packets = self.batch.len();
        self.counters.input.add(packets, bytes);
        cx.sample = self.counters.runs.get().is_multiple_of(SAMPLE_EVERY);
        graph.run(cx, self.inlet, &mut self.batch);
        let spent = cycles() - start;
        self.counters.runs.add(1);
        self.counters.cycles.add(spent);
        Ran { packets: packets as u64, bits: bytes * 8, cycles: spent }
    }
}

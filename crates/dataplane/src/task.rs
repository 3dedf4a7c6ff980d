//! A task: a source of packets and the inlet they enter the graph by; the unit of scheduling.

use std::sync::Arc;

use catena_packet::clock::Root;
use catena_packet::meta::STAMP_SHIFT;
use catena_packet::{Batch, Clock, Packet};

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

/// Where a task's packets enter the graph.
enum Entry {
    One(Inlet),
    /// By the side that they came in by.
    BySide {
        inlets: Vec<Inlet>,
        /// Whether the context's time is the packets'.
        recorded: bool,
    },
}

/// A source and where its packets go.
pub struct Task {
    name: Arc<str>,
    source: Box<dyn Source>,
    entry: Entry,
    counters: Arc<TaskCounters>,
    /// Queues that this task fills and must not overfill.
    ahead: Vec<Room>,
    /// Whether its packets are there as fast as they are asked for.
    is_recorded: bool,
    /// What it stamps packets with; none if they were stamped where they came in.
    root: Option<Root>,
    /// Whether its packets come from another task of the same pipeline.
    inner: bool,
    /// Whether it rests while a packet waits in a module.
    is_patient: bool,
    /// Whether a pipeline ends without it.
    follows: bool,
    state: Pulled,
    batch: Batch,
    /// Of a task for two sides: neighbours of one side in hand.
    run: Batch,
}

impl Task {
    /// Make a task.
    pub fn new(name: &str, source: Box<dyn Source>, inlet: impl Into<Inlet>) -> Self {
        Task {
            name: name.into(),
            is_recorded: source.is_recorded(),
            source,
            entry: Entry::One(inlet.into()),
            counters: Arc::default(),
            ahead: Vec::new(),
            root: None,
            inner: false,
            is_patient: false,
            follows: false,
            state: Pulled::More,
            batch: Batch::new(),
            run: Batch::new(),
        }
    }

    /// Make a task whose packets come by a queue from another task of the same pipeline: it does not keep a
    /// pipeline running, and when that ends, it brings through what waits.
    pub fn inner(name: &str, source: Box<dyn Source>, inlet: impl Into<Inlet>) -> Self {
        Task { inner: true, ..Task::new(name, source, inlet) }
    }

    /// Make a task whose packets are of several sides, and enter the graph by their own ([`Meta::way`]): a run's two, and further
    /// ones of packets that come back in where functions sent them.
    ///
    /// With `recorded` no packet overtakes one of the other side, and the context's time becomes that of the packets, as at
    /// the source that they came from. Live, the packets of a batch go side by side, since none can be the answer to another:
    /// that one has not left yet.
    ///
    /// [`Meta::way`]: catena_packet::Meta::way
    pub fn by_side(name: &str, source: Box<dyn Source>, inlets: Vec<Inlet>, recorded: bool) -> Self {
        let first = inlets[0];
        Task { entry: Entry::BySide { inlets, recorded }, ..Task::new(name, source, first) }
    }

    /// Let it bring no further packets while one waits in a module, and none of the other side: then what becomes of them does
    /// not depend on how long.
    #[must_use]
    pub fn patient(mut self) -> Self {
        self.is_patient = true;
        self
    }

    /// Give its packets their logical clocks: they come into a run by its source, rather than by a queue from another
    /// task, which would have stamped them.
    #[must_use]
    pub fn rooted(mut self, root: Root) -> Self {
        self.root = Some(root);
        self
    }

    /// Return what it stamps packets with.
    pub fn root(&self) -> Option<&Root> {
        self.root.as_ref()
    }

    /// Return whether its packets come from another task of the same pipeline.
    pub fn is_inner(&self) -> bool {
        self.inner
    }

    /// Let a pipeline end when its other tasks have, though this one's source goes on.
    #[must_use]
    pub fn follow(mut self) -> Self {
        self.follows = true;
        self
    }

    /// Return whether a pipeline runs until this task's source has come to its end.
    pub fn keeps_running(&self) -> bool {
        !self.inner && !self.follows
    }

    /// Let the task rest while a queue ahead has no room for a batch, rather than lose packets there.
    pub fn heed(&mut self, room: Room) {
        self.ahead.push(room);
    }

    /// Return whether a queue ahead has no room for what it might bring.
    pub fn is_held_up(&self) -> bool {
        self.ahead.iter().any(Room::is_scarce)
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
        if self.batch.is_empty() { self.state } else { Pulled::More }
    }

    /// Return the clock of the first packet that it has taken and not brought on its way.
    pub(crate) fn first_in_hand(&self) -> Option<Clock> {
        self.batch.as_slice().first().map(|packet| packet.meta().clock)
    }

    /// Drop what its source still holds: it comes too late.
    pub(crate) fn give_up(&mut self, cx: &mut Context, graph: &mut Graph) {
        let inlet = match &self.entry {
            Entry::One(inlet) => *inlet,
            Entry::BySide { inlets, .. } => inlets[0],
        };
        while self.source.pull(cx, &mut self.batch) == Pulled::More {
            graph.refuse(cx, inlet.node, &mut self.batch);
        }
    }

    /// Run once: one batch, to completion.
    pub(crate) fn run(&mut self, cx: &mut Context, graph: &mut Graph) -> Ran {
        if self.state() == Pulled::Done {
            return Ran::default();
        }
        if self.is_held_up() || self.is_patient && graph.most_waiting() > 0 {
            if self.state != Pulled::Done {
                self.state = Pulled::Idle;
            }
            return Ran::default();
        }
        let start = cycles();
        let mut bytes = 0;
        // What is in hand already was counted when it came.
        if self.batch.is_empty() {
            self.state = self.source.pull(cx, &mut self.batch);
            if self.batch.is_empty() {
                return Ran::default();
            }
            // What was recorded comes now, when it goes out by an interface or is answered by one.
            if self.is_recorded && cx.is_by_wall() {
                let now = cx.now();
                for packet in self.batch.iter_mut() {
                    let meta = packet.meta_mut();
                    (meta.arrival, meta.late) = (now, 0);
                }
            }
            bytes = stamp(&mut self.batch, (start >> STAMP_SHIFT) as u32, self.root.as_mut());
            self.counters.input.add(self.batch.len(), bytes);
        }
        let packets = self.batch.len();
        cx.sample = self.counters.runs.get().is_multiple_of(SAMPLE_EVERY);
        let end = match &self.entry {
            Entry::One(inlet) => {
                // What was in hand already has to be added up again.
                let inside = if bytes > 0 { bytes } else { self.batch.bytes() };
                graph.run_of(cx, *inlet, &mut self.batch, inside)
            }
            Entry::BySide { inlets, recorded: true } => {
                run_in_order(cx, graph, &mut self.batch, inlets, (&mut self.run, self.is_patient));
                cycles()
            }
            Entry::BySide { inlets, recorded: false } => {
                // Hardly ever there are more than two.
                while let Some(first) = self.batch.as_slice().first().map(side) {
                    if self.batch.iter().all(|packet| side(packet) == first) {
                        graph.run(cx, inlet(inlets, first), &mut self.batch);
                        break;
                    }
                    let run = &mut self.run;
                    self.batch.filter(|_, packet| {
                        if side(&packet) != first {
                            return Some(packet);
                        }
                        run.push(packet);
                        None
                    });
                    graph.run(cx, inlet(inlets, first), run);
                }
                cycles()
            }
        };
        let spent = end.saturating_sub(start);
        self.counters.runs.add(1);
        self.counters.cycles.add(spent);
        Ran { packets: (packets - self.batch.len()) as u64, bits: bytes * 8, cycles: spent }
    }
}

/// Note when packets came, and give those that are new their logical clocks; returns their bytes. One look at each packet's metadata.
#[inline(always)]
fn stamp(batch: &mut Batch, stamp: u32, root: Option<&mut Root>) -> u64 {
    let mut bytes = 0;
    match root {
        Some(root) => {
            let clocks = root.stamps(batch.len());
            for (packet, clock) in batch.iter_mut().zip(clocks) {
                bytes += packet.len() as u64;
                let meta = packet.meta_mut();
                (meta.stamp, meta.clock) = (stamp, clock);
            }
        }
        None => {
            for packet in batch.iter_mut() {
                bytes += packet.len() as u64;
                // Without a branch: a task may find packets of both kinds.
                let old = packet.meta().stamp;
                packet.meta_mut().stamp = if old == 0 { stamp } else { old };
            }
        }
    }
    bytes
}

/// Return the side that a packet came in by.
#[inline(always)]
fn side(packet: &Packet) -> usize {
    usize::from(packet.meta().way.port())
}

/// Return the inlet of a side.
fn inlet(inlets: &[Inlet], side: usize) -> Inlet {
    inlets[side.min(inlets.len() - 1)]
}

/// Run recorded packets from the inlet of their side: all neighbours of one side at once, none before its turn. If it `is_patient`,
/// those of the other side stay in the batch while one waits in a module: an answer enters a chain at its other end, and must not be
/// there before its request.
fn run_in_order(
    cx: &mut Context,
    graph: &mut Graph,
    batch: &mut Batch,
    inlets: &[Inlet],
    (run, is_patient): (&mut Batch, bool),
) {
    while let Some(first) = batch.as_slice().first().map(side) {
        let count = batch.iter().position(|packet| side(packet) != first).unwrap_or(batch.len());
        batch.filter(|i, packet| {
            if i >= count {
                return Some(packet);
            }
            run.push(packet);
            None
        });
        run.iter().for_each(|packet| cx.set_now(packet.meta().time()));
        graph.run(cx, inlet(inlets, first), run);
        if is_patient && graph.most_waiting() > 0 {
            return;
        }
    }
}

#[cfg(test)]
#[path = "task_tests.rs"]
mod tests;

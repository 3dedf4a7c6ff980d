//! Modules and the gates between them, and how a batch runs through.
//!
//! A batch in hand goes from module to module without being copied as long as all its packets take the
//! same way. Where ways part, packets wait at the next modules' inlets; inlets are numbered so that, but
//! for loops, every inlet comes after those that feed it, and the lowest that has packets runs first:
//! where ways join again the packets are one batch again.

mod counters;
mod edit;
mod moving;
mod waiting;
mod ways;

use std::path::PathBuf;
use std::sync::Arc;

use catena_packet::{Batch, Clock};

use crate::clock::cycles;
use crate::counter::{Gauge, Traffic};
use crate::module::{Context, Module, Reason};
use crate::pipeline::Time;
use waiting::Waiting;

pub use counters::{Drops, NodeCounters, NodeInfo};
pub use edit::Removed;

/// Most modules that one batch visits; more means that the graph is a loop.
const MOST_VISITS: usize = 4096;

/// A module's place in a [`Graph`]; stays the same while others come and go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(u32);

/// An input gate of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Inlet {
    /// The module.
    pub node: NodeId,
    /// The gate, from 0.
    pub gate: u16,
}

impl From<NodeId> for Inlet {
    fn from(node: NodeId) -> Self {
        Inlet { node, gate: 0 }
    }
}

struct Gate {
    to: Option<Inlet>,
    /// Where `to` waits, an index into `Graph::waiting`.
    place: usize,
    traffic: Arc<Traffic>,
}

struct Node {
    module: Box<dyn Module>,
    name: Arc<str>,
    counters: Arc<NodeCounters>,
    gates: Vec<Gate>,
    is_exit: bool,
    started: Started,
}

enum Started {
    No,
    Yes,
    /// Why not; it is not tried again by itself.
    Failed(String),
}

impl Node {
    fn start(&mut self, time: Time) -> Result<(), (Arc<str>, String)> {
        let started = self.module.start(time);
        self.started = started.as_ref().map_or_else(|error| Started::Failed(error.clone()), |()| Started::Yes);
        started.map_err(|error| (self.name.clone(), error))
    }

    fn info(&self) -> NodeInfo {
        NodeInfo {
            name: self.name.clone(),
            counters: self.counters.clone(),
            reasons: self.module.reasons(),
            gates: self.gates.iter().map(|gate| gate.traffic.clone()).collect(),
            is_exit: self.is_exit,
        }
    }
}

/// A graph of modules.
#[derive(Default)]
pub struct Graph {
    nodes: Vec<Option<Node>>,
    /// What was counted at modules that are gone: accounts still add up.
    gone: Vec<(NodeId, NodeInfo)>,
    waiting: Vec<Waiting>,
    /// A bit for every place of `waiting` that has packets.
    busy: Vec<u64>,
    numbered: bool,
    /// Where ways meet packets go on in the order of their clocks, as in a replay: what several workers do there is what one does.
    pub in_order: bool,
    /// Those modules that are polled.
    polled: Vec<NodeId>,
}

impl Graph {
    /// Make an empty graph.
    pub fn new() -> Self {
        Self::default()
    }

    /// Return the inlet that a gate leads to.
    pub fn next(&self, from: NodeId, gate: u16) -> Option<Inlet> {
        self.nodes.get(from.0 as usize)?.as_ref()?.gates.get(usize::from(gate))?.to
    }

    /// Return a module for changing, if it is of the type asked for.
    pub fn module_mut<M: Module>(&mut self, node: NodeId) -> Option<&mut M> {
        let module = self.nodes.get_mut(node.0 as usize)?.as_mut()?.module.as_mut();
        (module as &mut dyn std::any::Any).downcast_mut()
    }

    /// Return the module with this name.
    pub fn find(&self, name: &str) -> Option<NodeId> {
        let named = |node: &Option<Node>| node.as_ref().is_some_and(|n| &*n.name == name);
        self.nodes.iter().position(named).map(|i| NodeId(i as u32))
    }

    /// Return the modules with their counters, in the order in which they were added; those that are gone, too.
    pub fn nodes(&self) -> Vec<(NodeId, NodeInfo)> {
        let ids = (0u32..).map(NodeId);
        let there = ids.zip(&self.nodes).filter_map(|(id, node)| Some((id, node.as_ref()?.info())));
        let mut nodes: Vec<_> = there.chain(self.gone.iter().cloned()).collect();
        nodes.sort_by_key(|(id, _)| *id);
        nodes
    }

    /// Ask all modules for their gauges.
    pub fn gauges(&self, tell: &mut dyn FnMut(&str, Gauge)) {
        for node in self.nodes.iter().flatten() {
            let module = &node.module;
            module
                .gauges(&mut |name, value| tell(&node.name, Gauge { name, value, is_common: module.is_common(name) }));
        }
    }

    /// Return the files that modules create or empty when they start, by module; `-` is the standard output.
    pub fn outputs(&self) -> Vec<(Arc<str>, PathBuf)> {
        let of =
            |node: &Node| node.module.outputs().into_iter().map(|path| (node.name.clone(), path)).collect::<Vec<_>>();
        self.nodes.iter().flatten().flat_map(of).collect()
    }

    /// Return the files that modules use while they run, by module.
    pub fn inputs(&self) -> Vec<(Arc<str>, PathBuf)> {
        let of =
            |node: &Node| node.module.inputs().into_iter().map(|path| (node.name.clone(), path)).collect::<Vec<_>>();
        self.nodes.iter().flatten().flat_map(of).collect()
    }

    /// Start all modules that have not been started: they open what they write to.
    ///
    /// # Errors
    /// The first module that could not, and why; those behind it are not started.
    pub fn start(&mut self, time: Time) -> Result<(), (Arc<str>, String)> {
        let mut nodes = self.nodes.iter_mut().flatten().filter(|node| !matches!(node.started, Started::Yes));
        nodes.try_for_each(|node| node.start(time))
    }

    /// Start the modules that were added since the others were started; returns those that could not, and why.
    pub fn start_added(&mut self, time: Time) -> Vec<(Arc<str>, String)> {
        let nodes = self.nodes.iter_mut().flatten().filter(|node| matches!(node.started, Started::No));
        nodes.filter_map(|node| node.start(time).err()).collect()
    }

    /// Let all modules do what is due, and bring through what they hand on.
    pub fn tick(&mut self, cx: &mut Context) {
        self.each(cx, Module::tick);
    }

    /// Let all modules hand on what somebody may be waiting for.
    pub fn idle(&mut self, cx: &mut Context) {
        self.each(cx, Module::idle);
    }

    /// Let those modules that wait for other workers, and whom these wait for, do what is asked and go on.
    #[inline]
    pub fn poll(&mut self, cx: &mut Context) {
        for at in 0..self.polled.len() {
            let id = self.polled[at];
            let Some(node) = &mut self.nodes[id.0 as usize] else { continue };
            node.module.poll(cx);
            fold_drops(cx, &node.counters);
            self.bring_through(cx, id);
        }
    }

    /// Return whether a module holds packets back until it is told otherwise.
    pub fn is_holding(&self) -> bool {
        self.polled.iter().any(|id| self.nodes[id.0 as usize].as_ref().is_some_and(|node| node.module.is_holding()))
    }

    /// Return how many packets wait in a module for other workers, where most do.
    #[inline]
    pub fn most_waiting(&self) -> usize {
        let modules = self.polled.iter().filter_map(|id| self.nodes[id.0 as usize].as_ref());
        modules.map(|node| node.module.waiting()).max().unwrap_or(0)
    }

    /// Return the clock of the earliest packet that waits in a module for other workers.
    #[inline]
    pub fn first_waiting(&self) -> Option<Clock> {
        let modules = self.polled.iter().filter_map(|id| self.nodes[id.0 as usize].as_ref());
        let in_modules = modules.filter_map(|node| node.module.first_waiting()).min();
        if !self.holds() {
            return in_modules;
        }
        in_modules.into_iter().chain(self.waiting.iter().filter_map(Waiting::first)).min()
    }

    /// Let all modules write out what they hold, those first that packets come to first, and bring through what they
    /// hand on; returns what failed, by module: that, or why it was not started.
    pub fn end(&mut self, cx: &mut Context) -> Vec<(Arc<str>, String)> {
        if !self.numbered {
            self.number(None);
        }
        let mut ids: Vec<NodeId> = (0..self.nodes.len() as u32).map(NodeId).collect();
        ids.sort_by_key(|id| self.waiting.iter().position(|waiting| waiting.inlet.node == *id));
        let mut failed = Vec::new();
        for id in ids {
            if let Some(Err(error)) = self.finish_one(cx, id) {
                failed.extend(self.nodes[id.0 as usize].as_ref().map(|node| (node.name.clone(), error)));
            }
        }
        failed
    }

    /// Drop packets that come to a module when it has ended.
    pub(crate) fn refuse(&mut self, cx: &mut Context, node: NodeId, batch: &mut Batch) {
        let counters = self.nodes[node.0 as usize].as_ref().map(|node| Arc::clone(&node.counters));
        drop_all(cx, batch, &counters.unwrap_or_default(), Reason::QUEUE_FULL);
    }

    /// Do something at each module outside its turn.
    fn each(&mut self, cx: &mut Context, what: fn(&mut (dyn Module + 'static), &mut Context)) {
        for id in (0..self.nodes.len() as u32).map(NodeId) {
            let Some(node) = &mut self.nodes[id.0 as usize] else { continue };
            what(&mut *node.module, cx);
            fold_drops(cx, &node.counters);
            self.bring_through(cx, id);
        }
    }

    fn finish_one(&mut self, cx: &mut Context, id: NodeId) -> Option<Result<(), String>> {
        let node = self.nodes.get_mut(id.0 as usize)?.as_mut()?;
        let finished = match (node.module.end(cx), &node.started) {
            (_, Started::Failed(error)) => Err(error.clone()),
            (finished, _) => finished,
        };
        fold_drops(cx, &node.counters);
        self.bring_through(cx, id);
        Some(finished)
    }

    /// Run what a module handed to its gates, outside its turn, through the graph.
    fn bring_through(&mut self, cx: &mut Context, node: NodeId) {
        if cx.touched.is_empty() && self.busy.iter().all(|bits| *bits == 0) {
            return;
        }
        if !self.numbered {
            self.number(None);
        }
        self.collect(cx, node);
        let mut batch = Batch::new();
        if let Some(place) = self.next_waiting(&mut batch) {
            let bytes = batch.bytes();
            self.run_from(cx, place, &mut batch, bytes);
        }
    }

    /// Run a batch from `start` until none of its packets is left in the graph; returns the time then, in cycles, which was read anyway.
    pub fn run(&mut self, cx: &mut Context, start: Inlet, batch: &mut Batch) -> u64 {
        let bytes = batch.bytes();
        self.run_of(cx, start, batch, bytes)
    }

    /// As [`Self::run`], of a batch whose bytes are counted.
    pub(crate) fn run_of(&mut self, cx: &mut Context, start: Inlet, batch: &mut Batch, bytes: u64) -> u64 {
        if !self.numbered || self.place(start).is_none() {
            self.number(Some(start));
        }
        match self.place(start) {
            Some(place) => self.run_from(cx, place, batch, bytes),
            // An edit took away the module that a task leads to.
            None => {
                self.abandon(cx, batch, Reason::NO_GATE);
                cycles()
            }
        }
    }

    #[inline(always)]
    fn run_from(&mut self, cx: &mut Context, mut place: usize, batch: &mut Batch, mut bytes: u64) -> u64 {
        let (mut time, holds) = (cycles(), self.holds());
        for _ in 0..MOST_VISITS {
            let Waiting { inlet, .. } = self.waiting[place];
            let Some(node) = self.nodes[inlet.node.0 as usize].as_mut() else { break };
            cx.gate = inlet.gate;
            let counters = &*node.counters;
            counters.batches.add(1);
            counters.input.add(batch.len(), bytes);
            if cx.sample
                && node.is_exit
                && let Some(packet) = batch.iter().next()
            {
                counters.latency.add(since(packet.meta().stamp, time));
            }
            node.module.process(cx, batch);
            fold_drops(cx, counters);

            let onward = match node.gates.get(usize::from(inlet.gate)) {
                _ if batch.is_empty() => None,
                Some(Gate { to: Some(_), place, traffic }) => {
                    bytes = batch.bytes();
                    traffic.add(batch.len(), bytes);
                    Some(*place)
                }
                _ => {
                    drop_all(cx, batch, counters, Reason::NO_GATE);
                    None
                }
            };
            if !holds && cx.touched.is_empty() && self.busy.iter().all(|bits| *bits == 0) {
                time = charge(counters, time, cx.sample);
                match onward {
                    Some(next) => place = next,
                    None => return time,
                }
                continue;
            }
            if let Some(next) = onward {
                self.wait(next, batch, &mut Vec::new());
            }
            self.collect(cx, inlet.node);
            // Handing packets to gates is this module's work: the next to run may be on another class's way.
            if let Some(node) = &self.nodes[inlet.node.0 as usize] {
                time = charge(&node.counters, time, cx.sample);
            }
            match self.next_waiting(batch) {
                Some(next) => (place, bytes) = (next, batch.bytes()),
                None => return time,
            }
        }
        self.abandon(cx, batch, Reason::LOOP);
        time
    }

    /// Move what a module handed to its gates to where they lead.
    fn collect(&mut self, cx: &mut Context, node: NodeId) {
        while let Some(gate) = cx.touched.pop() {
            let mut emitted = std::mem::take(&mut cx.emitted[usize::from(gate)]);
            let Some(node) = self.nodes[node.0 as usize].as_ref() else { continue };
            match node.gates.get(usize::from(gate)) {
                Some(Gate { to: Some(_), place, traffic }) => {
                    let spilled: u64 = emitted.spill.iter().map(|p| p.len() as u64).sum();
                    traffic.add(emitted.batch.len() + emitted.spill.len(), emitted.batch.bytes() + spilled);
                    self.wait(*place, &mut emitted.batch, &mut emitted.spill);
                }
                _ => {
                    let counters = node.counters.clone();
                    emitted.spill.drain(..).for_each(|packet| cx.drop(packet, Reason::NO_GATE));
                    drop_all(cx, &mut emitted.batch, &counters, Reason::NO_GATE);
                }
            }
            cx.emitted[usize::from(gate)] = emitted;
        }
    }

    /// Drop what is in hand and what waits; the first module counts it where there is no better one.
    #[cold]
    fn abandon(&mut self, cx: &mut Context, batch: &mut Batch, reason: Reason) {
        let mut at = None;
        loop {
            let counters = at.and_then(|place: usize| self.nodes[self.waiting[place].inlet.node.0 as usize].as_ref());
            match counters.or(self.nodes.iter().flatten().next()).map(|node| node.counters.clone()) {
                Some(counters) => drop_all(cx, batch, &counters, reason),
                None => cx.pool().put_batch(batch),
            }
            at = self.next_waiting(batch);
            if at.is_none() {
                return;
            }
        }
    }
}

/// Count the cycles since `start` as a module's; returns the time now.
#[inline(always)]
fn charge(counters: &NodeCounters, start: u64, sample: bool) -> u64 {
    let now = cycles();
    let spent = now.saturating_sub(start);
    counters.cycles.add(spent);
    if sample {
        counters.residence.add(spent);
    }
    now
}

/// Return the cycles since a packet's stamp.
fn since(stamp: u32, now: u64) -> u64 {
    use catena_packet::meta::STAMP_SHIFT;
    u64::from(((now >> STAMP_SHIFT) as u32).wrapping_sub(stamp)) << STAMP_SHIFT
}

#[inline(always)]
fn fold_drops(cx: &mut Context, counters: &NodeCounters) {
    while let Some(reason) = cx.dropped.pop() {
        let count = std::mem::take(&mut cx.drops[usize::from(reason)]);
        counters.drops.0[usize::from(reason)].add(u64::from(count));
    }
}

#[cold]
fn drop_all(cx: &mut Context, batch: &mut Batch, counters: &NodeCounters, reason: Reason) {
    batch.drain().for_each(|packet| cx.drop(packet, reason));
    fold_drops(cx, counters);
}

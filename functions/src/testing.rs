//! Test bench for functions: packets in a readable notation, a module between gates, golden scripts.
//!
//! A packet is a line such as `udp 10.0.0.1:4000 > 192.0.2.9:53 len 12` (grammar: [`notation`]). A script is
//! lines of input and what must come of them:
//!
//! ```text
//! # time, input gate, packet; then what comes out, by which gate, or why it is dropped
//! 0s 0: udp 10.0.0.1:4000 > 192.0.2.9:53
//!   -> 0: udp 198.51.100.1:1024 > 192.0.2.9:53
//! 1s 1: udp 192.0.2.9:53 > 198.51.100.1:9999
//!   -> drop: no mapping
//! ```

pub mod agreement;
pub mod engines;
pub mod looks;
mod moved;
pub mod notation;
mod together;
mod walk;
mod workers;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;

use catena_dataplane::attribute::Attributes;
use catena_dataplane::counter::Gauge;
use catena_dataplane::module::Parcel;
use catena_dataplane::pipeline::Time;
use catena_dataplane::{Context, Graph, Inlet, Module, NodeId};
use catena_packet::wire::Seed;
use catena_packet::{BATCH, Batch, Clock, Depot, DepotHandle, Slot, SlotSet, Way};
use catena_state::{Share, Team};

use crate::{Args, Build, Descriptor, Tables};
pub use notation::{craft, describe};

/// One second, in the ns that time is counted in.
pub const SECOND: u64 = 1_000_000_000;
/// When scripts begin: some time in 2020, as 0 would be "not stamped".
pub const START: u64 = 1_600_000_000 * SECOND;

thread_local! {
    static SEED: Cell<u64> = const { Cell::new(1) };
    /// Packet buffers that no harness has at the moment: to make them takes longer than most tests.
    static SPARE: RefCell<Vec<DepotHandle>> = const { RefCell::new(Vec::new()) };
}

/// Return packet buffers for a harness.
fn depot() -> DepotHandle {
    let spare = SPARE.with_borrow_mut(Vec::pop);
    spare.unwrap_or_else(|| Depot::map(1024, 64).expect("there is memory for a thousand packets"))
}

/// Do something with functions that hash with this seed.
pub fn hashed_with<R>(seed: u64, what: impl FnOnce() -> R) -> R {
    let before = SEED.replace(seed);
    let done = what();
    SEED.set(before);
    done
}

/// Build a function with a seed that does not change by itself.
pub fn build(descriptor: &Descriptor, args: &Args, share: Share) -> Result<Box<dyn Module>, crate::config::ArgError> {
    descriptor.may_share(args, share)?;
    build_for(None, descriptor, args, share, &[])
}

/// Build a function some edges behind which select values of its Port attributes, with whatever share.
pub fn build_taking(
    taken: &[&str],
    descriptor: &Descriptor,
    args: &Args,
    share: Share,
) -> Result<Box<dyn Module>, crate::config::ArgError> {
    build_for(None, descriptor, args, share, taken)
}

/// Build a function for a worker of a team.
fn build_for(
    team: Option<&Arc<Team>>,
    descriptor: &Descriptor,
    args: &Args,
    share: Share,
    taken: &[&str],
) -> Result<Box<dyn Module>, crate::config::ArgError> {
    let taken: Vec<String> = taken.iter().map(|value| (*value).to_owned()).collect();
    let mut attributes = Attributes::default();
    let seed = Seed::from_number(SEED.get());
    let mut build = Build {
        instance: "it",
        seed,
        share,
        team,
        attributes: &mut attributes,
        taken: &taken,
        tables: &Tables::default(),
    };
    (descriptor.build)(args, &mut build)
}

/// What became of one packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It left by this gate with these bytes.
    Out(u16, Vec<u8>),
    /// It was dropped for this reason.
    Dropped(&'static str),
}

/// Keeps the packets that come in, with their clocks.
#[derive(Default)]
struct Exit(Vec<(u64, Vec<u8>)>);

impl Module for Exit {
    fn process(&mut self, cx: &mut Context, batch: &mut Batch) {
        self.0.extend(batch.iter().map(|packet| (packet.meta().clock.bits(), packet.data().to_vec())));
        cx.pool().put_batch(batch);
    }

    fn is_exit(&self) -> bool {
        true
    }
}

/// A module with an exit behind each of its gates; or several in a row, with an exit at each end.
pub struct Harness {
    graph: Graph,
    /// From the first on the way out to the last.
    modules: Vec<NodeId>,
    exits: Vec<NodeId>,
    cx: Context,
    depot: DepotHandle,
    /// Packets so far: their clocks rise from 1, as those of a source do.
    clock: u64,
    /// The clocks of the first packets that were sent together, each time.
    firsts: Vec<u64>,
    /// The slot that packets are of which are sent from now on.
    slot: Slot,
    /// Of a team the other worker's module, which gets no packets.
    other: Option<Box<dyn Module>>,
    /// Whether the modules are several instances, and get packets side by side.
    is_several: bool,
}

impl Harness {
    /// Put a module between gates; its `gates` output gates lead to exits.
    pub fn new(module: Box<dyn Module>, gates: u16) -> Self {
        let depot = depot();
        let cx = Context::new(&depot, 1);
        let mut graph = Graph::new();
        let module = graph.add("tested", module);
        let exits = (0..gates).map(|gate| (module, gate)).collect();
        Self::between(graph, vec![module], exits, (cx, depot))
    }

    /// Put modules in a row: who goes out by gate 0 meets them in this order, who comes back by gate 1 in the other.
    pub fn chain(chain: Vec<Box<dyn Module>>) -> Self {
        let depot = depot();
        let cx = Context::new(&depot, 1);
        let mut graph = Graph::new();
        let modules: Vec<_> = chain.into_iter().map(|module| graph.add("tested", module)).collect();
        for pair in modules.windows(2) {
            graph.connect(pair[0], 0, Inlet { node: pair[1], gate: 0 });
            graph.connect(pair[1], 1, Inlet { node: pair[0], gate: 1 });
        }
        let (first, last) = (modules[0], modules[modules.len() - 1]);
        Self::between(graph, modules, vec![(last, 0), (first, 1)], (cx, depot))
    }

    /// Lead gates to exits.
    fn between(
        mut graph: Graph,
        modules: Vec<NodeId>,
        gates: Vec<(NodeId, u16)>,
        (cx, depot): (Context, DepotHandle),
    ) -> Self {
        let exits = gates.into_iter().map(|(module, gate)| {
            let exit = graph.add("exit", Box::<Exit>::default());
            graph.connect(module, gate, exit);
            exit
        });
        let exits = exits.collect();
        graph.start(Time::Packets).unwrap_or_else(|(module, error)| panic!("{module}: {error}"));
        Harness {
            graph,
            modules,
            exits,
            cx,
            depot,
            clock: 0,
            firsts: Vec::new(),
            slot: Slot::NONE,
            other: None,
            is_several: false,
        }
    }

    /// Build a function and put it between two gates.
    pub fn of(descriptor: &Descriptor, args: &Args) -> Self {
        let Some(team) = engines::team() else {
            let module = build(descriptor, args, Share::WHOLE).unwrap_or_else(|error| panic!("{error}"));
            return Harness::new(module, 2);
        };
        let [module, other] = [0, 1].map(|index| {
            let module = build_for(Some(&team), descriptor, args, Share { index, count: 2 }, &[]);
            module.unwrap_or_else(|error| panic!("{error}"))
        });
        if !module.is_polled() {
            // What it has is its own: there is no team.
            let module = build(descriptor, args, Share::WHOLE).unwrap_or_else(|error| panic!("{error}"));
            return Harness::new(module, 2);
        }
        Harness { other: Some(other), ..Harness::new(module, 2) }
    }

    /// Build a function for both workers of the team that functions are built for now: [`Self::of_several`].
    pub fn of_both(descriptor: &Descriptor, args: &Args) -> Self {
        let team = engines::team().expect("functions are built for a team");
        Self::of_several(Some(&team), descriptor, args, 2)
    }

    /// Build a function `count` times, of a team or on engines with one holder of their objects. Each instance gets packets: by gates
    /// 0 and 1, as by their exits, the first, by 2 and 3 the second.
    fn of_several(team: Option<&Arc<Team>>, descriptor: &Descriptor, args: &Args, count: u32) -> Self {
        let depot = depot();
        let cx = Context::new(&depot, 1);
        let mut graph = Graph::new();
        let modules = (0..count).map(|index| {
            let module = build_for(team, descriptor, args, Share { index, count }, &[]);
            graph.add("tested", module.unwrap_or_else(|error| panic!("{error}")))
        });
        let modules: Vec<_> = modules.collect();
        let exits = modules.iter().flat_map(|module| [(*module, 0), (*module, 1)]).collect();
        Harness { is_several: true, ..Self::between(graph, modules, exits, (cx, depot)) }
    }

    /// Let the other worker answer, and go on.
    fn poll(&mut self) {
        if self.waits_for_others() {
            // Where nobody waits, all have their fates.
            let first = self.graph.first_waiting();
            engines::have_come_to(first.map_or(u64::MAX - 1, |first| first.bits() - 1));
            if let Some(other) = &mut self.other {
                other.poll(&mut self.cx);
            }
            self.graph.poll(&mut self.cx);
        }
    }

    fn waits_for_others(&self) -> bool {
        self.other.is_some() || (self.is_several && engines::team().is_some())
    }

    /// The module whose gate this is, and which of its own.
    fn inlet(&self, gate: u16) -> Inlet {
        let (module, gate) = match (self.is_several, gate) {
            (true, _) => (usize::from(gate / 2), gate % 2),
            (false, 0) => (0, gate),
            (false, _) => (self.modules.len() - 1, gate),
        };
        Inlet { node: self.modules[module], gate }
    }

    /// Return the module, to look into it.
    pub fn module<M: Module>(&mut self) -> &mut M {
        self.graph.module_mut(self.modules[0]).expect("the module is of this type")
    }

    /// Send frames into a gate, in batches, each with its time in ns since 1970; returns those that came out, by
    /// index: packets that were dropped are missing.
    pub fn send(&mut self, gate: u16, frames: &[(u64, Vec<u8>)]) -> Vec<(usize, u16, Vec<u8>)> {
        let mut out = Vec::new();
        self.send_to(gate, frames, &mut out);
        out.sort();
        out
    }

    /// Send frames as [`Self::send`] does; returns the indices of those that came out, in the order in which they did.
    pub fn send_in_order(&mut self, gate: u16, frames: &[(u64, Vec<u8>)]) -> Vec<usize> {
        let mut out = Vec::new();
        self.send_to(gate, frames, &mut out);
        out.into_iter().map(|(number, ..)| number).collect()
    }

    /// Send frames as [`Self::send`] does, in pieces of which each finds room to wait for its state; returns how many came out.
    pub fn send_in_pieces(&mut self, gate: u16, frames: &[(u64, Vec<u8>)]) -> usize {
        frames.chunks(200).map(|piece| self.send(gate, piece).len()).sum()
    }

    /// Send frames as [`Self::send`] does; adds those that came out, in the order in which they did.
    pub fn send_to(&mut self, gate: u16, frames: &[(u64, Vec<u8>)], out: &mut Vec<(usize, u16, Vec<u8>)>) {
        let before = self.dropped();
        if self.waits_for_others() {
            let first = self.graph.first_waiting();
            engines::have_come_to(first.map_or(self.clock, |first| first.bits() - 1));
        }
        self.firsts.push(self.clock + 1);
        let inlet = self.inlet(gate);
        for chunk in frames.chunks(BATCH) {
            let mut batch = Batch::new();
            for (time, bytes) in chunk {
                self.clock += 1;
                let mut packet = self.cx.pool().take(bytes.len()).expect("the harness has enough buffers");
                packet.fill(bytes);
                packet.meta_mut().arrival = *time;
                packet.meta_mut().clock = Clock::from_bits(self.clock);
                packet.meta_mut().way = Way::by(inlet.gate).of(self.slot);
                self.cx.set_now(*time);
                batch.push(packet);
            }
            self.graph.run(&mut self.cx, inlet, &mut batch);
            self.collect(out);
        }
        while self.waits_for_others() && self.graph.most_waiting() > 0 {
            self.poll();
            self.collect(out);
        }
        // What was told last is done, too.
        self.poll();
        if engines::delays().is_some() {
            self.wait(frames.len(), before, out);
        }
    }

    /// Wait for those of `sent` packets that the module holds, until the rest of them does not come: nobody is late by more
    /// polls, unless what they wait for is lost again and again. `before` packets were dropped earlier.
    fn wait(&mut self, sent: usize, before: u64, out: &mut Vec<(usize, u16, Vec<u8>)>) {
        let most_polls = if engines::loses() { 4096 } else { 64 };
        let (mut polls, mut told) = (0, 0);
        while told < sent && polls < most_polls {
            self.graph.idle(&mut self.cx);
            self.collect(out);
            let now = out.len() + (self.dropped() - before) as usize;
            polls = if now > told { 0 } else { polls + 1 };
            told = now;
        }
    }

    fn dropped(&self) -> u64 {
        let nodes = self.graph.nodes().into_iter().filter(|(id, _)| self.modules.contains(id));
        nodes.map(|(_, info)| info.counters.drops.iter().map(|(_, count)| count).sum::<u64>()).sum()
    }

    /// End the module's work; returns what came out of that.
    pub fn finish(&mut self) -> Vec<(usize, u16, Vec<u8>)> {
        let mut out = Vec::new();
        self.poll();
        let failed = self.graph.end(&mut self.cx);
        assert!(failed.is_empty(), "{failed:?}");
        self.poll();
        self.collect(&mut out);
        out
    }

    /// End the module's work, part of which fails; returns the error.
    pub fn finish_error(&mut self) -> String {
        let failed = self.graph.end(&mut self.cx);
        let [(_, error)] = &failed[..] else { panic!("{failed:?}") };
        error.clone()
    }

    fn collect(&mut self, out: &mut Vec<(usize, u16, Vec<u8>)>) {
        for (&exit, gate) in self.exits.iter().zip(0..) {
            let exit: &mut Exit = self.graph.module_mut(exit).expect("exits are exits");
            out.extend(exit.0.drain(..).map(|(clock, bytes)| {
                let first = self.firsts.iter().rev().find(|first| **first <= clock).expect("it was sent");
                ((clock - first) as usize, gate, bytes)
            }));
        }
    }

    /// Send one frame and return its fate.
    pub fn send_one(&mut self, gate: u16, time: u64, bytes: &[u8]) -> Fate {
        let before = self.drops();
        let mut out = self.send(gate, &[(time, bytes.to_vec())]);
        if let Some((_, gate, bytes)) = out.pop() {
            return Fate::Out(gate, bytes);
        }
        let after = self.drops();
        let reason = after.into_iter().find(|(reason, count)| before.get(reason) != Some(count));
        Fate::Dropped(reason.expect("what does not come out is counted").0)
    }

    /// Let the module do what is due, at a time in ns since 1970.
    pub fn tick(&mut self, now: u64) {
        self.cx.set_now(now);
        self.graph.tick(&mut self.cx);
        self.poll();
    }

    /// Let the module do what other instances ask for, and go on.
    fn go_on(&mut self) {
        self.graph.poll(&mut self.cx);
    }

    /// Let the module hand over what it has of some slots.
    fn leave(&mut self, slots: &SlotSet) -> Vec<(Arc<str>, Parcel)> {
        self.graph.leave(&mut self.cx, slots)
    }

    /// Let the module take in what another had; returns what was lost.
    fn arrive(&mut self, parcels: Vec<(Arc<str>, Parcel)>) -> Vec<(Arc<str>, String)> {
        self.graph.arrive(&mut self.cx, parcels)
    }

    /// Return the names of gauges that are the same in every instance.
    fn common_gauges(&self) -> Vec<&'static str> {
        let mut common = Vec::new();
        self.graph.gauges(&mut |_, gauge| common.extend(gauge.is_common.then_some(gauge.name)));
        common
    }

    /// Return the gauges of all instances together: what is the same in every one is told once.
    ///
    /// # Panics
    /// Where it is not the same.
    fn gauges_together(&self) -> BTreeMap<&'static str, u64> {
        let mut together = BTreeMap::new();
        // Each that is asked brings what it has on its way to the objects first.
        self.graph.gauges(&mut |_, _| ());
        self.graph.gauges(&mut |_, Gauge { name, value, is_common }| {
            let before = together.get(name).copied();
            let is_same = !is_common || before.is_none_or(|before| before == value);
            assert!(is_same, "{name}: {value}, and {before:?} in another instance");
            together.insert(name, if is_common { value } else { value + before.unwrap_or(0) });
        });
        together
    }

    /// Return how many packets were dropped, by reason.
    pub fn drops(&self) -> BTreeMap<&'static str, u64> {
        let mut drops = BTreeMap::new();
        for (_, info) in self.graph.nodes().into_iter().filter(|(id, _)| self.modules.contains(id)) {
            for (reason, count) in info.counters.drops.iter() {
                *drops.entry(reason.text(info.reasons)).or_default() += count;
            }
        }
        drops
    }

    /// Return the module's gauges.
    pub fn gauges(&self) -> BTreeMap<&'static str, u64> {
        let mut gauges = BTreeMap::new();
        self.graph.gauges(&mut |_, gauge| _ = gauges.insert(gauge.name, gauge.value));
        gauges
    }

    /// End the test: every packet buffer must be back.
    pub fn end(self) {
        let Harness { graph, cx, depot, other, .. } = self;
        drop((graph, cx, other));
        assert!(depot.all_home(), "a packet buffer is lost");
        SPARE.with_borrow_mut(|spare| spare.push(depot));
    }
}

/// Run a script's inputs and return the script with what truly came of them.
pub fn play(harness: &mut Harness, script: &str) -> String {
    let mut played = String::new();
    for line in script.lines().filter(|line| !line.trim_start().starts_with("->")) {
        played += line;
        played.push('\n');
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (time, rest) = line.split_once(' ').expect("a line is `TIME GATE: PACKET`");
        let time = START + seconds(time);
        if rest == "tick" {
            harness.tick(time);
            continue;
        }
        let (gate, packet) = rest.split_once(": ").expect("a line is `TIME GATE: PACKET`");
        let gate = gate.parse().expect("a gate is a number");
        played += &match harness.send_one(gate, time, &craft(packet)) {
            Fate::Out(gate, bytes) => format!("  -> {gate}: {}\n", describe(&bytes)),
            Fate::Dropped(reason) => format!("  -> drop: {reason}\n"),
        };
    }
    played
}

/// Run a script and compare.
///
/// # Panics
/// When something else comes of a packet than the script says, with both.
pub fn golden(harness: &mut Harness, script: &str) {
    let played = play(harness, script);
    for (line, (expected, came)) in (1..).zip(script.lines().zip(played.lines())) {
        assert_eq!(expected, came, "line {line} of the script; it plays as\n{played}");
    }
    assert_eq!(script.lines().count(), played.lines().count(), "the script plays as\n{played}");
}

fn seconds(text: &str) -> u64 {
    let number: f64 = text.strip_suffix('s').and_then(|t| t.parse().ok()).expect("a time is like `1.5s`");
    (number * SECOND as f64) as u64
}

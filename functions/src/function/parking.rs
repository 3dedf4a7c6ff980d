//! Packets that wait for their state: they stand aside, in the order in which they came, while others go on.
//!
//! Nobody overtakes its own flow. A packet waits behind one that is parked if both have the same two ends, in either
//! direction, or have asked for the same entry, in whatever step: what the earlier one does to it, the later one must see.
//!
//! Where the function's instance may be lost, those that are parked begin once more when it has been made anew. They must find
//! it as they left it: what changes the function beside its objects, as commands may, waits for all of them.

use std::mem::MaybeUninit;

use catena_dataplane::Context;
use catena_dataplane::module::{Reason, Times, Verdict};
use catena_packet::clock::Root;
use catena_packet::meta::ATTRIBUTE_BYTES;
use catena_packet::wire::{FlowKey, Layers, Seed};
use catena_packet::{BATCH, Batch, Clock, Packet};
use catena_state::{Engine, Tx};

use super::instance::{Instance, event};
use super::presence::{Counted, Presence};
use super::{Function, Step, of};

/// Most packets parked at a time: what comes then and must wait is dropped, and counted.
pub const MOST: usize = 256;

/// Most of them and of those that had to wait after their first step. What a function has begun with a packet it brings to an
/// end: it is never left with half of it.
pub const MOST_BEGUN: usize = 2 * MOST;

/// Tells flows apart. Two that are taken for one wait for each other now and then, and nothing else.
const FLOWS: Seed = Seed::from_number(1);

/// The packets that wait.
pub(super) struct Parking<E: Engine, F: Function<E>> {
    /// In the order in which they came; those whose fates are known leave together, or in that order. Where the engine keeps an order,
    /// in that of their clocks: who comes by a longer way goes before those that came by a shorter one and wait for it.
    parked: Vec<Parked<E, F>>,
    /// The places of those that have no fate yet, as far as they were gone through; empty but for that moment.
    waiting: Vec<usize>,
    /// What those that are parked have in common with others; where functions are neither watched nor lost.
    presence: Presence,
    /// Some have their fates and are still here.
    has_done_some: bool,
}

struct Parked<E: Engine, F: Function<E>> {
    work: Work<E, F>,
    packet: Packet,
    /// Its fate, once it has come to that: then its operations are committed, or given up.
    verdict: Option<Verdict>,
    /// Where functions are watched or lost.
    came: Option<Came>,
    /// What is known of it by its presence.
    counted: Counted,
}

/// A packet as it came.
#[derive(PartialEq)]
struct Came {
    bytes: Vec<u8>,
    mark: u32,
    attributes: [u8; ATTRIBUTE_BYTES],
}

/// How far a packet is.
struct Work<E: Engine, F: Function<E>> {
    tx: Tx,
    plan: F::Plan,
    /// What tells its flow, once somebody has asked.
    flow: Option<u64>,
    /// Whether what it asks for has been sent off: not while it waits for an earlier packet, as what that one tells comes
    /// first.
    is_issued: bool,
    /// Whether its first step is done.
    has_begun: bool,
}

impl<E: Engine, F: Function<E>> Work<E, F> {
    fn flow(&mut self, packet: &Packet) -> u64 {
        *self.flow.get_or_insert_with(|| flow(packet))
    }

    /// Return whether it must wait for an earlier packet.
    fn waits_for(&mut self, packet: &Packet, earlier: &mut Parked<E, F>, engine: &E) -> bool {
        let Parked { work, packet: other, .. } = earlier;
        self.flow(packet) == work.flow(other) || engine.follows(&self.tx, &work.tx)
    }

    /// Go on as far as results are there, while it `waits` for nobody; returns its fate, if it comes to that. Then its operations are
    /// committed. Of one that finds no place to wait, and has not begun, nothing is sent off: it is given up as if it had never come.
    #[inline(always)]
    fn advance(
        &mut self,
        packet: &mut Packet,
        (came, has_place): (Option<&Came>, bool),
        waits: &mut impl FnMut(&mut Self, &Packet, &E) -> bool,
        engine: &mut E,
        function: &mut F,
    ) -> Option<Verdict> {
        loop {
            // Before each step: what it asked for in the last one may be what another has asked for. And what that one asked
            // for in the meantime may be what this one has; it need not be known before there is anything to go on with.
            let was_issued = self.is_issued;
            if !was_issued {
                if waits(self, packet, engine) {
                    return None;
                }
                if !has_place && !self.has_begun && !engine.is_ready(&self.tx) {
                    return None;
                }
                self.is_issued = true;
                engine.issue(&mut self.tx);
            }
            if !engine.is_ready(&self.tx) || was_issued && waits(self, packet, engine) {
                return None;
            }
            let verdict = self.step(packet, came, engine, function);
            if verdict.is_some() {
                return verdict;
            }
        }
    }

    /// Do the next step; returns the fate that it comes to, if it does.
    #[inline(always)]
    fn step(&mut self, packet: &mut Packet, came: Option<&Came>, engine: &mut E, function: &mut F) -> Option<Verdict> {
        self.has_begun = true;
        engine.step(&mut self.tx);
        if let Step::Done(verdict) = function.finish(&mut self.tx, packet, &mut self.plan) {
            engine.commit(&mut self.tx);
            return Some(verdict);
        }
        must_be_as::<E, F>(came, packet, "in a step that returned Step::Again");
        self.is_issued = false;
        None
    }
}

impl<E: Engine, F: Function<E>> Parking<E, F> {
    pub(super) fn new() -> Self {
        let most = if E::WAITS { MOST_BEGUN + BATCH } else { 0 };
        Parking {
            parked: Vec::with_capacity(most),
            waiting: Vec::with_capacity(most),
            presence: Presence::new(),
            has_done_some: false,
        }
    }

    /// Carry a batch, whose headers are parsed, through the function as far as it comes. As on local state, all packets ask first,
    /// so that what they need is on its way together.
    pub(super) fn process(
        &mut self,
        instance: &mut Instance<E, F>,
        events: &mut Root,
        cx: &mut Context,
        batch: &mut Batch,
    ) {
        if instance.engine.is_gone() {
            batch.drain().for_each(|packet| cx.drop(packet, Reason::NO_STATE));
            return self.go_on(instance, cx);
        }
        let now = cx.now();
        if E::WATCHES || E::CRASHES {
            let (times, gate, before) = (cx.times(), cx.gate(), self.parked.len());
            for packet in batch.drain() {
                self.prepare(instance, times, gate, packet);
            }
            self.parked[before..].iter_mut().for_each(|parked| instance.function.warm(&mut parked.work.plan));
            self.advance(before, instance);
        } else {
            self.pass(instance, cx, batch);
        }
        self.event(instance, events, self.no_later(now), |function, tx| function.tidy(tx, false));
        self.go_on(instance, cx);
    }

    /// Carry a batch through the function, where nobody is watched or lost: packets that need not wait stay in it, and the others are
    /// parked.
    fn pass(&mut self, instance: &mut Instance<E, F>, cx: &mut Context, batch: &mut Batch) {
        let Instance { engine, function, .. } = instance;
        let (times, gate) = (cx.times(), cx.gate());
        let mut works = [const { MaybeUninit::<Work<E, F>>::uninit() }; BATCH];
        for (packet, work) in batch.iter().zip(&mut works) {
            let mut tx = engine.begin(of(packet, times, gate));
            let plan = function.prepare(&mut tx, packet);
            work.write(Work { tx, plan, flow: None, is_issued: false, has_begun: false });
        }
        for work in &mut works[..batch.len()] {
            // SAFETY: it was just written.
            function.warm(&mut unsafe { work.assume_init_mut() }.plan);
        }
        cx.decide_some(batch, |i, mut packet| {
            // SAFETY: as many were written as the batch has packets.
            let work = unsafe { works[i].assume_init_mut() };
            let Parking { parked, presence, .. } = self;
            let clock = packet.meta().clock;
            let at = match engine.keeps_order() {
                true => parked.partition_point(|earlier| earlier.packet.meta().clock <= clock),
                false => parked.len(),
            };
            let has_place = parked.len() < MOST;
            let verdict = match parked.len() {
                MOST_BEGUN.. => None,
                _ => {
                    let mut waits = |work: &mut Work<E, F>, packet: &Packet, engine: &E| {
                        at > 0
                            && presence.may_meet(engine, work.flow(packet), &work.tx)
                            && parked[..at]
                                .iter_mut()
                                .any(|earlier| earlier.verdict.is_none() && work.waits_for(packet, earlier, engine))
                    };
                    work.advance(&mut packet, (None, has_place), &mut waits, engine, function)
                }
            };
            // Nobody else asks for it again.
            let ended = |work: &mut Work<E, F>| std::mem::replace(&mut work.tx, Tx::new(0, 0, 0));
            match verdict {
                Some(verdict) if at == 0 || !engine.keeps_order() => {
                    engine.end(ended(work));
                    Some((packet, verdict))
                }
                None if !work.has_begun && parked.len() >= MOST => {
                    engine.end(ended(work));
                    Some((packet, Verdict::Drop(Reason::NO_PARKING)))
                }
                verdict => {
                    // SAFETY: it was written, and is read once.
                    let mut work = unsafe { works[i].assume_init_read() };
                    let counted = presence.add(engine, work.flow(&packet), &work.tx);
                    parked.insert(at, Parked { work, packet, verdict, came: None, counted });
                    None
                }
            }
        });
    }

    /// Let a packet ask for what it needs.
    fn prepare(&mut self, instance: &mut Instance<E, F>, times: Times, gate: u16, packet: Packet) {
        let came = (E::WATCHES || E::CRASHES).then(|| Came::of(&packet));
        let (tx, plan) = self.surely(instance, |_, engine, function| {
            if E::WATCHES {
                // *prepare* changes nothing, so it may be asked once more. The engine holds it to asking for the same.
                let mut tx = engine.begin(of(&packet, times, gate));
                function.prepare(&mut tx, &packet);
                engine.end(tx);
            }
            let mut tx = engine.begin(of(&packet, times, gate));
            if let Some(flow) = key(&packet).filter(|_| E::WATCHES && gate == 0) {
                engine.sees(&tx, flow);
            }
            let plan = function.prepare(&mut tx, &packet);
            must_be_as::<E, F>(came.as_ref(), &packet, "in prepare");
            (tx, plan)
        });
        let work = Work { tx, plan, flow: None, is_issued: false, has_begun: false };
        self.parked.push(Parked { work, packet, verdict: None, came, counted: Counted::default() });
    }

    /// Return the time, or that of the earliest packet that waits: an entry that is over now may not be over for that packet.
    pub(super) fn no_later(&self, now: u64) -> u64 {
        let waiting = self.parked.iter().filter(|parked| parked.verdict.is_none());
        waiting.fold(now, |now, parked| now.min(parked.work.tx.now))
    }

    /// Return how many wait.
    pub(super) fn waiting(&self) -> usize {
        self.parked.len()
    }

    /// Return the clock of the earliest that waits.
    pub(super) fn first(&self) -> Option<Clock> {
        self.parked.iter().map(|parked| parked.packet.meta().clock).min()
    }

    /// Let those go on that may.
    pub(super) fn go_on(&mut self, instance: &mut Instance<E, F>, cx: &mut Context) {
        // Where nothing has come, nobody can go on.
        let has_news = instance.engine.poll();
        if instance.engine.is_gone() {
            self.give_up();
        } else if !has_news && !std::mem::take(&mut self.has_done_some) {
            return;
        } else {
            self.advance(0, instance);
        }
        instance.engine.flush();
        let Parking { parked, presence, .. } = self;
        let (keeps_order, mut is_free) = (instance.engine.keeps_order(), true);
        for one in parked.extract_if(.., |parked| {
            is_free &= parked.verdict.is_some() || !keeps_order;
            is_free && parked.verdict.is_some()
        }) {
            let Parked { mut work, packet, verdict, counted, .. } = one;
            if !(E::WATCHES || E::CRASHES) {
                presence.remove(&instance.engine, work.flow(&packet), &work.tx, counted);
            }
            instance.engine.end(work.tx);
            match verdict {
                Some(Verdict::Gate(gate)) => cx.emit(gate, packet),
                Some(Verdict::Drop(reason)) => cx.drop(packet, reason),
                None => unreachable!("those that leave have their fates"),
            }
        }
    }

    /// Give up all that wait: what they wait for will not come.
    fn give_up(&mut self) {
        let waiting = self.parked.iter_mut().filter(|parked| parked.verdict.is_none());
        waiting.for_each(|parked| parked.verdict = Some(Verdict::Drop(Reason::NO_STATE)));
    }

    /// Let all from this one on go on as far as they come. Who finds no place to wait is given up, if it has not begun.
    fn advance(&mut self, from: usize, instance: &mut Instance<E, F>) {
        let mut waiting = std::mem::take(&mut self.waiting);
        let has_no_fate = |at: &usize| self.parked[*at].verdict.is_none();
        waiting.extend((0..from).filter(has_no_fate));
        for at in from..self.parked.len() {
            if self.parked[at].verdict.is_some() {
                continue;
            }
            let is_new = !self.parked[at].work.has_begun;
            if !(is_new && waiting.len() >= MOST_BEGUN) {
                self.surely(instance, |parked, engine, function| {
                    let (earlier, rest) = parked.split_at_mut(at);
                    rest[0].advance(earlier, (&waiting, waiting.len() < MOST), engine, function);
                });
            }
            let parked = &mut self.parked[at];
            if parked.verdict.is_some() {
                continue;
            }
            if !(E::WATCHES || E::CRASHES) {
                self.presence.add_marks(&instance.engine, &parked.work.tx, &mut parked.counted);
            }
            if !parked.work.has_begun && waiting.len() >= MOST {
                parked.verdict = Some(Verdict::Drop(Reason::NO_PARKING));
                continue;
            }
            waiting.push(at);
        }
        waiting.clear();
        self.waiting = waiting;
    }

    /// Let a command change the function, under a clock of its own. All that came before it come to their fates first, as what the
    /// function does with them may not change half-way; they leave when they go on the next time.
    pub(super) fn command<R>(
        &mut self,
        instance: &mut Instance<E, F>,
        events: &mut Root,
        now: u64,
        what: impl FnMut(&mut F, &mut Tx) -> R,
    ) -> R {
        while self.parked.iter().any(|parked| parked.verdict.is_none()) {
            let has_news = instance.engine.poll();
            if instance.engine.is_gone() {
                self.give_up();
            }
            self.advance(0, instance);
            if !has_news {
                instance.engine.rest();
            }
        }
        self.has_done_some = true;
        self.event(instance, events, now, what)
    }

    /// Let all go on, and wait for them.
    pub(super) fn empty(&mut self, instance: &mut Instance<E, F>, cx: &mut Context) {
        while !self.parked.is_empty() {
            let before = self.parked.len();
            self.go_on(instance, cx);
            if self.parked.len() == before {
                instance.engine.rest();
            }
        }
    }

    /// Let the function do what no packet asks for, under a clock of its own.
    pub(super) fn event<R>(
        &mut self,
        instance: &mut Instance<E, F>,
        events: &mut Root,
        now: u64,
        mut what: impl FnMut(&mut F, &mut Tx) -> R,
    ) -> R {
        let clock = events.stamp().bits();
        self.surely(instance, |_, engine, function| event(engine, function, clock, now, &mut what))
    }

    /// Do something with the function, and once more whenever its instance is lost meanwhile: after those that are parked have
    /// begun once more.
    fn surely<R>(
        &mut self,
        instance: &mut Instance<E, F>,
        mut what: impl FnMut(&mut [Parked<E, F>], &mut E, &mut F) -> R,
    ) -> R {
        loop {
            let done = instance.attempt(|engine, function| what(&mut self.parked, engine, function));
            if let Some(done) = done {
                return done;
            }
            let mut begin_all = |engine: &mut E, function: &mut F| {
                self.parked.iter_mut().for_each(|parked| parked.begin_again(engine, function));
            };
            while instance.attempt(&mut begin_all).is_none() {}
        }
    }
}

impl<E: Engine, F: Function<E>> Parked<E, F> {
    /// Begin once more, with the packet as it came: the instance that it was with is lost. It goes on to where it was.
    fn begin_again(&mut self, engine: &mut E, function: &mut F) {
        if self.verdict.is_some() {
            return;
        }
        let Parked { work, packet, verdict, came, .. } = self;
        if let Some(came) = came {
            came.restore(packet);
        }
        work.tx = engine.begin(Tx::new(work.tx.clock(), work.tx.now, work.tx.gate).of(work.tx.slot));
        work.plan = function.prepare(&mut work.tx, packet);
        work.is_issued = false;
        while verdict.is_none() && engine.has_stepped(&work.tx) {
            engine.issue(&mut work.tx);
            *verdict = work.step(packet, came.as_ref(), engine, function);
        }
    }

    /// Go on as far as may be, past no `earlier` packet that is `waiting` and must be waited for.
    fn advance(
        &mut self,
        earlier: &mut [Self],
        (waiting, has_place): (&[usize], bool),
        engine: &mut E,
        function: &mut F,
    ) {
        let Parked { work, packet, verdict, came, .. } = self;
        if verdict.is_some() {
            // It came to that when it began once more.
            return;
        }
        let mut waits = |work: &mut Work<E, F>, packet: &Packet, engine: &E| {
            // There are few.
            waiting.iter().any(|at| work.waits_for(packet, &mut earlier[*at], engine))
        };
        *verdict = work.advance(packet, (came.as_ref(), has_place), &mut waits, engine, function);
    }
}

/// Return the flow of a packet that says it itself.
fn key(packet: &Packet) -> Option<FlowKey> {
    let layers = packet.layers();
    let says = layers.has(Layers::PORTS) && !layers.has(Layers::FRAGMENT);
    FlowKey::read(packet.data(), &layers).filter(|_| says)
}

/// Return what packets of a connection have in common, in both directions; packets without one are of one flow.
fn flow(packet: &Packet) -> u64 {
    FlowKey::read(packet.data(), &packet.layers()).map_or(0, |key| key.symmetric_hash(&FLOWS))
}

fn must_be_as<E: Engine, F>(came: Option<&Came>, packet: &Packet, step: &str) {
    let function = std::any::type_name::<F>();
    let is_as = !E::WATCHES || came.is_none_or(|came| *came == Came::of(packet));
    assert!(is_as, "{function}: a packet was changed before its verdict, {step}");
}

impl Came {
    fn of(packet: &Packet) -> Came {
        Came { bytes: packet.data().to_vec(), mark: packet.meta().mark, attributes: packet.meta().attributes }
    }

    /// Make a packet as it came.
    fn restore(&self, packet: &mut Packet) {
        packet.fill(&self.bytes);
        (packet.meta_mut().mark, packet.meta_mut().attributes) = (self.mark, self.attributes);
        // Where it cannot be parsed now, it could not be before.
        let _ = packet.parse();
    }
}

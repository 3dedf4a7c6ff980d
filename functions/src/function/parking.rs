//! Packets that wait for their state: they stand aside, in the order in which they came, while others go on.
//!
//! Nobody overtakes its own flow. A packet waits behind one that is parked if both have the same two ends, in either
//! direction, or have asked for the same entry, in whatever step: what the earlier one does to it, the later one must see.
//!
//! Where the function's instance may be lost, those that are parked begin once more when it has been made anew. They must find
//! it as they left it: what changes the function beside its objects, as commands may, waits for all of them.

use catena_dataplane::Context;
use catena_dataplane::module::{Reason, Verdict};
use catena_packet::clock::Root;
use catena_packet::meta::ATTRIBUTE_BYTES;
use catena_packet::wire::{FlowKey, Seed};
use catena_packet::{Batch, Packet};
use catena_state::{Engine, Tx};

use super::instance::{Instance, event};
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
    parked: Vec<Parked<E, F>>,
}

struct Parked<E: Engine, F: Function<E>> {
    tx: Tx,
    packet: Packet,
    plan: F::Plan,
    flow: u64,
    /// Whether what it asks for has been sent off: not while it waits for an earlier packet, as what that one tells comes
    /// first.
    is_issued: bool,
    /// Its fate, once it has come to that: then its operations are committed.
    verdict: Option<Verdict>,
    came: Came,
}

/// A packet as it came, where functions are watched or lost.
#[derive(PartialEq)]
struct Came {
    bytes: Vec<u8>,
    mark: u32,
    attributes: [u8; ATTRIBUTE_BYTES],
}

impl<E: Engine, F: Function<E>> Parking<E, F> {
    pub(super) fn new() -> Self {
        Parking { parked: if E::WAITS { Vec::with_capacity(MOST_BEGUN) } else { Vec::new() } }
    }

    /// Carry a batch, whose headers are parsed, through the function as far as it comes.
    pub(super) fn process(
        &mut self,
        instance: &mut Instance<E, F>,
        events: &mut Root,
        cx: &mut Context,
        batch: &mut Batch,
    ) {
        let now = cx.now();
        batch.filter(|_, packet| {
            self.take_in(instance, cx, packet);
            None
        });
        self.event(instance, events, self.no_later(now), |function, tx| function.tidy(tx, false));
        self.go_on(instance, cx);
    }

    /// Carry a packet through the function as far as it comes.
    fn take_in(&mut self, instance: &mut Instance<E, F>, cx: &mut Context, packet: Packet) {
        let (now, gate) = (cx.now(), cx.gate());
        let came = Came::of::<E>(&packet);
        let (tx, plan) = self.surely(instance, |_, engine, function| {
            if E::WATCHES {
                // *prepare* changes nothing, so it may be asked once more. The engine holds it to asking for the same.
                let mut tx = engine.begin(of(&packet, now, gate));
                function.prepare(&mut tx, &packet);
                engine.end(tx);
            }
            let mut tx = engine.begin(of(&packet, now, gate));
            let plan = function.prepare(&mut tx, &packet);
            came.must_be_as::<E, F>(&packet, "in prepare");
            (tx, plan)
        });
        let flow = flow(&packet);
        let parked = Parked { tx, packet, plan, flow, is_issued: false, verdict: None, came };
        let Instance { engine, .. } = instance;
        let waits = parked.waits(&self.parked, engine);
        let is_full =
            self.parked.len() == MOST_BEGUN || self.parked.len() >= MOST && (waits || !engine.is_ready(&parked.tx));
        if is_full {
            engine.end(parked.tx);
            cx.drop(parked.packet, Reason::NO_PARKING);
            return;
        }
        self.parked.push(parked);
        self.advance(self.parked.len() - 1, instance, cx);
    }

    /// Return the time, or that of the earliest packet that waits: an entry that is over now may not be over for that packet.
    pub(super) fn no_later(&self, now: u64) -> u64 {
        self.parked.iter().map(|parked| parked.tx.now).fold(now, u64::min)
    }

    /// Let those go on that may.
    pub(super) fn go_on(&mut self, instance: &mut Instance<E, F>, cx: &mut Context) {
        instance.engine.poll();
        let mut at = 0;
        while at < self.parked.len() {
            if !self.advance(at, instance, cx) {
                at += 1;
            }
        }
    }

    /// Let one go on as far as it comes; returns its fate, if it comes to that.
    fn decide(&mut self, at: usize, instance: &mut Instance<E, F>) -> Option<Verdict> {
        self.surely(instance, |parked, engine, function| {
            let (earlier, rest) = parked.split_at_mut(at);
            rest[0].advance(earlier, engine, function)
        })
    }

    /// Let one go on as far as it comes; returns whether it has left.
    fn advance(&mut self, at: usize, instance: &mut Instance<E, F>, cx: &mut Context) -> bool {
        let Some(verdict) = self.decide(at, instance) else { return false };
        let Parked { tx, packet, .. } = self.parked.remove(at);
        instance.engine.end(tx);
        match verdict {
            Verdict::Gate(gate) => cx.emit(gate, packet),
            Verdict::Drop(reason) => cx.drop(packet, reason),
        }
        true
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
            instance.engine.poll();
            for at in 0..self.parked.len() {
                self.decide(at, instance);
            }
        }
        self.event(instance, events, now, what)
    }

    /// Let all go on, and wait for them.
    pub(super) fn empty(&mut self, instance: &mut Instance<E, F>, cx: &mut Context) {
        while !self.parked.is_empty() {
            self.go_on(instance, cx);
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
    /// Return whether it must wait for one of those that came before it.
    fn waits(&self, earlier: &[Self], engine: &E) -> bool {
        let mut undecided = earlier.iter().filter(|earlier| earlier.verdict.is_none());
        undecided.any(|earlier| earlier.flow == self.flow || engine.follows(&self.tx, &earlier.tx))
    }

    /// Begin once more, with the packet as it came: the instance that it was with is lost. It goes on to where it was.
    fn begin_again(&mut self, engine: &mut E, function: &mut F) {
        if self.verdict.is_some() {
            return;
        }
        self.came.restore(&mut self.packet);
        self.tx = engine.begin(Tx::new(self.tx.clock(), self.tx.now, self.tx.gate));
        self.plan = function.prepare(&mut self.tx, &self.packet);
        self.is_issued = false;
        while self.verdict.is_none() && engine.has_stepped(&self.tx) {
            engine.issue(&mut self.tx);
            self.step(engine, function);
        }
    }

    /// Go on as far as results are there and no `earlier` packet must be waited for; returns the verdict, if it comes to one.
    /// Then its operations are committed.
    fn advance(&mut self, earlier: &[Self], engine: &mut E, function: &mut F) -> Option<Verdict> {
        while self.verdict.is_none() {
            // Before each step: what it asked for in the last one may be what another has asked for.
            if self.waits(earlier, engine) {
                return None;
            }
            if !std::mem::replace(&mut self.is_issued, true) {
                engine.issue(&mut self.tx);
            }
            if !engine.is_ready(&self.tx) {
                return None;
            }
            self.step(engine, function);
        }
        self.verdict
    }

    /// Do the next step.
    fn step(&mut self, engine: &mut E, function: &mut F) {
        engine.step(&mut self.tx);
        if let Step::Done(verdict) = function.finish(&mut self.tx, &mut self.packet, &mut self.plan) {
            engine.commit(&mut self.tx);
            self.verdict = Some(verdict);
            return;
        }
        self.came.must_be_as::<E, F>(&self.packet, "in a step that returned Step::Again");
        self.is_issued = false;
    }
}

/// Return what packets of a connection have in common, in both directions; packets without one are of one flow.
fn flow(packet: &Packet) -> u64 {
    FlowKey::read(packet.data(), &packet.layers()).map_or(0, |key| key.symmetric_hash(&FLOWS))
}

impl Came {
    fn of<E: Engine>(packet: &Packet) -> Came {
        let bytes = if E::WATCHES || E::CRASHES { packet.data().to_vec() } else { Vec::new() };
        Came { bytes, mark: packet.meta().mark, attributes: packet.meta().attributes }
    }

    fn must_be_as<E: Engine, F>(&self, packet: &Packet, step: &str) {
        let function = std::any::type_name::<F>();
        let is_as = !E::WATCHES || *self == Came::of::<E>(packet);
        assert!(is_as, "{function}: a packet was changed before its verdict, {step}");
    }

    /// Make a packet as it came.
    fn restore(&self, packet: &mut Packet) {
        packet.fill(&self.bytes);
        (packet.meta_mut().mark, packet.meta_mut().attributes) = (self.mark, self.attributes);
        // Where it cannot be parsed now, it could not be before.
        let _ = packet.parse();
    }
}

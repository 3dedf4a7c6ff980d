//! Packets that wait for their state: they stand aside, in the order in which they came, while others go on.
//!
//! Nobody overtakes its own flow. A packet waits behind one that is parked if both have the same two ends, in either
//! direction, or have asked for the same entry, in whatever step: what the earlier one does to it, the later one must see.

use std::hash::Hasher;

use catena_dataplane::Context;
use catena_dataplane::module::{Reason, Verdict};
use catena_packet::clock::Root;
use catena_packet::wire::{FlowKey, Seed};
use catena_packet::{Batch, Packet};
use catena_state::{Engine, Tx};

use super::{Function, Step, of, tidy};

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
    /// Hash of the packet's bytes, where functions are watched.
    bytes: u64,
}

impl<E: Engine, F: Function<E>> Parking<E, F> {
    pub(super) fn new() -> Self {
        Parking { parked: if E::WAITS { Vec::with_capacity(MOST_BEGUN) } else { Vec::new() } }
    }

    /// Carry a batch, whose headers are parsed, through the function as far as it comes.
    pub(super) fn process(
        &mut self,
        engine: &mut E,
        function: &mut F,
        events: &mut Root,
        cx: &mut Context,
        batch: &mut Batch,
    ) {
        let (now, gate) = (cx.now(), cx.gate());
        batch.filter(|_, packet| {
            let bytes = watched::<E>(&packet);
            if E::WATCHES {
                // *prepare* changes nothing, so it may be asked once more. The engine holds it to asking for the same.
                let mut tx = engine.begin(of(&packet, now, gate));
                function.prepare(&mut tx, &packet);
                engine.end(tx);
            }
            let mut tx = engine.begin(of(&packet, now, gate));
            let plan = function.prepare(&mut tx, &packet);
            must_be_unchanged::<E, F>(bytes, &packet, "in prepare");
            let flow = flow(&packet);
            let mut parked = Parked { tx, packet, plan, flow, is_issued: false, bytes };
            let waits = parked.waits(&self.parked, engine);
            let is_full =
                self.parked.len() == MOST_BEGUN || self.parked.len() >= MOST && (waits || !engine.is_ready(&parked.tx));
            if is_full {
                engine.end(parked.tx);
                cx.drop(parked.packet, Reason::NO_PARKING);
                return None;
            }
            match parked.advance(&self.parked, engine, function) {
                Some(verdict) => parked.leave(engine, cx, verdict),
                None => self.parked.push(parked),
            }
            None
        });
        tidy(engine, function, events, self.no_later(now), false);
        self.go_on(engine, function, cx);
    }

    /// Return the time, or that of the earliest packet that waits: an entry that is over now may not be over for that packet.
    pub(super) fn no_later(&self, now: u64) -> u64 {
        self.parked.iter().map(|parked| parked.tx.now).fold(now, u64::min)
    }

    /// Let those go on that may.
    pub(super) fn go_on(&mut self, engine: &mut E, function: &mut F, cx: &mut Context) {
        engine.poll();
        let mut at = 0;
        while at < self.parked.len() {
            let (earlier, rest) = self.parked.split_at_mut(at);
            let parked = &mut rest[0];
            match parked.advance(earlier, engine, function) {
                Some(verdict) => self.parked.remove(at).leave(engine, cx, verdict),
                None => at += 1,
            }
        }
    }

    /// Let all go on, and wait for them.
    pub(super) fn empty(&mut self, engine: &mut E, function: &mut F, cx: &mut Context) {
        while !self.parked.is_empty() {
            self.go_on(engine, function, cx);
        }
    }
}

impl<E: Engine, F: Function<E>> Parked<E, F> {
    /// Return whether it must wait for one of those that came before it.
    fn waits(&self, earlier: &[Self], engine: &E) -> bool {
        earlier.iter().any(|earlier| self.flow == earlier.flow || engine.follows(&self.tx, &earlier.tx))
    }

    /// Go on as far as results are there and no `earlier` packet must be waited for; returns the verdict, if it comes to one.
    fn advance(&mut self, earlier: &[Self], engine: &mut E, function: &mut F) -> Option<Verdict> {
        loop {
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
            engine.step(&mut self.tx);
            if let Step::Done(verdict) = function.finish(&mut self.tx, &mut self.packet, &mut self.plan) {
                return Some(verdict);
            }
            must_be_unchanged::<E, F>(self.bytes, &self.packet, "in a step that returned Step::Again");
            self.is_issued = false;
        }
    }

    /// Go: all of it is decided.
    fn leave(mut self, engine: &mut E, cx: &mut Context, verdict: Verdict) {
        engine.commit(&mut self.tx);
        engine.end(self.tx);
        match verdict {
            Verdict::Gate(gate) => cx.emit(gate, self.packet),
            Verdict::Drop(reason) => cx.drop(self.packet, reason),
        }
    }
}

/// Return what packets of a connection have in common, in both directions; packets without one are of one flow.
fn flow(packet: &Packet) -> u64 {
    FlowKey::read(packet.data(), &packet.layers()).map_or(0, |key| key.symmetric_hash(&FLOWS))
}

fn must_be_unchanged<E: Engine, F>(bytes: u64, packet: &Packet, step: &str) {
    let function = std::any::type_name::<F>();
    assert!(bytes == watched::<E>(packet), "{function}: a packet was changed before its verdict, {step}");
}

fn watched<E: Engine>(packet: &Packet) -> u64 {
    if !E::WATCHES {
        return 0;
    }
    let mut hasher = std::hash::DefaultHasher::new();
    hasher.write(packet.data());
    hasher.finish()
}

//! C functions as the other ones are: packet by packet, in steps, on every engine.

use std::path::PathBuf;

use catena_dataplane::module::Verdict;
use catena_packet::Packet;
use catena_state::{Engine, Tx};

use super::Native;
use super::asked::Asked;
use crate::function::{Function, Step};

/// Most calls of *process* for a packet.
const MOST_STEPS: u8 = 8;

/// What a packet has asked for.
pub struct Plan<E: Engine> {
    asked: Asked<E>,
    steps: u8,
}

copied!(Plan<E: Engine>);

impl<E: Engine> Function<E> for Native<E> {
    type Plan = Plan<E>;

    fn prepare(&mut self, tx: &mut Tx, packet: &Packet) -> Plan<E> {
        Plan { asked: self.instance.prepare(tx, packet), steps: 0 }
    }

    fn finish(&mut self, tx: &mut Tx, packet: &mut Packet, plan: &mut Plan<E>) -> Step {
        plan.steps += 1;
        match self.instance.step(tx, packet, &mut plan.asked) {
            Step::Again if plan.steps == MOST_STEPS => Step::Done(Verdict::Drop(self.instance.bad_verdict())),
            step => step,
        }
    }

    fn tidy(&mut self, tx: &mut Tx, idle: bool) {
        if idle {
            self.instance.tick(tx.now);
            self.say();
        }
    }

    /// The library: it is mapped into the process, and a write to it would be one to running code.
    fn inputs(&self) -> Vec<PathBuf> {
        vec![self.path.clone()]
    }

    fn end(&mut self, tx: &mut Tx) -> Result<(), String> {
        let result = self.instance.finish(tx.now);
        self.say();
        result
    }

    fn reasons(&self) -> &'static [&'static str] {
        self.instance.function().reasons
    }

    fn gauges(&self, tell: &mut dyn FnMut(&'static str, u64)) {
        let own = self.instance.own_ref();
        own.state.gauges(tell);
        if own.mistakes > 0 {
            tell("mistakes", own.mistakes);
        }
    }

    fn is_common(&self, gauge: &str) -> bool {
        E::ALL_SEE && self.instance.own_ref().state.counts(gauge)
    }
}

//! Both families in one function: each packet goes to the translation of its own.

use catena_packet::Packet;
use catena_packet::wire::Net;
use catena_state::{Engine, Mover, Tx};

use super::plan;
use super::reasons::REASONS;
use super::translate::Napt;
use crate::family::{V4, V6};
use crate::function::{Function, Step};

/// Translates IPv4 and IPv6.
pub struct Both<E: Engine> {
    /// For IPv4, and all that is not IP.
    pub v4: Napt<E, V4>,
    /// For IPv6.
    pub v6: Napt<E, V6>,
}

/// The plan of one of them.
pub enum Plan<E: Engine> {
    /// For IPv4, and all that is not IP.
    V4(plan::Plan<E, V4>),
    /// For IPv6.
    V6(plan::Plan<E, V6>),
}

copied!(Plan<E: Engine>);

impl<E: Engine> Function<E> for Both<E> {
    type Plan = Plan<E>;

    #[inline(always)]
    fn prepare(&mut self, tx: &mut Tx, packet: &Packet) -> Plan<E> {
        if packet.layers().net == Net::Ipv6 {
            Plan::V6(self.v6.prepare(tx, packet))
        } else {
            Plan::V4(self.v4.prepare(tx, packet))
        }
    }

    #[inline(always)]
    fn warm(&mut self, plan: &mut Plan<E>) {
        match plan {
            Plan::V4(plan) => self.v4.warm(plan),
            Plan::V6(plan) => self.v6.warm(plan),
        }
    }

    #[inline(always)]
    fn finish(&mut self, tx: &mut Tx, packet: &mut Packet, plan: &mut Plan<E>) -> Step {
        match plan {
            Plan::V4(plan) => self.v4.finish(tx, packet, plan),
            Plan::V6(plan) => self.v6.finish(tx, packet, plan),
        }
    }

    fn tidy(&mut self, tx: &mut Tx, idle: bool) {
        self.v4.tidy(tx, idle);
        self.v6.tidy(tx, idle);
    }

    fn objects(&mut self, tx: &mut Tx, mover: &mut Mover) {
        self.v4.objects(tx, mover);
        self.v6.objects(tx, mover);
    }

    fn reasons(&self) -> &'static [&'static str] {
        REASONS
    }

    fn gauges(&self, tell: &mut dyn FnMut(&'static str, u64)) {
        let mut of_v6 = Vec::new();
        self.v6.gauges(&mut |_, value| of_v6.push(value));
        let mut of_v6 = of_v6.into_iter();
        self.v4.gauges(&mut |name, value| tell(name, value + of_v6.next().unwrap_or(0)));
    }

    fn is_common(&self, gauge: &str) -> bool {
        self.v4.is_common(gauge) && self.v6.is_common(gauge)
    }
}

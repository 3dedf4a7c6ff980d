//! The function, in its two steps.

use catena_dataplane::Reason;
use catena_dataplane::module::Verdict;
use catena_packet::Packet;
use catena_state::{Access, Declaration, Engine, Mover, Scope, SharedMap, Tx};

use super::key::{Key, Per};
use super::promise::Promise;
use super::take::{Take, Taken};
use super::{Bucket, Rate};
use crate::config::{ArgError, Args};
use crate::function::{Function, Step, most_over};

const OVER: Reason = Reason(0);
const LONGER: Reason = Reason(1);
const NO_ROOM: Reason = Reason(2);

/// By what the rate is promised to.
pub(super) const BUCKETS: Declaration =
    Declaration::shared_map("buckets", "what passed lately, of each key", Scope::Source, Access::ReadWrite);

/// The output gate of packets over the rate, on the way out; on the way back it is the next one.
const EXCEED: u16 = 2;

/// The most keys that `max_keys` may ask for.
const MOST_KEYS: u64 = 1 << 24;

/// Token buckets by key.
pub struct Limiter<E: Engine> {
    per: Per,
    in_bytes: bool,
    /// Whether packets over the rate leave by [`EXCEED`].
    marks: bool,
    narrow: Buckets<E, [u64; 2]>,
    wide: Buckets<E, [u64; 5]>,
}

/// Buckets by one kind of key.
struct Buckets<E: Engine, K: catena_state::Key> {
    map: E::SharedMap<K, Bucket>,
    rate: Rate,
}

type Ticket<E, K> = <<E as Engine>::SharedMap<K, Bucket> as SharedMap<K, Bucket>>::Ticket<Take>;

/// What comes of taking a packet's cost from its bucket.
pub enum Plan<E: Engine> {
    /// Of an IPv4 packet, of the class, or of frames of no known source.
    Narrow(Ticket<E, [u64; 2]>),
    /// Of an IPv6 packet.
    Wide(Ticket<E, [u64; 5]>),
    /// None: ARP passes.
    Free,
}

copied!(Plan<E: Engine>);

impl<E: Engine> Limiter<E> {
    /// Make the function from its arguments; `taken` are the values of `conformance` that some edge of the
    /// chain selects.
    ///
    /// # Errors
    /// A rate or burst of 0 or of the wrong measure, a burst too large, a number out of bounds.
    pub fn new(engine: &mut E, args: &Args, taken: &[String]) -> Result<Self, ArgError> {
        let (per, promise) = (Per::new(args)?, Promise::new(args)?);
        let buckets = BUCKETS.scoped(per.scope());
        let share = engine.share_of(&buckets);
        let shared = promise.shared(share, per.within_source());
        let [rate4, rate6] = shared.map_err(|error| ArgError::new("rate", error.to_string()))?;
        let max_keys = args.total("max_keys", 1 << 20, 1..=MOST_KEYS, engine.share())?;
        // Also of keys that several instances may see, as they share the rate: memory is bounded by what the operator wrote.
        let keys = share.part_of(max_keys) as usize;
        // The class has two keys, one each way.
        let (keys4, keys6) = if per == Per::Class { (2, 1) } else { (keys, keys) };
        let no_memory = |error| ArgError::no_memory("max_keys", error);
        Ok(Limiter {
            per,
            in_bytes: promise.in_bytes,
            marks: taken.iter().any(|value| value == "exceed"),
            narrow: Buckets { map: engine.shared_map(&buckets, keys4, rate4).map_err(no_memory)?, rate: rate4 },
            wide: Buckets { map: engine.shared_map(&buckets.part(1), keys6, rate6).map_err(no_memory)?, rate: rate6 },
        })
    }
}

impl<E: Engine, K: catena_state::Key> Buckets<E, K> {
    /// Return whether a packet of this cost may pass.
    #[inline(always)]
    fn taken(&mut self, tx: &mut Tx, ticket: &Ticket<E, K>, cost: u32) -> Result<(), Reason> {
        match self.map.got(tx, ticket) {
            Taken::Passes => Ok(()),
            Taken::Over if self.rate.holds(cost) => Err(OVER),
            Taken::Over => Err(LONGER),
            Taken::NoRoom => Err(NO_ROOM),
        }
    }
}

impl<E: Engine> Limiter<E> {
    #[inline(always)]
    fn cost(&self, packet: &Packet) -> u32 {
        if self.in_bytes { packet.len() as u32 } else { 1 }
    }
}

impl<E: Engine> Function<E> for Limiter<E> {
    type Plan = Plan<E>;

    #[inline(always)]
    fn prepare(&mut self, tx: &mut Tx, packet: &Packet) -> Plan<E> {
        let take = Take { now: tx.now, cost: self.cost(packet) };
        match self.per.key(packet, tx.gate) {
            Key::Narrow(key) => Plan::Narrow(self.narrow.map.want(tx, key, take)),
            Key::Wide(key) => Plan::Wide(self.wide.map.want(tx, key, take)),
            Key::Free => Plan::Free,
        }
    }

    #[inline(always)]
    fn warm(&mut self, plan: &mut Plan<E>) {
        match plan {
            Plan::Narrow(ticket) => self.narrow.map.warm(ticket),
            Plan::Wide(ticket) => self.wide.map.warm(ticket),
            Plan::Free => {}
        }
    }

    #[inline(always)]
    fn finish(&mut self, tx: &mut Tx, packet: &mut Packet, plan: &mut Plan<E>) -> Step {
        let cost = self.cost(packet);
        let taken = match plan {
            Plan::Narrow(ticket) => self.narrow.taken(tx, ticket, cost),
            Plan::Wide(ticket) => self.wide.taken(tx, ticket, cost),
            Plan::Free => Ok(()),
        };
        Step::Done(match taken {
            Ok(()) => Verdict::Gate(tx.gate),
            Err(OVER | LONGER) if self.marks => Verdict::Gate(EXCEED + tx.gate),
            Err(reason) => Verdict::Drop(reason),
        })
    }

    fn tidy(&mut self, tx: &mut Tx, idle: bool) {
        let now = tx.now;
        let most = most_over(idle);
        self.narrow.map.tidy(tx, most, now);
        self.wide.map.tidy(tx, most, now);
    }

    /// What several workers meet the packets of is nobody's to hand over: each has its part of the rate.
    fn objects(&mut self, tx: &mut Tx, mover: &mut Mover) {
        let [narrow, wide] = self.per.within_source();
        match narrow {
            true => mover.shared(tx, &mut self.narrow.map),
            false => mover.stays(),
        }
        match wide {
            true => mover.shared(tx, &mut self.wide.map),
            false => mover.stays(),
        }
    }

    fn reasons(&self) -> &'static [&'static str] {
        &["over the rate", "longer than the burst", "no room for another key"]
    }

    fn gauges(&self, tell: &mut dyn FnMut(&'static str, u64)) {
        tell("keys", (self.narrow.map.len() + self.wide.map.len()) as u64);
    }

    fn is_common(&self, _gauge: &str) -> bool {
        // Where every instance has a part of the class's rate, the class is one nevertheless.
        E::ALL_SEE || self.per == Per::Class
    }
}

#[cfg(test)]
#[path = "limit_tests.rs"]
pub(super) mod tests;

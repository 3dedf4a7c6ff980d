//! The module: asks for a ruling on every packet of a batch, lets pass or drops.

use std::sync::Arc;

use catena_dataplane::module::{Reason, Verdict};
use catena_dataplane::{Context, Module};
use catena_packet::wire::{Net, Seed};
use catena_packet::{BATCH, Batch};

use super::flow::{FlowV4, FlowV6};
use super::list::{List, Ruling};
use super::matcher::Matcher;

const BY_RULE: Reason = Reason(0);
const BY_DEFAULT: Reason = Reason(1);
const REASONS: &[&str] = &["denied by a rule", "denied by default"];

/// The gate of denied packets, on the way out; one more on the way back.
const DENIED: u16 = 2;

/// Packets of one family in a batch.
struct Gathered<F> {
    flows: [F; BATCH],
    /// Which packets of the batch they are.
    of: [u8; BATCH],
}

impl<F: Copy + Default> Gathered<F> {
    fn new() -> Self {
        Self { flows: [F::default(); BATCH], of: [0; BATCH] }
    }

    /// Put a flow, of packet `i`, at the place `at`; returns the next.
    #[inline(always)]
    fn put(&mut self, at: usize, i: usize, flow: F) -> usize {
        self.flows[at % BATCH] = flow;
        self.of[at % BATCH] = i as u8;
        at + 1
    }
}

/// Packets of a batch, as bits: packet `i` is bit `i`.
#[derive(Default)]
struct Denied {
    all: u32,
    by_default: u32,
}

impl Denied {
    #[inline(always)]
    fn note(&mut self, packets: &[u8], rulings: &[Ruling; BATCH]) {
        for (&i, ruling) in packets.iter().zip(rulings) {
            self.all |= u32::from(ruling.denies()) << (i % BATCH as u8);
            self.by_default |= u32::from(*ruling == Ruling::DENIED_BY_DEFAULT) << (i % BATCH as u8);
        }
    }
}

/// Permits or denies packets.
pub struct Filter {
    matcher: Matcher,
    /// Whether denied packets leave by a gate of their own.
    diverts: bool,
    left_out: usize,
    v4: Gathered<FlowV4>,
    v6: Gathered<FlowV6>,
}

impl Filter {
    /// A filter by `list`. With `diverts`, denied packets leave by gate 2 (3 on the way back) instead of being
    /// dropped. `seed` should be secret; `left_out` is how many rules the user left out, for the table.
    pub fn new(list: Arc<List>, seed: Seed, diverts: bool, left_out: usize) -> Self {
        Self { matcher: Matcher::new(list, seed), diverts, left_out, v4: Gathered::new(), v6: Gathered::new() }
    }

    /// Takes another list of rules; the next packet meets it.
    pub fn replace(&mut self, list: Arc<List>) {
        self.matcher.replace(list);
    }

    /// The list in use.
    pub fn list(&self) -> &Arc<List> {
        self.matcher.list()
    }

    /// Which packets of a batch, whose headers are parsed, are denied.
    #[inline(always)]
    fn denied(&mut self, batch: &Batch) -> Denied {
        let Self { matcher, v4, v6, .. } = self;
        let mut denied = Denied::default();
        // Counted here and not in memory, where each packet would wait for the one before.
        let (mut fours, mut sixes) = (0, 0);
        for (i, packet) in batch.iter().enumerate() {
            let layers = packet.layers();
            let read = match layers.net {
                Net::Ipv4 => FlowV4::read(packet.data(), &layers).map(|flow| fours = v4.put(fours, i, flow)),
                Net::Ipv6 => FlowV6::read(packet.data(), &layers).map(|flow| sixes = v6.put(sixes, i, flow)),
                Net::Arp | Net::Other => Some(()),
            };
            if read.is_none() {
                // Its headers are no longer where they were: what cannot be read is not let pass.
                denied.all |= 1 << i;
                denied.by_default |= 1 << i;
            }
        }
        let mut rulings = [Ruling::UNKNOWN; BATCH];
        if fours > 0 {
            matcher.classify_v4(&v4.flows[..fours], &mut rulings);
            denied.note(&v4.of[..fours], &rulings);
        }
        if sixes > 0 {
            matcher.classify_v6(&v6.flows[..sixes], &mut rulings);
            denied.note(&v6.of[..sixes], &rulings);
        }
        denied
    }
}

impl Module for Filter {
    fn process(&mut self, cx: &mut Context, batch: &mut Batch) {
        cx.parse(batch);
        let denied = self.denied(batch);
        let gate = cx.gate();
        if denied.all == 0 && gate == 0 {
            return;
        }
        let diverts = self.diverts;
        cx.decide(batch, |i, _| {
            if denied.all >> i & 1 == 0 {
                Verdict::Gate(gate)
            } else if diverts {
                Verdict::Gate(DENIED + gate)
            } else if denied.by_default >> i & 1 == 0 {
                Verdict::Drop(BY_RULE)
            } else {
                Verdict::Drop(BY_DEFAULT)
            }
        });
    }

    fn reasons(&self) -> &'static [&'static str] {
        REASONS
    }

    fn gauges(&self, tell: &mut dyn FnMut(&'static str, u64)) {
        tell("rules", self.list().len() as u64);
        if self.left_out > 0 {
            tell("rules left out", self.left_out as u64);
        }
        tell("packets searched for", self.matcher.searched());
    }
}

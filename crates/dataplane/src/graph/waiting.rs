//! Packets that wait for their turn in front of a module while others run.

use catena_packet::{BATCH, Batch, Clock, Packet};

use super::Inlet;

/// What waits at an inlet.
pub(super) struct Waiting {
    pub(super) inlet: Inlet,
    /// Whether several ways lead here.
    pub(super) meets: bool,
    batch: Batch,
    /// What the batch has no room for.
    spill: Vec<Packet>,
    /// Whether some came behind others that have later clocks.
    is_mixed: bool,
}

impl Waiting {
    pub(super) fn new(inlet: Inlet, meets: bool) -> Self {
        Waiting { inlet, meets, batch: Batch::new(), spill: Vec::new(), is_mixed: false }
    }

    /// Put packets behind those that wait; `in_order`, those of another way to here may go before some of these.
    #[inline(always)]
    pub(super) fn add(&mut self, batch: &mut Batch, spill: &mut Vec<Packet>, in_order: bool) {
        if in_order {
            let clock = |packet: &Packet| packet.meta().clock;
            let last = self.spill.last().or(self.batch.as_slice().last()).map(clock);
            self.is_mixed |= batch.as_slice().first().map(clock) < last;
        }
        self.batch.append(batch);
        self.spill.extend(batch.drain());
        self.spill.append(spill);
    }

    /// Take those that come first into the (empty) batch in hand, or those `before` a clock; returns whether some are left.
    #[inline(always)]
    pub(super) fn take(&mut self, batch: &mut Batch, before: Option<Clock>) -> bool {
        if std::mem::take(&mut self.is_mixed) {
            self.sort();
        }
        batch.append(&mut self.batch);
        if let Some(before) = before {
            batch.filter(|_, packet| {
                if packet.meta().clock < before {
                    return Some(packet);
                }
                self.batch.push(packet);
                None
            });
        }
        if self.batch.is_empty() {
            self.refill();
        }
        !self.batch.is_empty()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.batch.is_empty()
    }

    /// Return the clock of the first.
    pub(super) fn first(&self) -> Option<Clock> {
        self.batch.as_slice().first().map(|packet| packet.meta().clock)
    }

    fn refill(&mut self) {
        let count = self.spill.len().min(BATCH);
        self.spill.drain(..count).for_each(|packet| self.batch.push(packet));
    }

    #[cold]
    #[inline(never)]
    fn sort(&mut self) {
        self.spill.extend(self.batch.drain());
        self.spill.sort_unstable_by_key(|packet| packet.meta().clock);
        self.refill();
    }
}

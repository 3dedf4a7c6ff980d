//! Two sources of recorded traffic that take turns by the times of their packets.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use catena_packet::{BATCH, Batch, Packet};

use super::capture_in::RECORDS;
use crate::module::{Context, Pulled, Source};

/// One of two sources; it gives a packet once the other has none that came before.
///
/// Both belong to tasks of one worker: how far each has come is told by a number that both see. Packets whose
/// times go back within a capture come where they stand in it. At equal times the first source goes first.
pub struct InTurn {
    source: Box<dyn Source>,
    side: usize,
    /// For each side a time before which it gives nothing more.
    next: Arc<[AtomicU64; 2]>,
    held: VecDeque<Packet>,
    read: Batch,
    state: Pulled,
}

/// Let two sources take turns.
#[must_use]
pub fn in_turn(sources: [Box<dyn Source>; 2]) -> [InTurn; 2] {
    let next = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
    let mut side = 0..;
    sources.map(|source| InTurn {
        source,
        side: side.next().unwrap_or_default(),
        next: next.clone(),
        held: VecDeque::with_capacity(BATCH),
        read: Batch::new(),
        state: Pulled::More,
    })
}

impl InTurn {
    /// Read on, if nothing is held; the context's time stays that of the packets given.
    fn fill(&mut self, cx: &mut Context) {
        if self.held.is_empty() && self.state != Pulled::Done {
            let now = cx.now;
            self.state = self.source.pull(cx, &mut self.read);
            cx.now = now;
            self.held.extend(self.read.drain());
        }
        let here = &self.next[self.side];
        match self.held.front() {
            Some(packet) => here.fetch_max(packet.meta().arrival, Ordering::Relaxed),
            None if self.state == Pulled::Done => here.swap(u64::MAX, Ordering::Relaxed),
            None => return,
        };
    }

    /// Whether the packet that is held first is due.
    fn is_due(&self) -> bool {
        let [here, there] = [self.side, 1 - self.side].map(|side| self.next[side].load(Ordering::Relaxed));
        !self.held.is_empty() && if self.side == 0 { here <= there } else { here < there }
    }
}

impl Source for InTurn {
    fn pull(&mut self, cx: &mut Context, batch: &mut Batch) -> Pulled {
        self.fill(cx);
        while !batch.is_full() && self.is_due() {
            if let Some(mut packet) = self.held.pop_front() {
                cx.set_now(packet.meta().arrival);
                packet.meta_mut().came_at(cx.now());
                batch.push(packet);
            }
            self.fill(cx);
        }
        match self.state {
            Pulled::Done if self.held.is_empty() => Pulled::Done,
            _ if batch.is_empty() => Pulled::Idle,
            _ => Pulled::More,
        }
    }

    fn gauges(&self, tell: &mut dyn FnMut(&'static str, u64)) {
        // What was read ahead was not taken in.
        let ahead = self.held.len() as u64;
        self.source.gauges(&mut |name, value| {
            tell(name, if name == RECORDS { value.saturating_sub(ahead) } else { value });
        });
    }

    fn error(&self) -> Option<String> {
        self.source.error()
    }

    fn is_recorded(&self) -> bool {
        self.source.is_recorded()
    }
}

#[cfg(test)]
#[path = "in_turn_tests.rs"]
mod tests;

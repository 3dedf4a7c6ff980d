//! What stands beside a function in a chain: other functions, whose state wants the same caches.
//!
//! Measured alone, a function has the core's caches to itself, and a chain of four then costs a fifth more than
//! its functions' sum (docs/profiles.md has the figures). So it is measured beside a companion, which touches as
//! much memory for each packet as the rest of a usual chain does. (Dobrescu et al., "Toward Predictable Performance
//! in Software Packet-Processing Platforms", NSDI 2012, predict contention between cores from the same figure: how
//! often the others go to the shared cache. Here it is within a core.)

use catena_dataplane::{Context, Module};
use catena_packet::Batch;

/// Cache lines that the other functions of a chain touch for each packet: with three of them two each, a table's
/// bucket and an entry. Of 5, 6 and 8, with 6 the profile of ACL, NAT, LB and Monitor comes nearest to a chain of
/// them (docs/profiles.md).
const LINES: usize = 6;
/// Words of 8 bytes in a cache line.
const LINE: usize = 8;
/// One line of so many is touched: a table has room for more entries than there are, and the pages that its entries
/// lie on are more than the processor's page cache holds.
const SPARSE: usize = 8;
/// Most bytes of memory.
const MOST: usize = 96 << 20;

/// A sink that has touched memory of its own for every packet.
pub struct Companion {
    /// So many lines for every flow, sparsely, as far as there is room.
    memory: Box<[u64]>,
    /// Lines that are touched, in all.
    lines: usize,
    /// Lines from one that is touched to the next, so that all are touched in turn but none is near the one before:
    /// as entries of hash tables, which no prefetcher foresees.
    stride: usize,
    next: usize,
}

impl Companion {
    /// Make a companion to traffic of so many flows, which come in turn.
    pub fn of(flows: u64) -> Companion {
        let lines = (flows.max(1) as usize * LINES).min(MOST / (8 * LINE * SPARSE));
        // Near the golden section of all, where multiples lie far apart; without a common divisor all come in turn.
        let golden = (lines as f64 * 0.618) as usize;
        let stride = (golden.max(1)..lines).find(|stride| divisor(*stride, lines) == 1).unwrap_or(1);
        Companion { memory: vec![1; lines * SPARSE * LINE].into(), lines, stride, next: 0 }
    }
}

impl Module for Companion {
    fn process(&mut self, cx: &mut Context, batch: &mut Batch) {
        for _ in 0..batch.len() * LINES {
            if let Some(word) = self.memory.get_mut(place(self.next)) {
                *word = word.wrapping_add(1);
            }
            let next = self.next + self.stride;
            self.next = if next < self.lines { next } else { next - self.lines };
        }
        cx.pool().put_batch(batch);
    }

    fn is_exit(&self) -> bool {
        true
    }
}

/// Return the word that a line begins with: one of its [`SPARSE`] lines, another one from line to line, so that all
/// sets of the caches are used.
fn place(line: usize) -> usize {
    (line * SPARSE + (line / SPARSE) % SPARSE) * LINE
}

/// Return the greatest common divisor.
fn divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use catena_packet::{BATCH, Depot};

    #[test]
    fn every_line_is_touched_in_turn() {
        let depot = Depot::map(256, 0).unwrap();
        let mut cx = Context::new(&depot, 0);
        for flows in [1u64, 2, 32, 40, 96] {
            let mut companion = Companion::of(flows);
            let mut batch = Batch::new();
            // As many packets as make whole rounds.
            for _ in 0..flows {
                cx.pool().take_batch(&mut batch, BATCH, 60);
                companion.process(&mut cx, &mut batch);
            }
            let touched: Vec<u64> = (0..companion.lines).map(|line| companion.memory[place(line)]).collect();
            assert_eq!(touched, vec![1 + BATCH as u64; flows as usize * LINES], "{flows}");
        }
    }
}

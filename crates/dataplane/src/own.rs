//! What a worker takes of a replay: all workers read all of it, and each keeps its own packets.
//!
//! What is recorded can be read as often as one likes, so no worker waits for another to hand it packets, and none touches
//! a packet that another has written. All of them count the same packets, so that a packet has the same clock wherever it
//! belongs, and come to the same end ([`Order`]).
//!
//! Batches are the same in every run: they end where they are full, or at the end of a window of [`WINDOW`] clocks, never
//! where a worker happened to be held up.

use std::collections::VecDeque;
use std::sync::Arc;

use catena_packet::clock::Root;
use catena_packet::{BATCH, Batch, Packet, SMALL_BYTES};

use crate::module::{Context, Pulled, Source};
use crate::order::Order;
use crate::steer::Spread;
use crate::task::TaskCounters;

/// Clocks of a window: some full batches for each of several workers, and few beside those that may be read ahead. A power of
/// two.
const WINDOW: u64 = 512;
/// Most batches that are read in one go: a worker that finds nothing of its own must look up from time to time.
const MOST_READ: usize = 16;

/// A source, and what is counted of it.
pub struct Input {
    source: Box<dyn Source>,
    root: Root,
    side: u16,
    state: Pulled,
    counters: Arc<TaskCounters>,
}

impl Input {
    /// Let packets of a source come by this side, with clocks of this root.
    pub fn new(source: Box<dyn Source>, root: Root, side: u16) -> Self {
        Input { source, root, side, state: Pulled::More, counters: Arc::default() }
    }

    /// Return the source.
    pub fn source(&self) -> &dyn Source {
        &*self.source
    }

    /// Return the root of its packets' clocks.
    pub fn root(&self) -> &Root {
        &self.root
    }

    /// Return the side that its packets come by.
    pub fn side(&self) -> usize {
        self.side.into()
    }

    /// Return what it gave, whoever keeps it.
    pub fn counters(&self) -> &Arc<TaskCounters> {
        &self.counters
    }

    /// Read on, at the time up to which has been read.
    fn pull(&mut self, cx: &mut Context, read_at: &mut u64, read: &mut Batch) {
        if self.state == Pulled::Done {
            return;
        }
        // What is read is ahead of what the worker works on.
        let now = std::mem::replace(&mut cx.now, *read_at);
        self.state = self.source.pull(cx, read);
        *read_at = std::mem::replace(&mut cx.now, now);
    }
}

/// A worker's own packets, of sources that all workers read.
pub struct Own {
    inputs: Vec<Input>,
    /// The input whose turn it is.
    turn: usize,
    spread: Spread,
    worker: usize,
    order: Arc<Order>,
    /// The time of the latest packet that was read, in ns since 1970.
    read_at: u64,
    read: Batch,
    /// What was kept and not yet given.
    kept: VecDeque<Packet>,
    /// The count of the latest packet that was read.
    count: u64,
    /// Counts of those in large buffers that may not have left yet.
    large: VecDeque<u64>,
}

impl Own {
    /// Most packets in large buffers that one worker holds. While it waits for room, others still have theirs: the one that all
    /// wait for can always read.
    pub const MOST_LARGE: usize = 384;

    /// Take the packets of this worker.
    pub fn new(inputs: Vec<Input>, spread: Spread, order: &Arc<Order>, worker: usize) -> Self {
        Own {
            inputs,
            turn: 0,
            spread,
            worker,
            order: Arc::clone(order),
            read_at: 0,
            read: Batch::new(),
            kept: VecDeque::with_capacity(WINDOW as usize),
            count: 0,
            large: VecDeque::with_capacity(Self::MOST_LARGE),
        }
    }

    /// Return whose packets these are.
    pub fn worker(&self) -> usize {
        self.worker
    }

    /// Return what is read.
    pub fn inputs(&self) -> &[Input] {
        &self.inputs
    }

    /// Read one batch, and keep what is this worker's.
    fn read_on(&mut self, cx: &mut Context) -> Pulled {
        let (until, is_last) = self.order.reach();
        let ends = is_last && self.count >= until;
        if ends {
            return Pulled::Done;
        }
        if !is_last && self.count + BATCH as u64 > until || self.has_too_many_large() {
            return Pulled::Idle;
        }
        for _ in 0..self.inputs.len() {
            self.inputs[self.turn].pull(cx, &mut self.read_at, &mut self.read);
            if !self.read.is_empty() {
                self.keep(cx, until);
                return Pulled::More;
            }
            self.turn = (self.turn + 1) % self.inputs.len();
        }
        let are_done = self.inputs.iter().all(|input| input.state == Pulled::Done);
        if are_done { Pulled::Done } else { Pulled::Idle }
    }

    /// Give clocks to what was read, and keep what is this worker's up to this count.
    fn keep(&mut self, cx: &mut Context, until: u64) {
        let Own { inputs, turn, spread, worker, read, kept, count, large, .. } = self;
        let Input { root, side, counters, .. } = &mut inputs[*turn];
        let mut clocks = root.stamps(read.len());
        let (mut packets, mut bytes) = (0, 0);
        read.filter(|_, mut packet| {
            let clock = clocks.next().unwrap_or_default();
            if clock.count() > until {
                return Some(packet);
            }
            (packets, bytes) = (packets + 1, bytes + packet.len() as u64);
            packet.meta_mut().clock = clock;
            let time = packet.meta().time();
            if spread.worker_of(&mut packet, *side, time) as usize != *worker {
                return Some(packet);
            }
            if packet.len() > SMALL_BYTES {
                large.push_back(clock.count());
            }
            kept.push_back(packet);
            None
        });
        counters.input.add(packets, bytes);
        *count = root.count().min(until);
        cx.pool().put_batch(read);
    }

    fn has_too_many_large(&mut self) -> bool {
        if self.large.len() + BATCH > Self::MOST_LARGE {
            let left = self.order.left();
            while self.large.front().is_some_and(|count| *count <= left) {
                self.large.pop_front();
            }
        }
        self.large.len() + BATCH > Self::MOST_LARGE
    }

    /// Return how many packets the next batch has; 0 where it is not whole yet.
    fn ready(&self, is_over: bool) -> usize {
        let window = |packet: &Packet| packet.meta().clock.count() / WINDOW;
        let Some(first) = self.kept.front().map(window) else { return 0 };
        let count = self.kept.iter().take(BATCH).take_while(|packet| window(packet) == first).count();
        let is_whole = count == BATCH || count < self.kept.len() || self.count / WINDOW > first || is_over;
        if is_whole { count } else { 0 }
    }
}

impl Source for Own {
    fn pull(&mut self, cx: &mut Context, batch: &mut Batch) -> Pulled {
        let mut state = Pulled::More;
        for _ in 0..MOST_READ {
            if self.ready(false) > 0 || state != Pulled::More {
                break;
            }
            state = self.read_on(cx);
        }
        let count = self.ready(state == Pulled::Done);
        self.kept.drain(..count).for_each(|packet| batch.push(packet));
        let next = self.kept.front().map_or(self.count + 1, |packet| packet.meta().clock.count());
        self.order.take(self.worker, next - 1);
        match (batch.is_empty(), self.kept.is_empty()) {
            (true, true) if state == Pulled::Done => {
                // The end comes for all when the last packet has come, whoever has it.
                cx.set_now(self.read_at);
                Pulled::Done
            }
            (true, _) if state == Pulled::Idle => Pulled::Idle,
            _ => Pulled::More,
        }
    }
}

#[cfg(test)]
#[path = "own_tests.rs"]
mod tests;

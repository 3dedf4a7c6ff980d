//! What a worker takes of a replay: all workers read all of it, and each keeps its own packets.
//!
//! What is recorded can be read as often as one likes, so no worker waits for another to hand it packets, and none touches
//! a packet that another has written. All of them count the same packets, so that a packet has the same clock wherever it
//! belongs, and come to the same end ([`Order`]).
//!
//! Batches are the same in every run: they end where they are full, or at a *bound*, never where a worker happened to be held
//! up. A bound comes after [`WINDOW`] clocks, and where time has gone on by [`STEP`]. There the worker's time becomes that of
//! the packets read, whoever has them: what is over ends on all workers, also on those that have no packets.

use std::collections::VecDeque;
use std::sync::Arc;

use catena_packet::clock::Root;
use catena_packet::{BATCH, Batch, Clock, Packet, SMALL_BYTES};

use crate::module::{Context, Pulled, Source};
use crate::order::Order;
use crate::port::RECORDS;
use crate::steer::Spread;
use crate::task::TaskCounters;

/// Most clocks between two bounds: some full batches for each of several workers, and few beside those that may be read ahead.
const WINDOW: u64 = 512;
/// Time between two packets that are told apart by a bound, in ns: small beside time-outs of seconds, and not so small that a
/// slow capture is all bounds.
const STEP: u64 = 10_000_000;
/// Most batches that are read in one go: a worker that finds nothing of its own must look up from time to time.
const MOST_READ: usize = 16;

/// A source, and what is counted of it.
pub struct Input {
    source: Box<dyn Source>,
    root: Root,
    side: u16,
    state: Pulled,
    counters: Arc<TaskCounters>,
    /// Packets that were read and not taken in, as they come after the end.
    beyond: u64,
}

impl Input {
    /// Let packets of a source come by this side, with clocks of this root.
    pub fn new(source: Box<dyn Source>, root: Root, side: u16) -> Self {
        Input { source, root, side, state: Pulled::More, counters: Arc::default(), beyond: 0 }
    }

    /// Return what went wrong with its source for good.
    pub fn error(&self) -> Option<String> {
        self.source.error()
    }

    /// Tell its source's figures.
    pub fn gauges(&self, tell: &mut dyn FnMut(&'static str, u64)) {
        self.source.gauges(&mut |name, value| {
            tell(name, if name == RECORDS { value.saturating_sub(self.beyond) } else { value });
        });
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
    /// Bounds up to where was read: the count of the last packet before each, and the time there.
    bounds: VecDeque<(u64, u64)>,
    /// The latest of them, also those that are over.
    bound: (u64, u64),
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
            bounds: VecDeque::with_capacity(WINDOW as usize),
            bound: (0, 0),
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
        let Own { inputs, turn, spread, worker, read, kept, count, large, bounds, bound, .. } = self;
        let Input { root, side, counters, beyond, .. } = &mut inputs[*turn];
        let mut clocks = root.stamps(read.len());
        let (mut packets, mut bytes) = (0, 0);
        read.filter(|_, mut packet| {
            let clock = clocks.next().unwrap_or_default();
            if clock.count() > until {
                *beyond += 1;
                return Some(packet);
            }
            (packets, bytes) = (packets + 1, bytes + packet.len() as u64);
            packet.meta_mut().clock = clock;
            let time = packet.meta().time();
            let before = clock.count() - 1;
            if time >= bound.1.saturating_add(STEP) || before >= bound.0 + WINDOW {
                // Before this packet, at its time: what is over by then is over for it.
                *bound = (before, time.max(bound.1));
                bounds.push_back(*bound);
            }
            if spread.worker_of(&mut packet, *side, time).is_none_or(|of| usize::from(of) != *worker) {
                return Some(packet);
            }
            if packet.len() > SMALL_BYTES {
                large.push_back(clock.count());
            }
            kept.push_back(packet);
            None
        });
        counters.input.add(packets, bytes);
        root.take_back(root.count().saturating_sub(until));
        *count = root.count();
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

    /// Return how many packets the next batch has; 0 where it is not whole yet, or a bound comes first.
    fn ready(&self, is_over: bool) -> usize {
        let until = self.bounds.front().map_or(u64::MAX, |(count, _)| *count);
        let before = self.kept.iter().take(BATCH).take_while(|packet| packet.meta().clock.count() <= until).count();
        let is_whole = before == BATCH || !self.bounds.is_empty() || is_over;
        if is_whole { before } else { 0 }
    }

    /// Return the clock up to which this worker has taken all its packets. What ends at a bound has the last clock of the packet
    /// before, and comes before others hear that the worker has come there.
    fn taken(&self) -> u64 {
        let next = self.kept.front().map_or(self.count + 1, |packet| packet.meta().clock.count());
        match self.bounds.front() {
            Some((count, _)) if *count < next => Clock::last_of(*count).bits() - 2,
            _ => Clock::last_of(next - 1).bits(),
        }
    }
}

impl Source for Own {
    fn pull(&mut self, cx: &mut Context, batch: &mut Batch) -> Pulled {
        let mut state = Pulled::More;
        for _ in 0..MOST_READ {
            if self.ready(false) > 0 || !self.bounds.is_empty() || state != Pulled::More {
                break;
            }
            state = self.read_on(cx);
        }
        let count = self.ready(state == Pulled::Done);
        if count == 0
            && let Some((at, time)) = self.bounds.pop_front()
        {
            cx.set_now(time);
            cx.has_come_to(Clock::last_of(at));
            self.order.take(self.worker, Clock::last_of(at).bits());
            return Pulled::More;
        }
        self.kept.drain(..count).for_each(|packet| batch.push(packet));
        self.order.take(self.worker, self.taken());
        match (batch.is_empty(), self.kept.is_empty()) {
            (true, true) if state == Pulled::Done => {
                // The end comes for all when the last packet has come, whoever has it. Nobody waits for more from here, even
                // if others have found more to read.
                cx.set_now(self.read_at);
                self.order.take(self.worker, u64::MAX);
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

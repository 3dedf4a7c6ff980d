//! The order of a replay: packets leave in that of their clocks, however many workers carry them.
//!
//! All workers read the same packets ([`Own`](crate::own::Own)) and tell how far they have come with those that are theirs
//! ([`Order::publish`]): what leaves waits ([`Merge`]) until no worker has an earlier packet left, as a simulation waits for
//! its slowest part (Chandy, Misra, "Asynchronous Distributed Simulation via a Sequence of Parallel Computations", CACM
//! 1981). Nobody is further ahead than [`AHEAD`] packets of what has left, so no queue grows.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use catena_packet::{Batch, Clock, Packet};

use crate::module::{Context, Pulled, Source};
use crate::queue::{Exit, QueueOut};

/// Most packets that are read and have not left.
pub(crate) const AHEAD: u64 = 4096;

/// A clock that one thread moves on, and others look at.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Progress(AtomicU64);

impl Progress {
    fn get(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    fn set(&self, clock: u64) {
        self.0.store(clock, Ordering::Release);
    }
}

/// How far those have come that carry one replay's packets. Clocks are told as bits.
#[derive(Debug)]
pub struct Order {
    /// For each worker, up to where it has taken its packets; nobody else looks.
    taken: Box<[Progress]>,
    /// For each worker, up to where its packets have left it, or have ended there.
    through: Box<[Progress]>,
    /// For each exit, up to where packets have left.
    left: Box<[Progress]>,
    /// The count up to which packets may be read.
    reach: Progress,
    /// Somebody wants the end.
    is_to_end: AtomicBool,
    /// Nothing beyond `reach` will be read.
    is_ending: AtomicBool,
}

impl Order {
    /// Make one for so many workers and ways out.
    pub fn new(workers: usize, exits: usize) -> Arc<Order> {
        let some = |count| (0..count).map(|_| Progress::default()).collect();
        let [taken, through, left] = [some(workers), some(workers), some(exits)];
        let reach = Progress(AtomicU64::new(if exits == 0 { u64::MAX } else { AHEAD }));
        let (is_to_end, is_ending) = Default::default();
        Arc::new(Order { taken, through, left, reach, is_to_end, is_ending })
    }

    /// Ask for the end: soon nobody reads on, and all have read up to the same packet.
    pub fn stop(&self) {
        self.is_to_end.store(true, Ordering::Release);
    }

    /// Return the count up to which packets may be read now, and whether it is to stay so.
    pub(crate) fn reach(&self) -> (u64, bool) {
        // The other way round, it might have grown in between.
        let is_ending = self.is_ending.load(Ordering::Acquire);
        (self.reach.get(), is_ending)
    }

    /// Note up to where packets have left by this way, and let others read on. One thread does that for all ways.
    fn leave(&self, exit: usize, clock: u64) {
        self.left[exit].set(clock);
        if self.is_ending.load(Ordering::Relaxed) {
            return;
        }
        self.reach.set(self.left().saturating_add(AHEAD));
        if self.is_to_end.load(Ordering::Acquire) {
            self.is_ending.store(true, Ordering::Release);
        }
    }

    /// Return the count up to which all packets have left, by whatever way.
    pub(crate) fn left(&self) -> u64 {
        self.left.iter().map(|left| Clock::from_bits(left.get()).count()).min().unwrap_or(u64::MAX)
    }

    /// Note that a worker has taken all its packets up to this clock in hand.
    pub(crate) fn take(&self, worker: usize, clock: u64) {
        self.taken[worker].set(clock);
    }

    /// Tell the others that a worker is done with what it has taken, but for packets that wait in it from `waiting` on. All that
    /// left it is in its queues by now.
    pub fn publish(&self, worker: usize, waiting: Option<Clock>) {
        let taken = self.taken[worker].get();
        let through = waiting.map_or(taken, |clock| taken.min(clock.bits().saturating_sub(1)));
        // Most often nothing is new, and others look at it.
        if self.through[worker].0.load(Ordering::Relaxed) != through {
            self.through[worker].set(through);
        }
    }

    /// Say that a worker has ended.
    pub fn end(&self, worker: usize) {
        self.through[worker].set(u64::MAX);
    }

    /// Return the clock up to which all packets have left their workers, or ended there.
    pub fn through(&self) -> u64 {
        self.through.iter().map(Progress::get).min().unwrap_or(u64::MAX)
    }
}

/// The way out of several workers: their packets, in the order of their clocks.
pub struct Merge {
    lanes: Vec<Lane>,
    order: Arc<Order>,
    exit: usize,
}

/// What has come from one worker and must wait, in its order.
struct Lane {
    queue: Exit,
    packets: VecDeque<Packet>,
}

impl Lane {
    fn first(&self) -> Option<u64> {
        self.packets.front().map(|packet| packet.meta().clock.bits())
    }

    /// Take all there is.
    fn fill(&mut self) {
        for _ in 0..self.queue.see() {
            let Some(packet) = self.queue.next() else { break };
            // A packet that has waited in a module comes late.
            let clock = packet.meta().clock;
            let is_late = self.packets.back().is_some_and(|last| last.meta().clock > clock);
            if is_late {
                let place = self.packets.partition_point(|other| other.meta().clock <= clock);
                self.packets.insert(place, packet);
            } else {
                self.packets.push_back(packet);
            }
        }
    }
}

impl Merge {
    /// Merge what comes by a queue's entrances, of which each worker has one; `exit` is the number of this way out.
    pub fn new(queue: QueueOut, order: &Arc<Order>, exit: usize) -> Self {
        let lane = |queue| Lane { queue, packets: VecDeque::with_capacity(2 * AHEAD as usize) };
        Merge { lanes: queue.exits().into_iter().map(lane).collect(), order: Arc::clone(order), exit }
    }
}

impl Source for Merge {
    fn pull(&mut self, _cx: &mut Context, batch: &mut Batch) -> Pulled {
        // Before the queues: what left its worker by then is seen there.
        let are_done = self.lanes.iter().all(|lane| lane.queue.is_closed());
        let through = if are_done { u64::MAX } else { self.order.through() };
        self.lanes.iter_mut().for_each(Lane::fill);
        let next = loop {
            let first = self.lanes.iter_mut().filter_map(|lane| Some((lane.first()?, lane))).min_by_key(|(at, _)| *at);
            match first {
                Some((clock, lane)) if clock <= through && !batch.is_full() => {
                    lane.packets.pop_front().into_iter().for_each(|packet| batch.push(packet));
                }
                other => break other.map(|(clock, _)| clock),
            }
        };
        let left = next.map_or(through, |next| through.min(next - 1));
        self.order.leave(self.exit, left);
        match (batch.is_empty(), are_done && next.is_none()) {
            (false, _) => Pulled::More,
            (true, true) => Pulled::Done,
            (true, false) => Pulled::Idle,
        }
    }
}

#[cfg(test)]
#[path = "order_tests.rs"]
mod tests;

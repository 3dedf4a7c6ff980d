//! The order of a replay: packets leave in that of their clocks, however many workers carry them.
//!
//! One worker reads, gives clocks, and spreads packets over all, itself among them. All tell how far they have come ([`Order::publish`]): what leaves waits
//! ([`Merge`]) until no worker has an earlier packet left, as a simulation waits for its slowest part (Chandy, Misra,
//! "Asynchronous Distributed Simulation via a Sequence of Parallel Computations", CACM 1981). Nobody is further
//! ahead than [`AHEAD`] packets of what has left, so no queue grows.
//!
//! Batches are the same in every run, too: those behind a queue end where they are full, or at the end of a window of
//! [`WINDOW`] clocks, never where somebody happened to be slow.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use catena_packet::{Batch, Clock, Packet};

use crate::module::{Context, Pulled, Source};
use crate::queue::{Exit, QueueOut};

/// Clocks of a window: some full batches for each of several workers, and few beside [`AHEAD`]. A power of two.
const WINDOW: u64 = 512;
/// Most packets that are read and have not left.
const AHEAD: u64 = 4096;

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
    /// All packets up to here have been handed to their workers.
    given: Progress,
    /// No more will be.
    are_all_given: AtomicBool,
    /// The time of the latest packet that was read, in ns since 1970: the worker that reads has that of its own packets.
    read_at: AtomicU64,
    /// For each worker, up to where it has taken its packets; nobody else looks.
    taken: Box<[Progress]>,
    /// For each worker, up to where its packets have left it, or have ended there.
    through: Box<[Progress]>,
    /// For each exit, up to where packets have left.
    left: Box<[Progress]>,
}

impl Order {
    /// Make one for so many workers, of which the first reads, and ways out.
    pub fn new(workers: usize, exits: usize) -> Arc<Order> {
        let some = |count| (0..count).map(|_| Progress::default()).collect();
        let [taken, through, left] = [some(workers), some(workers), some(exits)];
        let (given, are_all_given, read_at) = Default::default();
        Arc::new(Order { given, are_all_given, read_at, taken, through, left })
    }

    /// Note that all packets up to this one are with their workers.
    pub(crate) fn give(&self, clock: u64) {
        self.given.set(clock);
    }

    /// Say that no more packets are given.
    pub fn end_giving(&self) {
        self.are_all_given.store(true, Ordering::Release);
    }

    pub(crate) fn has_ended_giving(&self) -> bool {
        self.are_all_given.load(Ordering::Acquire)
    }

    pub(crate) fn read_at(&self) -> u64 {
        self.read_at.load(Ordering::Relaxed)
    }

    pub(crate) fn reads_at(&self, time: u64) {
        self.read_at.store(time, Ordering::Relaxed);
    }

    /// Note that a worker has taken all its packets up to this one in hand.
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

    /// Return whether who reads, and has given this many clocks, is to wait for those behind.
    pub(crate) fn is_ahead(&self, count: u64) -> bool {
        let left = self.left.iter().map(|left| Clock::from_bits(left.get()).count()).min();
        left.is_some_and(|left| count.saturating_sub(left) >= AHEAD)
    }

    /// Return the clock up to which all packets have left their workers, or ended there.
    pub fn through(&self) -> u64 {
        self.through.iter().map(Progress::get).min().unwrap_or(u64::MAX)
    }
}

/// Return a number of the window that a packet belongs to.
fn window(packet: &Packet) -> u64 {
    packet.meta().clock.count() / WINDOW
}

/// The queue into one worker.
pub struct InWindows {
    exit: Exit,
    order: Arc<Order>,
    worker: usize,
}

impl InWindows {
    /// Let a worker take what it is given by windows. The queue has one entrance.
    ///
    /// # Panics
    /// When it has more.
    pub fn new(queue: QueueOut, order: &Arc<Order>, worker: usize) -> Self {
        let [exit] = queue.exits().try_into().ok().expect("what one worker is given comes by one entrance");
        InWindows { exit, order: Arc::clone(order), worker }
    }
}

impl Source for InWindows {
    fn pull(&mut self, _cx: &mut Context, batch: &mut Batch) -> Pulled {
        // Before the look at the queue: all that was given by then is seen there. The other way round it might be less.
        let (given, is_closed) = (self.order.given.get(), self.order.has_ended_giving());
        let count = self.exit.see();
        let Some(first) = self.exit.peek(0) else {
            self.order.take(self.worker, given);
            return if is_closed { Pulled::Done } else { Pulled::Idle };
        };
        let (number, before) = (window(first), first.meta().clock.bits() - 1);
        let most = count.min(catena_packet::BATCH);
        let of_window = (1..most).find(|at| self.exit.peek(*at).is_none_or(|packet| window(packet) != number));
        let is_whole = most == catena_packet::BATCH || of_window.is_some() || is_closed;
        if !is_whole && Clock::from_bits(given).count() / WINDOW <= number {
            self.order.take(self.worker, before);
            return Pulled::Idle;
        }
        self.exit.pop(batch, of_window.unwrap_or(most));
        let rest = self.exit.peek(0).map(|packet| packet.meta().clock.bits() - 1);
        let last = batch.iter().last().map_or(0, |packet| packet.meta().clock.bits());
        self.order.take(self.worker, rest.unwrap_or(given).max(last));
        Pulled::More
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
        self.order.left[self.exit].set(left);
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

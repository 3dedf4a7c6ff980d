//! Queues between tasks: one task's worker puts packets in, another's takes them out.
//!
//! A ring with one writer and one reader (Lamport, "Specifying Concurrent Program Modules", §2), whose ends
//! keep a copy of each other's position, so that in the usual case a batch costs one shared cache line.
//! A queue that several tasks feed has one ring for each.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use catena_packet::{BATCH, Batch, Packet};

use crate::module::{Context, Module, Pulled, Reason, Source};

#[repr(align(128))]
struct Position(AtomicUsize);

struct Ring {
    places: Box<[UnsafeCell<MaybeUninit<Packet>>]>,
    /// Packets ever written; only the writer changes it.
    written: Position,
    /// Packets ever read; only the reader changes it.
    read: Position,
    closed: AtomicBool,
}

// SAFETY: a place is touched by the writer only while `written - read` leaves it free, by the reader only
// while it is filled; the positions' release and acquire order the two.
unsafe impl Sync for Ring {}
// SAFETY: packets are `Send`.
unsafe impl Send for Ring {}

impl Drop for Ring {
    fn drop(&mut self) {
        let (read, written) = (*self.read.0.get_mut(), *self.written.0.get_mut());
        for at in read..written {
            let mask = self.places.len() - 1;
            // SAFETY: both ends are gone; places from `read` to `written` are filled.
            unsafe { self.places[at & mask].get_mut().assume_init_drop() };
        }
    }
}

/// Make a queue for at least `packets` packets, with one entrance for each of `writers` tasks.
pub fn queue(packets: usize, writers: usize) -> (Vec<QueueIn>, QueueOut) {
    let rings: Vec<Arc<Ring>> = (0..writers.max(1)).map(|_| Arc::new(ring(packets))).collect();
    let entrances = rings.iter().map(|ring| QueueIn { ring: ring.clone(), written: 0, read: 0 }).collect();
    let exits = rings.into_iter().map(|ring| Exit { ring, written: 0, read: 0 }).collect();
    (entrances, QueueOut { exits, next: 0 })
}

fn ring(packets: usize) -> Ring {
    let places = packets.max(2 * BATCH).next_power_of_two();
    Ring {
        places: (0..places).map(|_| UnsafeCell::new(MaybeUninit::uninit())).collect(),
        written: Position(AtomicUsize::new(0)),
        read: Position(AtomicUsize::new(0)),
        closed: AtomicBool::new(false),
    }
}

/// The entrance of a queue: a module that packets end their task in. What does not fit is dropped, unless
/// the task in front watches the queue's [`Room`].
pub struct QueueIn {
    ring: Arc<Ring>,
    written: usize,
    /// What we last saw the reader at.
    read: usize,
}

impl QueueIn {
    /// Return a view of the room left in the queue.
    pub fn room(&self) -> Room {
        Room(self.ring.clone())
    }

    fn push(&mut self, batch: &mut Batch) {
        let places = self.ring.places.len();
        if places - (self.written - self.read) < batch.len() {
            self.read = self.ring.read.0.load(Ordering::Acquire);
        }
        let count = batch.len().min(places - (self.written - self.read));
        let mut rest = Batch::new();
        batch.filter(|i, packet| {
            if i < count {
                let place = &self.ring.places[self.written & (places - 1)];
                // SAFETY: `written - read < places`: the reader has left this place.
                unsafe { (*place.get()).write(packet) };
                self.written += 1;
            } else {
                rest.push(packet);
            }
            None
        });
        self.ring.written.0.store(self.written, Ordering::Release);
        batch.append(&mut rest);
    }
}

impl Module for QueueIn {
    fn process(&mut self, cx: &mut Context, batch: &mut Batch) {
        self.push(batch);
        batch.drain().for_each(|packet| cx.drop(packet, Reason::QUEUE_FULL));
    }

    fn end(&mut self, _cx: &mut Context) -> Result<(), String> {
        self.room().close();
        Ok(())
    }
}

impl Drop for QueueIn {
    fn drop(&mut self) {
        self.ring.closed.store(true, Ordering::Release);
    }
}

/// How much room a queue has, seen from anywhere.
#[derive(Clone)]
pub struct Room(Arc<Ring>);

impl Room {
    /// Return how many packets fit.
    pub fn packets(&self) -> usize {
        let read = self.0.read.0.load(Ordering::Acquire);
        let written = self.0.written.0.load(Ordering::Acquire);
        self.0.places.len() - written.saturating_sub(read).min(self.0.places.len())
    }

    /// Return how many packets were ever put in.
    pub fn written(&self) -> usize {
        self.0.written.0.load(Ordering::Acquire)
    }

    /// Return how many packets were ever taken out.
    pub fn read(&self) -> usize {
        self.0.read.0.load(Ordering::Acquire)
    }

    /// Return whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.read() == self.written()
    }

    /// Return whether the queue is half full: what waits in modules for other workers must find room, too, when it goes on.
    pub fn is_scarce(&self) -> bool {
        self.packets() < (self.0.places.len() / 2).max(2 * BATCH)
    }

    /// Say that nothing will be put in any more: the reader is done once it has taken the rest.
    pub fn close(&self) {
        self.0.closed.store(true, Ordering::Release);
    }
}

/// The far end of one entrance.
pub(crate) struct Exit {
    ring: Arc<Ring>,
    /// What we last saw the writer at.
    written: usize,
    read: usize,
}

/// The far end of a queue: the source of a task.
pub struct QueueOut {
    exits: Vec<Exit>,
    next: usize,
}

impl QueueOut {
    pub(crate) fn exits(self) -> Vec<Exit> {
        self.exits
    }
}

impl Exit {
    /// Look what has come; returns how many packets there are.
    pub(crate) fn see(&mut self) -> usize {
        self.written = self.ring.written.0.load(Ordering::Acquire);
        self.written - self.read
    }

    /// Take the next of those that have been seen.
    pub(crate) fn next(&mut self) -> Option<Packet> {
        let packet = self.read_next();
        self.ring.read.0.store(self.read, Ordering::Release);
        packet
    }

    /// Move so many of those that have been seen into a batch that has room for them.
    pub(crate) fn pop(&mut self, batch: &mut Batch, count: usize) {
        for _ in 0..count {
            let Some(packet) = self.read_next() else { break };
            packet.bring();
            batch.push(packet);
        }
        if count > 0 {
            self.ring.read.0.store(self.read, Ordering::Release);
        }
    }

    fn read_next(&mut self) -> Option<Packet> {
        if self.read == self.written {
            return None;
        }
        let place = &self.ring.places[self.read & (self.ring.places.len() - 1)];
        self.read += 1;
        // SAFETY: `read < written`: the writer has filled this place and will not touch it before
        // it sees `read` go past it.
        Some(unsafe { (*place.get()).assume_init_read() })
    }

    /// Return whether nothing will be put in any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.ring.closed.load(Ordering::Acquire)
    }

    fn is_done(&self) -> bool {
        // Closed first: what was written before the closing is then seen.
        self.is_closed() && self.ring.written.0.load(Ordering::Acquire) == self.read
    }
}

impl Source for QueueOut {
    fn pull(&mut self, _cx: &mut Context, batch: &mut Batch) -> Pulled {
        for _ in 0..self.exits.len() {
            self.next = if self.next + 1 < self.exits.len() { self.next + 1 } else { 0 };
            let exit = &mut self.exits[self.next];
            let room = BATCH - batch.len();
            let seen = exit.written - exit.read;
            let count = if seen == 0 { exit.see() } else { seen };
            exit.pop(batch, count.min(room));
            if batch.is_full() {
                break;
            }
        }
        match batch.is_empty() {
            false => Pulled::More,
            true if self.exits.iter().all(Exit::is_done) => Pulled::Done,
            true => Pulled::Idle,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use catena_packet::{Clock, Depot};

    #[test]
    fn packets_cross_in_order_and_none_is_lost() {
        let depot = Depot::map(4096, 0).unwrap();
        let (mut entrances, mut exit) = queue(256, 1);
        let mut entrance = entrances.remove(0);
        let reader_depot = depot.clone();
        let reader = std::thread::spawn(move || {
            let mut cx = Context::new(&reader_depot, 0);
            let (mut batch, mut expected) = (Batch::new(), 0);
            loop {
                match exit.pull(&mut cx, &mut batch) {
                    Pulled::Done => return expected,
                    Pulled::Idle => std::thread::yield_now(),
                    Pulled::More => {}
                }
                for packet in batch.drain() {
                    assert_eq!(packet.meta().clock.bits(), expected);
                    expected += 1;
                    cx.pool().put(packet);
                }
            }
        });
        let mut pool = depot.pool();
        let mut batch = Batch::new();
        let mut sent = 0;
        while sent < 50_000 {
            if batch.is_empty() {
                pool.take_batch(&mut batch, 1 + (sent % 32) as usize, 60);
                for packet in batch.iter_mut() {
                    packet.meta_mut().clock = Clock::from_bits(sent);
                    sent += 1;
                }
            }
            entrance.push(&mut batch);
            if !batch.is_empty() {
                std::thread::yield_now();
            }
        }
        while !batch.is_empty() {
            entrance.push(&mut batch);
        }
        drop(entrance);
        assert_eq!(reader.join().unwrap(), sent);
        drop(pool);
        assert!(depot.all_home());
    }

    #[test]
    fn a_full_queue_drops_and_a_dropped_queue_gives_back() {
        let depot = Depot::map(512, 0).unwrap();
        let mut cx = Context::new(&depot, 0);
        let (mut entrances, exit) = queue(64, 1);
        let room = entrances[0].room();
        let mut batch = Batch::new();
        for _ in 0..3 {
            cx.pool().take_batch(&mut batch, BATCH, 60);
            entrances[0].process(&mut cx, &mut batch);
        }
        assert_eq!(cx.drops[usize::from(Reason::QUEUE_FULL.0)], 32);
        assert_eq!(room.packets(), 0);
        drop((entrances, exit, room, cx, batch));
        assert!(depot.all_home());
    }
}

//! Where packet buffers come from: a depot shared by all workers, a pool for each.
//!
//! A [`Pool`] is a worker's own stack of free buffers: the buffer given back last goes out first, while it
//! is still warm in the cache. When it runs empty or over, it exchanges a whole [`Magazine`] with the
//! [`Depot`] without a lock (Bonwick and Adams, "Magazines and Vmem", §3), so packets may be freed by
//! another worker than the one that took them.

use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;

use crossbeam_queue::ArrayQueue;

use crate::batch::{BATCH, Batch};
use crate::buffer::{HEAD_ROOM, JUMBO_BYTES, Packet, SMALL_BYTES, STRIDE, Slot};
use crate::mapping::Mapping;
use crate::meta::Meta;

/// Buffers that move between a pool and the depot at once, by size class. A pool keeps up to four
/// magazines of each class to itself.
const MAGAZINE: [usize; 2] = [128, 16];
const SMALL: usize = 0;
const JUMBO: usize = 1;

type Magazine = Vec<Free>;

/// A slot that nobody uses.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct Free(NonNull<Slot>);
// SAFETY: a free slot is just memory, owned by whoever holds the entry.
unsafe impl Send for Free {}

/// All buffers of a process, shared by the pools of its workers.
pub struct Depot {
    small: Shelf,
    jumbo: Shelf,
}

/// The buffers of one size class.
struct Shelf {
    memory: Mapping,
    slots: usize,
    magazine: usize,
    full: ArrayQueue<Magazine>,
    empty: ArrayQueue<Magazine>,
    loose: ArrayQueue<Free>,
}

impl Depot {
    /// Map memory for `small` packets of up to [`SMALL_BYTES`] and `jumbo` of up to [`JUMBO_BYTES`], both
    /// rounded up to whole magazines (128 and 16).
    /// Count on four magazines a worker: what one worker keeps, another cannot have. Memory is touched only as it is used.
    ///
    /// # Errors
    /// The system's, when it has not the memory.
    pub fn map(small: usize, jumbo: usize) -> std::io::Result<DepotHandle> {
        let depot = Depot { small: Shelf::new(small, SMALL)?, jumbo: Shelf::new(jumbo, JUMBO)? };
        let depot = Owned(NonNull::from(Box::leak(Box::new(depot))));
        depot.small.stock(SMALL as u8, depot.0.as_ptr());
        depot.jumbo.stock(JUMBO as u8, depot.0.as_ptr());
        Ok(DepotHandle(Arc::new(depot)))
    }

    fn shelf(&self, class: usize) -> &Shelf {
        if class == SMALL { &self.small } else { &self.jumbo }
    }

    /// Take back a slot whose packet was dropped outside a worker.
    ///
    /// # Safety
    /// `slot` is of this depot and nobody uses it any more.
    pub(crate) unsafe fn take_home(&self, slot: NonNull<Slot>) {
        // SAFETY: the caller's promise.
        let class = unsafe { slot.as_ref().meta.class };
        // The queue has a place for every slot there is, so this cannot fail.
        let _ = self.shelf(usize::from(class)).loose.push(Free(slot));
    }

    fn all_home(&self) -> bool {
        [&self.small, &self.jumbo].iter().all(|s| s.full.len() * s.magazine + s.loose.len() == s.slots)
    }
}

impl Shelf {
    fn new(slots: usize, class: usize) -> std::io::Result<Self> {
        let magazine = MAGAZINE[class];
        let magazines = slots.div_ceil(magazine);
        let slots = magazines * magazine;
        Ok(Shelf {
            memory: Mapping::anonymous(slots * STRIDE[class])?,
            slots,
            magazine,
            full: ArrayQueue::new(magazines.max(1)),
            empty: ArrayQueue::new(magazines.max(1)),
            loose: ArrayQueue::new(slots.max(1)),
        })
    }

    fn stock(&self, class: u8, home: *const Depot) {
        let stride = STRIDE[usize::from(class)];
        for magazine in 0..self.slots / self.magazine {
            let fresh = |i| {
                let offset = (magazine * self.magazine + i) * stride;
                let slot = self.memory.at::<Slot>(offset);
                // SAFETY: the memory is zeroed and ours, and a slot has no invalid zero value.
                unsafe {
                    (*slot.as_ptr()).home = home;
                    (*slot.as_ptr()).meta.class = class;
                }
                Free(slot)
            };
            let _ = self.full.push((0..self.magazine).map(fresh).collect());
        }
    }
}

/// A depot at an address that its packets know. It is no `Box`, which would claim to be the only way to it.
struct Owned(NonNull<Depot>);

// SAFETY: it owns a depot, which may go to another thread.
unsafe impl Send for Owned where Depot: Send {}
// SAFETY: it gives out shared references alone, to a depot, which threads may share.
unsafe impl Sync for Owned where Depot: Sync {}

impl Deref for Owned {
    type Target = Depot;

    #[inline(always)]
    fn deref(&self) -> &Depot {
        // SAFETY: the depot lives as long as this.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        if self.all_home() {
            // SAFETY: it came from a box in `Depot::map`, and no packet is left that knows it.
            drop(unsafe { Box::from_raw(self.0.as_ptr()) });
        }
    }
}

/// A shared handle on a [`Depot`].
///
/// When the last handle goes while packets are still about, the depot stays for them: leaked, never
/// dangling.
#[derive(Clone)]
pub struct DepotHandle(Arc<Owned>);

impl DepotHandle {
    /// Make a pool for one worker.
    pub fn pool(&self) -> Pool {
        Pool { depot: self.clone(), stacks: MAGAZINE.map(|magazine| Vec::with_capacity(4 * magazine)) }
    }

    /// Return whether every buffer is back: nothing leaked. Pools that still live keep some.
    pub fn all_home(&self) -> bool {
        self.depot().all_home()
    }

    fn depot(&self) -> &Depot {
        &self.0
    }
}

/// A worker's own free buffers.
pub struct Pool {
    stacks: [Vec<Free>; 2],
    depot: DepotHandle,
}

// SAFETY: the free slots belong to this pool alone.
unsafe impl Send for Pool {}

impl Pool {
    /// Take a packet of `len` bytes (uninitialised content, metadata zero); `None` when no buffer is left
    /// or `len` is more than [`JUMBO_BYTES`].
    #[inline]
    pub fn take(&mut self, len: usize) -> Option<Packet> {
        let class = match len {
            0..=SMALL_BYTES => SMALL,
            len if len <= JUMBO_BYTES => JUMBO,
            _ => return None,
        };
        if self.stacks[class].is_empty() && !self.refill(class) {
            return None;
        }
        let free = self.stacks[class].pop()?;
        Some(Self::dress(free, class, len))
    }

    /// Fill `batch` up with `count` more packets of `len` bytes each (at most [`SMALL_BYTES`]); returns how
    /// many there were buffers for.
    #[inline]
    pub fn take_batch(&mut self, batch: &mut Batch, count: usize, len: usize) -> usize {
        assert!(len <= SMALL_BYTES);
        let count = count.min(BATCH - batch.len());
        if self.stacks[SMALL].len() < count {
            self.refill(SMALL);
        }
        let stack = &mut self.stacks[SMALL];
        let count = count.min(stack.len());
        let from = stack.len() - count;
        batch.append_with(&stack[from..], |free| Self::dress(*free, SMALL, len));
        stack.truncate(from);
        count
    }

    #[inline(always)]
    fn dress(free: Free, class: usize, len: usize) -> Packet {
        let meta = Meta { len: len as u32, head: HEAD_ROOM as u16, class: class as u8, ..Meta::default() };
        // SAFETY: a free slot is live memory that nobody else uses.
        unsafe { (*free.0.as_ptr()).meta = meta };
        Packet(free.0)
    }

    /// Give a packet back.
    #[inline]
    pub fn put(&mut self, packet: Packet) {
        let class = usize::from(packet.meta().class);
        self.stacks[class].push(Free(packet.into_slot()));
        if self.stacks[class].len() >= 4 * MAGAZINE[class] {
            self.spill(class);
        }
    }

    /// Give all packets of a batch back.
    #[inline]
    pub fn put_batch(&mut self, batch: &mut Batch) {
        if batch.iter().fold(0, |classes, packet| classes | packet.meta().class) == SMALL as u8 {
            self.stacks[SMALL].extend(batch.release().iter().map(|slot| Free(*slot)));
        } else {
            for packet in batch.drain() {
                let class = usize::from(packet.meta().class);
                self.stacks[class].push(Free(packet.into_slot()));
            }
        }
        for class in [SMALL, JUMBO] {
            if self.stacks[class].len() >= 3 * MAGAZINE[class] {
                self.spill(class);
            }
        }
    }

    #[cold]
    fn refill(&mut self, class: usize) -> bool {
        let shelf = self.depot.depot().shelf(class);
        if let Some(mut magazine) = shelf.full.pop() {
            self.stacks[class].append(&mut magazine);
            // There are only as many magazines as the queue has places.
            let _ = shelf.empty.push(magazine);
            return true;
        }
        for _ in 0..shelf.magazine {
            match shelf.loose.pop() {
                Some(free) => self.stacks[class].push(free),
                None => break,
            }
        }
        !self.stacks[class].is_empty()
    }

    #[cold]
    fn spill(&mut self, class: usize) {
        let shelf = self.depot.depot().shelf(class);
        let stack = &mut self.stacks[class];
        // The coldest go, the warmest stay.
        while stack.len() >= 2 * shelf.magazine {
            let Some(mut magazine) = shelf.empty.pop() else {
                for free in stack.drain(..shelf.magazine) {
                    let _ = shelf.loose.push(free);
                }
                continue;
            };
            magazine.extend(stack.drain(..shelf.magazine));
            let _ = shelf.full.push(magazine);
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        for class in [SMALL, JUMBO] {
            let shelf = self.depot.depot().shelf(class);
            for free in self.stacks[class].drain(..) {
                let _ = shelf.loose.push(free);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Clock, Root};

    #[test]
    fn the_last_given_back_goes_out_first() {
        let depot = Depot::map(256, 0).unwrap();
        let mut pool = depot.pool();
        let packet = pool.take(64).unwrap();
        let at = packet.data().as_ptr();
        pool.put(packet);
        assert_eq!(pool.take(64).unwrap().data().as_ptr(), at);
    }

    #[test]
    fn nothing_leaks_between_workers() {
        let depot = Depot::map(2000, 256).unwrap();
        let (send, receive) = std::sync::mpsc::sync_channel::<Packet>(64);
        let (mut here, mut there) = (depot.pool(), depot.pool());
        let worker = std::thread::spawn(move || {
            for packet in receive {
                there.put(packet);
            }
        });
        let mut sent = 0;
        while sent < 20_000 {
            if let Some(packet) = here.take(if sent % 7 == 0 { 9000 } else { 60 }) {
                send.send(packet).unwrap();
                sent += 1;
            }
        }
        drop(send);
        worker.join().unwrap();
        drop(here);
        assert!(depot.all_home());
    }

    #[test]
    fn an_empty_depot_says_so() {
        let depot = Depot::map(128, 0).unwrap();
        let mut pool = depot.pool();
        let all: Vec<_> = std::iter::from_fn(|| pool.take(100)).collect();
        assert_eq!(all.len(), 128);
        assert!(pool.take(1).is_none());
        assert!(pool.take(9000).is_none());
        assert!(pool.take(JUMBO_BYTES + 1).is_none());
        drop(all);
        assert!(pool.take(1).is_some());
    }

    #[test]
    fn packets_outlive_their_depot() {
        let packet = {
            let depot = Depot::map(1, 0).unwrap();
            let mut pool = depot.pool();
            let mut packet = pool.take(3).unwrap();
            packet.fill(b"abc");
            packet
        };
        assert_eq!(packet.data(), b"abc");
    }

    #[test]
    fn a_packet_keeps_its_clock_in_a_larger_buffer() {
        let depot = Depot::map(2, 2).unwrap();
        let mut pool = depot.pool();
        let (mut small, mut jumbo) = (pool.take(4).unwrap(), pool.take(JUMBO_BYTES).unwrap());
        assert_eq!(jumbo.meta().clock, Clock::NONE);
        small.fill(b"data");
        small.meta_mut().clock = Root::first().stamp();
        jumbo.copy_from(&small);
        assert_eq!((jumbo.data(), jumbo.meta().clock.to_string()), (&b"data"[..], "1:1".to_owned()));
        assert_eq!(jumbo.meta().class, 1);
    }

    #[test]
    fn head_room_and_tail_room_are_bounded() {
        let depot = Depot::map(1, 0).unwrap();
        let mut packet = depot.pool().take(4).unwrap();
        packet.fill(b"data");
        assert!(packet.push_front(b"head"));
        assert!(packet.push_back(b"tail"));
        assert_eq!(packet.data(), b"headdatatail");
        assert!(packet.pull_front(4));
        packet.truncate(4);
        assert_eq!(packet.data(), b"data");
        assert!(!packet.push_front(&[0; HEAD_ROOM + 1]));
        assert!(!packet.push_back(&[0; SMALL_BYTES]));
        assert!(!packet.pull_front(5));
    }
}

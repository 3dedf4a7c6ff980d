//! Packets that travel together.

use std::mem::MaybeUninit;
use std::ptr::NonNull;

use crate::buffer::{Packet, Slot};

/// Most packets in a batch: enough to hide latencies behind each other, few enough to stay in the
/// first-level cache.
pub const BATCH: usize = 32;

/// Up to [`BATCH`] packets, in order.
pub struct Batch {
    len: usize,
    packets: [MaybeUninit<Packet>; BATCH],
}

impl Batch {
    /// Make an empty batch.
    pub const fn new() -> Self {
        Batch { len: 0, packets: [const { MaybeUninit::uninit() }; BATCH] }
    }

    /// Return how many packets there are.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Return whether there is none.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Return whether no further packet fits.
    #[inline(always)]
    pub fn is_full(&self) -> bool {
        self.len == BATCH
    }

    /// Add a packet at the end.
    ///
    /// # Panics
    /// When the batch is full.
    #[inline(always)]
    pub fn push(&mut self, packet: Packet) {
        self.packets[self.len].write(packet);
        self.len += 1;
    }

    /// Add at the end a packet made of each of `from`.
    ///
    /// # Panics
    /// When they do not fit.
    #[inline(always)]
    pub(crate) fn append_with<T>(&mut self, from: &[T], mut make: impl FnMut(&T) -> Packet) {
        let places = &mut self.packets[self.len..][..from.len()];
        for (place, from) in places.iter_mut().zip(from) {
            place.write(make(from));
        }
        self.len += from.len();
    }

    /// Give up all packets at once, as the slots that they are.
    #[inline(always)]
    pub(crate) fn release(&mut self) -> &[NonNull<Slot>] {
        let len = std::mem::replace(&mut self.len, 0);
        // SAFETY: the first `len` were written, and a packet has its slot pointer's layout.
        unsafe { std::slice::from_raw_parts(self.packets.as_ptr().cast(), len) }
    }

    /// Take the last packet.
    pub fn pop(&mut self) -> Option<Packet> {
        self.len = self.len.checked_sub(1)?;
        // SAFETY: the first `len` were written; this one is now outside.
        Some(unsafe { self.packets[self.len].assume_init_read() })
    }

    /// Return the packets.
    #[inline(always)]
    pub fn as_slice(&self) -> &[Packet] {
        // SAFETY: the first `len` packets are written, and `MaybeUninit` has their layout.
        unsafe { std::slice::from_raw_parts(self.packets.as_ptr().cast(), self.len) }
    }

    /// Return the packets for changing.
    #[inline(always)]
    pub fn as_mut_slice(&mut self) -> &mut [Packet] {
        // SAFETY: as in `as_slice`, and we hold the batch mutably.
        unsafe { std::slice::from_raw_parts_mut(self.packets.as_mut_ptr().cast(), self.len) }
    }

    /// Go through the packets.
    #[inline(always)]
    pub fn iter(&self) -> std::slice::Iter<'_, Packet> {
        self.as_slice().iter()
    }

    /// Go through the packets for changing.
    #[inline(always)]
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, Packet> {
        self.as_mut_slice().iter_mut()
    }

    /// Take all packets out, in order.
    #[inline(always)]
    pub fn drain(&mut self) -> Drain<'_> {
        let len = std::mem::replace(&mut self.len, 0);
        Drain { batch: self, next: 0, len }
    }

    /// Move packets of `other` to the end of this one until it is full; what does not fit stays in `other`,
    /// in order.
    pub fn append(&mut self, other: &mut Batch) {
        let count = other.len.min(BATCH - self.len);
        // SAFETY: `count` packets are moved from the written part of one batch to the unwritten part of
        // the other; two batches never overlap. The rest moves down; both lengths follow.
        unsafe {
            let from = other.packets.as_mut_ptr();
            std::ptr::copy_nonoverlapping(from, self.packets.as_mut_ptr().add(self.len), count);
            std::ptr::copy(from.add(count), from, other.len - count);
        }
        self.len += count;
        other.len -= count;
    }

    /// Keep in place the packets for which `take` gives the packet back, in order; the others are its.
    ///
    /// `take` gets the index of the packet among those there were.
    #[inline(always)]
    pub fn filter(&mut self, mut take: impl FnMut(usize, Packet) -> Option<Packet>) {
        // While `take` runs the batch counts as empty: a panic there leaks packets, nothing worse.
        let len = std::mem::replace(&mut self.len, 0);
        let packets = self.packets.as_mut_ptr().cast::<Packet>();
        let mut kept = 0;
        for i in 0..len {
            // SAFETY: `i < len <= BATCH`; the first `len` were written, and each is read once.
            let packet = unsafe { packets.add(i).read() };
            if let Some(packet) = take(i, packet) {
                // SAFETY: `kept <= i`, and the packet there was taken already.
                unsafe { packets.add(kept).write(packet) };
                kept += 1;
            }
        }
        self.len = kept;
    }

    /// Return the packets' bytes, added up.
    #[inline(always)]
    pub fn bytes(&self) -> u64 {
        let length = |packet: &Packet| u64::from(packet.meta().len);
        let (fours, rest) = self.as_slice().as_chunks::<4>();
        let fours: u64 = fours.iter().map(|[a, b, c, d]| length(a) + length(b) + length(c) + length(d)).sum();
        fours + rest.iter().map(length).sum::<u64>()
    }
}

impl Default for Batch {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        while self.pop().is_some() {}
    }
}

impl std::fmt::Debug for Batch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// The packets of a batch on their way out.
pub struct Drain<'a> {
    batch: &'a mut Batch,
    next: usize,
    len: usize,
}

impl Iterator for Drain<'_> {
    type Item = Packet;

    #[inline(always)]
    fn next(&mut self) -> Option<Packet> {
        if self.next == self.len {
            return None;
        }
        // SAFETY: the first `len` were written; each is read once, since `next` rises.
        let packet = unsafe { self.batch.packets[self.next].assume_init_read() };
        self.next += 1;
        Some(packet)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.len - self.next, Some(self.len - self.next))
    }
}

impl ExactSizeIterator for Drain<'_> {}

impl Drop for Drain<'_> {
    fn drop(&mut self) {
        for _ in self.by_ref() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Depot, DepotHandle};

    fn batch_of(depot: &DepotHandle, lengths: &[usize]) -> Batch {
        let mut pool = depot.pool();
        let mut batch = Batch::new();
        lengths.iter().for_each(|&len| batch.push(pool.take(len).unwrap()));
        batch
    }

    fn lengths(batch: &Batch) -> Vec<usize> {
        batch.iter().map(Packet::len).collect()
    }

    #[test]
    fn filter_keeps_the_order() {
        let depot = Depot::map(BATCH, 0).unwrap();
        let mut batch = batch_of(&depot, &[1, 2, 3, 4, 5]);
        let mut out = Batch::new();
        batch.filter(|_, packet| {
            if packet.len() % 2 == 1 {
                return Some(packet);
            }
            out.push(packet);
            None
        });
        assert_eq!((lengths(&batch), lengths(&out)), (vec![1, 3, 5], vec![2, 4]));
    }

    #[test]
    fn append_moves_what_fits() {
        let depot = Depot::map(2 * BATCH, 0).unwrap();
        let (mut a, mut b) = (batch_of(&depot, &[1; 30]), batch_of(&depot, &[2, 3, 4]));
        a.append(&mut b);
        assert!(a.is_full());
        assert_eq!(lengths(&a)[30..], [2, 3]);
        assert_eq!(lengths(&b), [4]);
        assert_eq!(a.bytes(), 35);
    }

    #[test]
    fn a_dropped_drain_gives_everything_back() {
        let depot = Depot::map(BATCH, 0).unwrap();
        let mut pool = depot.pool();
        let mut batch = Batch::new();
        assert_eq!(pool.take_batch(&mut batch, BATCH, 60), BATCH);
        assert_eq!(batch.drain().next().map(|packet| packet.len()), Some(60));
        drop((batch, pool));
        assert!(depot.all_home());
    }
}

//! Look-ups: one address, or a batch whose cache misses overlap.

use catena_packet::buffer::prefetch;

use super::lpm::{Lpm, NONE, child};
use super::{Address, NextHop};

/// Addresses that go through the trie together: as many as a batch of the dataplane has packets.
const LANES: usize = 32;

/// A table whose nodes take more bytes than this is not expected to stay in the nearer caches.
pub(super) const NEAR_BYTES: usize = 256 << 10;

impl<A: Address> Lpm<A> {
    /// The next hop of the longest prefix that covers `addr`, or [`NextHop::NONE`].
    #[inline]
    pub fn lookup(&self, addr: A) -> NextHop {
        let mut slot = self.first[usize::from(addr.first_16())];
        let mut best = NONE.max(slot);
        while slot < 0 {
            let (run, miss) = self.step(addr, slot);
            slot = self.pool.words()[run];
            best = best.max(miss).max(slot);
        }
        hop(best)
    }

    /// Writes the next hop of every address of `addrs` to the same place of `hops`.
    ///
    /// All addresses take their first step, then all that need it a second, and so on: their cache
    /// misses overlap, and no branch depends on a single address.
    ///
    /// # Panics
    /// The slices differ in length.
    #[inline]
    pub fn lookup_batch(&self, addrs: &[A], hops: &mut [NextHop]) {
        assert_eq!(addrs.len(), hops.len(), "one next hop per address");
        let (addrs, last_addrs) = addrs.as_chunks();
        let (hops, last_hops) = hops.as_chunks_mut();
        for (addrs, hops) in addrs.iter().zip(hops) {
            self.lookup_lanes(addrs, u32::MAX, hops);
        }
        if !last_addrs.is_empty() {
            let mut addrs = [A::ZERO; LANES];
            let mut hops = [NextHop::NONE; LANES];
            addrs[..last_addrs.len()].copy_from_slice(last_addrs);
            self.lookup_lanes(&addrs, (1 << last_addrs.len()) - 1, &mut hops);
            last_hops.copy_from_slice(&hops[..last_hops.len()]);
        }
    }

    /// Looks the addresses up whose bits are set in `used`.
    #[inline]
    fn lookup_lanes(&self, addrs: &[A; LANES], used: u32, hops: &mut [NextHop; LANES]) {
        if size_of_val(&*self.nodes) <= NEAR_BYTES {
            self.descend::<false>(addrs, used, hops);
        } else {
            self.descend::<true>(addrs, used, hops);
        }
    }

    /// `FAR`: fetches ahead what a step will read. That costs more than it saves if all is near.
    fn descend<const FAR: bool>(&self, addrs: &[A; LANES], used: u32, hops: &mut [NextHop; LANES]) {
        let mut slots = [0; LANES];
        for (slot, addr) in slots.iter_mut().zip(addrs) {
            *slot = self.first[usize::from(addr.first_16())];
        }
        let mut best = slots;
        let mut open = children(&slots) & used;
        while open != 0 {
            if FAR {
                let mut runs = [(0, 0); LANES];
                for lane in lanes(open) {
                    prefetch(self.nodes.as_ptr().wrapping_add(child(slots[lane])));
                }
                for lane in lanes(open) {
                    runs[lane] = self.step(addrs[lane], slots[lane]);
                    prefetch(self.pool.words().as_ptr().wrapping_add(runs[lane].0));
                }
                for lane in lanes(open) {
                    let (run, miss) = runs[lane];
                    slots[lane] = self.pool.words()[run];
                    best[lane] = best[lane].max(miss).max(slots[lane]);
                }
            } else {
                for lane in lanes(open) {
                    let (run, miss) = self.step(addrs[lane], slots[lane]);
                    slots[lane] = self.pool.words()[run];
                    best[lane] = best[lane].max(miss).max(slots[lane]);
                }
            }
            open &= children(&slots);
        }
        for (to, best) in hops.iter_mut().zip(best) {
            *to = hop(best);
        }
    }

    /// Which run of the node that `slot` leads to `addr` falls in, and what the node holds for addresses
    /// that find nothing there.
    #[inline(always)]
    fn step(&self, addr: A, slot: i32) -> (usize, i32) {
        let node = &self.nodes[child(slot)];
        let (here, at) = addr.step(node.key, node.shift);
        let run = node.block.index(at);
        (if here { run } else { super::block::FILLER }, node.miss)
    }
}

/// The next hop of a slot that is a route or [`NONE`].
#[inline(always)]
fn hop(slot: i32) -> NextHop {
    NextHop(slot as u16)
}

/// A bit for every slot that leads to a node.
#[inline(always)]
fn children(slots: &[i32; LANES]) -> u32 {
    (0..).zip(slots).fold(0, |bits, (lane, slot)| bits | u32::from(*slot < 0) << lane)
}

/// The numbers of the bits set, lowest first.
#[inline(always)]
fn lanes(mut bits: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lane = bits.trailing_zeros() as usize;
        bits &= bits.wrapping_sub(1);
        (lane < LANES).then_some(lane)
    })
}

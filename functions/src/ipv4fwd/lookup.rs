//! Look-ups: one address, or a batch whose cache misses overlap.

use super::lpm::{CHILD, Lpm, NONE, Node};
use super::{Address, NextHop};

/// Addresses that go through the trie together: as many as a batch of the dataplane has packets.
const LANES: usize = 32;

impl<A: Address> Lpm<A> {
    /// The next hop of the longest prefix that covers `addr`, or [`NextHop::NONE`].
    #[inline]
    pub fn lookup(&self, addr: A) -> NextHop {
        let mut slot = self.first[usize::from(addr.first_16())];
        let mut best = route(slot);
        while slot & CHILD != 0 {
            (slot, best) = self.step(addr, slot & !CHILD, best);
        }
        NextHop(best as u16)
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
        for (addrs, hops) in addrs.chunks(LANES).zip(hops.chunks_mut(LANES)) {
            self.lookup_lanes(addrs, hops);
        }
    }

    fn lookup_lanes(&self, addrs: &[A], hops: &mut [NextHop]) {
        let mut lanes = [0u8; LANES + 1];
        let mut nodes = [0u32; LANES + 1];
        let mut open = 0;
        for (lane, (addr, hop)) in addrs.iter().zip(hops.iter_mut()).enumerate() {
            let slot = self.first[usize::from(addr.first_16())];
            *hop = NextHop(route(slot) as u16);
            lanes[open] = lane as u8;
            nodes[open] = slot & !CHILD;
            open += (slot >> 31) as usize;
        }
        while open > 0 {
            for &node in &nodes[..open] {
                prefetch(&self.nodes[node as usize]);
            }
            let mut still_open = 0;
            for at in 0..open {
                let lane = usize::from(lanes[at]);
                let (slot, best) = self.step(addrs[lane], nodes[at], u32::from(hops[lane].0));
                hops[lane] = NextHop(best as u16);
                lanes[still_open] = lane as u8;
                nodes[still_open] = slot & !CHILD;
                still_open += (slot >> 31) as usize;
            }
            open = still_open;
        }
    }

    /// What the node says of `addr`: the slot, and the best route seen so far.
    #[inline(always)]
    fn step(&self, addr: A, node: u32, best: u32) -> (u32, u32) {
        let node = &self.nodes[node as usize];
        let (here, at) = addr.step(node.key, node.shift);
        let slot = self.pool.words()[node.block.index(at)];
        let slot = if here { slot } else { NONE };
        let best = better(node.miss, best);
        (slot, better(route(slot), best))
    }
}

/// A slot's route; [`NONE`] in its low 16 bits if it leads to a node.
#[inline(always)]
fn route(slot: u32) -> u32 {
    slot | (slot.cast_signed() >> 31).cast_unsigned()
}

/// `slot` if it is a route, else `best`.
#[inline(always)]
fn better(slot: u32, best: u32) -> u32 {
    if slot as u16 == NONE as u16 { best } else { slot }
}

#[inline(always)]
fn prefetch<A>(node: &Node<A>) {
    // SAFETY: a prefetch reads nothing and cannot fault, whatever the address.
    unsafe { std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(std::ptr::from_ref(node).cast()) }
}

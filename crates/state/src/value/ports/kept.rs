//! The bytes of ports: what is lent to whom and what is free, in the orders in which it will be lent again. Where blocks stand in
//! memory, and what is counted of them, is worked out when they come back.

use super::block::{MOST_PORTS, NONE};
use super::known::Known;
use super::moving::Lent;
use super::part::Part;
use super::{Grid, Limits, Ports};
use crate::engine::Share;
use crate::stored::{Stored, store_all};

/// What is free of an external address.
struct Unlent {
    /// How many blocks were never lent.
    fresh: u32,
    /// Those that were given back, by number, the first one first.
    back: Vec<u32>,
}

impl Stored for Unlent {
    fn store(&self, to: &mut Vec<u8>) {
        self.fresh.store(to);
        self.back.store(to);
    }

    fn restore(from: &mut &[u8]) -> Option<Unlent> {
        Some(Unlent { fresh: Stored::restore(from)?, back: Stored::restore(from)? })
    }
}

impl Stored for Ports {
    fn store(&self, to: &mut Vec<u8>) {
        self.grid.store(to);
        (self.parts.len() as u64).store(to);
        self.parts.iter().for_each(|part| part.store(to));
    }

    fn restore(from: &mut &[u8]) -> Option<Ports> {
        let grid = Grid::restore(from).filter(|grid| grid.is_one() && grid.block_ports <= MOST_PORTS)?;
        // Each address has what is free of it behind: who says that there are more than there are bytes gets no memory for them.
        if grid.addresses as usize > from.len() {
            return None;
        }
        let parts = u64::restore(from)?;
        let parts = (0..parts).map(|_| Part::restore(grid, from)).collect::<Option<_>>()?;
        Some(Ports { grid, parts })
    }
}

impl Part {
    fn store(&self, to: &mut Vec<u8>) {
        self.limits.store(to);
        self.share.store(to);
        self.hosts.seed().store(to);
        self.leases.store(to);
        let free: Vec<Unlent> = (0..self.grid.addresses).map(|index| self.unlent(index)).collect();
        free.store(to);
        let gone = (0..self.grid.all_blocks() as u32).filter(|number| self.known.get(*number) == Known::Gone);
        gone.collect::<Vec<u32>>().store(to);
        store_all(&self.all_lent(), to);
    }

    fn restore(grid: Grid, from: &mut &[u8]) -> Option<Part> {
        let limits = Limits::restore(from)?;
        let share = Share::restore(from).filter(|share| share.index < share.count.max(1))?;
        let mut part = Part::new(grid, limits, share, Stored::restore(from)?).ok()?;
        part.leases = Stored::restore(from)?;
        let free: Vec<Unlent> = Stored::restore(from)?;
        if free.len() != grid.addresses as usize {
            return None;
        }
        free.iter().zip(0..).try_for_each(|(unlent, index)| part.set_unlent(index, unlent))?;
        for gone in Vec::<u32>::restore(from)? {
            part.is_unknown(gone).then(|| part.known.set(gone, Known::Gone))?;
        }
        for lent in Vec::<Lent>::restore(from)? {
            part.is_unknown(lent.number()).then(|| part.arrive(lent))?.ok()?;
        }
        Some(part)
    }

    /// Return whether nothing has been said of a block that there is.
    fn is_unknown(&self, number: u32) -> bool {
        (number as usize) < self.grid.all_blocks() && self.known.get(number) == Known::Nothing
    }

    fn unlent(&self, index: u32) -> Unlent {
        let free = self.free[index as usize];
        let (mut back, mut next) = (Vec::new(), free.first);
        for _ in free.fresh_left..free.count {
            back.push(next);
            let Known::Free(Some(after)) = self.known.get(next) else { break };
            next = index * self.grid.blocks + u32::from(after);
        }
        Unlent { fresh: free.fresh_left, back }
    }

    /// Set what is free of an address, where all is as at the start; `None` where that cannot be.
    fn set_unlent(&mut self, index: u32, unlent: &Unlent) -> Option<()> {
        let Unlent { fresh, back } = unlent;
        let lent_before = self.grid.blocks_of(self.share).checked_sub(*fresh)?;
        for number in back {
            let is_of = self.is_unknown(*number) && self.grid.place(*number).0 == index;
            is_of.then(|| self.known.set(*number, Known::Free(None)))?;
        }
        for pair in back.windows(2) {
            self.known.set(pair[0], Known::Free(Some((pair[1] % self.grid.blocks) as u16)));
        }
        let free = &mut self.free[index as usize];
        let before = free.count;
        free.fresh += lent_before * self.share.count.max(1);
        (free.fresh_left, free.count) = (*fresh, fresh + back.len() as u32);
        (free.first, free.last) = (back.first().copied().unwrap_or(NONE), back.last().copied().unwrap_or(NONE));
        self.free_blocks = self.free_blocks - before as usize + free.count as usize;
        Some(())
    }

    /// Return all blocks that are lent, in an order in which each host comes to have its own chain of them: that is put together from
    /// its end. Wherever they stand, the order is the same.
    fn all_lent(&self) -> Vec<Lent> {
        let lent = |place: u32| {
            let block = self.blocks.look(place as usize)?;
            (self.known.get(block.number) == Known::Lent(place)).then_some(*block)
        };
        let (mut all, mut chains) = (Vec::new(), Vec::new());
        for place in 0..self.places {
            let Some(block) = lent(place) else { continue };
            let Some(tenant) = self.hosts.find(block.host) else { continue };
            if block.free == 0 {
                all.push(Lent::of(&block, tenant.index));
            } else if tenant.open == place {
                let blocks = std::iter::successors(Some(block), |block| lent(block.after));
                let mut chain: Vec<Lent> = blocks.map(|block| Lent::of(&block, tenant.index)).collect();
                chain.reverse();
                chains.push(chain);
            }
        }
        all.sort_by_key(Lent::number);
        chains.sort_by_key(|chain| chain.first().map(Lent::number));
        all.extend(chains.into_iter().flatten());
        all
    }
}

#[cfg(test)]
mod tests {
    use catena_packet::wire::Seed;
    use proptest::prelude::*;

    use super::super::{Lease, Leased, Release, Used};
    use super::*;
    use crate::key::Words;
    use crate::plain::Plain;
    use crate::shared::{Look, Op};
    use crate::stored::{restored, stored};

    proptest! {
        /// Whatever was lent, given back, taken away and brought: what comes back from the bytes does the same from then on.
        #[test]
        fn ports_that_come_back_lend_as_they_would_have(
            block in prop::sample::select(vec![1u16, 3, 8, 64]),
            per_host in 0u32..9,
            roams in any::<bool>(),
            parts in 1u32..3,
            steps in prop::collection::vec((0u8..8, 0u64..6, any::<prop::sample::Index>()), 1..200),
            again in 1usize..50,
        ) {
            let grid = Grid::new(3, (1024, 1151), block).unwrap();
            let limits = Limits { per_host, roams, takes_in: true };
            let shares = (0..parts).map(|index| Share { index, count: 2 });
            let mut ports = Ports::new(grid, limits, shares, Seed::from_number(1)).unwrap();
            let mut taken: Vec<(u32, u16)> = Vec::new();
            let mut away: Vec<Lent> = Vec::new();
            for (at, (what, host, which)) in steps.into_iter().enumerate() {
                if at % again == again - 1 {
                    let bytes = stored(&ports);
                    ports = restored(&bytes).expect("it comes back");
                    prop_assert_eq!(&stored(&ports), &bytes);
                }
                // What the instance would answer that goes on, and one that began here again.
                let mut other: Ports = restored(&stored(&ports)).unwrap();
                match what {
                    0..=3 => {
                        let lease = Lease(Words(host, 0), which.index(2) as u16);
                        let leased = lease.apply(&mut ports);
                        prop_assert_eq!(leased, lease.apply(&mut other));
                        if let Leased::Port(index, port, _) = leased {
                            taken.push((index, port));
                        }
                    }
                    4..=6 if !taken.is_empty() => {
                        let (index, port) = taken.swap_remove(which.index(taken.len()));
                        Release(index, port).apply(&mut ports);
                        Release(index, port).apply(&mut other);
                    }
                    7 if away.is_empty() => {
                        ports.leave(|key| *key == Words(host, 0), &mut |lent| away.push(lent));
                        other.leave(|key| *key == Words(host, 0), &mut |_| {});
                    }
                    _ => {
                        for lent in away.drain(..) {
                            prop_assert_eq!(ports.arrive(lent), other.arrive(lent));
                        }
                    }
                }
                prop_assert_eq!(Used.look(&ports), Used.look(&other));
                prop_assert_eq!(stored(&ports), stored(&other));
            }
        }

        #[test]
        fn bytes_of_no_ports_make_no_panic_and_take_no_memory(at in any::<prop::sample::Index>(), bit in 0u32..8, host in 0u64..4) {
            let grid = Grid::new(2, (1024, 1151), 16).unwrap();
            let limits = Limits { per_host: 0, roams: true, takes_in: false };
            let mut ports = Ports::new(grid, limits, [Share::WHOLE], Seed::from_number(1)).unwrap();
            (0..40).for_each(|n| _ = Lease(Words(n % 3, 0), 0).apply(&mut ports));
            let mut bytes = stored(&ports);
            let at = at.index(bytes.len());
            // The grid comes first, and in it how many addresses there are.
            let mut many = bytes.clone();
            many[..4].copy_from_slice(&(1_u32 << (12 + bit)).to_le_bytes());
            let mut left = &many[..];
            prop_assert!(Ports::restore(&mut left).is_none());
            prop_assert_eq!(left.len(), many.len() - Grid::BYTES, "it was gone on with");
            bytes[at] ^= 1 << bit;
            if let Some(mut ports) = restored::<Ports>(&bytes) {
                let leased = Lease(Words(host, 0), 0).apply(&mut ports);
                if let Leased::Port(index, port, _) = leased {
                    Release(index, port).apply(&mut ports);
                }
                Used.look(&ports);
            }
        }
    }
}

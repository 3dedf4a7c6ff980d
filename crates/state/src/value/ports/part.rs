//! The ports that one instance lends: of each address the blocks whose number, modulo the count of instances, is its own.

use catena_packet::BATCH;
use catena_packet::wire::Seed;

use super::block::{Block, NONE};
use super::grid::Spot;
use super::known::{Known, KnownBlocks, MOST_LENT};
use super::{Grid, Host, Leased, Limits};
use crate::engine::{NoMemory, Share};
use crate::plain::Plain;
use crate::value::{Loads, Places, Table};

/// Most ports of which [`Part::bring_leased`] brings near what they need.
const MOST_BROUGHT: usize = 64;

/// What a host has.
#[derive(Clone, Copy, Debug, Plain)]
pub(super) struct Tenant {
    /// Index of its external address; of IPv6, of the latest.
    pub(super) index: u32,
    /// How many ports it uses.
    pub(super) used: u32,
    /// The place of its first block with a free port.
    pub(super) open: u32,
}

/// The blocks of an external address that are free: those that were never lent, in their order, then those that were given
/// back first, so that ports rest as long as they can.
#[derive(Clone, Copy, Debug)]
pub(super) struct Free {
    /// The next that was never lent.
    pub(super) fresh: u32,
    /// How many of them were not.
    pub(super) fresh_left: u32,
    /// The first and the last that was given back.
    pub(super) first: u32,
    pub(super) last: u32,
    /// How many are free in all.
    pub(super) count: u32,
}

/// The ports of a pool that are lent by one instance, and their users.
pub(super) struct Part {
    pub(super) grid: Grid,
    pub(super) limits: Limits,
    pub(super) share: Share,
    pub(super) hosts: Table<Host, Tenant>,
    /// By number.
    pub(super) known: KnownBlocks,
    /// Those that are lent, each at a place: they lie close together, whatever their numbers are.
    pub(super) blocks: Places<Block>,
    /// The first place that is free again, chained through `after`; and how many were ever used.
    pub(super) free_place: u32,
    pub(super) places: u32,
    /// By the address's index.
    pub(super) free: Vec<Free>,
    /// Lent blocks of each address: new hosts come where there are fewest.
    pub(super) lent: Loads,
    pub(super) free_blocks: usize,
    pub(super) leases: u8,
}

impl Part {
    /// Make all ports free.
    ///
    /// # Errors
    /// [`NoMemory`] for so many blocks.
    pub(super) fn new(grid: Grid, limits: Limits, share: Share, seed: Seed) -> Result<Self, NoMemory> {
        let count = grid.blocks_of(share);
        let free = Free { fresh: share.index, fresh_left: count, first: NONE, last: NONE, count };
        let most = count as usize * grid.addresses as usize;
        // It may come to have all that there are.
        let all = grid.addresses as usize * grid.blocks as usize;
        let room = if limits.takes_in { all } else { most };
        Ok(Part {
            grid,
            limits,
            share,
            hosts: Table::new("hosts", seed, room.max(1))?,
            known: KnownBlocks::new(all)?,
            blocks: Places::new("blocks", room)?,
            free_place: NONE,
            places: 0,
            free: vec![free; grid.addresses as usize],
            lent: Loads::new(grid.addresses as usize),
            free_blocks: most,
            leases: 0,
        })
    }

    /// Return how many hosts have ports, and how many blocks are free.
    pub(super) fn used(&self) -> (u64, u64) {
        (self.hosts.len() as u64, self.free_blocks as u64)
    }

    /// Bring near what leads to a host.
    pub(super) fn bring_host(&self, host: Host) {
        self.hosts.bring(host);
    }

    /// Bring near what leasing a port to each of these hosts, a batch of them at most, will look at. What leads to the hosts has come.
    pub(super) fn bring_next(&self, hosts: impl Iterator<Item = Host>) {
        let mut places = [None; BATCH];
        for (place, host) in places.iter_mut().zip(hosts) {
            *place = self.hosts.guess(host);
        }
        for tenant in places.into_iter().flatten().filter_map(|place| self.hosts.look(place)) {
            self.blocks.bring(tenant.open as usize);
        }
    }

    /// Bring near what giving back these ports will look at: each part tells where the next one is.
    pub(super) fn bring_leased(&self, leased: impl Iterator<Item = (u32, u16)>) {
        let (mut numbers, mut count) = ([0; MOST_BROUGHT], 0);
        for (place, spot) in numbers.iter_mut().zip(leased.filter_map(|(index, port)| self.grid.spot(index, port))) {
            self.known.bring(spot.block);
            *place = spot.block;
            count += 1;
        }
        let numbers = &numbers[..count];
        let places = numbers.iter().filter_map(|number| match self.known.get(*number) {
            Known::Lent(place) => Some(place as usize),
            _ => None,
        });
        places.clone().for_each(|place| self.blocks.bring(place));
        let blocks = places.filter_map(|place| self.blocks.look(place));
        blocks.for_each(|block| self.hosts.bring_place(block.host_at));
    }

    #[inline(always)]
    pub(super) fn lease(&mut self, key: Host) -> Leased {
        match self.take(key) {
            Ok(leased) => leased,
            Err(lives_on) => self.lease_of_another(key, lives_on),
        }
    }

    /// Lease a port of another block than the host has.
    #[inline(never)]
    fn lease_of_another(&mut self, key: Host, lives_on: Option<u32>) -> Leased {
        if self.lend(key, lives_on) { self.take(key).unwrap_or(Leased::Nothing) } else { Leased::Nothing }
    }

    /// Take a port of a block that the host has. Where none has a free one, the error is the address that it lives on.
    #[inline(always)]
    fn take(&mut self, key: Host) -> Result<Leased, Option<u32>> {
        let Part { grid, limits, hosts, blocks, .. } = self;
        let host = hosts.get_mut(key).ok_or(None)?;
        if limits.per_host > 0 && host.used >= limits.per_host {
            return Ok(Leased::Limit);
        }
        let block = blocks.get_mut(host.open as usize).ok_or(Some(host.index))?;
        let port = block.take(grid.block_ports).ok_or(Some(host.index))?;
        host.used += 1;
        let (index, first) = grid.place(block.number);
        if block.free == 0 {
            let after = block.after;
            host.open = after;
            self.set_before(after, NONE);
        }
        self.leases = self.leases.wrapping_add(1);
        Ok(Leased::Port(index, first + port, self.leases))
    }

    /// Lend a block to a host none of whose blocks has a free port; returns whether there is one. A host that lives on an
    /// address stays there (RFC 4787 REQ-2), whatever is free on others. Apart, as the giving back of a block is: most ports are of blocks
    /// that their hosts have.
    #[inline(never)]
    fn lend(&mut self, key: Host, lives_on: Option<u32>) -> bool {
        let here = lives_on.filter(|index| self.free[*index as usize].count > 0 || !self.limits.roams);
        // The least lent has a free one if any has, as all have the same number.
        let Some(index) = here.or(self.lent.least().map(|index| index as u32)) else { return false };
        if self.free_place == NONE && self.places > MOST_LENT {
            return false;
        }
        let Some(number) = self.take_block(index) else { return false };
        let place = self.place(Block::new(key, number, self.grid.block_ports));
        if let Some(host) = self.hosts.get_mut(key) {
            (host.index, host.open) = (index, place);
        } else if self.hosts.insert(key, Tenant { index, used: 0, open: place }).is_err() {
            self.give_block(number, place);
            return false;
        }
        if let (Some(block), Some(at)) = (self.blocks.get_mut(place as usize), self.hosts.place(key)) {
            block.host_at = at;
        }
        true
    }

    pub(super) fn release(&mut self, Spot { block: number, port, .. }: Spot) {
        let ports = self.grid.block_ports;
        let Known::Lent(place) = self.known.get(number) else { return };
        let Some(block) = self.blocks.get_mut(place as usize) else { return };
        if !block.give(port) {
            return;
        }
        let Block { host: key, host_at, free, before, after, .. } = *block;
        let Some(host) = self.hosts.get_at(host_at, key) else { return };
        host.used -= 1;
        let (left, open) = (host.used, host.open);
        let was_full = free == 1;
        if free == ports {
            // Empty. One that was full until now, a block of one port, stands in no chain.
            if !was_full {
                if open == place {
                    host.open = after;
                }
                self.set_after(before, after);
                self.set_before(after, before);
            }
            self.give_block(number, place);
        } else if was_full {
            host.open = place;
            (block.before, block.after) = (NONE, open);
            self.set_before(open, place);
        }
        if left == 0 {
            self.hosts.remove(key);
        }
    }

    fn take_block(&mut self, index: u32) -> Option<u32> {
        let free = self.free.get_mut(index as usize).filter(|free| free.count > 0)?;
        let number = if free.fresh_left > 0 {
            let number = index * self.grid.blocks + free.fresh;
            free.fresh += self.share.count.max(1);
            free.fresh_left -= 1;
            number
        } else {
            let number = free.first;
            let Known::Free(next) = self.known.get(number) else { return None };
            free.first = next.map_or(NONE, |next| index * self.grid.blocks + u32::from(next));
            number
        };
        free.count -= 1;
        self.free_blocks -= 1;
        self.lent.add(index as usize, 1);
        Some(number)
    }

    #[inline(never)]
    fn give_block(&mut self, number: u32, place: u32) {
        let index = self.grid.place(number).0 as usize;
        let free = &mut self.free[index];
        let (last, is_first) = (std::mem::replace(&mut free.last, number), free.count == free.fresh_left);
        free.count += 1;
        if is_first {
            free.first = number;
        } else {
            self.known.set(last, Known::Free(Some((number % self.grid.blocks) as u16)));
        }
        self.known.set(number, Known::Free(None));
        let next = std::mem::replace(&mut self.free_place, place);
        self.set_after(place, next);
        self.free_blocks += 1;
        self.lent.add(index, -1);
    }

    /// Put a block at a free place; returns that. There are as many as blocks.
    pub(super) fn place(&mut self, block: Block) -> u32 {
        let place = match self.blocks.get_mut(self.free_place as usize) {
            Some(free) => std::mem::replace(&mut self.free_place, free.after),
            None => {
                self.places += 1;
                self.places - 1
            }
        };
        self.blocks.fill(place as usize, block);
        self.known.set(block.number, Known::Lent(place));
        place
    }

    pub(super) fn set_before(&mut self, place: u32, before: u32) {
        if let Some(block) = self.blocks.get_mut(place as usize) {
            block.before = before;
        }
    }

    pub(super) fn set_after(&mut self, place: u32, after: u32) {
        if let Some(block) = self.blocks.get_mut(place as usize) {
            block.after = after;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use super::*;
    use crate::key::Words;
    use proptest::prelude::*;

    fn ports(addresses: u32, block: u16, limits: Limits, share: Share) -> Part {
        let grid = Grid::new(addresses, (1024, 1055), block).unwrap();
        Part::new(grid, limits, share, Seed::from_number(1)).unwrap()
    }

    /// Give a port back, if it is one at all.
    fn release(ports: &mut Part, index: u32, port: u16) {
        if let Some(spot) = ports.grid.spot(index, port) {
            ports.release(spot);
        }
    }

    proptest! {
        /// Nobody gets a port that is taken, a host keeps to its limit, its address and few blocks, and is refused only where it
        /// must be; what is given back is free again.
        #[test]
        fn ports_are_lent_by_the_rules(
            block in prop::sample::select(vec![1u16, 3, 8, 32]),
            per_host in 0u32..6,
            roams in any::<bool>(),
            instance in 0u32..2,
            steps in prop::collection::vec((0u64..6, any::<prop::sample::Index>(), any::<bool>()), 1..300),
        ) {
            let share = Share { index: instance, count: 2 };
            let mut ports = ports(3, block, Limits { per_host, roams, takes_in: false }, share);
            let (_, all) = ports.used();
            let blocks = u32::from(32 / block);
            prop_assert_eq!(all as u32, 3 * (blocks - instance).div_ceil(2));
            let block_of = |(index, port): (u32, u16)| (index, (port - 1024) / block);
            let mut taken: HashMap<(u32, u16), u64> = HashMap::new();
            for (host, which, gives) in steps {
                if gives && !taken.is_empty() {
                    let (&port, _) = taken.iter().nth(which.index(taken.len())).unwrap();
                    taken.remove(&port);
                    release(&mut ports, port.0, port.1);
                    // Once is enough.
                    release(&mut ports, port.0, port.1);
                } else {
                    let own: Vec<_> = taken.iter().filter(|(_, of)| **of == host).map(|(port, _)| *port).collect();
                    let own_blocks: HashSet<_> = own.iter().map(|port| block_of(*port)).collect();
                    let has_room = own.len() < own_blocks.len() * usize::from(block);
                    match ports.lease(Words(host, 0)) {
                        Leased::Port(index, port, _) => {
                            prop_assert!(per_host == 0 || (own.len() as u32) < per_host);
                            let fresh = block_of((index, port));
                            prop_assert_eq!(has_room, own_blocks.contains(&fresh));
                            prop_assert_eq!(u32::from(fresh.1) % 2, instance, "a block of another instance");
                            prop_assert!(roams || own.iter().all(|(on, _)| *on == index));
                            prop_assert_eq!(taken.insert((index, port), host), None);
                        }
                        Leased::Limit => prop_assert!(per_host > 0 && own.len() as u32 >= per_host),
                        Leased::Nothing => {
                            prop_assert!(!has_room);
                            let lent: HashSet<_> = taken.keys().map(|port| block_of(*port)).collect();
                            let here = own.first().filter(|_| !roams).map(|(index, _)| *index);
                            let free = (0..3).filter(|index| here.is_none_or(|here| here == *index)).any(|index| {
                                (0..32 / block).any(|n| u32::from(n) % 2 == instance && !lent.contains(&(index, n)))
                            });
                            prop_assert!(!free, "there was a block");
                        }
                    }
                }
                let lent: HashSet<_> = taken.keys().map(|port| block_of(*port)).collect();
                let hosts = taken.values().collect::<HashSet<_>>().len();
                prop_assert_eq!(ports.used(), (hosts as u64, all - lent.len() as u64));
            }
        }
    }

    #[test]
    fn ports_rest_as_long_as_they_can() {
        let mut ports = ports(1, 8, Limits { per_host: 0, roams: false, takes_in: false }, Share::WHOLE);
        let lease = |ports: &mut Part, host| match ports.lease(Words(host, 0)) {
            Leased::Port(_, port, _) => port,
            refused => panic!("{refused:?}"),
        };
        assert_eq!([1, 2, 3].map(|host| lease(&mut ports, host)), [1024, 1032, 1040]);
        [1032, 1024].into_iter().for_each(|port| release(&mut ports, 0, port));
        assert_eq!([4, 5, 6].map(|host| lease(&mut ports, host)), [1048, 1032, 1024]);
    }
}

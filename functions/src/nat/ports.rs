//! Who has which ports: blocks of ports lent to inside addresses.
//!
//! Every *host*, an inside address of IPv4 or a /64 of IPv6, lives on one external address (RFC 4787 §4.1, "paired"
//! pooling) and gets its ports in blocks, so that one line of a log tells of many connections (RFC 6888 §4). A host's
//! blocks with a free port are chained; all work is constant, however many blocks a host has. A /64 may hold more
//! machines than one external address has ports for: when its address has no block left, it goes on with another.

use catena_state::{Engine, FlowMap, NoMemory, Pool, Ranking};

use super::family::{Family, Host as HostKey};
use super::space::Space;

/// Most ports in a block.
pub const MOST_PORTS: u16 = 1024;
const WORDS: usize = MOST_PORTS as usize / 64;
/// The end of a chain of blocks.
const NONE: u32 = u32::MAX;

/// What a host has.
#[derive(Clone, Copy, Debug)]
pub struct Host {
    /// Index of its external address; of IPv6, of the latest.
    index: u32,
    /// How many ports it uses.
    used: u32,
    /// Its first block with a free port.
    open: u32,
}

/// A lent block.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    host: HostKey,
    /// Its neighbours in the chain of the host's blocks with a free port.
    before: u32,
    after: u32,
    free: u16,
    /// Where the search for a free port goes on: a port rests while others are taken in turn.
    cursor: u16,
    used: [u64; WORDS],
}

impl Block {
    /// Take the next free port at or after the cursor.
    fn take(&mut self, ports: u16) -> Option<u16> {
        let mut port = self.cursor;
        for _ in 0..2 * (ports / 64) + 3 {
            let word = !self.used[usize::from(port / 64)] >> (port % 64);
            let next = if word == 0 { (port / 64 + 1) * 64 } else { port + word.trailing_zeros() as u16 };
            if next >= ports {
                port = 0;
            } else if word == 0 {
                port = next;
            } else {
                self.used[usize::from(next / 64)] |= 1 << (next % 64);
                self.free -= 1;
                self.cursor = if next + 1 == ports { 0 } else { next + 1 };
                return Some(next);
            }
        }
        None
    }

    /// Give a port back; returns whether it was taken.
    fn give(&mut self, port: u16) -> bool {
        let (word, bit) = (&mut self.used[usize::from(port / 64)], 1 << (port % 64));
        let was = *word & bit != 0;
        *word &= !bit;
        if was {
            self.free += 1;
        }
        was
    }
}

/// What came of asking for a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken<A> {
    /// A port of an address.
    Port(A, u16),
    /// The host has no external address yet: choose one, then [`Ports::lend`] it a block there.
    WantAddress,
    /// All its blocks are full: lend it another on the address with this index.
    WantBlock(u32),
    /// It has as many as it may.
    Limit,
    /// All blocks that it could have are lent.
    Nothing,
}

/// The ports of a pool and their users.
pub struct Ports<E: Engine, F: Family> {
    /// The addresses and ports there are.
    pub space: Space<F>,
    /// Free blocks, a pool for each external address.
    pub free: Vec<E::Pool>,
    /// How many there are in all of them: where nothing is left, that is known without a search.
    free_blocks: usize,
    /// How many blocks of each external address are lent.
    pub lent: E::Ranking,
    hosts: E::FlowMap<HostKey, Host>,
    blocks: E::FlowMap<u64, Block>,
    max_per_host: u32,
}

impl<E: Engine, F: Family> Ports<E, F> {
    /// Make all ports free; `max_per_host` ports a host, 0 for any number.
    ///
    /// # Errors
    /// [`NoMemory`] for so many blocks.
    pub fn new(engine: &mut E, space: Space<F>, max_per_host: u32) -> Result<Self, NoMemory> {
        let share = engine.share();
        // With several instances, each has the blocks whose number modulo their count is its index.
        let mine = |n: &u32| n % share.count.max(1) == share.index;
        let blocks: Vec<u32> = (0..space.blocks()).filter(mine).collect();
        let of = |index: u32| blocks.iter().map(|n| u64::from(index * space.blocks() + n)).collect();
        let free: Vec<E::Pool> = (0..space.addresses()).map(|index| engine.pool("ports", of(index))).collect();
        let most = (blocks.len() * space.addresses() as usize).max(1);
        Ok(Ports {
            free_blocks: free.iter().map(Pool::len).sum(),
            free,
            lent: engine.ranking("lent blocks", space.addresses() as usize),
            hosts: engine.flow_map("hosts", most)?,
            blocks: engine.flow_map("blocks", most)?,
            max_per_host,
            space,
        })
    }

    /// Return how many hosts have ports.
    pub fn hosts(&self) -> usize {
        self.hosts.len()
    }

    /// Return how many blocks are free.
    pub fn free_blocks(&self) -> usize {
        self.free_blocks
    }

    /// Take the block that was asked for out of the pool of the address with this index.
    pub fn taken(&mut self, tx: E::Tx, index: usize, ticket: <E::Pool as Pool>::Ticket) -> Option<u64> {
        let block = self.free[index].taken(tx, ticket)?;
        self.free_blocks -= 1;
        Some(block)
    }

    /// Take a port for a host.
    pub fn take(&mut self, tx: E::Tx, host: HostKey) -> Taken<F::Address> {
        let ticket = self.hosts.want(tx, host);
        let Some(host) = self.hosts.get(tx, &ticket) else {
            return if self.free_blocks > 0 { Taken::WantAddress } else { Taken::Nothing };
        };
        if self.max_per_host > 0 && host.used >= self.max_per_host {
            return Taken::Limit;
        }
        let (open, index) = (host.open, host.index);
        // One inside address stays on its external one (RFC 4787 REQ-2), whatever is free on others.
        let is_empty = self.free[index as usize].is_empty();
        let another = match () {
            () if !is_empty => Taken::WantBlock(index),
            () if F::IS_HOST_SUBNET && self.free_blocks > 0 => Taken::WantAddress,
            () => Taken::Nothing,
        };
        if open == NONE {
            return another;
        }
        let number = self.blocks.want(tx, u64::from(open));
        let Some(block) = self.blocks.get(tx, &number) else { return another };
        let Some(port) = block.take(self.space.block_ports()) else { return another };
        host.used += 1;
        if block.free == 0 {
            let after = block.after;
            host.open = after;
            self.set_before(tx, after, NONE);
        }
        let (index, first) = self.space.place(open);
        Taken::Port(self.space.address(index), first + port)
    }

    /// Lend a block, just taken out of [`Self::free`], to a host. Returns whether there was room to note it; if
    /// not, the block is free again.
    pub fn lend(&mut self, tx: E::Tx, key: HostKey, block: u64) -> bool {
        let index = self.space.place(block as u32).0;
        let ticket = self.hosts.want(tx, key);
        let open = self.hosts.get(tx, &ticket).map(|host| {
            host.index = index;
            std::mem::replace(&mut host.open, block as u32)
        });
        let free = self.space.block_ports();
        let after = open.unwrap_or(NONE);
        let fresh = Block { host: key, before: NONE, after, free, cursor: 0, used: [0; WORDS] };
        let number = self.blocks.want(tx, block);
        let noted =
            open.is_some() || self.hosts.insert(tx, &ticket, Host { index, used: 0, open: block as u32 }).is_ok();
        if noted && self.blocks.insert(tx, &number, fresh).is_ok() {
            self.set_before(tx, after, block as u32);
            return true;
        }
        match open {
            None => _ = self.hosts.remove(tx, &ticket),
            Some(open) => {
                if let Some(host) = self.hosts.get(tx, &ticket) {
                    host.open = open;
                }
            }
        }
        self.give_block(tx, block as u32);
        false
    }

    /// Give a port back; the last port of a block gives the block back, the last block the host.
    pub fn give(&mut self, tx: E::Tx, address: F::Address, port: u16) {
        let number = self.space.index(address).and_then(|index| self.space.block_of(index, port));
        let Some(number) = number else { return };
        let ticket = self.blocks.want(tx, u64::from(number));
        let Some(block) = self.blocks.get(tx, &ticket) else { return };
        if !block.give(port - self.space.place(number).1) {
            return;
        }
        let key = block.host;
        let (free, before, after) = (block.free, block.before, block.after);
        let host_ticket = self.hosts.want(tx, key);
        let Some(host) = self.hosts.get(tx, &host_ticket) else { return };
        host.used -= 1;
        let left = host.used;
        let was_full = free == 1;
        if free == self.space.block_ports() {
            // Empty. One that was full until now, a block of one port, stands in no chain.
            if !was_full {
                if host.open == number {
                    host.open = after;
                }
                self.set_after(tx, before, after);
                self.set_before(tx, after, before);
            }
            self.blocks.remove(tx, &ticket);
            self.give_block(tx, number);
        } else if was_full {
            let open = std::mem::replace(&mut host.open, number);
            block.before = NONE;
            block.after = open;
            self.set_before(tx, open, number);
        }
        if left == 0 {
            self.hosts.remove(tx, &host_ticket);
        }
    }

    fn give_block(&mut self, tx: E::Tx, block: u32) {
        let index = self.space.place(block).0 as usize;
        self.free[index].give(tx, u64::from(block));
        self.free_blocks += 1;
        self.lent.add(tx, index, -1);
    }

    fn set_before(&mut self, tx: E::Tx, block: u32, before: u32) {
        let ticket = self.blocks.want(tx, u64::from(block));
        if let Some(block) = self.blocks.get(tx, &ticket) {
            block.before = before;
        }
    }

    fn set_after(&mut self, tx: E::Tx, block: u32, after: u32) {
        let ticket = self.blocks.want(tx, u64::from(block));
        if let Some(block) = self.blocks.get(tx, &ticket) {
            block.after = after;
        }
    }
}

//! The external endpoints there are: addresses, the ports of each, cut into blocks.

use super::family::Family;

/// Addresses that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run<A> {
    /// The first.
    pub first: A,
    /// The last.
    pub last: A,
    /// How many addresses the runs before this one have.
    pub before: u32,
}

/// A pool of external addresses and ports.
#[derive(Clone, Debug)]
pub struct Space<F: Family> {
    /// Addresses in rising order.
    runs: Vec<Run<F::Address>>,
    /// How they and their ports are numbered.
    pub grid: Grid,
}

/// How external addresses, and the blocks of their ports, are numbered.
#[derive(Clone, Copy, Debug)]
pub struct Grid {
    /// How many addresses there are.
    pub addresses: u32,
    /// How many blocks each has.
    pub blocks: u32,
    /// How many ports a block has.
    pub block_ports: u16,
    first_port: u16,
}

impl Grid {
    /// Return how many ports there are.
    pub fn ports(&self) -> u64 {
        u64::from(self.addresses) * u64::from(self.blocks) * u64::from(self.block_ports)
    }

    /// Return the number of the block that a port of an address lies in.
    pub fn block_of(&self, index: u32, port: u16) -> Option<u32> {
        let n = u32::from(port.checked_sub(self.first_port)?) / u32::from(self.block_ports);
        (n < self.blocks).then_some(index * self.blocks + n)
    }

    /// Return the index of a block's address and its first port.
    pub fn place(&self, block: u32) -> (u32, u16) {
        let n = block % self.blocks;
        (block / self.blocks, self.first_port + (n * u32::from(self.block_ports)) as u16)
    }
}

impl<F: Family> Space<F> {
    /// Make a space of runs, first and last address each, which may overlap; `None` when there is no address or
    /// not a single block of ports.
    pub fn new(mut runs: Vec<(F::Address, F::Address)>, ports: (u16, u16), block: u16) -> Option<Self> {
        runs.sort();
        let mut merged: Vec<Run<F::Address>> = Vec::new();
        let mut addresses = 0;
        for (first, last) in runs {
            let first = match merged.last() {
                Some(run) if run.last >= last => continue,
                Some(run) if run.last >= first => F::after(run.last, 1),
                _ => first,
            };
            merged.push(Run { first, last, before: addresses });
            addresses += F::distance(first, last) + 1;
        }
        let blocks = (u32::from(ports.1) + 1).checked_sub(u32::from(ports.0))? / u32::from(block.max(1));
        let grid = Grid { addresses, blocks, block_ports: block.max(1), first_port: ports.0 };
        (addresses > 0 && blocks > 0).then_some(Space { runs: merged, grid })
    }

    /// Return the least and the greatest address: what lies outside is none of them.
    pub fn bounds(&self) -> (F::Address, F::Address) {
        (self.runs[0].first, self.runs[self.runs.len() - 1].last)
    }

    /// Return the index of an address, if it is one of them.
    pub fn index(&self, address: F::Address) -> Option<u32> {
        let after = self.runs.partition_point(|run| run.first <= address);
        let run = self.runs.get(after.checked_sub(1)?)?;
        (address <= run.last).then(|| run.before + F::distance(run.first, address))
    }

    /// Return the address with this index.
    pub fn address(&self, index: u32) -> F::Address {
        let after = self.runs.partition_point(|run| run.before <= index).max(1);
        let run = &self.runs[after - 1];
        F::after(run.first, index - run.before)
    }
}

//! The external endpoints there are: addresses, the ports of each, cut into blocks.

use catena_state::value::ports::Grid;

use super::family::Translate;

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
#[derive(Debug)]
pub struct Space<F: Translate> {
    /// Addresses in rising order.
    runs: Vec<Run<F::Address>>,
    /// How they and their ports are numbered.
    pub grid: Grid,
}

// Derived, it would ask for a family that can be copied.
impl<F: Translate> Clone for Space<F> {
    fn clone(&self) -> Self {
        Space { runs: self.runs.clone(), grid: self.grid }
    }
}

impl<F: Translate> Space<F> {
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
        Grid::new(addresses, ports, block).map(|grid| Space { runs: merged, grid })
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

    /// Return the number of the block of ports that an external endpoint lies in, if there is one.
    pub fn block(&self, external: F::Endpoint) -> Option<u32> {
        let (address, port, _) = F::parts(external);
        self.grid.block_of(self.index(address)?, port)
    }

    /// Return the address with this index.
    pub fn address(&self, index: u32) -> F::Address {
        let after = self.runs.partition_point(|run| run.before <= index).max(1);
        let run = &self.runs[after - 1];
        F::after(run.first, index - run.before)
    }
}

//! How ports are numbered.

use crate::engine::Share;
use crate::plain::Plain;

/// How external addresses, and the blocks of their ports, are numbered.
#[derive(Clone, Copy, Debug, Plain)]
pub struct Grid {
    /// How many addresses there are.
    pub addresses: u32,
    /// How many blocks each has.
    pub blocks: u32,
    /// How many ports a block has.
    pub block_ports: u16,
    first_port: u16,
}

/// Where a port of an address lies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spot {
    /// The number of its block.
    pub(super) block: u32,
    /// Which of the address's blocks that is.
    pub(super) nth: u32,
    /// Which of the block's ports it is.
    pub(super) port: u16,
}

impl Grid {
    /// Cut the ports of so many addresses, from a first to a last one, into blocks; `None` where there is not a single block.
    pub fn new(addresses: u32, ports: (u16, u16), block: u16) -> Option<Grid> {
        let block_ports = block.max(1);
        let blocks = (u32::from(ports.1) + 1).checked_sub(u32::from(ports.0))? / u32::from(block_ports);
        let grid = Grid { addresses, blocks, block_ports, first_port: ports.0 };
        (addresses > 0 && blocks > 0).then_some(grid)
    }

    /// Return whether it is one that can be made: what comes as bytes may be none.
    pub(super) fn is_one(&self) -> bool {
        let Grid { addresses, blocks, block_ports, first_port } = *self;
        let ports = u64::from(blocks) * u64::from(block_ports);
        let has_numbers = u64::from(addresses) * u64::from(blocks) < u64::from(u32::MAX);
        addresses > 0 && ports > 0 && u64::from(first_port) + ports <= 1 << 16 && has_numbers
    }

    /// Return how many ports there are.
    pub fn ports(&self) -> u64 {
        u64::from(self.addresses) * u64::from(self.blocks) * u64::from(self.block_ports)
    }

    /// Return how many blocks there are.
    pub fn all_blocks(&self) -> usize {
        self.addresses as usize * self.blocks as usize
    }

    /// Return how many blocks of each address an instance has: those whose number modulo the count of instances is its index.
    pub fn blocks_of(&self, share: Share) -> u32 {
        share.part_of(self.blocks.into()) as u32
    }

    /// Return how many ports an instance has.
    pub fn ports_of(&self, share: Share) -> u64 {
        u64::from(self.addresses) * u64::from(self.blocks_of(share)) * u64::from(self.block_ports)
    }

    /// Return the number of the block that a port of an address lies in.
    pub fn block_of(&self, index: u32, port: u16) -> Option<u32> {
        self.spot(index, port).map(|spot| spot.block)
    }

    /// Return where a port of an address lies. One division tells all of it, for what comes next as well.
    #[inline(always)]
    pub(super) fn spot(&self, index: u32, port: u16) -> Option<Spot> {
        let from_first = port.checked_sub(self.first_port)?;
        let nth = from_first / self.block_ports;
        // Who knows of more addresses than there are here asks for none of them.
        let is_there = u32::from(nth) < self.blocks && index < self.addresses;
        let (block, port) = (index.wrapping_mul(self.blocks) + u32::from(nth), from_first - nth * self.block_ports);
        is_there.then_some(Spot { block, nth: nth.into(), port })
    }

    /// Return the index of a block's address and its first port.
    pub fn place(&self, block: u32) -> (u32, u16) {
        let n = block % self.blocks;
        (block / self.blocks, self.first_port + (n * u32::from(self.block_ports)) as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_port_lies_is_where_its_block_begins_and_no_port_beside_the_blocks_lies_anywhere() {
        let grid = Grid::new(3, (1000, 1034), 8).unwrap();
        for index in 0..3 {
            let spots = (0..=u16::MAX).filter_map(|port| Some((port, grid.spot(index, port)?)));
            let found: Vec<u16> = spots
                .map(|(port, Spot { block, nth, port: within })| {
                    assert_eq!((grid.place(block), block % 4, within < 8), ((index, port - within), nth, true));
                    port
                })
                .collect();
            assert_eq!(found, (1000..1032).collect::<Vec<_>>(), "35 ports are 4 blocks and a rest");
        }
    }
}

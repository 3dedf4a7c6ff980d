//! A block of ports: which of them are taken, and whose it is.

use super::Host;

/// Most ports in a block.
pub const MOST_PORTS: u16 = 1024;
pub(super) const WORDS: usize = MOST_PORTS as usize / 64;
/// The end of a chain.
pub const NONE: u32 = u32::MAX;

/// A lent block. Where blocks are short, all that is used of one is in the first of its three cache lines.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Block {
    /// Who has it.
    pub host: Host,
    /// Where that stands.
    pub host_at: u32,
    /// Its number.
    pub number: u32,
    /// Its neighbours in the chain of the host's blocks with a free port.
    pub before: u32,
    /// The other neighbour.
    pub after: u32,
    /// How many of its ports are free.
    pub free: u16,
    /// Where the search for a free port goes on: a port rests while others are taken in turn.
    pub cursor: u16,
    /// A bit for each that is taken.
    pub used: [u64; WORDS],
    rest: [u64; 2],
}

// With the eight bytes before each.
const _: () = assert!(size_of::<Block>() == 3 * 64 - 8);

impl Block {
    /// Make one of `ports` free ports, at the end of a chain.
    pub fn new(host: Host, number: u32, ports: u16) -> Block {
        let (before, after, used) = (NONE, NONE, [0; WORDS]);
        Block { host, host_at: NONE, number, before, after, free: ports, cursor: 0, used, rest: [0; 2] }
    }

    /// Return the next free port at or after the cursor.
    pub fn next(&self, ports: u16) -> Option<u16> {
        let mut port = self.cursor;
        for _ in 0..2 * (ports / 64) + 3 {
            let word = !self.used[usize::from(port / 64)] >> (port % 64);
            let next = if word == 0 { (port / 64 + 1) * 64 } else { port + word.trailing_zeros() as u16 };
            if next >= ports {
                port = 0;
            } else if word == 0 {
                port = next;
            } else {
                return Some(next);
            }
        }
        None
    }

    /// Return how many ports are taken, counted anew.
    pub fn taken(&self) -> u16 {
        self.used.iter().map(|word| word.count_ones() as u16).sum()
    }

    /// Return whether a port is taken that comes after the last of so many.
    pub fn is_taken_from(&self, ports: u16) -> bool {
        let words = self.used.iter().skip(usize::from(ports / 64));
        let masks = std::iter::once(u64::MAX << (ports % 64)).chain(std::iter::repeat(u64::MAX));
        words.zip(masks).any(|(word, mask)| word & mask != 0)
    }

    /// Take the next free port at or after the cursor.
    pub fn take(&mut self, ports: u16) -> Option<u16> {
        let next = self.next(ports)?;
        self.used[usize::from(next / 64)] |= 1 << (next % 64);
        self.free -= 1;
        self.cursor = if next + 1 == ports { 0 } else { next + 1 };
        Some(next)
    }

    /// Give a port back; returns whether it was taken.
    pub fn give(&mut self, port: u16) -> bool {
        let (word, bit) = (&mut self.used[usize::from(port / 64)], 1 << (port % 64));
        let was = *word & bit != 0;
        *word &= !bit;
        if was {
            self.free += 1;
        }
        was
    }
}

//! What is known of blocks, by number. There may be millions, and they are looked at in no order: each has four bytes.

use catena_packet::buffer::prefetch;

use crate::engine::NoMemory;
use crate::memory::Reserved;

/// Most blocks that are lent at a time.
pub(super) const MOST_LENT: u32 = FREE - 2;

/// What is known of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// It was never lent.
    Nothing,
    /// It is lent, and stands at this place.
    Lent(u32),
    /// It was given back: before this one of the same address, by its number there, if before any.
    Free(Option<u16>),
    /// It went with its host to another instance.
    Gone,
}

/// Beside the number there, plus one, of the one that was given back next.
const FREE: u32 = 1 << 31;
const GONE: u32 = u32::MAX;

/// What is known of all blocks.
pub(super) struct KnownBlocks(Reserved<u32>);

impl KnownBlocks {
    /// Know nothing of so many blocks.
    ///
    /// # Errors
    /// [`NoMemory`] where so many find no room.
    pub(super) fn new(count: usize) -> Result<Self, NoMemory> {
        Reserved::new(count).map(KnownBlocks).map_err(|_| NoMemory { object: "blocks", entries: count })
    }

    /// Return what is known of a block.
    #[inline]
    pub(super) fn get(&self, number: u32) -> Known {
        match self.0.get(number as usize).copied() {
            None | Some(0) => Known::Nothing,
            Some(GONE) => Known::Gone,
            Some(word) if word & FREE != 0 => Known::Free((word & !FREE).checked_sub(1).map(|next| next as u16)),
            Some(word) => Known::Lent(word - 1),
        }
    }

    /// Know this of a block.
    #[inline]
    pub(super) fn set(&mut self, number: u32, known: Known) {
        let Some(word) = self.0.get_mut(number as usize) else { return };
        *word = match known {
            Known::Nothing => 0,
            Known::Lent(place) => place + 1,
            Known::Free(next) => FREE | next.map_or(0, |next| u32::from(next) + 1),
            Known::Gone => GONE,
        };
    }

    /// Bring near what is known of a block.
    #[inline]
    pub(super) fn bring(&self, number: u32) {
        if let Some(word) = self.0.get(number as usize) {
            prefetch(word);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_a_block_is_known() {
        let mut blocks = KnownBlocks::new(2).unwrap();
        let all = [
            Known::Nothing,
            Known::Lent(0),
            Known::Lent(MOST_LENT),
            Known::Free(None),
            Known::Free(Some(0)),
            Known::Free(Some(u16::MAX)),
            Known::Gone,
        ];
        for known in all {
            blocks.set(1, known);
            blocks.set(2, known);
            assert_eq!([0, 1, 2].map(|number| blocks.get(number)), [Known::Nothing, known, Known::Nothing]);
        }
    }
}

//! An entry of the flow map: cache lines of its own.

use std::cell::Cell;
use std::mem::MaybeUninit;

use catena_packet::Slot;
use catena_packet::buffer::prefetch;

use super::calendar::Date;
use crate::memory::Zeroed;

/// An entry, used or not.
#[repr(C, align(64))]
pub(super) struct Entry<K, V> {
    pub(super) used: bool,
    /// Whether a younger entry has its other key, where entries have two: it is not found by that any more.
    pub(super) is_hidden: Cell<bool>,
    /// That of the packet that made it.
    pub(super) slot: Slot,
    /// When it is looked at.
    pub(super) date: Date,
    pub(super) pair: MaybeUninit<(K, V)>,
}

// SAFETY: zero is an unused entry, on no day.
unsafe impl<K, V> Zeroed for Entry<K, V> {}

impl<K, V> Entry<K, V> {
    /// Ask for both of its cache lines: the times by which a sweep decides often stand in the second.
    #[inline(always)]
    pub(super) fn prefetch(&self) {
        let start = std::ptr::from_ref(self);
        prefetch(start);
        if size_of::<Self>() > 64 {
            prefetch(start.cast::<u8>().wrapping_add(64));
        }
    }

    #[inline(always)]
    pub(super) fn pair(&self) -> Option<&(K, V)> {
        // SAFETY: a used entry's pair was written.
        self.used.then(|| unsafe { self.pair.assume_init_ref() })
    }

    #[inline(always)]
    pub(super) fn pair_mut(&mut self) -> Option<&mut (K, V)> {
        // SAFETY: a used entry's pair was written.
        self.used.then(|| unsafe { self.pair.assume_init_mut() })
    }
}

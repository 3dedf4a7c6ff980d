//! Numbered places, empty at first.

use std::mem::MaybeUninit;

use catena_packet::buffer::prefetch;

use crate::engine::NoMemory;
use crate::memory::{Reserved, Zeroed};

/// A fixed number of places for values. Those that were never filled take no memory.
pub struct Slots<V: Copy> {
    slots: Reserved<Slot<V>>,
}

/// What is said of a place stands before its value, in the same cache line.
#[repr(C)]
struct Slot<V> {
    is_filled: bool,
    /// Initialised where it is filled.
    value: MaybeUninit<V>,
}

// SAFETY: zero is an empty place.
unsafe impl<V> Zeroed for Slot<V> {}

impl<V: Copy> Slots<V> {
    /// Make `count` empty places; `object` is whose they are.
    ///
    /// # Errors
    /// [`NoMemory`] where so many find no room.
    pub fn new(object: &'static str, count: usize) -> Result<Self, NoMemory> {
        let slots = Reserved::new(count).map_err(|_| NoMemory { object, entries: count })?;
        Ok(Slots { slots })
    }

    /// Return the value at a place, if it was filled.
    #[inline]
    pub fn get_mut(&mut self, at: usize) -> Option<&mut V> {
        let slot = self.slots.get_mut(at).filter(|slot| slot.is_filled)?;
        // SAFETY: it is filled.
        Some(unsafe { slot.value.assume_init_mut() })
    }

    /// Look at the value at a place, if it was filled.
    #[inline]
    pub fn look(&self, at: usize) -> Option<&V> {
        let slot = self.slots.get(at).filter(|slot| slot.is_filled)?;
        // SAFETY: it is filled.
        Some(unsafe { slot.value.assume_init_ref() })
    }

    /// Bring a place near: its first cache line.
    #[inline]
    pub fn bring(&self, at: usize) {
        if let Some(slot) = self.slots.get(at) {
            prefetch(slot);
        }
    }

    /// Fill a place. Nothing happens beyond the last.
    pub fn fill(&mut self, at: usize, value: V) {
        if let Some(slot) = self.slots.get_mut(at) {
            *slot = Slot { is_filled: true, value: MaybeUninit::new(value) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_empty_until_they_are_filled() {
        let mut slots = Slots::new("slots", 3).unwrap();
        assert_eq!(slots.get_mut(2), None);
        slots.fill(2, "two");
        slots.fill(3, "three");
        let filled: Vec<_> = (0..5).map(|at| slots.get_mut(at).copied()).collect();
        assert_eq!(filled, [None, None, Some("two"), None, None]);
        assert!(Slots::<u64>::new("slots", usize::MAX / 16).is_err());
    }
}

//! Numbered places, empty at first.

use std::mem::MaybeUninit;

use catena_packet::buffer::prefetch;

use crate::engine::NoMemory;
use crate::memory::{Reserved, Zeroed};

/// A fixed number of places for values. Those that were never filled take no memory.
pub struct Places<V: Copy> {
    places: Reserved<Place<V>>,
}

/// What is said of a place stands before its value, in the same cache line.
#[repr(C)]
struct Place<V> {
    is_filled: bool,
    /// Initialised where it is filled.
    value: MaybeUninit<V>,
}

// SAFETY: zero is an empty place.
unsafe impl<V> Zeroed for Place<V> {}

impl<V: Copy> Places<V> {
    /// Make `count` empty places; `object` is whose they are.
    ///
    /// # Errors
    /// [`NoMemory`] where so many find no room.
    pub fn new(object: &'static str, count: usize) -> Result<Self, NoMemory> {
        let places = Reserved::new(count).map_err(|_| NoMemory { object, entries: count })?;
        Ok(Places { places })
    }

    /// Return the value at a place, if it was filled.
    #[inline]
    pub fn get_mut(&mut self, at: usize) -> Option<&mut V> {
        let place = self.places.get_mut(at).filter(|place| place.is_filled)?;
        // SAFETY: it is filled.
        Some(unsafe { place.value.assume_init_mut() })
    }

    /// Look at the value at a place, if it was filled.
    #[inline]
    pub fn look(&self, at: usize) -> Option<&V> {
        let place = self.places.get(at).filter(|place| place.is_filled)?;
        // SAFETY: it is filled.
        Some(unsafe { place.value.assume_init_ref() })
    }

    /// Bring a place near: its first cache line.
    #[inline]
    pub fn bring(&self, at: usize) {
        if let Some(place) = self.places.get(at) {
            prefetch(place);
        }
    }

    /// Fill a place. Nothing happens beyond the last.
    pub fn fill(&mut self, at: usize, value: V) {
        if let Some(place) = self.places.get_mut(at) {
            *place = Place { is_filled: true, value: MaybeUninit::new(value) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_empty_until_they_are_filled() {
        let mut places = Places::new("places", 3).unwrap();
        assert_eq!(places.get_mut(2), None);
        places.fill(2, "two");
        places.fill(3, "three");
        let filled: Vec<_> = (0..5).map(|at| places.get_mut(at).copied()).collect();
        assert_eq!(filled, [None, None, Some("two"), None, None]);
        assert!(Places::<u64>::new("places", usize::MAX / 16).is_err());
    }
}

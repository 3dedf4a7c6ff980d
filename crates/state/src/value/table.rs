//! A bounded hash table.

use catena_packet::Slot;
use catena_packet::wire::Seed;

use crate::engine::{FOREVER, FlowMap, Full, NoMemory};
use crate::key::Key;
use crate::local::{LocalMap, LocalTicket};
use crate::plain::Plain;

/// A hash table with room for so many entries, reserved at once and used as they come.
pub struct Table<K: Key, V>(LocalMap<K, V>);

impl<K: Key, V: Plain> Table<K, V> {
    /// Make an empty table for up to `capacity` entries; `object` is whose it is.
    ///
    /// # Errors
    /// [`NoMemory`] where so many find no room.
    pub fn new(object: &'static str, seed: Seed, capacity: usize) -> Result<Self, NoMemory> {
        LocalMap::new(seed, capacity, capacity).map(Table).map_err(|_| NoMemory { object, entries: capacity })
    }

    /// Return the value of a key.
    #[inline]
    pub fn get_mut(&mut self, key: K) -> Option<&mut V> {
        let ticket = self.0.ticket(key);
        self.0.value(&ticket)
    }

    /// Return the value of a key, to look at.
    pub fn find(&self, key: K) -> Option<&V> {
        self.0.look(self.0.place(key)?)
    }

    /// Return what keys are hashed with.
    pub(crate) fn seed(&self) -> Seed {
        self.0.hashed_with()
    }

    /// Return the value of a key that stood at this place.
    #[inline]
    pub fn get_at(&mut self, place: u32, key: K) -> Option<&mut V> {
        self.0.value(&LocalTicket::guessed(key, place))
    }

    /// Return where the value of a key stands, as long as it is there.
    #[inline]
    pub fn place(&self, key: K) -> Option<u32> {
        self.0.place(key)
    }

    /// Bring near what leads to a key.
    #[inline]
    pub fn bring(&self, key: K) {
        self.0.bring_bucket(key);
    }

    /// Return where the value of a key may stand, and bring that near. What leads to it has come.
    #[inline]
    pub fn guess(&self, key: K) -> Option<u32> {
        let place = self.0.guess(self.0.bring_bucket(key))?;
        self.bring_place(place);
        Some(place)
    }

    /// Bring a place near.
    #[inline]
    pub fn bring_place(&self, place: u32) {
        self.0.bring_place(place);
    }

    /// Look at the value at a place, whatever its key is.
    #[inline]
    pub fn look(&self, place: u32) -> Option<&V> {
        self.0.look(place)
    }

    /// Put a value in where there is none.
    ///
    /// # Errors
    /// [`Full`] when the table holds as many entries as it may.
    pub fn insert(&mut self, key: K, value: V) -> Result<&mut V, Full> {
        let ticket = self.0.ticket(key);
        self.0.put_in((Slot::NONE, 0), &ticket, value, FOREVER)
    }

    /// Take a value out.
    pub fn remove(&mut self, key: K) -> Option<V> {
        let ticket = self.0.ticket(key);
        self.0.take(&ticket)
    }

    /// Return the number of entries.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Return whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

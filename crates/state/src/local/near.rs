//! What brings entries near before they are looked at, and places that stay known while an entry is there.

use catena_packet::wire::Seed;

use super::map::{LocalMap, LocalTicket};
use crate::key::Key;

impl<K: Key, V> LocalMap<K, V> {
    #[inline(always)]
    pub(crate) fn bring_bucket(&self, key: K) -> u64 {
        let hash = key.hash(&self.seed);
        self.buckets.bring(hash);
        hash
    }

    /// Return what keys are hashed with.
    pub(crate) fn hashed_with(&self) -> Seed {
        self.seed
    }

    /// Return the first entry in the bucket of a hash that may be meant.
    #[inline(always)]
    pub(crate) fn guess(&self, hash: u64) -> Option<u32> {
        self.buckets.guess(hash)
    }

    #[inline(always)]
    pub(crate) fn bring_place(&self, place: u32) {
        if let Some(entry) = self.entries.get(place as usize) {
            entry.prefetch();
        }
    }

    pub(crate) fn place(&self, key: K) -> Option<u32> {
        self.entry_of(&key, key.hash(&self.seed))
    }

    #[inline(always)]
    pub(crate) fn look(&self, place: u32) -> Option<&V> {
        self.entries.get(place as usize)?.pair().map(|pair| &pair.1)
    }
}

impl<K> LocalTicket<K> {
    /// Make a ticket for an entry that stood at this place.
    #[inline(always)]
    pub(crate) fn guessed(key: K, place: u32) -> Self {
        LocalTicket { key, place: place.into() }
    }
}

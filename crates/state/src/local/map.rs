//! The flow map: linear hashing over buckets of one cache line, entries of their own cache lines.
//!
//! A look-up touches two lines: the bucket (12 tags of 8 bits, compared at once, and 12 entry numbers) and
//! the entry. Both can be asked for ahead of time, so within a batch the misses of all packets overlap:
//! `want` prefetches the bucket, `warm` the entry. The table grows one bucket at a time (Litwin, "Linear
//! Hashing: A New Tool for File and Table Addressing", §2), in memory reserved at the start: no insertion
//! waits for a rehash, and few flows keep to few lines even where room for millions is reserved.

use std::io;

use catena_packet::Slot;
use catena_packet::wire::Seed;

use super::calendar::Calendar;
use super::chains::Buckets;
use super::entry::Entry;
use super::leaving::Leaving;
use super::line::Line;
use crate::board::Room;
use crate::engine::{FOREVER, Full};
use crate::key::Key;
use crate::looks::Looks;
use crate::memory::Reserved;

/// An unused entry is asked for when it is the one after so many others.
const SOON: usize = 8;
/// No entry.
pub(super) const NONE: u32 = u32::MAX;

/// A flow map in the worker's own memory.
pub struct LocalMap<K: Key, V> {
    pub(super) seed: Seed,
    pub(super) buckets: Buckets,
    pub(super) entries: Reserved<Entry<K, V>>,
    /// The entries that were given back, from `free_first` on, the first one first to be used again: so entries lie in the order in
    /// which they come and go. And how many were ever used.
    pub(super) free: Reserved<u32>,
    pub(super) free_first: usize,
    pub(super) free_count: usize,
    pub(super) touched: usize,
    pub(super) len: usize,
    /// How many there may be before no further one is made; others' may still come in.
    pub(super) limit: usize,
    /// The limit at the start, and the room that others' entries have left behind: of all instances together.
    pub(super) own: usize,
    pub(super) spare: Option<Room>,
    pub(super) swept: usize,
    /// The entries that may go when room is wanted.
    pub(super) marked: Line,
    pub(super) leaving: Leaving,
    pub(super) calendar: Calendar,
    /// The entry that was written last: often it is marked next.
    pub(super) newest: u32,
    pub(super) looks: Looks,
}

/// An entry that was put in.
pub(super) struct Put<'a, V> {
    pub(super) entry: u32,
    /// The value whose place it has taken.
    pub(super) before: Option<V>,
    value: &'a mut V,
}

/// The promise of an entry.
#[derive(Clone, Copy, Debug)]
pub struct LocalTicket<K> {
    pub(super) key: K,
    /// The key's hash; once warmed, where the entry stood then; [`NONE`] where nothing was brought near. One word for all, as
    /// plans of a whole batch lie side by side: nobody confuses them, since whatever entry this is, its key is compared.
    pub(super) place: u64,
}

impl<K: Key, V> LocalMap<K, V> {
    /// Make an empty map for up to `limit` entries, with room for so many in all: others' that [arrive](crate::FlowMap::arrive) may be more.
    ///
    /// # Errors
    /// The system's, when it has not the address space, which is asked for once, at the start.
    pub(crate) fn new(seed: Seed, limit: usize, room: usize) -> io::Result<Self> {
        let limit = limit.clamp(1, NONE as usize - 1);
        let capacity = room.clamp(limit, NONE as usize - 1);
        // Those that leave are not used again before they are in no bucket, so never more than `capacity` are linked.
        Ok(LocalMap {
            seed,
            buckets: Buckets::new(capacity)?,
            entries: Reserved::new(capacity)?,
            free: Reserved::new(capacity)?,
            free_count: 0,
            free_first: 0,
            touched: 0,
            len: 0,
            limit,
            own: limit,
            spare: None,
            swept: 0,
            marked: Line::new(capacity)?,
            leaving: Leaving::NOBODY,
            newest: 0,
            looks: Looks::new(limit),
            calendar: Calendar::new(capacity)?,
        })
    }

    /// Return the hash of a ticket's key. Hashes that could be the number of an entry are worked out again.
    #[inline(always)]
    pub(crate) fn hash(&self, ticket: &LocalTicket<K>) -> u64 {
        if ticket.place > u64::from(NONE) { ticket.place } else { ticket.key.hash(&self.seed) }
    }

    /// Return where the entry of a key stands: bucket, way, entry.
    #[inline(always)]
    pub(super) fn find(&self, key: &K, hash: u64) -> Option<(usize, usize, u32)> {
        self.buckets.search(hash, |entry| self.entries[entry as usize].pair().is_some_and(|pair| pair.0 == *key))
    }

    /// Look an entry up that does not stand where it was guessed to; apart, so that the usual case stays short.
    #[cold]
    #[inline(never)]
    fn get_unguessed(&mut self, ticket: &LocalTicket<K>) -> Option<&mut V> {
        let entry = self.entry_of(&ticket.key, self.hash(ticket))?;
        self.entries[entry as usize].pair_mut().map(|pair| &mut pair.1)
    }

    /// Return the entry of a key.
    #[inline(always)]
    pub(super) fn entry_of(&self, key: &K, hash: u64) -> Option<u32> {
        self.find(key, hash).map(|found| found.2)
    }

    /// Return the entry of a ticket, looking at where it was guessed to be and at the one that was written last at first.
    pub(super) fn likely(&self, ticket: &LocalTicket<K>) -> Option<u32> {
        let is_it = |entry: &u32| self.entries[*entry as usize].pair().is_some_and(|pair| pair.0 == ticket.key);
        let guess = (ticket.place < self.entries.len() as u64).then_some(ticket.place as u32);
        let likely = [guess, Some(self.newest)].into_iter().flatten().find(is_it);
        likely.or_else(|| self.entry_of(&ticket.key, self.hash(ticket)))
    }

    /// Add a bucket where there are too many entries for those that there are.
    #[inline(always)]
    pub(super) fn grow(&mut self) {
        if self.buckets.are_few_for(self.len) {
            self.split();
        }
    }

    #[inline(never)]
    fn split(&mut self) {
        // Who is leaving is not moved.
        while self.unlink_one() {}
        let LocalMap { buckets, entries, seed, .. } = self;
        buckets.split(|entry| entries[entry as usize].pair().map(|(key, _)| key.hash(seed)));
    }

    /// Unlink the entry that has been leaving longest.
    pub(super) fn unlink_one(&mut self) -> bool {
        let Some((hash, entry)) = self.leaving.take() else { return false };
        if let Some((bucket, way, _)) = self.buckets.search(hash, |one| one == entry) {
            self.buckets.unlink(hash, bucket, way);
        }
        self.give_back(entry);
        true
    }

    #[inline(always)]
    pub(super) fn take_entry(&mut self) -> Result<u32, Full> {
        if self.free_count == 0 && self.touched == self.entries.len() {
            self.unlink_one();
        }
        if self.free_count > 0 {
            self.free_count -= 1;
            let entry = self.free[self.free_first];
            self.free_first = if self.free_first + 1 < self.free.len() { self.free_first + 1 } else { 0 };
            // Who comes a little later finds it near.
            if let Some(soon) = self.free.get(self.free_first + SOON) {
                self.entries[*soon as usize].prefetch();
                self.calendar.bring(*soon);
            }
            return Ok(entry);
        }
        if self.touched == self.entries.len() {
            return Err(Full);
        }
        self.touched += 1;
        Ok((self.touched - 1) as u32)
    }

    /// Give back an entry that is neither used nor linked.
    #[inline(always)]
    fn give_back(&mut self, entry: u32) {
        let at = self.free_first + self.free_count;
        let at = if at < self.free.len() { at } else { at - self.free.len() };
        self.free[at] = entry;
        self.free_count += 1;
    }

    /// Take out what [`Self::find`] has found for a key of this hash.
    pub(super) fn take_out(&mut self, hash: u64, (bucket, way, entry): (usize, usize, u32)) -> Option<V> {
        self.buckets.unlink(hash, bucket, way);
        self.give_entry(entry)
    }

    pub(super) fn give_entry(&mut self, entry: u32) -> Option<V> {
        let value = self.end_entry(entry)?;
        self.give_back(entry);
        Some(value)
    }

    /// Write an entry that was taken.
    #[inline(always)]
    pub(super) fn write(&mut self, entry: u32, slot: Slot, key: K, value: V) -> &mut V {
        self.len += 1;
        self.newest = entry;
        let place = &mut self.entries[entry as usize];
        (place.used, place.slot) = (true, slot);
        &mut place.pair.write((key, value)).1
    }

    /// Return the promise of an entry, whose bucket is asked for.
    #[inline(always)]
    pub(crate) fn ticket(&self, key: K) -> LocalTicket<K> {
        LocalTicket { key, place: self.bring_bucket(key) }
    }

    /// Return the entry that was promised.
    #[inline(always)]
    pub(crate) fn value(&mut self, ticket: &LocalTicket<K>) -> Option<&mut V> {
        let guess = ticket.place as usize;
        if guess < self.entries.len() {
            // SAFETY: there are more entries.
            let entry = unsafe { self.entries.get_unchecked(guess) };
            if entry.pair().is_some_and(|pair| pair.0 == ticket.key) {
                // SAFETY: as before.
                return unsafe { self.entries.get_unchecked_mut(guess) }.pair_mut().map(|pair| &mut pair.1);
            }
        }
        self.get_unguessed(ticket)
    }

    /// Put the entry that was promised in, as one of this slot, at this time.
    #[inline(always)]
    pub(crate) fn put_in(
        &mut self,
        (slot, now): (Slot, u64),
        ticket: &LocalTicket<K>,
        value: V,
        until: u64,
    ) -> Result<&mut V, Full> {
        if self.len >= self.limit && self.is_one_too_many(&ticket.key) {
            return Err(Full);
        }
        self.let_in((slot, now), ticket, value, until)
    }

    /// Return whether there are as many entries as there may be, and none of this key.
    #[cold]
    #[inline(never)]
    fn is_one_too_many(&mut self, key: &K) -> bool {
        self.place(*key).is_none() && !self.take_room()
    }

    /// Return how many entries there may be.
    #[inline(always)]
    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    /// Put the entry that was promised in while there is room, whatever the limit.
    #[inline(always)]
    pub(super) fn let_in(
        &mut self,
        (slot, now): (Slot, u64),
        ticket: &LocalTicket<K>,
        value: V,
        until: u64,
    ) -> Result<&mut V, Full> {
        self.put((slot, now), ticket, value, until).map(|put| put.value)
    }

    /// Note how long a new entry lasts at least. It is not looked at: its line may still be on its way.
    #[inline(always)]
    fn begin(&mut self, entry: u32, now: u64, until: u64) {
        if until != FOREVER {
            self.entries[entry as usize].date = self.calendar.join(entry, now, until);
        }
    }

    /// Note how long an entry lasts at least.
    #[inline(always)]
    pub(super) fn lasts(&mut self, entry: u32, now: u64, until: u64) {
        if until == FOREVER {
            return;
        }
        let date = self.entries[entry as usize].date;
        if self.calendar.is_sooner(until, date) {
            self.calendar.leave(entry, date);
            self.entries[entry as usize].date = self.calendar.join(entry, now, until);
        }
    }

    /// Take the entry that was promised out.
    pub(crate) fn take(&mut self, ticket: &LocalTicket<K>) -> Option<V> {
        self.take_found(ticket).map(|found| found.1)
    }

    /// The same, and return which entry it was.
    pub(super) fn take_found(&mut self, ticket: &LocalTicket<K>) -> Option<(u32, V)> {
        let hash = self.hash(ticket);
        let found = self.find(&ticket.key, hash)?;
        self.take_out(hash, found).map(|value| (found.2, value))
    }

    /// As [`Self::put_in`]; tells all of the entry.
    #[inline(always)]
    pub(super) fn put_one(
        &mut self,
        of: (Slot, u64),
        ticket: &LocalTicket<K>,
        value: V,
        until: u64,
    ) -> Result<Put<'_, V>, Full> {
        if self.len >= self.limit && self.is_one_too_many(&ticket.key) {
            return Err(Full);
        }
        self.put(of, ticket, value, until)
    }

    /// Put an entry in.
    #[inline(always)]
    fn put(
        &mut self,
        (slot, now): (Slot, u64),
        ticket: &LocalTicket<K>,
        value: V,
        until: u64,
    ) -> Result<Put<'_, V>, Full> {
        let hash = self.hash(ticket);
        if let Some(entry) = self.entry_of(&ticket.key, hash) {
            self.lasts(entry, now, until);
            let pair = self.entries[entry as usize].pair_mut().ok_or(Full)?;
            let before = Some(std::mem::replace(&mut pair.1, value));
            return Ok(Put { entry, before, value: &mut pair.1 });
        }
        self.grow();
        let entry = self.take_entry()?;
        if self.buckets.link(hash, entry).is_err() {
            self.give_back(entry);
            return Err(Full);
        }
        self.begin(entry, now, until);
        Ok(Put { entry, before: None, value: self.write(entry, slot, ticket.key, value) })
    }

    /// End an entry, which may still be linked.
    #[inline(always)]
    pub(super) fn end_entry(&mut self, entry: u32) -> Option<V> {
        let slot = &mut self.entries[entry as usize];
        if !std::mem::replace(&mut slot.used, false) {
            return None;
        }
        self.len -= 1;
        self.marked.leave(entry);
        let date = std::mem::take(&mut slot.date);
        self.calendar.leave(entry, date);
        // SAFETY: the entry was used, so its pair was written; now nobody will read it again.
        let value = unsafe { slot.pair.assume_init_read() }.1;
        if self.limit > self.own {
            self.give_room();
        }
        Some(value)
    }
}

#[cfg(test)]
#[path = "map_tests.rs"]
mod tests;

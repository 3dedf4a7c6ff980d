//! What a function may do with the map: [`FlowMap`].

use catena_packet::SlotSet;

use super::map::{LocalMap, LocalTicket, NONE};
use crate::engine::{Fate, FlowMap, Full, Intent};
use crate::key::Key;
use crate::mover::Moved;
use crate::plain::Plain;
use crate::tx::Tx;

/// A sweep asks for an entry when it is so many places before it.
const AHEAD: usize = 24;

impl<K: Key, V: Plain> LocalMap<K, V> {
    /// Take out the entry of a key, if there is one and `goes` says so of it.
    pub(crate) fn forget(&mut self, key: K, goes: impl FnOnce(&V) -> bool) {
        let hash = key.hash(&self.seed);
        let Some(found) = self.find(&key, hash) else { return };
        if self.entries[found.2 as usize].pair().is_some_and(|pair| goes(&pair.1)) {
            self.take_out(hash, found);
        }
    }
}

/// The steps of a sweep.
impl<K: Key, V: Plain> LocalMap<K, V> {
    /// Return how many places a sweep of so many looks at.
    pub(crate) fn places(&mut self, count: usize) -> usize {
        count.min(self.touched)
    }

    /// Go on to the next place; there is one.
    #[inline(always)]
    fn go_on(&mut self) {
        self.swept = if self.swept + 1 < self.touched { self.swept + 1 } else { 0 };
        self.entries[(self.swept + AHEAD).min(self.touched - 1)].prefetch();
    }

    /// Go on to the next place, and return what stands there.
    pub(crate) fn next_place(&mut self) -> Option<(K, V)> {
        self.go_on();
        self.entries[self.swept].pair().copied()
    }

    /// Look at the next places, and take out those of which `goes` says so, which hears the number of each, too.
    #[inline(always)]
    pub(super) fn sweep_by(&mut self, count: usize, mut goes: impl FnMut(u32, &K, &V) -> bool) -> usize {
        let count = self.places(count);
        for _ in 0..count {
            self.go_on();
            let number = self.swept as u32;
            let Some((key, value)) = self.entries[self.swept].pair() else { continue };
            if goes(number, key, value) {
                self.let_go(key.hash(&self.seed), number);
            }
        }
        count
    }

    /// Take out the entry at this place.
    pub(crate) fn let_swept_go(&mut self) {
        if let Some((key, _)) = self.entries[self.swept].pair() {
            self.let_go(key.hash(&self.seed), self.swept as u32);
        }
    }
}

impl<K: Key, V: Plain> FlowMap<K, V> for LocalMap<K, V> {
    type Ticket = LocalTicket<K>;
    type Entry<'a>
        = &'a mut V
    where
        Self: 'a;

    #[inline(always)]
    fn want(&mut self, _tx: &mut Tx, key: K, _intent: Intent) -> LocalTicket<K> {
        self.ticket(key)
    }

    #[inline(always)]
    fn warm(&mut self, ticket: &mut LocalTicket<K>) {
        if let Some(entry) = self.guess(ticket.place) {
            self.entries[entry as usize].prefetch();
            ticket.place = entry.into();
        }
    }

    /// The ticket serves again, and is not hashed again.
    #[inline(always)]
    fn want_again(&mut self, _tx: &mut Tx, ticket: &LocalTicket<K>, _intent: Intent) -> LocalTicket<K> {
        *ticket
    }

    #[inline(always)]
    fn seems_new(ticket: &LocalTicket<K>) -> bool {
        ticket.place > u64::from(NONE)
    }

    #[inline(always)]
    fn key(ticket: &LocalTicket<K>) -> K {
        ticket.key
    }

    #[inline(always)]
    fn read(&mut self, _tx: &mut Tx, ticket: &LocalTicket<K>) -> Option<&V> {
        self.value(ticket).map(|value| &*value)
    }

    #[inline(always)]
    fn get(&mut self, _tx: &mut Tx, ticket: &LocalTicket<K>) -> Option<&mut V> {
        self.value(ticket)
    }

    #[inline(always)]
    fn insert(&mut self, tx: &mut Tx, ticket: &LocalTicket<K>, value: V, until: u64) -> Result<&mut V, Full> {
        self.put_in((tx.slot, tx.now), ticket, value, until)
    }

    fn sooner(&mut self, tx: &mut Tx, ticket: &LocalTicket<K>, until: u64) {
        if let Some(entry) = self.likely(ticket) {
            self.lasts(entry, tx.now, until);
        }
    }

    fn remove(&mut self, _tx: &mut Tx, ticket: &LocalTicket<K>) -> Option<V> {
        self.take(ticket)
    }

    fn peek(&mut self, _tx: &mut Tx, key: K) -> Option<&V> {
        let entry = self.place(key)?;
        self.entries[entry as usize].pair().map(|pair| &pair.1)
    }

    fn expire(
        &mut self,
        tx: &mut Tx,
        now: u64,
        most: usize,
        mut look: impl FnMut(&mut Tx, &K, &V) -> Fate<V>,
    ) -> usize {
        self.expire_by(now, most, |_, key, value| look(tx, key, value))
    }

    fn expire_one(&mut self, tx: &mut Tx, most: usize, mut look: impl FnMut(&mut Tx, &K, &V) -> Fate<V>) -> bool {
        self.expire_one_by(tx.now, most, |_, key, value| look(tx, key, value))
    }

    fn sweep(&mut self, tx: &mut Tx, count: usize, mut goes: impl FnMut(&mut Tx, &K, &V) -> bool) -> usize {
        self.sweep_by(count, |_, key, value| goes(tx, key, value))
    }

    fn owed(&mut self, _tx: &mut Tx, now: u64) -> usize {
        self.looks.due(now)
    }

    fn mark(&mut self, _tx: &mut Tx, ticket: &LocalTicket<K>, marked: bool) {
        match self.likely(ticket) {
            Some(entry) if marked => self.marked.join(entry),
            Some(entry) => self.marked.leave(entry),
            None => {}
        }
    }

    fn marked(&mut self, _tx: &mut Tx) -> usize {
        self.marked.len()
    }

    fn take_marked(&mut self, _tx: &mut Tx) -> Option<(K, V)> {
        let first = self.marked.first()?;
        let key = self.entries[first as usize].pair()?.0;
        let value = self.take(&LocalTicket { key, place: 0 })?;
        Some((key, value))
    }

    fn leave(&mut self, slots: &SlotSet, mut each: impl FnMut(Moved<K, V>)) {
        self.leave_by(slots, |_, moved| each(moved));
    }

    fn arrive(&mut self, tx: &mut Tx, moved: Moved<K, V>) -> Result<(), Full> {
        self.arrive_by(tx.now, &moved)?;
        if moved.is_marked {
            let ticket = self.ticket(moved.key);
            self.mark(tx, &ticket, true);
        }
        Ok(())
    }

    #[inline(always)]
    fn is_full(&mut self, _tx: &mut Tx) -> bool {
        self.len >= self.limit && !self.take_room()
    }

    fn len(&self) -> usize {
        self.len
    }
}

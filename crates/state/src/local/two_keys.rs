//! The flow map whose entries have two keys: a [`LocalMap`], and beside it the other keys of its entries.

use std::io;
use std::marker::PhantomData;

use catena_packet::SlotSet;
use catena_packet::wire::Seed;

use super::map::{LocalMap, LocalTicket, NONE, Put};
use super::others::{Named, Others};
use crate::engine::{Fate, FlowMap, Full, Intent};
use crate::key::Key;
use crate::mover::Moved;
use crate::plain::Plain;
use crate::two_keys::{Other, TwoKeyMap};
use crate::tx::Tx;

/// A flow map in the worker's own memory whose entries have two keys.
pub struct LocalTwoKeyMap<K: Key, V, X> {
    pub(super) map: LocalMap<K, V>,
    others: Others,
    other: PhantomData<fn() -> X>,
}

/// The entries of a map, by their other keys.
struct ByOther<'a, K: Key, V, X>(&'a LocalMap<K, V>, PhantomData<fn() -> X>);

impl<K: Key, V, X: Other<K, V>> Named for ByOther<'_, K, V, X> {
    type Key = X::Key;

    #[inline(always)]
    fn key(&self, number: u32) -> Option<X::Key> {
        let entry = &self.0.entries[number as usize];
        entry.pair().filter(|_| !entry.is_hidden.get()).map(|(key, value)| X::of(key, value))
    }

    #[inline(always)]
    fn hide(&self, number: u32) {
        self.0.entries[number as usize].is_hidden.set(true);
    }
}

impl<K: Key, V: Plain, X: Other<K, V>> LocalTwoKeyMap<K, V, X> {
    /// Make an empty map, as [`LocalMap::new`] does.
    ///
    /// # Errors
    /// The system's, when it has not the address space.
    pub(crate) fn new(map: LocalMap<K, V>, seed: Seed) -> io::Result<Self> {
        let others = Others::new(seed, map.entries.len())?;
        Ok(LocalTwoKeyMap { map, others, other: PhantomData })
    }

    /// Return the hash of a ticket's key.
    #[inline(always)]
    pub(crate) fn hash(&self, ticket: &LocalTicket<K>) -> u64 {
        self.map.hash(ticket)
    }

    /// Return the hash of another key.
    #[inline(always)]
    pub(crate) fn hash_other(&self, key: &X::Key) -> u64 {
        self.others.hash(key)
    }

    /// An entry with this number is there now.
    #[inline(always)]
    fn come(&mut self, key: &K, value: &V, number: u32) {
        self.map.entries[number as usize].is_hidden.set(false);
        self.others.come(&X::of(key, value), number, &ByOther::<K, V, X>(&self.map, PhantomData));
    }

    /// Link those that are coming: before one goes, whoever it is.
    #[inline(always)]
    fn settle(&mut self) {
        self.others.settle(&ByOther::<K, V, X>(&self.map, PhantomData));
    }

    /// An entry has another value than before, and perhaps another key.
    #[cold]
    #[inline(never)]
    fn changed(&mut self, key: &K, before: V, number: u32) {
        let Some(pair) = self.map.entries[number as usize].pair_mut() else { return };
        let value = std::mem::replace(&mut pair.1, before);
        // It may be coming itself, by the key that it had.
        self.settle();
        self.others.go(&X::of(key, &before), number);
        self.others.unlink_all();
        if let Some(pair) = self.map.entries[number as usize].pair_mut() {
            pair.1 = value;
        }
        self.come(key, &value, number);
    }

    #[inline(always)]
    fn put(&mut self, tx: &mut Tx, ticket: &LocalTicket<K>, value: V, until: u64) -> Result<u32, Full> {
        let Put { entry: number, before, .. } = self.map.put_one((tx.slot, tx.now), ticket, value, until)?;
        match before {
            None => self.come(&ticket.key, &value, number),
            Some(before) => self.changed(&ticket.key, before, number),
        }
        Ok(number)
    }
}

impl<K: Key, V: Plain, X: Other<K, V>> FlowMap<K, V> for LocalTwoKeyMap<K, V, X> {
    type Ticket = LocalTicket<K>;
    type Entry<'a>
        = &'a mut V
    where
        Self: 'a;

    #[inline(always)]
    fn want(&mut self, tx: &mut Tx, key: K, intent: Intent) -> LocalTicket<K> {
        self.map.want(tx, key, intent)
    }

    #[inline(always)]
    fn warm(&mut self, ticket: &mut LocalTicket<K>) {
        self.map.warm(ticket);
    }

    #[inline(always)]
    fn want_again(&mut self, tx: &mut Tx, ticket: &LocalTicket<K>, intent: Intent) -> LocalTicket<K> {
        self.map.want_again(tx, ticket, intent)
    }

    #[inline(always)]
    fn seems_new(ticket: &LocalTicket<K>) -> bool {
        LocalMap::<K, V>::seems_new(ticket)
    }

    #[inline(always)]
    fn key(ticket: &LocalTicket<K>) -> K {
        LocalMap::<K, V>::key(ticket)
    }

    #[inline(always)]
    fn read(&mut self, tx: &mut Tx, ticket: &LocalTicket<K>) -> Option<&V> {
        self.map.read(tx, ticket)
    }

    #[inline(always)]
    fn get(&mut self, tx: &mut Tx, ticket: &LocalTicket<K>) -> Option<&mut V> {
        self.map.get(tx, ticket)
    }

    fn insert(&mut self, tx: &mut Tx, ticket: &LocalTicket<K>, value: V, until: u64) -> Result<&mut V, Full> {
        let number = self.put(tx, ticket, value, until)?;
        self.map.entries[number as usize].pair_mut().map(|pair| &mut pair.1).ok_or(Full)
    }

    fn sooner(&mut self, tx: &mut Tx, ticket: &LocalTicket<K>, until: u64) {
        self.map.sooner(tx, ticket, until);
    }

    fn remove(&mut self, _tx: &mut Tx, ticket: &LocalTicket<K>) -> Option<V> {
        self.settle();
        let (number, value) = self.map.take_found(ticket)?;
        self.others.go(&X::of(&ticket.key, &value), number);
        Some(value)
    }

    fn peek(&mut self, tx: &mut Tx, key: K) -> Option<&V> {
        self.map.peek(tx, key)
    }

    fn expire(
        &mut self,
        tx: &mut Tx,
        now: u64,
        most: usize,
        mut look: impl FnMut(&mut Tx, &K, &V) -> Fate<V>,
    ) -> usize {
        self.settle();
        let LocalTwoKeyMap { map, others, .. } = self;
        map.expire_by(now, most, |number, key, value| {
            let fate = look(tx, key, value);
            if matches!(fate, Fate::Over) {
                others.go(&X::of(key, value), number);
            }
            fate
        })
    }

    fn expire_one(&mut self, tx: &mut Tx, most: usize, mut look: impl FnMut(&mut Tx, &K, &V) -> Fate<V>) -> bool {
        self.settle();
        let LocalTwoKeyMap { map, others, .. } = self;
        map.expire_one_by(tx.now, most, |number, key, value| {
            let fate = look(tx, key, value);
            if matches!(fate, Fate::Over) {
                others.go(&X::of(key, value), number);
            }
            fate
        })
    }

    fn sweep(&mut self, tx: &mut Tx, count: usize, mut goes: impl FnMut(&mut Tx, &K, &V) -> bool) -> usize {
        self.settle();
        let LocalTwoKeyMap { map, others, .. } = self;
        map.sweep_by(count, |number, key, value| {
            let is_over = goes(tx, key, value);
            if is_over {
                others.go(&X::of(key, value), number);
            }
            is_over
        })
    }

    fn owed(&mut self, tx: &mut Tx, now: u64) -> usize {
        self.map.owed(tx, now)
    }

    fn mark(&mut self, tx: &mut Tx, ticket: &LocalTicket<K>, marked: bool) {
        self.map.mark(tx, ticket, marked);
    }

    fn marked(&mut self, tx: &mut Tx) -> usize {
        self.map.marked(tx)
    }

    fn take_marked(&mut self, tx: &mut Tx) -> Option<(K, V)> {
        self.settle();
        let number = self.map.marked.first()?;
        let (key, value) = self.map.take_marked(tx)?;
        self.others.go(&X::of(&key, &value), number);
        Some((key, value))
    }

    fn leave(&mut self, slots: &SlotSet, mut each: impl FnMut(Moved<K, V>)) {
        self.settle();
        let LocalTwoKeyMap { map, others, .. } = self;
        map.leave_by(slots, |number, moved| {
            others.go(&X::of(&moved.key, &moved.value), number);
            each(moved);
        });
    }

    fn arrive(&mut self, tx: &mut Tx, moved: Moved<K, V>) -> Result<(), Full> {
        let ticket = self.map.ticket(moved.key);
        let before = self.map.value(&ticket).map(|value| *value);
        FlowMap::arrive(&mut self.map, tx, moved)?;
        let Some(number) = self.map.likely(&ticket) else { return Err(Full) };
        match before {
            None => self.come(&moved.key, &moved.value, number),
            Some(before) => self.changed(&moved.key, before, number),
        }
        Ok(())
    }

    #[inline(always)]
    fn is_full(&mut self, tx: &mut Tx) -> bool {
        self.map.is_full(tx)
    }

    fn len(&self) -> usize {
        FlowMap::len(&self.map)
    }
}

impl<K: Key, V: Plain, X: Other<K, V>> TwoKeyMap<K, V, X> for LocalTwoKeyMap<K, V, X> {
    type OtherTicket = LocalTicket<X::Key>;

    /// One for an entry that is to come needs nothing near: the entry tells the key, and waits for its bucket.
    #[inline(always)]
    fn want_other(&mut self, _tx: &mut Tx, other: X::Key, intent: Intent) -> LocalTicket<X::Key> {
        let place = if intent == Intent::Create { NONE.into() } else { self.others.bring(&other) };
        LocalTicket { key: other, place }
    }

    #[inline(always)]
    fn warm_other(&mut self, ticket: &mut LocalTicket<X::Key>) {
        if let Some(number) = self.others.guess(ticket.place) {
            self.map.bring_place(number);
            ticket.place = number.into();
        }
    }

    #[inline(always)]
    fn other_key(ticket: &LocalTicket<X::Key>) -> X::Key {
        ticket.key
    }

    #[inline(always)]
    fn found(&mut self, _tx: &mut Tx, ticket: &LocalTicket<X::Key>, _intent: Intent) -> Option<LocalTicket<K>> {
        let LocalTwoKeyMap { map, others, .. } = self;
        let of = ByOther::<K, V, X>(map, PhantomData);
        let is_it = ticket.place < map.entries.len() as u64
            && others.are_settled()
            && of.key(ticket.place as u32) == Some(ticket.key);
        let number = if is_it { ticket.place as u32 } else { others.find(&ticket.key, &of)? };
        map.entries[number as usize].pair().map(|(key, _)| LocalTicket::guessed(*key, number))
    }

    #[inline(always)]
    fn insert_both(
        &mut self,
        tx: &mut Tx,
        (ticket, other): (&LocalTicket<K>, &LocalTicket<X::Key>),
        value: V,
        until: u64,
    ) -> Result<&mut V, Full> {
        debug_assert!(X::of(&ticket.key, &value) == other.key, "an entry has the other key that was asked for");
        // Inline, so that the value comes in registers: one that its maker has written word by word cannot be read as a vector before all
        // that was written earlier, which is far, has got there.
        let number = self.put(tx, ticket, value, until)?;
        self.map.entries[number as usize].pair_mut().map(|pair| &mut pair.1).ok_or(Full)
    }
}

#[cfg(test)]
#[path = "two_keys_tests.rs"]
mod tests;

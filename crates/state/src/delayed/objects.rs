//! The objects: local ones, watched.

use std::ops::{Deref, DerefMut};
use std::panic::Location;
use std::sync::{Arc, Mutex};

use catena_packet::wire::Seed;

use super::watch::{Made, Promise, Watch, lock};
use crate::declare::Access;
use crate::engine::{Fate, FlowMap, Full, Intent};
use crate::key::Key;
use crate::local::{LocalMap, LocalTicket};
use crate::plain::{self, Plain, bytes};
use crate::tx::Tx;

/// Hashes keys to tell them apart; no secret, as nobody attacks a test.
pub(super) const KEYS: Seed = Seed::from_number(0);

/// A map of per-flow entries.
pub struct DelayedMap<K: Key, V> {
    map: LocalMap<K, V>,
    object: Made,
    watch: Arc<Mutex<Watch>>,
    /// What was read last.
    read: Option<V>,
}

/// The promise of an entry.
#[derive(Clone, Copy, Debug)]
pub struct DelayedTicket<K> {
    ticket: LocalTicket<K>,
    promise: Promise,
    intent: Intent,
}

/// Return a value that has gone through its bytes.
fn copy<V: Plain>(value: &V, object: Made) -> V {
    plain::value(&bytes(value)).unwrap_or_else(|| panic!("{object}: an entry does not come back from its bytes"))
}

/// An entry in hand: a copy, which is written back if it was changed.
pub struct DelayedEntry<'a, V: Plain> {
    place: &'a mut V,
    value: V,
    is_changed: bool,
    object: Made,
}

impl<'a, V: Plain> DelayedEntry<'a, V> {
    fn new(place: &'a mut V, object: Made) -> Self {
        DelayedEntry { value: copy(place, object), place, is_changed: false, object }
    }
}

impl<V: Plain> Drop for DelayedEntry<'_, V> {
    fn drop(&mut self) {
        if self.is_changed {
            *self.place = copy(&self.value, self.object);
        }
    }
}

impl<V: Plain> Deref for DelayedEntry<'_, V> {
    type Target = V;

    fn deref(&self) -> &V {
        &self.value
    }
}

impl<V: Plain> DerefMut for DelayedEntry<'_, V> {
    #[track_caller]
    fn deref_mut(&mut self) -> &mut V {
        let (object, at) = (self.object, Location::caller());
        assert!(
            object.declaration.access != Access::ReadMostly,
            "{object}: changed in place, and declared as read mostly, at {at}"
        );
        self.is_changed = true;
        &mut self.value
    }
}

impl<K: Key, V> DelayedMap<K, V> {
    pub(super) fn new(map: LocalMap<K, V>, object: Made, watch: &Arc<Mutex<Watch>>) -> Self {
        DelayedMap { map, object, watch: Arc::clone(watch), read: None }
    }

    /// Look whether a ticket may be used, for this.
    #[track_caller]
    fn redeem(&self, tx: &mut Tx, ticket: &DelayedTicket<K>, intent: Intent) {
        let mut watch = lock(&self.watch);
        watch.redeem(tx, self.object, ticket.promise, false);
        watch.name(tx, self.object);
        let (object, asked, at) = (self.object, ticket.intent, Location::caller());
        assert!(asked >= intent, "{object}: used to {intent:?}, and asked for to {asked:?}, at {at}");
    }
}

impl<K: Key, V: Plain> FlowMap<K, V> for DelayedMap<K, V> {
    type Ticket = DelayedTicket<K>;
    type Entry<'a>
        = DelayedEntry<'a, V>
    where
        Self: 'a;

    #[track_caller]
    fn want(&mut self, tx: &mut Tx, key: K, intent: Intent) -> DelayedTicket<K> {
        let promise = lock(&self.watch).ask(tx, self.object, key.hash(&KEYS), intent);
        DelayedTicket { ticket: self.map.want(tx, key, intent), promise, intent }
    }

    fn key(ticket: &DelayedTicket<K>) -> K {
        LocalMap::<K, V>::key(&ticket.ticket)
    }

    #[track_caller]
    fn read(&mut self, tx: &mut Tx, ticket: &DelayedTicket<K>) -> Option<&V> {
        self.redeem(tx, ticket, Intent::Read);
        self.read = self.map.read(tx, &ticket.ticket).map(|value| copy(value, self.object));
        self.read.as_ref()
    }

    #[track_caller]
    fn get(&mut self, tx: &mut Tx, ticket: &DelayedTicket<K>) -> Option<DelayedEntry<'_, V>> {
        self.redeem(tx, ticket, Intent::Change);
        let object = self.object;
        self.map.get(tx, &ticket.ticket).map(|place| DelayedEntry::new(place, object))
    }

    #[track_caller]
    fn insert(
        &mut self,
        tx: &mut Tx,
        ticket: &DelayedTicket<K>,
        value: V,
        until: u64,
    ) -> Result<DelayedEntry<'_, V>, Full> {
        self.redeem(tx, ticket, Intent::Create);
        let object = self.object;
        let place = self.map.insert(tx, &ticket.ticket, copy(&value, object), until)?;
        Ok(DelayedEntry::new(place, object))
    }

    #[track_caller]
    fn remove(&mut self, tx: &mut Tx, ticket: &DelayedTicket<K>) -> Option<V> {
        self.redeem(tx, ticket, Intent::Change);
        self.map.remove(tx, &ticket.ticket).map(|value| copy(&value, self.object))
    }

    #[track_caller]
    fn forget(&mut self, tx: &mut Tx, key: K, goes: impl FnOnce(&V) -> bool) {
        lock(&self.watch).change(tx, self.object);
        lock(&self.watch).name(tx, self.object);
        self.map.forget(tx, key, goes);
    }

    fn peek(&mut self, tx: &mut Tx, key: K) -> Option<&V> {
        self.read = self.map.peek(tx, key).map(|value| copy(value, self.object));
        self.read.as_ref()
    }

    #[track_caller]
    fn sooner(&mut self, tx: &mut Tx, ticket: &DelayedTicket<K>, until: u64) {
        self.redeem(tx, ticket, Intent::Change);
        self.map.sooner(tx, &ticket.ticket, until);
    }

    #[track_caller]
    fn expire(
        &mut self,
        tx: &mut Tx,
        now: u64,
        most: usize,
        mut look: impl FnMut(&mut Tx, &K, &V) -> Fate<V>,
    ) -> usize {
        lock(&self.watch).change(tx, self.object);
        let object = self.object;
        self.map.expire(tx, now, most, |tx, key, value| look(tx, key, &copy(value, object)))
    }

    #[track_caller]
    fn expire_one(&mut self, tx: &mut Tx, most: usize, mut look: impl FnMut(&mut Tx, &K, &V) -> Fate<V>) -> bool {
        lock(&self.watch).change(tx, self.object);
        let object = self.object;
        self.map.expire_one(tx, most, |tx, key, value| look(tx, key, &copy(value, object)))
    }

    #[track_caller]
    fn sweep(&mut self, tx: &mut Tx, count: usize, goes: impl FnMut(&mut Tx, &K, &V) -> bool) -> usize {
        lock(&self.watch).change(tx, self.object);
        self.map.sweep(tx, count, goes)
    }

    fn owed(&mut self, tx: &mut Tx, now: u64) -> usize {
        self.map.owed(tx, now)
    }

    #[track_caller]
    fn mark(&mut self, tx: &mut Tx, ticket: &DelayedTicket<K>, marked: bool) {
        self.redeem(tx, ticket, Intent::Change);
        self.map.mark(tx, &ticket.ticket, marked);
    }

    fn marked(&mut self, tx: &mut Tx) -> usize {
        self.map.marked(tx)
    }

    #[track_caller]
    fn take_marked(&mut self, tx: &mut Tx) -> Option<(K, V)> {
        lock(&self.watch).change(tx, self.object);
        lock(&self.watch).name(tx, self.object);
        self.map.take_marked(tx).map(|(key, value)| (key, copy(&value, self.object)))
    }

    fn is_full(&mut self, tx: &mut Tx) -> bool {
        self.map.is_full(tx)
    }

    fn len(&self) -> usize {
        self.map.len()
    }
}

#[cfg(test)]
#[path = "objects_tests.rs"]
mod tests;

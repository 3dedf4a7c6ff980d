//! Entries with two keys: a map of entries, and one that tells whose the other keys are. Both are watched, each by its own
//! declaration.

use super::objects::{DelayedEntry, DelayedMap, DelayedTicket};
use crate::engine::{FOREVER, Fate, FlowMap, Full, Intent};
use crate::key::Key;
use crate::plain::Plain;
use crate::two_keys::{Other, TwoKeyMap};
use crate::tx::Tx;

/// A map of per-flow entries with two keys.
pub struct DelayedTwoKeyMap<K: Key, V: Plain, X: Other<K, V>> {
    map: DelayedMap<K, V>,
    others: DelayedMap<X::Key, K>,
}

impl<K: Key, V: Plain, X: Other<K, V>> DelayedTwoKeyMap<K, V, X> {
    pub(super) fn new(map: DelayedMap<K, V>, others: DelayedMap<X::Key, K>) -> Self {
        DelayedTwoKeyMap { map, others }
    }

    /// An entry is gone: its other key is nobody's, unless it is a younger one's.
    #[track_caller]
    fn gone(&mut self, tx: &mut Tx, key: K, value: &V) {
        self.others.forget(tx, X::of(&key, value), |of| *of == key);
    }
}

impl<K: Key, V: Plain, X: Other<K, V>> FlowMap<K, V> for DelayedTwoKeyMap<K, V, X> {
    type Ticket = DelayedTicket<K>;
    type Entry<'a>
        = DelayedEntry<'a, K, V>
    where
        Self: 'a;

    #[track_caller]
    fn want(&mut self, tx: &mut Tx, key: K, intent: Intent) -> DelayedTicket<K> {
        self.map.want(tx, key, intent)
    }

    fn key(ticket: &DelayedTicket<K>) -> K {
        DelayedMap::<K, V>::key(ticket)
    }

    #[track_caller]
    fn read(&mut self, tx: &mut Tx, ticket: &DelayedTicket<K>) -> Option<&V> {
        self.map.read(tx, ticket)
    }

    #[track_caller]
    fn get(&mut self, tx: &mut Tx, ticket: &DelayedTicket<K>) -> Option<DelayedEntry<'_, K, V>> {
        self.map.get(tx, ticket)
    }

    fn insert(&mut self, _: &mut Tx, _: &DelayedTicket<K>, _: V, _: u64) -> Result<DelayedEntry<'_, K, V>, Full> {
        unreachable!("an entry with two keys is put in under both")
    }

    #[track_caller]
    fn sooner(&mut self, tx: &mut Tx, ticket: &DelayedTicket<K>, until: u64) {
        self.map.sooner(tx, ticket, until);
    }

    #[track_caller]
    fn remove(&mut self, tx: &mut Tx, ticket: &DelayedTicket<K>) -> Option<V> {
        let value = self.map.remove(tx, ticket)?;
        self.gone(tx, Self::key(ticket), &value);
        Some(value)
    }

    #[track_caller]
    fn peek(&mut self, tx: &mut Tx, key: K) -> Option<&V> {
        self.map.peek(tx, key)
    }

    #[track_caller]
    fn expire(
        &mut self,
        tx: &mut Tx,
        now: u64,
        most: usize,
        mut look: impl FnMut(&mut Tx, &K, &V) -> Fate<V>,
    ) -> usize {
        let mut over = Vec::new();
        let looked = self.map.expire(tx, now, most, |tx, key, value| note(&mut over, key, value, look(tx, key, value)));
        over.into_iter().for_each(|(key, value)| self.gone(tx, key, &value));
        looked
    }

    #[track_caller]
    fn expire_one(&mut self, tx: &mut Tx, most: usize, mut look: impl FnMut(&mut Tx, &K, &V) -> Fate<V>) -> bool {
        let mut over = Vec::new();
        let is_any = self.map.expire_one(tx, most, |tx, key, value| note(&mut over, key, value, look(tx, key, value)));
        over.into_iter().for_each(|(key, value)| self.gone(tx, key, &value));
        is_any
    }

    #[track_caller]
    fn sweep(&mut self, tx: &mut Tx, count: usize, mut goes: impl FnMut(&mut Tx, &K, &V) -> bool) -> usize {
        let mut over = Vec::new();
        let looked = self.map.sweep(tx, count, |tx, key, value| {
            let is_over = goes(tx, key, value);
            over.extend(is_over.then_some((*key, *value)));
            is_over
        });
        over.into_iter().for_each(|(key, value)| self.gone(tx, key, &value));
        looked
    }

    #[track_caller]
    fn owed(&mut self, tx: &mut Tx, now: u64) -> usize {
        self.map.owed(tx, now)
    }

    #[track_caller]
    fn mark(&mut self, tx: &mut Tx, ticket: &DelayedTicket<K>, marked: bool) {
        self.map.mark(tx, ticket, marked);
    }

    #[track_caller]
    fn marked(&mut self, tx: &mut Tx) -> usize {
        self.map.marked(tx)
    }

    #[track_caller]
    fn take_marked(&mut self, tx: &mut Tx) -> Option<(K, V)> {
        let (key, value) = self.map.take_marked(tx)?;
        self.gone(tx, key, &value);
        Some((key, value))
    }

    #[track_caller]
    fn is_full(&mut self, tx: &mut Tx) -> bool {
        self.map.is_full(tx)
    }

    fn len(&self) -> usize {
        self.map.len()
    }
}

/// Note who is over.
fn note<K: Copy, V: Copy>(over: &mut Vec<(K, V)>, key: &K, value: &V, fate: Fate<V>) -> Fate<V> {
    if matches!(fate, Fate::Over) {
        over.push((*key, *value));
    }
    fate
}

impl<K: Key, V: Plain, X: Other<K, V>> TwoKeyMap<K, V, X> for DelayedTwoKeyMap<K, V, X> {
    type OtherTicket = DelayedTicket<X::Key>;

    #[track_caller]
    fn want_other(&mut self, tx: &mut Tx, other: X::Key, intent: Intent) -> DelayedTicket<X::Key> {
        // Who changes an entry reads whose the key is.
        let intent = if intent == Intent::Create { intent } else { Intent::Read };
        self.others.want(tx, other, intent)
    }

    fn other_key(ticket: &DelayedTicket<X::Key>) -> X::Key {
        DelayedMap::<X::Key, K>::key(ticket)
    }

    #[track_caller]
    fn found(&mut self, tx: &mut Tx, ticket: &DelayedTicket<X::Key>, intent: Intent) -> Option<DelayedTicket<K>> {
        let key = *self.others.read(tx, ticket)?;
        Some(self.map.want(tx, key, intent))
    }

    #[track_caller]
    fn insert_both(
        &mut self,
        tx: &mut Tx,
        (ticket, other): (&DelayedTicket<K>, &DelayedTicket<X::Key>),
        value: V,
        until: u64,
    ) -> Result<DelayedEntry<'_, K, V>, Full> {
        let key = Self::key(ticket);
        assert!(X::of(&key, &value) == Self::other_key(other), "an entry has the other key that was asked for");
        if let Some(before) = self.map.peek(tx, key).copied() {
            self.gone(tx, key, &before);
        }
        self.others.insert(tx, other, key, FOREVER)?;
        let DelayedTwoKeyMap { map, others } = self;
        if map.is_full(tx) && map.peek(tx, key).is_none() {
            others.forget(tx, X::of(&key, &value), |of| *of == key);
            return Err(Full);
        }
        map.insert(tx, ticket, value, until)
    }
}

//! The objects: local ones, watched.

use std::sync::{Arc, Mutex};

use catena_packet::wire::Seed;

use super::Tx;
use super::watch::{Promise, Watch, lock};
use crate::declare::Declaration;
use crate::engine::{FlowMap, Full, Key};
use crate::local::{LocalMap, LocalTicket};

/// Hashes keys to tell them apart; no secret, as nobody attacks a test.
pub(super) const KEYS: Seed = Seed::from_number(0);

/// A map of per-flow entries.
pub struct DelayedMap<K: Key, V> {
    map: LocalMap<K, V>,
    object: Declaration,
    watch: Arc<Mutex<Watch>>,
}

/// The promise of an entry.
#[derive(Clone, Copy, Debug)]
pub struct DelayedTicket<K> {
    ticket: LocalTicket<K>,
    promise: Promise,
}

impl<K: Key, V> DelayedMap<K, V> {
    pub(super) fn new(map: LocalMap<K, V>, object: Declaration, watch: &Arc<Mutex<Watch>>) -> Self {
        DelayedMap { map, object, watch: Arc::clone(watch) }
    }

    #[track_caller]
    fn redeem(&self, tx: Tx, ticket: &DelayedTicket<K>) {
        lock(&self.watch).redeem(tx, self.object, ticket.promise, false);
    }
}

impl<K: Key, V: Send + 'static> FlowMap<K, V> for DelayedMap<K, V> {
    type Tx = Tx;
    type Ticket = DelayedTicket<K>;

    #[track_caller]
    fn want(&mut self, tx: Tx, key: K) -> DelayedTicket<K> {
        let promise = lock(&self.watch).ask(tx, self.object, key.hash(&KEYS));
        DelayedTicket { ticket: self.map.want((), key), promise }
    }

    fn key(ticket: &DelayedTicket<K>) -> K {
        LocalMap::<K, V>::key(&ticket.ticket)
    }

    #[track_caller]
    fn get(&mut self, tx: Tx, ticket: &DelayedTicket<K>) -> Option<&mut V> {
        self.redeem(tx, ticket);
        self.map.get((), &ticket.ticket)
    }

    #[track_caller]
    fn insert(&mut self, tx: Tx, ticket: &DelayedTicket<K>, value: V) -> Result<&mut V, Full> {
        self.redeem(tx, ticket);
        self.map.insert((), &ticket.ticket, value)
    }

    #[track_caller]
    fn remove(&mut self, tx: Tx, ticket: &DelayedTicket<K>) -> Option<V> {
        self.redeem(tx, ticket);
        self.map.remove((), &ticket.ticket)
    }

    #[track_caller]
    fn forget(&mut self, tx: Tx, key: K, goes: impl FnOnce(&V) -> bool) {
        lock(&self.watch).change(tx, self.object);
        self.map.forget((), key, goes);
    }

    fn peek(&mut self, key: K) -> Option<&V> {
        self.map.peek(key)
    }

    #[track_caller]
    fn sweep(&mut self, count: usize, goes: impl FnMut(&K, &mut V) -> bool) -> usize {
        lock(&self.watch).change_alone(self.object);
        self.map.sweep(count, goes)
    }

    #[track_caller]
    fn mark(&mut self, tx: Tx, ticket: &DelayedTicket<K>, marked: bool) {
        self.redeem(tx, ticket);
        self.map.mark((), &ticket.ticket, marked);
    }

    fn marked(&self) -> usize {
        self.map.marked()
    }

    #[track_caller]
    fn take_marked(&mut self, tx: Tx) -> Option<(K, V)> {
        lock(&self.watch).change(tx, self.object);
        self.map.take_marked(())
    }

    fn len(&self) -> usize {
        self.map.len()
    }
}

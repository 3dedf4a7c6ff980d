//! Per-flow entries of one worker: local ones. Whoever waits for something elsewhere is followed by those that ask for the same.

use catena_packet::SlotSet;

use crate::engine::{Fate, FlowMap, Full, Intent};
use crate::key::Key;
use crate::local::{LocalMap, LocalTicket};
use crate::mover::Moved;
use crate::plain::Plain;
use crate::tx::Tx;

/// A map of per-flow entries, of flows that are this worker's.
pub struct PeersMap<K: Key, V> {
    map: LocalMap<K, V>,
    /// Tells this map's keys from those of others.
    salt: u64,
}

impl<K: Key, V> PeersMap<K, V> {
    pub(super) fn new(map: LocalMap<K, V>, number: u64) -> Self {
        PeersMap { map, salt: number.wrapping_mul(0x9e37_79b9_7f4a_7c15) }
    }
}

impl<K: Key, V: Plain> FlowMap<K, V> for PeersMap<K, V> {
    type Ticket = LocalTicket<K>;
    type Entry<'a>
        = &'a mut V
    where
        Self: 'a;

    #[inline(always)]
    fn want(&mut self, tx: &mut Tx, key: K, intent: Intent) -> LocalTicket<K> {
        let ticket = self.map.want(tx, key, intent);
        tx.asks_for(self.map.hash(&ticket) ^ self.salt);
        ticket
    }

    #[inline(always)]
    fn want_new(&mut self, tx: &mut Tx, key: K) -> LocalTicket<K> {
        let ticket = self.map.want_new(tx, key);
        tx.asks_for(self.map.hash(&ticket) ^ self.salt);
        ticket
    }

    #[inline(always)]
    fn warm(&mut self, ticket: &mut LocalTicket<K>) {
        self.map.warm(ticket);
    }

    /// The packet is known to ask for it.
    #[inline(always)]
    fn want_again(&mut self, tx: &mut Tx, ticket: &LocalTicket<K>, intent: Intent) -> LocalTicket<K> {
        self.map.want_again(tx, ticket, intent)
    }

    #[inline(always)]
    fn seems_new(ticket: &LocalTicket<K>) -> bool {
        LocalMap::<K, V>::seems_new(ticket)
    }

    fn bring(&mut self, keys: impl Iterator<Item = K>) {
        self.map.bring(keys);
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

    #[inline(always)]
    fn insert(&mut self, tx: &mut Tx, ticket: &LocalTicket<K>, value: V, until: u64) -> Result<&mut V, Full> {
        self.map.insert(tx, ticket, value, until)
    }

    fn sooner(&mut self, tx: &mut Tx, ticket: &LocalTicket<K>, until: u64) {
        self.map.sooner(tx, ticket, until);
    }

    fn remove(&mut self, tx: &mut Tx, ticket: &LocalTicket<K>) -> Option<V> {
        self.map.remove(tx, ticket)
    }

    fn forget(&mut self, tx: &mut Tx, key: K, goes: impl FnOnce(&V) -> bool) {
        self.map.forget(tx, key, goes);
    }

    fn peek(&mut self, tx: &mut Tx, key: K) -> Option<&V> {
        self.map.peek(tx, key)
    }

    fn expire(&mut self, tx: &mut Tx, now: u64, most: usize, look: impl FnMut(&mut Tx, &K, &V) -> Fate<V>) -> usize {
        self.map.expire(tx, now, most, look)
    }

    fn expire_one(&mut self, tx: &mut Tx, most: usize, look: impl FnMut(&mut Tx, &K, &V) -> Fate<V>) -> bool {
        self.map.expire_one(tx, most, look)
    }

    fn sweep(&mut self, tx: &mut Tx, count: usize, goes: impl FnMut(&mut Tx, &K, &V) -> bool) -> usize {
        self.map.sweep(tx, count, goes)
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
        self.map.take_marked(tx)
    }

    fn leave(&mut self, slots: &SlotSet, each: impl FnMut(Moved<K, V>)) {
        self.map.leave(slots, each);
    }

    fn arrive(&mut self, tx: &mut Tx, moved: Moved<K, V>) -> Result<(), Full> {
        self.map.arrive(tx, moved)
    }

    #[inline(always)]
    fn is_full(&mut self, tx: &mut Tx) -> bool {
        self.map.is_full(tx)
    }

    fn len(&self) -> usize {
        FlowMap::len(&self.map)
    }
}

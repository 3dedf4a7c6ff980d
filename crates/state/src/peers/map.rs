//! Per-flow entries of one worker: local ones. Whoever waits for something elsewhere is followed by those that ask for the same.

use catena_packet::SlotSet;

use crate::engine::{Fate, FlowMap, Full, Intent};
use crate::key::Key;
use crate::local::{LocalMap, LocalTicket, LocalTwoKeyMap};
use crate::mover::Moved;
use crate::plain::Plain;
use crate::two_keys::{Other, TwoKeyMap};
use crate::tx::Tx;

/// A map of per-flow entries, of flows that are this worker's.
pub struct PeersMap<M> {
    map: M,
    /// Tells this map's keys from those of others.
    salt: u64,
}

/// What makes the salts of maps with small numbers differ.
const SALT: u64 = 0x9e37_79b9_7f4a_7c15;

impl<M> PeersMap<M> {
    pub(super) fn new(map: M, number: u64) -> Self {
        PeersMap { map, salt: number.wrapping_mul(SALT) }
    }
}

/// What tells the hash of a ticket's key.
pub trait Hashes<T> {
    /// Return it.
    fn hash(&self, ticket: &T) -> u64;
}

impl<K: Key, V> Hashes<LocalTicket<K>> for LocalMap<K, V> {
    #[inline(always)]
    fn hash(&self, ticket: &LocalTicket<K>) -> u64 {
        self.hash(ticket)
    }
}

impl<K: Key, V: Plain, X: Other<K, V>> Hashes<LocalTicket<K>> for LocalTwoKeyMap<K, V, X> {
    #[inline(always)]
    fn hash(&self, ticket: &LocalTicket<K>) -> u64 {
        self.hash(ticket)
    }
}

impl<K: Key, V: Plain, M> FlowMap<K, V> for PeersMap<M>
where
    M: FlowMap<K, V, Ticket = LocalTicket<K>> + Hashes<LocalTicket<K>>,
{
    type Ticket = LocalTicket<K>;
    type Entry<'a>
        = M::Entry<'a>
    where
        Self: 'a;

    #[inline(always)]
    fn want(&mut self, tx: &mut Tx, key: K, intent: Intent) -> LocalTicket<K> {
        let ticket = self.map.want(tx, key, intent);
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
        M::seems_new(ticket)
    }

    #[inline(always)]
    fn key(ticket: &LocalTicket<K>) -> K {
        M::key(ticket)
    }

    #[inline(always)]
    fn read(&mut self, tx: &mut Tx, ticket: &LocalTicket<K>) -> Option<&V> {
        self.map.read(tx, ticket)
    }

    #[inline(always)]
    fn get(&mut self, tx: &mut Tx, ticket: &LocalTicket<K>) -> Option<M::Entry<'_>> {
        self.map.get(tx, ticket)
    }

    #[inline(always)]
    fn insert(&mut self, tx: &mut Tx, ticket: &LocalTicket<K>, value: V, until: u64) -> Result<M::Entry<'_>, Full> {
        self.map.insert(tx, ticket, value, until)
    }

    fn sooner(&mut self, tx: &mut Tx, ticket: &LocalTicket<K>, until: u64) {
        self.map.sooner(tx, ticket, until);
    }

    fn remove(&mut self, tx: &mut Tx, ticket: &LocalTicket<K>) -> Option<V> {
        self.map.remove(tx, ticket)
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
        self.map.len()
    }
}

impl<K: Key, V: Plain, X: Other<K, V>> TwoKeyMap<K, V, X> for PeersMap<LocalTwoKeyMap<K, V, X>> {
    type OtherTicket = LocalTicket<X::Key>;

    #[inline(always)]
    fn want_other(&mut self, tx: &mut Tx, other: X::Key, intent: Intent) -> LocalTicket<X::Key> {
        tx.asks_for(self.map.hash_other(&other) ^ self.salt.wrapping_add(SALT / 2));
        self.map.want_other(tx, other, intent)
    }

    #[inline(always)]
    fn warm_other(&mut self, ticket: &mut LocalTicket<X::Key>) {
        self.map.warm_other(ticket);
    }

    #[inline(always)]
    fn other_key(ticket: &LocalTicket<X::Key>) -> X::Key {
        LocalTwoKeyMap::<K, V, X>::other_key(ticket)
    }

    #[inline(always)]
    fn found(&mut self, tx: &mut Tx, ticket: &LocalTicket<X::Key>, intent: Intent) -> Option<LocalTicket<K>> {
        let found = self.map.found(tx, ticket, intent)?;
        tx.asks_for(self.map.hash(&found) ^ self.salt);
        Some(found)
    }

    #[inline(always)]
    fn insert_both(
        &mut self,
        tx: &mut Tx,
        tickets: (&LocalTicket<K>, &LocalTicket<X::Key>),
        value: V,
        until: u64,
    ) -> Result<&mut V, Full> {
        self.map.insert_both(tx, tickets, value, until)
    }
}

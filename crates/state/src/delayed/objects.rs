//! The objects: local ones, watched.

use std::sync::{Arc, Mutex};

use catena_packet::wire::Seed;

use super::Tx;
use super::watch::{Promise, Watch, lock};
use crate::engine::{Counters, FlowMap, Full, Key, Pool, Ranking};
use crate::local::{LocalCounters, LocalMap, LocalPool, LocalRanking, LocalTicket};

/// Hashes keys to tell them apart; no secret, as nobody attacks a test.
const KEYS: Seed = Seed::from_number(0);

/// A map of per-flow entries.
pub struct DelayedMap<K: Key, V> {
    map: LocalMap<K, V>,
    name: &'static str,
    watch: Arc<Mutex<Watch>>,
}

/// The promise of an entry.
#[derive(Clone, Copy, Debug)]
pub struct DelayedTicket<K> {
    ticket: LocalTicket<K>,
    promise: Promise,
}

impl<K: Key, V> DelayedMap<K, V> {
    pub(super) fn new(map: LocalMap<K, V>, name: &'static str, watch: &Arc<Mutex<Watch>>) -> Self {
        DelayedMap { map, name, watch: Arc::clone(watch) }
    }

    #[track_caller]
    fn redeem(&self, tx: Tx, ticket: &DelayedTicket<K>) {
        lock(&self.watch).redeem(tx, self.name, ticket.promise, false);
    }
}

impl<K: Key, V: Send + 'static> FlowMap<K, V> for DelayedMap<K, V> {
    type Tx = Tx;
    type Ticket = DelayedTicket<K>;

    #[track_caller]
    fn want(&mut self, tx: Tx, key: K) -> DelayedTicket<K> {
        let promise = lock(&self.watch).ask(tx, self.name, Some(key.hash(&KEYS)));
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
        lock(&self.watch).change(tx, self.name);
        self.map.forget((), key, goes);
    }

    fn peek(&mut self, key: K) -> Option<&V> {
        self.map.peek(key)
    }

    #[track_caller]
    fn sweep(&mut self, count: usize, goes: impl FnMut(&K, &mut V) -> bool) -> usize {
        lock(&self.watch).change_alone(self.name);
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
        lock(&self.watch).change(tx, self.name);
        self.map.take_marked(())
    }

    fn len(&self) -> usize {
        self.map.len()
    }
}

/// Numbers that many add to: nobody waits.
pub struct DelayedCounters {
    counters: LocalCounters,
    name: &'static str,
    watch: Arc<Mutex<Watch>>,
}

impl DelayedCounters {
    pub(super) fn new(counters: LocalCounters, name: &'static str, watch: &Arc<Mutex<Watch>>) -> Self {
        DelayedCounters { counters, name, watch: Arc::clone(watch) }
    }
}

impl Counters for DelayedCounters {
    type Tx = Tx;

    #[track_caller]
    fn add(&mut self, tx: Tx, index: usize, n: i64) {
        lock(&self.watch).change(tx, self.name);
        self.counters.add((), index, n);
    }

    fn read(&self, index: usize) -> i64 {
        self.counters.read(index)
    }
}

/// Things to take and give back.
pub struct DelayedPool {
    pool: LocalPool,
    name: &'static str,
    watch: Arc<Mutex<Watch>>,
}

impl DelayedPool {
    pub(super) fn new(pool: LocalPool, name: &'static str, watch: &Arc<Mutex<Watch>>) -> Self {
        DelayedPool { pool, name, watch: Arc::clone(watch) }
    }
}

impl Pool for DelayedPool {
    type Tx = Tx;
    type Ticket = Promised;

    #[track_caller]
    fn want_take(&mut self, tx: Tx) -> Promised {
        Promised(lock(&self.watch).ask(tx, self.name, Some(0)))
    }

    #[track_caller]
    fn taken(&mut self, tx: Tx, ticket: Promised) -> Option<u64> {
        lock(&self.watch).redeem(tx, self.name, ticket.0, true);
        self.pool.taken((), ())
    }

    #[track_caller]
    fn give(&mut self, tx: Tx, thing: u64) {
        lock(&self.watch).change(tx, self.name);
        self.pool.give((), thing);
    }

    fn len(&self) -> usize {
        self.pool.len()
    }
}

/// The promise of a thing.
#[derive(Clone, Copy, Debug)]
pub struct Promised(Promise);

/// Things with a load.
pub struct DelayedRanking {
    ranking: LocalRanking,
    name: &'static str,
    watch: Arc<Mutex<Watch>>,
}

impl DelayedRanking {
    pub(super) fn new(ranking: LocalRanking, name: &'static str, watch: &Arc<Mutex<Watch>>) -> Self {
        DelayedRanking { ranking, name, watch: Arc::clone(watch) }
    }
}

impl Ranking for DelayedRanking {
    type Tx = Tx;
    type Ticket = Promised;

    #[track_caller]
    fn want_least(&mut self, tx: Tx) -> Promised {
        Promised(lock(&self.watch).ask(tx, self.name, Some(0)))
    }

    #[track_caller]
    fn least(&mut self, tx: Tx, ticket: Promised) -> Option<usize> {
        lock(&self.watch).redeem(tx, self.name, ticket.0, true);
        self.ranking.least((), ())
    }

    #[track_caller]
    fn add(&mut self, tx: Tx, index: usize, n: i64) {
        lock(&self.watch).change(tx, self.name);
        self.ranking.add((), index, n);
    }

    #[track_caller]
    fn set_up(&mut self, index: usize, up: bool) {
        lock(&self.watch).change_alone(self.name);
        self.ranking.set_up(index, up);
    }

    fn load(&self, index: usize) -> i64 {
        self.ranking.load(index)
    }
}

//! Per-flow entries: local ones, watched. They are held beside the function's instance, and outlive it; what it gets are copies.

use std::ops::{Deref, DerefMut};
use std::panic::Location;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use catena_packet::wire::Seed;

use super::asked::Promise;
use super::log::What;
use super::made::Made;
use super::watch::{Watch, lock};
use crate::declare::Access;
use crate::engine::{Fate, FlowMap, Full, Intent};
use crate::key::Key;
use crate::local::{LocalMap, LocalTicket};
use crate::plain::{self, Plain, bytes};
use crate::tx::{Name, Tx};

/// Hashes keys to tell them apart; no secret, as nobody attacks a test.
pub(super) const KEYS: Seed = Seed::from_number(0);

/// The entries of a map.
pub(super) type Entries<K, V> = Arc<Mutex<LocalMap<K, V>>>;

/// A map of per-flow entries.
pub struct DelayedMap<K: Key, V> {
    entries: Entries<K, V>,
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

/// Return a value that has these bytes, which come from one that has them.
fn read<V: Plain>(bytes: &[u8], object: Made) -> V {
    plain::value(bytes).unwrap_or_else(|| panic!("{object}: an entry does not come back from its bytes"))
}

/// Return a value that has gone through its bytes.
fn copy<V: Plain>(value: &V, object: Made) -> V {
    read(&bytes(value), object)
}

/// An entry in hand: a copy, which is written back if it was changed.
pub struct DelayedEntry<'a, K: Key, V: Plain> {
    map: &'a DelayedMap<K, V>,
    ticket: LocalTicket<K>,
    name: Name,
    value: V,
    is_changed: bool,
}

impl<K: Key, V: Plain> Drop for DelayedEntry<'_, K, V> {
    fn drop(&mut self) {
        // Who is lost writes nothing.
        if std::thread::panicking() {
            return;
        }
        let written = self.is_changed.then(|| bytes(&self.value));
        if lock(&self.map.watch).leave(self.name, written) {
            let object = self.map.object;
            let mut entries = self.map.entries();
            let place = entries.value(&self.ticket);
            *place.unwrap_or_else(|| panic!("{object}: an entry in hand is gone")) = copy(&self.value, object);
        }
    }
}

impl<K: Key, V: Plain> Deref for DelayedEntry<'_, K, V> {
    type Target = V;

    fn deref(&self) -> &V {
        &self.value
    }
}

impl<K: Key, V: Plain> DerefMut for DelayedEntry<'_, K, V> {
    #[track_caller]
    fn deref_mut(&mut self) -> &mut V {
        let (object, at) = (self.map.object, Location::caller());
        assert!(
            object.declaration.access != Access::ReadMostly,
            "{object}: changed in place, and declared as read mostly, at {at}"
        );
        self.is_changed = true;
        &mut self.value
    }
}

impl<K: Key, V> DelayedMap<K, V> {
    pub(super) fn new(entries: Entries<K, V>, object: Made, watch: &Arc<Mutex<Watch>>) -> Self {
        DelayedMap { entries, object, watch: Arc::clone(watch), read: None }
    }

    /// Return which object it is.
    pub(super) fn made(&self) -> Made {
        self.object
    }

    fn entries(&self) -> MutexGuard<'_, LocalMap<K, V>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Look whether a ticket may be used, for this.
    #[track_caller]
    fn redeem(&self, tx: &mut Tx, ticket: &DelayedTicket<K>, intent: Intent) {
        lock(&self.watch).redeem(tx, self.object, ticket.promise, false);
        let (object, asked, at) = (self.object, ticket.intent, Location::caller());
        assert!(asked >= intent, "{object}: used to {intent:?}, and asked for to {asked:?}, at {at}");
    }

    /// Do an operation, or return what came of it when it was done before.
    #[track_caller]
    fn once<R: Plain>(
        &self,
        tx: &mut Tx,
        what: (&'static str, impl Plain),
        act: impl FnOnce(&mut LocalMap<K, V>, &mut Tx) -> R,
    ) -> (Name, R) {
        let object = self.object;
        let mut begun = lock(&self.watch).begin_one(tx, object, || What::Entry(what.0, bytes(&what.1)));
        let name = begun.name;
        if let Some(before) = begun.before.take() {
            return (name, read(&before, object));
        }
        let reply = bytes(&act(&mut self.entries(), tx));
        let copy = read(&reply, object);
        lock(&self.watch).note(begun, object, reply);
        (name, copy)
    }

    /// Look whether a packet may change the map now.
    #[track_caller]
    fn may_change(&self, tx: &Tx) {
        lock(&self.watch).change(tx, self.object);
    }
}

/// What becomes of an entry, as plain data.
fn plain_fate<V: Plain>(fate: &Fate<V>) -> (Option<u64>, Option<V>) {
    match fate {
        Fate::Over => (None, None),
        Fate::Until(until) => (Some(*until), None),
        Fate::Becomes(value, until) => (Some(*until), Some(*value)),
    }
}

impl<K: Key, V: Plain> DelayedMap<K, V> {
    /// Take out the entry of a key, if there is one and `goes` says so of it: nobody waits for it. To tell what is there is an operation, and to take it out another one.
    #[track_caller]
    pub(super) fn forget(&mut self, tx: &mut Tx, key: K, goes: impl FnOnce(&V) -> bool) {
        self.may_change(tx);
        let (_, there) = self.once(tx, ("forget", key), |map, tx| map.peek(tx, key).copied());
        if there.is_some_and(|entry| goes(&entry)) {
            self.once(tx, ("forget now", key), |map, _| map.forget(key, |_| true));
        }
    }
}

impl<K: Key, V: Plain> FlowMap<K, V> for DelayedMap<K, V> {
    type Ticket = DelayedTicket<K>;
    type Entry<'a>
        = DelayedEntry<'a, K, V>
    where
        Self: 'a;

    #[track_caller]
    fn want(&mut self, tx: &mut Tx, key: K, intent: Intent) -> DelayedTicket<K> {
        // A key may come to be another flow's once its entry is gone, as the port of a translator does.
        let is_new = self.entries().place(key).is_none();
        let promise = lock(&self.watch).ask(tx, self.object, key.hash(&KEYS), (intent, is_new));
        DelayedTicket { ticket: self.entries().want(tx, key, intent), promise, intent }
    }

    fn key(ticket: &DelayedTicket<K>) -> K {
        LocalMap::<K, V>::key(&ticket.ticket)
    }

    #[track_caller]
    fn read(&mut self, tx: &mut Tx, ticket: &DelayedTicket<K>) -> Option<&V> {
        self.redeem(tx, ticket, Intent::Read);
        let key = Self::key(ticket);
        self.read = self.once(tx, ("read", key), |map, tx| map.read(tx, &ticket.ticket).copied()).1;
        self.read.as_ref()
    }

    #[track_caller]
    fn get(&mut self, tx: &mut Tx, ticket: &DelayedTicket<K>) -> Option<DelayedEntry<'_, K, V>> {
        self.redeem(tx, ticket, Intent::Change);
        let (key, ticket) = (Self::key(ticket), ticket.ticket);
        let (name, value) = self.once(tx, ("get", key), |map, tx| map.get(tx, &ticket).copied());
        value.map(|value| DelayedEntry { map: self, ticket, name, value, is_changed: false })
    }

    #[track_caller]
    fn insert(
        &mut self,
        tx: &mut Tx,
        ticket: &DelayedTicket<K>,
        value: V,
        until: u64,
    ) -> Result<DelayedEntry<'_, K, V>, Full> {
        self.redeem(tx, ticket, Intent::Create);
        let (object, key, ticket) = (self.object, Self::key(ticket), ticket.ticket);
        let put = |map: &mut LocalMap<K, V>, tx: &mut Tx| map.insert(tx, &ticket, copy(&value, object), until).is_ok();
        match self.once(tx, ("insert", (key, value, until)), put) {
            (name, true) => Ok(DelayedEntry { map: self, ticket, name, value, is_changed: false }),
            (_, false) => Err(Full),
        }
    }

    #[track_caller]
    fn remove(&mut self, tx: &mut Tx, ticket: &DelayedTicket<K>) -> Option<V> {
        self.redeem(tx, ticket, Intent::Change);
        self.once(tx, ("remove", Self::key(ticket)), |map, tx| map.remove(tx, &ticket.ticket)).1
    }

    #[track_caller]
    fn peek(&mut self, tx: &mut Tx, key: K) -> Option<&V> {
        self.read = self.once(tx, ("peek", key), |map, tx| map.peek(tx, key).copied()).1;
        self.read.as_ref()
    }

    #[track_caller]
    fn sooner(&mut self, tx: &mut Tx, ticket: &DelayedTicket<K>, until: u64) {
        self.redeem(tx, ticket, Intent::Change);
        self.once(tx, ("sooner", (Self::key(ticket), until)), |map, tx| map.sooner(tx, &ticket.ticket, until));
    }

    /// To tell which entry is looked at is an operation, and what becomes of it another one.
    #[track_caller]
    fn expire(
        &mut self,
        tx: &mut Tx,
        now: u64,
        most: usize,
        mut look: impl FnMut(&mut Tx, &K, &V) -> Fate<V>,
    ) -> usize {
        self.may_change(tx);
        for looked in 0..most {
            let (_, first) = self.once(tx, ("expire", now), |map, _| map.first_over(now));
            let Some((key, value)) = first else { return looked };
            let fate = look(tx, &key, &value);
            self.once(tx, ("fate", (key, plain_fate(&fate))), |map, _| _ = map.expire_by(now, 1, |_, _, _| fate));
        }
        most
    }

    #[track_caller]
    fn expire_one(&mut self, tx: &mut Tx, most: usize, mut look: impl FnMut(&mut Tx, &K, &V) -> Fate<V>) -> bool {
        self.may_change(tx);
        for _ in 0..most {
            let (_, first) = self.once(tx, ("expire one", ()), |map, _| map.first_to_end());
            let Some((key, value)) = first else { return false };
            let fate = look(tx, &key, &value);
            let what = ("fate", (key, plain_fate(&fate)));
            if self.once(tx, what, |map, tx| map.expire_one(tx, 1, |_, _, _| fate)).1 {
                return true;
            }
        }
        false
    }

    /// To tell which entry stands at the next place is an operation, and to take it out another one.
    #[track_caller]
    fn sweep(&mut self, tx: &mut Tx, count: usize, mut goes: impl FnMut(&mut Tx, &K, &V) -> bool) -> usize {
        self.may_change(tx);
        let (_, count) = self.once(tx, ("sweep", count as u64), |map, _| map.places(count) as u64);
        for _ in 0..count {
            let (_, here) = self.once(tx, ("next place", ()), |map, _| map.next_place());
            if let Some((key, value)) = here
                && goes(tx, &key, &value)
            {
                self.once(tx, ("goes", key), |map, _| map.let_swept_go());
            }
        }
        count as usize
    }

    #[track_caller]
    fn owed(&mut self, tx: &mut Tx, now: u64) -> usize {
        self.may_change(tx);
        self.once(tx, ("owed", now), |map, tx| map.owed(tx, now) as u64).1 as usize
    }

    #[track_caller]
    fn mark(&mut self, tx: &mut Tx, ticket: &DelayedTicket<K>, marked: bool) {
        self.redeem(tx, ticket, Intent::Change);
        self.once(tx, ("mark", (Self::key(ticket), marked)), |map, tx| map.mark(tx, &ticket.ticket, marked));
    }

    #[track_caller]
    fn marked(&mut self, tx: &mut Tx) -> usize {
        self.once(tx, ("marked", ()), |map, tx| map.marked(tx) as u64).1 as usize
    }

    #[track_caller]
    fn take_marked(&mut self, tx: &mut Tx) -> Option<(K, V)> {
        self.may_change(tx);
        self.once(tx, ("take marked", ()), |map, tx| map.take_marked(tx)).1
    }

    #[track_caller]
    fn is_full(&mut self, tx: &mut Tx) -> bool {
        self.once(tx, ("is full", ()), |map, tx| map.is_full(tx)).1
    }

    fn len(&self) -> usize {
        self.entries().len()
    }
}

#[cfg(test)]
#[path = "objects_tests.rs"]
mod tests;

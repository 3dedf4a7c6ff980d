//! Shared objects: what is asked of them happens late, but in order, and none of it is lost.

use std::any::Any;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Tx;
use super::objects::KEYS;
use super::watch::{Promise, Watch, lock};
use crate::declare::Declaration;
use crate::engine::Key;
use crate::local::LocalSharedMap;
use crate::shared::{Op, Shared};
use crate::shared_map::{Entry, EntryOp, SharedMap};

/// Whoever holds an object.
struct Holder<V> {
    value: V,
    /// Replies that nobody has taken yet, by the operation's number.
    replies: BTreeMap<u64, Box<dyn Any + Send>>,
}

impl<V> Holder<V> {
    fn lock(holder: &Mutex<Self>) -> MutexGuard<'_, Self> {
        holder.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The way to an object that somebody else holds.
struct Remote<V> {
    holder: Arc<Mutex<Holder<V>>>,
    object: Declaration,
    watch: Arc<Mutex<Watch>>,
}

impl<V: Send + 'static> Remote<V> {
    fn new(value: V, object: Declaration, watch: &Arc<Mutex<Watch>>) -> Self {
        let holder = Arc::new(Mutex::new(Holder { value, replies: BTreeMap::new() }));
        Remote { holder, object, watch: Arc::clone(watch) }
    }

    #[track_caller]
    fn ask<R: Send + 'static>(
        &self,
        tx: Tx,
        key: Option<u64>,
        apply: impl FnOnce(&mut V) -> R + Send + 'static,
    ) -> Promise {
        let holder = Arc::clone(&self.holder);
        lock(&self.watch).ask_for(tx, self.object, key, move |number| {
            let mut holder = Holder::lock(&holder);
            let reply = apply(&mut holder.value);
            holder.replies.insert(number, Box::new(reply));
        })
    }

    #[track_caller]
    fn take<R: 'static>(&self, tx: Tx, promise: Promise) -> R {
        let number = lock(&self.watch).redeem(tx, self.object, promise, true);
        let reply = Holder::lock(&self.holder).replies.remove(&number);
        let reply = reply.and_then(|reply| reply.downcast().ok());
        *reply.unwrap_or_else(|| unreachable!("{}: an operation that is ready has been applied", self.object))
    }

    #[track_caller]
    fn send(&self, tx: Tx, key: Option<u64>, apply: impl FnOnce(&mut V) + Send + 'static) {
        let holder = Arc::clone(&self.holder);
        lock(&self.watch).send(tx, self.object, key, move || apply(&mut Holder::lock(&holder).value));
    }

    fn look<R>(&self, look: impl FnOnce(&V) -> R) -> R {
        lock(&self.watch).settle(self.object);
        look(&Holder::lock(&self.holder).value)
    }
}

/// The promise of a reply.
pub struct Asked<O> {
    promise: Promise,
    op: PhantomData<fn() -> O>,
}

impl<O> Clone for Asked<O> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<O> Copy for Asked<O> {}

/// A shared object.
pub struct DelayedShared<V>(Remote<V>);

impl<V: Send + 'static> DelayedShared<V> {
    pub(super) fn new(value: V, object: Declaration, watch: &Arc<Mutex<Watch>>) -> Self {
        DelayedShared(Remote::new(value, object, watch))
    }
}

impl<V: Send + 'static> Shared<V> for DelayedShared<V> {
    type Tx = Tx;
    type Ticket<O: Op<V>> = Asked<O>;

    #[track_caller]
    fn want<O: Op<V>>(&mut self, tx: Tx, op: O) -> Asked<O> {
        Asked { promise: self.0.ask(tx, None, move |value| op.apply(value)), op: PhantomData }
    }

    #[track_caller]
    fn got<O: Op<V>>(&mut self, tx: Tx, ticket: Asked<O>) -> O::Reply {
        self.0.take(tx, ticket.promise)
    }

    #[track_caller]
    fn send<O: Op<V, Reply = ()>>(&mut self, tx: Tx, op: O) {
        self.0.send(tx, None, move |value| op.apply(value));
    }

    fn look<R>(&self, look: impl FnOnce(&V) -> R) -> R {
        self.0.look(look)
    }
}

/// A map of shared entries: what is asked of different keys happens in any order.
pub struct DelayedSharedMap<K: Key, V: Entry>(Remote<LocalSharedMap<K, V>>);

impl<K: Key, V: Entry> DelayedSharedMap<K, V> {
    pub(super) fn new(map: LocalSharedMap<K, V>, object: Declaration, watch: &Arc<Mutex<Watch>>) -> Self {
        DelayedSharedMap(Remote::new(map, object, watch))
    }
}

impl<K: Key, V: Entry> SharedMap<K, V> for DelayedSharedMap<K, V> {
    type Tx = Tx;
    type Ticket<O: EntryOp<V>> = Asked<O>;

    #[track_caller]
    fn want<O: EntryOp<V>>(&mut self, tx: Tx, key: K, op: O) -> Asked<O> {
        let promise = self.0.ask(tx, Some(key.hash(&KEYS)), move |map| {
            let ticket = map.want((), key, op);
            map.got((), &ticket)
        });
        Asked { promise, op: PhantomData }
    }

    #[track_caller]
    fn got<O: EntryOp<V>>(&mut self, tx: Tx, ticket: &Asked<O>) -> O::Reply {
        self.0.take(tx, ticket.promise)
    }

    #[track_caller]
    fn send<O: EntryOp<V, Reply = ()>>(&mut self, tx: Tx, key: K, op: O) {
        self.0.send(tx, Some(key.hash(&KEYS)), move |map| map.send((), key, op));
    }

    #[track_caller]
    fn tidy(&mut self, tx: Tx, places: usize, now: u64) {
        self.0.send(tx, None, move |map| map.tidy((), places, now));
    }

    fn len(&self) -> usize {
        self.0.look(SharedMap::len)
    }

    fn tally(&self, event: usize) -> u64 {
        self.0.look(|map| map.tally(event))
    }
}

#[cfg(test)]
#[path = "shared_tests.rs"]
mod tests;

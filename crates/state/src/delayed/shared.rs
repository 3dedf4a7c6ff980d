//! Shared objects: what is asked of them happens late, elsewhere, but in order, and none of it is lost.

use std::marker::PhantomData;
use std::sync::{Arc, Mutex};

use super::asked::Promise;
use super::holder::{One, Request};
use super::made::{Kind, Made};
use super::objects::KEYS;
use super::watch::{Watch, lock};
use crate::engine::NoMemory;
use crate::key::Key;
use crate::local::LocalSharedMap;
use crate::plain::{Plain, bytes, value};
use crate::shared::{Held, Look, Op, Shared};
use crate::shared_map::{Entry, EntryOp, SharedMap};
use crate::tx::Tx;

/// The way to an object that somebody else holds.
struct Remote {
    /// Its number there.
    number: usize,
    object: Made,
    watch: Arc<Mutex<Watch>>,
}

/// Return what has these bytes, which come from somebody who has it.
fn read<R: Plain>(object: Made, reply: &[u8]) -> R {
    value(reply).unwrap_or_else(|| panic!("{object}: a reply of bytes that no such reply has"))
}

impl Remote {
    #[track_caller]
    fn ask(&self, tx: &mut Tx, key: Option<u64>, request: Request) -> Promise {
        lock(&self.watch).ask_for(tx, self.object, key, (self.number, request))
    }

    #[track_caller]
    fn take<R: Plain>(&self, tx: &mut Tx, promise: Promise) -> R {
        read(self.object, &lock(&self.watch).take(tx, self.object, promise))
    }

    #[track_caller]
    fn send(&self, tx: &mut Tx, key: Option<u64>, request: Request) {
        lock(&self.watch).send(tx, self.object, key, (self.number, request));
    }

    /// Ask after all that is on its way, and wait.
    #[track_caller]
    fn look<R: Plain>(&self, request: Request) -> R {
        let mut watch = lock(&self.watch);
        watch.look(self.object);
        read(self.object, &watch.post.look(self.object, (self.number, request)))
    }

    /// The same, but in the middle of a packet's operations before what is on its way has come.
    fn glance<R: Plain>(&self, request: Request) -> R {
        let mut watch = lock(&self.watch);
        let request = (self.number, request);
        let reply =
            if watch.is_at_a_packet() { watch.post.glance(request) } else { watch.post.look(self.object, request) };
        read(self.object, &reply)
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
pub struct DelayedShared<V> {
    remote: Remote,
    value: PhantomData<fn() -> V>,
}

impl<V: Held> DelayedShared<V> {
    #[track_caller]
    pub(super) fn new<X>(
        first: impl FnOnce() -> Result<V, X>,
        object: Made,
        watch: &Arc<Mutex<Watch>>,
    ) -> Result<Self, X> {
        let number = lock(watch).held(object, Kind::of::<V>(), || Ok(Box::new(One(first()?))))?;
        Ok(DelayedShared { remote: Remote { number, object, watch: Arc::clone(watch) }, value: PhantomData })
    }
}

impl<V: Held> Shared<V> for DelayedShared<V> {
    type Ticket<O: Op<V>> = Asked<O>;

    #[track_caller]
    fn want<O: Op<V>>(&mut self, tx: &mut Tx, op: O) -> Asked<O> {
        let promise = self.remote.ask(tx, None, Request::Apply { id: O::ID, op: bytes(&op) });
        Asked { promise, op: PhantomData }
    }

    #[track_caller]
    fn got<O: Op<V>>(&mut self, tx: &mut Tx, ticket: &Asked<O>) -> O::Reply {
        self.remote.take(tx, ticket.promise)
    }

    #[track_caller]
    fn send<O: Op<V, Reply = ()>>(&mut self, tx: &mut Tx, op: O) {
        self.remote.send(tx, None, Request::Apply { id: O::ID, op: bytes(&op) });
    }

    #[track_caller]
    fn look<L: Look<V>>(&self, look: L) -> L::Reply {
        self.remote.look(Request::Apply { id: L::ID, op: bytes(&look) })
    }

    fn glance<L: Look<V>>(&self, look: L) -> L::Reply {
        self.remote.glance(Request::Apply { id: L::ID, op: bytes(&look) })
    }
}

/// A map of shared entries: what is asked of different keys happens in any order.
pub struct DelayedSharedMap<K: Key, V: Entry> {
    remote: Remote,
    entry: PhantomData<fn() -> (K, V)>,
}

impl<K: Key, V: Entry> DelayedSharedMap<K, V> {
    pub(super) fn new(
        first: impl FnOnce() -> Result<LocalSharedMap<K, V>, NoMemory>,
        (object, kind): (Made, Kind),
        watch: &Arc<Mutex<Watch>>,
    ) -> Result<Self, NoMemory> {
        let number = lock(watch).held(object, kind, || Ok(Box::new(first()?)))?;
        Ok(DelayedSharedMap { remote: Remote { number, object, watch: Arc::clone(watch) }, entry: PhantomData })
    }
}

fn apply_to<K: Key, V: Entry, O: EntryOp<V>>(tx: &Tx, key: K, op: O) -> (Option<u64>, Request) {
    let (slot, hash) = (tx.slot.number(), key.hash(&KEYS));
    (Some(hash), Request::ApplyTo { slot, key: bytes(&key), id: O::ID, op: bytes(&op) })
}

impl<K: Key, V: Entry> SharedMap<K, V> for DelayedSharedMap<K, V> {
    type Ticket<O: EntryOp<V>> = Asked<O>;

    #[track_caller]
    fn want<O: EntryOp<V>>(&mut self, tx: &mut Tx, key: K, op: O) -> Asked<O> {
        let (key, request) = apply_to(tx, key, op);
        Asked { promise: self.remote.ask(tx, key, request), op: PhantomData }
    }

    #[track_caller]
    fn got<O: EntryOp<V>>(&mut self, tx: &mut Tx, ticket: &Asked<O>) -> O::Reply {
        self.remote.take(tx, ticket.promise)
    }

    #[track_caller]
    fn send<O: EntryOp<V, Reply = ()>>(&mut self, tx: &mut Tx, key: K, op: O) {
        let (key, request) = apply_to(tx, key, op);
        self.remote.send(tx, key, request);
    }

    #[track_caller]
    fn tidy(&mut self, tx: &mut Tx, places: usize, now: u64) {
        self.remote.send(tx, None, Request::Tidy { places, now });
    }

    #[track_caller]
    fn len(&self) -> usize {
        self.remote.look::<u64>(Request::Len) as usize
    }

    #[track_caller]
    fn tally(&self, event: usize) -> u64 {
        self.remote.look(Request::Tally(event))
    }
}

#[cfg(test)]
#[path = "shared_tests.rs"]
mod tests;

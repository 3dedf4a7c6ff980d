//! Shared objects: what is asked of them happens late, but in order, and none of it is lost.

use std::any::Any;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};

use super::Tx;
use super::watch::{Promise, Watch, lock};
use crate::shared::{Op, Shared};

/// Whoever holds the object.
struct Holder<V> {
    value: V,
    /// Replies that nobody has taken yet, by the operation's number.
    replies: BTreeMap<u64, Box<dyn Any + Send>>,
}

/// A shared object.
pub struct DelayedShared<V> {
    holder: Arc<Mutex<Holder<V>>>,
    name: &'static str,
    watch: Arc<Mutex<Watch>>,
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

impl<V: Send + 'static> DelayedShared<V> {
    pub(super) fn new(value: V, name: &'static str, watch: &Arc<Mutex<Watch>>) -> Self {
        let holder = Arc::new(Mutex::new(Holder { value, replies: BTreeMap::new() }));
        DelayedShared { holder, name, watch: Arc::clone(watch) }
    }
}

impl<V: Send + 'static> Shared<V> for DelayedShared<V> {
    type Tx = Tx;
    type Ticket<O: Op<V>> = Asked<O>;

    #[track_caller]
    fn want<O: Op<V>>(&mut self, tx: Tx, op: O) -> Asked<O> {
        let holder = Arc::clone(&self.holder);
        let promise = lock(&self.watch).ask_for(tx, self.name, move |number| {
            let mut holder = holder.lock().unwrap_or_else(PoisonError::into_inner);
            let reply = op.apply(&mut holder.value);
            holder.replies.insert(number, Box::new(reply));
        });
        Asked { promise, op: PhantomData }
    }

    #[track_caller]
    fn got<O: Op<V>>(&mut self, tx: Tx, ticket: Asked<O>) -> O::Reply {
        let number = lock(&self.watch).redeem(tx, self.name, ticket.promise, true);
        let reply = self.holder.lock().unwrap_or_else(PoisonError::into_inner).replies.remove(&number);
        let reply = reply.and_then(|reply| reply.downcast().ok());
        *reply.unwrap_or_else(|| unreachable!("{}: an operation that is ready has been applied", self.name))
    }

    #[track_caller]
    fn send<O: Op<V, Reply = ()>>(&mut self, tx: Tx, op: O) {
        let holder = Arc::clone(&self.holder);
        lock(&self.watch).send(tx, self.name, move || {
            op.apply(&mut holder.lock().unwrap_or_else(PoisonError::into_inner).value);
        });
    }

    fn look<R>(&self, look: impl FnOnce(&V) -> R) -> R {
        lock(&self.watch).settle(self.name);
        look(&self.holder.lock().unwrap_or_else(PoisonError::into_inner).value)
    }
}

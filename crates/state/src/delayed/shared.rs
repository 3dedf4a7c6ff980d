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

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::super::Delayed;
    use super::*;
    use crate::engine::{Engine, Share};
    use catena_packet::wire::Seed;

    /// Append a number; answers how many there are then.
    #[derive(Clone, Copy)]
    struct Append(u32);

    impl Op<Vec<u32>> for Append {
        type Reply = usize;

        fn apply(self, list: &mut Vec<u32>) -> usize {
            list.push(self.0);
            list.len()
        }
    }

    /// The same, and answers nothing.
    #[derive(Clone, Copy)]
    struct Note(u32);

    impl Op<Vec<u32>> for Note {
        type Reply = ();

        fn apply(self, list: &mut Vec<u32>) {
            list.push(self.0);
        }
    }

    fn late(seed: u64) -> (Delayed, DelayedShared<Vec<u32>>) {
        let mut engine = Delayed::new(Seed::from_number(1), Share::WHOLE, seed);
        let list = engine.shared("list", Vec::new());
        (engine, list)
    }

    #[test]
    fn operations_are_applied_late_but_in_order_and_all_of_them() {
        let mut was_late = false;
        for seed in 0..100 {
            let (mut engine, mut list) = late(seed);
            let mut waiting = Vec::new();
            for n in 0..50 {
                let tx = engine.begin(0);
                let ticket = (n % 3 == 0).then(|| list.want(tx, Append(n)));
                engine.issue(tx);
                engine.step(tx);
                match ticket {
                    Some(ticket) => waiting.push((tx, ticket, n)),
                    None => {
                        list.send(tx, Note(n));
                        engine.end(tx);
                    }
                }
                waiting.retain(|(tx, ticket, n)| {
                    let waits = !engine.is_ready(*tx);
                    if !waits {
                        assert_eq!(list.got(*tx, *ticket), *n as usize + 1);
                        engine.end(*tx);
                    }
                    waits
                });
                was_late |= waiting.len() > 1;
                engine.poll();
            }
            assert_eq!(list.look(Vec::clone), (0..50).collect::<Vec<_>>());
        }
        assert!(was_late);
    }

    #[test]
    fn who_is_given_up_has_done_nothing() {
        let (mut engine, mut list) = late(1);
        let tx = engine.begin(0);
        list.want(tx, Append(1));
        engine.end(tx);
        assert_eq!(list.look(Vec::len), 0);
    }

    #[test]
    fn what_a_function_must_not_do_is_found() {
        let said = |wrong: fn(&mut Delayed, &mut DelayedShared<Vec<u32>>)| {
            let (mut engine, mut list) = late(1);
            let panic = catch_unwind(AssertUnwindSafe(|| wrong(&mut engine, &mut list))).unwrap_err();
            panic.downcast_ref::<String>().cloned().unwrap()
        };
        let at_once = said(|engine, list| {
            let tx = engine.begin(0);
            let ticket = list.want(tx, Append(1));
            list.got(tx, ticket);
        });
        assert!(at_once.starts_with("list: a ticket is used in prepare, at "), "{at_once}");
        let twice = said(|engine, list| {
            let tx = engine.begin(0);
            let ticket = list.want(tx, Append(1));
            engine.issue(tx);
            (0..10).for_each(|_| engine.poll());
            engine.step(tx);
            list.got(tx, ticket);
            list.got(tx, ticket);
        });
        assert!(twice.starts_with("list: a ticket is used twice, at "), "{twice}");
        let left = said(|engine, list| {
            let tx = engine.begin(0);
            list.want(tx, Append(1));
            engine.issue(tx);
            engine.end(tx);
        });
        assert_eq!(left, "list: nobody has taken the reply of an operation");
        let early = said(|engine, list| {
            let tx = engine.begin(0);
            list.send(tx, Note(1));
        });
        assert!(early.starts_with("list: changed in prepare, at "), "{early}");
    }
}

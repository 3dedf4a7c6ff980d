//! Shared objects: one worker owns each, and the others send it what is to be done.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use catena_packet::Slot;

use super::desk::{Address, Desk, Owned};
use crate::key::Key;
use crate::local::LocalSharedMap;
use crate::plain::{self, Plain};
use crate::shared::{Held, Look, Op, Shared};
use crate::shared_map::{Entry, EntryOp, SharedMap};
use crate::tx::Tx;

/// What one worker uses while packets flow, others at the end. So nobody waits for it.
pub(super) type Kept<T> = Arc<Mutex<T>>;

pub(super) fn open<T>(kept: &Kept<T>) -> MutexGuard<'_, T> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The place of an object: which one it is, whose, and this worker's way there.
#[derive(Clone)]
pub(super) struct Place {
    pub(super) desk: Kept<Desk>,
    pub(super) owner: usize,
    pub(super) object: u16,
    /// Whether this worker owns it.
    pub(super) is_mine: bool,
}

impl Place {
    fn address(&self, id: u16) -> Address {
        Address { owner: self.owner, object: self.object, id }
    }

    fn take<R: Plain>(&self, number: u32) -> R {
        let reply = open(&self.desk).take(number, plain::value);
        reply
            .unwrap_or_else(|| unreachable!("a reply of object {} has other bytes: both are of one build", self.object))
    }
}

/// The promise of a reply: its number, or the operation itself where each worker has a part of the object.
#[derive(Clone, Copy, Debug)]
pub struct PeersAsked<T> {
    own: T,
    number: u32,
}

/// A shared object.
pub struct PeersShared<V> {
    place: Place,
    value: Kept<V>,
    /// Of one that is written mostly, and can be put together of parts, each worker has a part: these are all of them.
    parts: Option<Parts<V>>,
}

/// The parts of an object.
pub(super) type Parts<V> = Kept<Vec<Kept<V>>>;

impl<V: Held> Owned for Kept<V> {
    fn answer(&mut self, _key: &[u8], id: u16, op: &[u8], reply: &mut Vec<u8>) -> Option<()> {
        open(self).operate(id, op, reply)
    }
}

impl<V: Held> PeersShared<V> {
    pub(super) fn new(place: Place, value: Kept<V>) -> Self {
        if place.is_mine {
            open(&place.desk).own(place.object, Box::new(Arc::clone(&value)));
        }
        PeersShared { place, value, parts: None }
    }

    /// Make a worker's part of an object.
    pub(super) fn of_parts(place: Place, part: V, parts: Parts<V>) -> Self {
        let value = Arc::new(Mutex::new(part));
        open(&parts).push(Arc::clone(&value));
        PeersShared { place: Place { is_mine: true, ..place }, value, parts: Some(parts) }
    }

    /// Put the parts together, where it has parts.
    fn gather(&self) {
        let Some(parts) = &self.parts else { return };
        // Nobody else gathers meanwhile.
        for part in open(parts).iter().filter(|part| !Arc::ptr_eq(part, &self.value)) {
            open(&self.value).absorb(&mut open(part));
        }
    }
}

impl<V: Held> Shared<V> for PeersShared<V> {
    type Ticket<O: Op<V>> = PeersAsked<O>;

    fn want<O: Op<V>>(&mut self, tx: &mut Tx, op: O) -> PeersAsked<O> {
        let mut number = 0;
        if self.parts.is_none() {
            number = open(&self.place.desk).ask(tx, self.place.address(O::ID), |bytes| {
                op.write(bytes);
                0
            });
        }
        PeersAsked { own: op, number }
    }

    fn got<O: Op<V>>(&mut self, _tx: &mut Tx, ticket: &PeersAsked<O>) -> O::Reply {
        if self.parts.is_some() {
            return ticket.own.apply(&mut open(&self.value));
        }
        self.place.take(ticket.number)
    }

    fn send<O: Op<V, Reply = ()>>(&mut self, tx: &mut Tx, op: O) {
        if self.parts.is_some() {
            return op.apply(&mut open(&self.value));
        }
        open(&self.place.desk).tell(tx, self.place.address(O::ID), |bytes| {
            op.write(bytes);
            0
        });
    }

    fn look<L: Look<V>>(&self, look: L) -> L::Reply {
        self.gather();
        look.look(&open(&self.value))
    }
}

#[cfg(test)]
impl<V> PeersShared<V> {
    /// Look at the value.
    pub(super) fn look_at<R>(&self, look: impl FnOnce(&V) -> R) -> R {
        look(&open(&self.value))
    }
}

/// A map of shared entries.
pub struct PeersSharedMap<K: Key, V: Entry> {
    place: Place,
    map: Kept<LocalSharedMap<K, V>>,
}

/// The owner's side of a map.
struct Entries<K: Key, V: Entry>(Kept<LocalSharedMap<K, V>>);

impl<K: Key, V: Entry> Owned for Entries<K, V> {
    fn answer(&mut self, key: &[u8], id: u16, op: &[u8], reply: &mut Vec<u8>) -> Option<()> {
        // Nothing of a replay goes with slots.
        open(&self.0).operate((Slot::NONE, key), id, op, reply)
    }
}

impl<K: Key, V: Entry> PeersSharedMap<K, V> {
    pub(super) fn new(place: Place, map: Kept<LocalSharedMap<K, V>>) -> Self {
        if place.is_mine {
            open(&place.desk).own(place.object, Box::new(Entries(Arc::clone(&map))));
        }
        PeersSharedMap { place, map }
    }
}

fn write<K: Key, O: Plain>(key: &K, op: &O) -> impl FnOnce(&mut Vec<u8>) -> usize {
    let (key, op) = (*key, *op);
    move |bytes| {
        key.write(bytes);
        op.write(bytes);
        K::BYTES
    }
}

impl<K: Key, V: Entry> SharedMap<K, V> for PeersSharedMap<K, V> {
    type Ticket<O: EntryOp<V>> = PeersAsked<O>;

    fn want<O: EntryOp<V>>(&mut self, tx: &mut Tx, key: K, op: O) -> PeersAsked<O> {
        let number = open(&self.place.desk).ask(tx, self.place.address(O::ID), write(&key, &op));
        PeersAsked { own: op, number }
    }

    fn got<O: EntryOp<V>>(&mut self, _tx: &mut Tx, ticket: &PeersAsked<O>) -> O::Reply {
        self.place.take(ticket.number)
    }

    fn send<O: EntryOp<V, Reply = ()>>(&mut self, tx: &mut Tx, key: K, op: O) {
        open(&self.place.desk).tell(tx, self.place.address(O::ID), write(&key, &op));
    }

    /// The owner's events look at its entries, and nobody else's need to.
    fn tidy(&mut self, tx: &mut Tx, most: usize, now: u64) {
        if self.place.is_mine {
            open(&self.map).tidy(tx, most, now);
        }
    }

    fn len(&self) -> usize {
        open(&self.map).len()
    }

    fn tally(&self, event: usize) -> u64 {
        open(&self.map).tally(event)
    }
}

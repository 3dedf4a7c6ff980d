//! Shared entries of one worker: its own.

use catena_packet::{Slot, SlotSet};

use super::{LocalMap, LocalTicket};
use crate::engine::{Fate, FlowMap, Full};
use crate::key::Key;
use crate::looks;
use crate::mover::Moved;
use crate::plain::value;
use crate::shared_map::{Entry, EntryOp, Place, SharedMap, TALLIES};
use crate::tx::Tx;

/// A map of shared entries in the worker's own memory.
pub struct LocalSharedMap<K: Key, V: Entry> {
    pub(super) map: LocalMap<K, V>,
    own: Own<V>,
}

/// What stands beside the entries.
struct Own<V: Entry> {
    rules: V::Rules,
    tallies: [u64; TALLIES],
}

/// The promise of a reply: the operation, applied when it is taken. Then all packets before are done.
#[derive(Clone, Copy, Debug)]
pub struct LocalAsked<K, O> {
    place: LocalTicket<K>,
    op: O,
}

struct LocalPlace<'a, K: Key, V: Entry> {
    map: &'a mut LocalMap<K, V>,
    own: &'a mut Own<V>,
    place: LocalTicket<K>,
    /// That of the packet that asks.
    slot: Slot,
}

impl<K: Key, V: Entry> LocalSharedMap<K, V> {
    /// Make a map of the entries of `map`.
    pub(super) fn new(map: LocalMap<K, V>, rules: V::Rules) -> Self {
        LocalSharedMap::with(map, rules, [0; TALLIES])
    }

    /// Make a map of the entries of `map`, which has counted so often.
    pub(super) fn with(map: LocalMap<K, V>, rules: V::Rules, tallies: [u64; TALLIES]) -> Self {
        LocalSharedMap { map, own: Own { rules, tallies } }
    }

    pub(super) fn rules(&self) -> &V::Rules {
        &self.own.rules
    }

    pub(super) fn tallies(&self) -> [u64; TALLIES] {
        self.own.tallies
    }

    /// Look at up to `most` entries whose end may have come, and forget those that are over.
    #[inline(always)]
    pub(crate) fn forget_some(&mut self, most: usize, now: u64) {
        forget_some(&mut self.map, &self.own.rules, most, now);
    }

    #[inline(always)]
    fn apply<O: EntryOp<V>>(&mut self, slot: Slot, place: LocalTicket<K>, op: O) -> O::Reply {
        op.apply(&mut LocalPlace { map: &mut self.map, own: &mut self.own, place, slot })
    }

    /// Apply the operation with this number and these bytes, of a packet of this slot, to the entry of the key with those, and append
    /// its reply's bytes to `reply`; `None`, and nothing done, where it is none.
    pub(crate) fn operate(
        &mut self,
        (slot, key): (Slot, &[u8]),
        id: u16,
        op: &[u8],
        reply: &mut Vec<u8>,
    ) -> Option<()> {
        let place = self.map.ticket(value(key)?);
        V::operate(&mut LocalPlace { map: &mut self.map, own: &mut self.own, place, slot }, id, op, reply)
    }
}

#[inline(always)]
fn forget_some<K: Key, V: Entry>(map: &mut LocalMap<K, V>, rules: &V::Rules, most: usize, now: u64) {
    map.expire_by(now, most, |_, _, entry| match entry.end(rules) {
        end if end <= now => Fate::Over,
        end => Fate::Until(end),
    });
}

impl<K: Key, V: Entry> Place<V> for LocalPlace<'_, K, V> {
    #[inline(always)]
    fn rules(&self) -> &V::Rules {
        &self.own.rules
    }

    #[inline(always)]
    fn get(&mut self) -> Option<&mut V> {
        self.map.value(&self.place)
    }

    #[inline]
    fn insert(&mut self, now: u64, value: V) -> Result<&mut V, Full> {
        if self.map.len() >= self.map.limit() {
            forget_some(self.map, &self.own.rules, looks::MOST, now);
        }
        let until = value.end(&self.own.rules);
        self.map.put_in((self.slot, now), &self.place, value, until)
    }

    fn remove(&mut self) -> Option<V> {
        self.map.take(&self.place)
    }

    fn tally(&mut self, event: usize) {
        self.own.tallies[event] += 1;
    }
}

impl<K: Key, V: Entry> SharedMap<K, V> for LocalSharedMap<K, V> {
    type Ticket<O: EntryOp<V>> = LocalAsked<K, O>;

    #[inline(always)]
    fn want<O: EntryOp<V>>(&mut self, _tx: &mut Tx, key: K, op: O) -> LocalAsked<K, O> {
        LocalAsked { place: self.map.ticket(key), op }
    }

    #[inline(always)]
    fn warm<O: EntryOp<V>>(&mut self, ticket: &mut LocalAsked<K, O>) {
        self.map.warm(&mut ticket.place);
    }

    #[inline(always)]
    fn got<O: EntryOp<V>>(&mut self, tx: &mut Tx, ticket: &LocalAsked<K, O>) -> O::Reply {
        self.apply(tx.slot, ticket.place, ticket.op)
    }

    #[inline(always)]
    fn send<O: EntryOp<V, Reply = ()>>(&mut self, tx: &mut Tx, key: K, op: O) {
        let place = self.map.ticket(key);
        self.apply(tx.slot, place, op);
    }

    #[inline(always)]
    fn tidy(&mut self, _tx: &mut Tx, most: usize, now: u64) {
        self.forget_some(most, now);
    }

    fn leave(&mut self, slots: &SlotSet, each: &mut dyn FnMut(Moved<K, V>)) {
        self.map.leave_by(slots, |_, moved| each(moved));
    }

    fn arrive(&mut self, now: u64, moved: Moved<K, V>) -> Result<(), Full> {
        self.map.arrive_by(now, &moved)
    }

    fn len(&self) -> usize {
        self.map.len()
    }

    fn tally(&self, event: usize) -> u64 {
        self.own.tallies[event]
    }
}

//! Shared objects with an entry for each key: what many flows, and several instances, have in common, and have by source, by
//! destination or the like.
//!
//! Operations of one flow on one key are applied in the order of its packets. Those on different keys may be applied in any
//! order, by different holders: a map may be cut in parts by its keys. Each part has its own room, and its own tallies: who gets
//! the last place depends on the order of all.

use catena_packet::SlotSet;

use crate::engine::Full;
use crate::key::Key;
use crate::mover::Moved;
use crate::plain::Plain;
use crate::shared::Numbered;
use crate::tx::Tx;

/// An entry of a [`SharedMap`].
pub trait Entry: EntryHeld {
    /// What all entries have in common: rates, times, bounds. It is given with the map, and never changes.
    type Rules: Plain;

    /// Return when the entry is over, in ns since 1970. Whoever holds it may forget it then: no operation of that time or later
    /// may tell it from none.
    fn end(&self, rules: &Self::Rules) -> u64;

    /// Return whether the entry is over at a time.
    #[inline]
    fn is_over(&self, rules: &Self::Rules, now: u64) -> bool {
        self.end(rules) <= now
    }
}

/// What operations are applied to by key, when they come as bytes. [`entry_operations!`](crate::entry_operations) writes it.
pub trait EntryHeld: Plain {
    /// What kind of entry it is, wherever it is held. Whose layout is another one, or whose rules' is, has another name.
    const NAME: &'static str;

    /// Apply the operation with this number and these bytes, and append its reply's bytes to `reply`; `None`, and nothing
    /// done, where it is none.
    fn operate(place: &mut impl Place<Self>, id: u16, op: &[u8], reply: &mut Vec<u8>) -> Option<()>
    where
        Self: Entry;
}

/// An operation on the entry of a key, which may be none. It is pure, as an [`Op`](crate::Op) is.
pub trait EntryOp<V: Entry>: Numbered<V> + Plain {
    /// What it answers; an operation that answers nothing is waited for by nobody.
    type Reply: Plain;

    /// Apply it.
    fn apply(self, place: &mut impl Place<V>) -> Self::Reply;
}

/// Name a kind of entry, and list the operations on it, each with a number that it keeps, as [`operations!`](crate::operations) does.
#[macro_export]
macro_rules! entry_operations {
    ($name:literal: $value:ty { $($id:literal => $op:ty),* $(,)? }) => {
        impl $crate::EntryHeld for $value {
            const NAME: &'static str = $name;

            fn operate(
                place: &mut impl $crate::Place<Self>,
                id: u16,
                op: &[u8],
                reply: &mut Vec<u8>,
            ) -> Option<()> {
                match id {
                    $($id => {
                        let op: $op = $crate::plain::value(op)?;
                        $crate::Plain::write(&$crate::EntryOp::apply(op, place), reply);
                    })*
                    _ => return None,
                }
                Some(())
            }
        }
        $(impl $crate::Numbered<$value> for $op {
            const ID: u16 = $id;
        })*
    };
}

/// How many events a map counts.
pub const TALLIES: usize = 4;

/// The place of a key.
pub trait Place<V: Entry> {
    /// Return what all entries have in common.
    fn rules(&self) -> &V::Rules;

    /// Return the entry.
    fn get(&mut self) -> Option<&mut V>;

    /// Put an entry where there is none. In a full map entries are looked for before that are over at `now`, for some
    /// milliseconds at least.
    ///
    /// # Errors
    /// [`Full`] when the map holds as many entries as it may.
    fn insert(&mut self, now: u64, value: V) -> Result<&mut V, Full>;

    /// Take the entry out; its place is free for another.
    fn remove(&mut self) -> Option<V>;

    /// Count an event: one of [`TALLIES`].
    fn tally(&mut self, event: usize);
}

/// A shared object with an entry for each key.
pub trait SharedMap<K: Key, V: Entry>: Send {
    /// The promise of a reply.
    type Ticket<O: EntryOp<V>>: Copy + Send;

    /// Ask for an operation. It is applied before the packet's next step, if the packet gets so far; the reply is taken
    /// in that step.
    fn want<O: EntryOp<V>>(&mut self, tx: &mut Tx, key: K, op: O) -> Self::Ticket<O>;

    /// Bring near what an operation needs, a while after [`Self::want`] and before its reply is taken. Only a hint.
    fn warm<O: EntryOp<V>>(&mut self, _ticket: &mut Self::Ticket<O>) {}

    /// Take the reply.
    fn got<O: EntryOp<V>>(&mut self, tx: &mut Tx, ticket: &Self::Ticket<O>) -> O::Reply;

    /// Ask for an operation that nobody waits for; not in *prepare*, which may be all there is of a packet. Those that an instance tells
    /// one key are applied in the order in which they are told.
    fn send<O: EntryOp<V, Reply = ()>>(&mut self, tx: &mut Tx, key: K, op: O);

    /// Look at up to `most` entries whose end may have come, and forget those that are over.
    fn tidy(&mut self, tx: &mut Tx, most: usize, now: u64);

    /// Take out all entries of some slots, which go to another instance. Where all instances see the map, none has to go.
    fn leave(&mut self, _slots: &SlotSet, _each: &mut dyn FnMut(Moved<K, V>)) {}

    /// Take in an entry of another instance's, at a time in ns since 1970.
    ///
    /// # Errors
    /// [`Full`] where it finds no room.
    fn arrive(&mut self, _now: u64, _moved: Moved<K, V>) -> Result<(), Full> {
        Ok(())
    }

    /// Return the number of entries, as far as it is known: for tables and exports, never for a packet's fate.
    fn len(&self) -> usize;

    /// Return whether no entry is known.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Return how often an event was counted, as far as it is known.
    fn tally(&self, event: usize) -> u64;
}

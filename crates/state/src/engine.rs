//! What a function may ask of the engine that holds its state.
//!
//! Reads that decide what happens to a packet come in two halves: a `want_…` in *prepare*, which returns a
//! ticket, and the use of the ticket in *finish*. Operations whose result nobody reads have one half, and
//! are non-blocking in every engine by construction. What an owner does to keep its entries in order (sweeps, evictions) needs no
//! ticket. Every operation is given the packet's
//! [`Tx`], which knows the packet's logical clock and counts the operations: (clock, gate, object, index)
//! is an operation's name in engines that log, replay or order operations. Locally it is nothing.

use std::any::Any;
use std::convert::Infallible;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use catena_packet::SlotSet;
use catena_packet::wire::{FlowKey, Seed};

use crate::board::{Board, Room};
use crate::claims::Claims;
use crate::declare::{Declaration, Object};
use crate::key::Key;
use crate::mover::Moved;
use crate::outlet::{Outlet, Sink};
use crate::plain::Plain;
use crate::shared::{Held, Shared};
use crate::shared_map::{Entry, SharedMap};
use crate::two_keys::{Other, TwoKeyMap};
use crate::tx::Tx;

/// What a packet will do with an entry at most. An engine fetches, locks or copies it accordingly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Intent {
    /// Read it, if it is there.
    Read,
    /// Change it or take it out, if it is there.
    Change,
    /// Put it in, too, if it is not there.
    Create,
}

/// The end of an entry that lasts until it is taken out.
pub const FOREVER: u64 = u64::MAX;

/// What becomes of an entry whose end may have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate<V> {
    /// It is over, and goes.
    Over,
    /// It stays as it is, until this time in ns since 1970 at least.
    Until(u64),
    /// It goes on with another value, until this time at least.
    Becomes(V, u64),
}

/// The table holds as many entries as it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// The system has not the memory that an object would take at most, which is asked for once, at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoMemory {
    /// The object's name.
    pub object: &'static str,
    /// Entries that were asked for.
    pub entries: usize,
}

impl std::fmt::Display for NoMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the system has no memory for {} entries of `{}`", self.entries, self.object)
    }
}

impl std::error::Error for NoMemory {}

/// Which part of a function's state an instance holds, when several instances share the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Plain)]
pub struct Share {
    /// This instance, from 0.
    pub index: u32,
    /// Number of instances, at least 1.
    pub count: u32,
}

impl Share {
    /// The share of an instance that works alone.
    pub const WHOLE: Share = Share { index: 0, count: 1 };

    /// Return this instance's part of what all instances may have together. The parts add up to the total, and no two differ by
    /// more than one; where the total is less than their count, some are 0.
    pub fn part_of(self, total: u64) -> u64 {
        let count = u64::from(self.count.max(1));
        let (part, left) = (total / count, total % count);
        if u64::from(self.index) < left { part + 1 } else { part }
    }
}

/// A state engine: where objects live and how operations reach them.
///
/// # Steps and waiting
///
/// What a packet asks for in *prepare* is there when its first *finish* begins; what it asks for in a *finish* that
/// returns without a verdict, when the next one begins. Between them the engine may let the packet wait: it says
/// [`Self::is_ready`] of what was [issued](Self::issue). Other packets go on meanwhile, but none whose operations [follow](Self::follows) those of a
/// packet that waits.
pub trait Engine: Send + 'static {
    /// Whether packets may have to wait for operations. Where not, nothing of that is compiled in.
    const WAITS: bool;
    /// Whether functions are watched: what they must not do is found, at a price.
    const WATCHES: bool = false;
    /// Whether a function's instance may be lost at an operation, while its objects stay: the operation panics then with what
    /// [`Self::is_loss`] knows. Who runs the function makes it anew after [`Self::begin_again`], and gives it once more all packets
    /// and events that are not [committed](Self::commit): what they have done is answered as it was then, and not done again.
    const CRASHES: bool = false;

    /// Whether all instances of a function look at the same shared objects: what one of them tells of these is told of all.
    const ALL_SEE: bool = false;

    /// The promise of an entry, whatever the entry is.
    type Ticket<K: Key>: Copy + Send;
    /// Per-flow entries.
    type FlowMap<K: Key, V: Plain>: FlowMap<K, V, Ticket = Self::Ticket<K>>;
    /// The same, with two keys each.
    type TwoKeyMap<K: Key, V: Plain, X: Other<K, V>>: TwoKeyMap<K, V, X, Ticket = Self::Ticket<K>, OtherTicket = Self::Ticket<X::Key>>;
    /// What is reached by operations alone.
    type Shared<V: Held>: Shared<V>;
    /// The same, by key.
    type SharedMap<K: Key, V: Entry>: SharedMap<K, V>;
    /// The way of what a function tells the world.
    type Outlet<S: Sink>: Outlet<S>;

    /// Begin the operations of a packet or an event, which the engine may mark as its own. Where nobody waits and nothing is
    /// counted, a packet's may be begun again in each step.
    fn begin(&mut self, tx: Tx) -> Tx;

    /// See of which flow a packet is, as it came in by gate 0, before it asks for anything: where functions are watched, and for
    /// packets that say so themselves, which fragments and ICMP do not.
    fn sees(&mut self, _tx: &Tx, _flow: FlowKey) {}

    /// Note that all packets up to this clock have begun, this worker's and others': what events tell comes after them.
    fn has_come_to(&mut self, _clock: u64) {}

    /// Send off the operations that a packet has asked for since the last time: it will be brought to its end, and all packets
    /// that it follows have been. One that is given up before, by [`Self::end`], has done nothing. Entries may be fetched from
    /// [`FlowMap::want`] on.
    fn issue(&mut self, _tx: &mut Tx) {}

    /// Let a packet's next step begin: what it has asked for so far may be used.
    fn step(&mut self, _tx: &mut Tx) {}

    /// Take note that all operations of a packet or event are done, and its fate is decided: what it has told the world may be told
    /// now. Where nobody waits, it is told at once, and only events call this.
    #[inline(always)]
    fn commit(&mut self, _tx: &mut Tx) {}

    /// End the operations of a packet: they are committed, or given up.
    fn end(&mut self, _tx: Tx) {}

    /// Return whether a panic is the loss of an instance.
    fn is_loss(_panic: &(dyn Any + Send)) -> bool {
        false
    }

    /// Return whether a packet's next step had begun before its instance was lost. Then all that it asks for until that step is
    /// there, and it goes through that step before anybody goes on: a step is never left half done while others come between.
    fn has_stepped(&self, _tx: &Tx) -> bool {
        false
    }

    /// Forget the instances that were made, and what they had begun, but neither objects nor what was done. Then they are made
    /// anew, each [for its name](Self::make_for), and get the objects that are there.
    fn begin_again(&mut self) {}

    /// Let all that was sent off be done, after the last packet.
    ///
    /// # Errors
    /// What was lost, in words for the user.
    fn close(&mut self) -> Result<(), String> {
        Ok(())
    }

    /// Return whether who holds the objects is gone for good, so that nothing comes any more of what was asked, and [`Self::close`] has words for
    /// it. Who waits is given up then, whatever it has begun; who comes is let in no more; and nothing is tidied. While it may
    /// come back it is only late.
    #[inline(always)]
    fn is_gone(&self) -> bool {
        false
    }

    /// Wait a moment: somebody has nothing else to do until [`Self::poll`] brings something. An engine may sleep on what brings it.
    fn rest(&mut self) {
        std::thread::yield_now();
    }

    /// Bring on its way what was told. [`Self::poll`] and [`Self::issue`] do so, too.
    fn flush(&mut self) {}

    /// Return the clock of the earliest packet of which something is still to be sent to others, where order matters.
    fn first_unsent(&self) -> Option<u64> {
        None
    }

    /// Take in what has become of operations; returns whether anything was there for packets of this worker, so that one that was
    /// not ready may be now.
    fn poll(&mut self) -> bool {
        true
    }

    /// Return whether all that a packet has asked for is there. An operation that was not sent off is not.
    fn is_ready(&mut self, _tx: &Tx) -> bool {
        true
    }

    /// Return whether a packet has asked for an entry that an `earlier` one, which waits, has asked for as well. So it has if it
    /// has asked for an operation, and that of the earlier one on the same object and key was not sent off yet.
    fn follows(&self, _tx: &Tx, _earlier: &Tx) -> bool {
        false
    }

    /// Return whether packets leave in the order in which they came, though one that comes later has its fate before: in a replay
    /// what comes behind the function must not depend on who waits.
    fn keeps_order(&self) -> bool {
        false
    }

    /// Return the marks of what a packet has asked for, in that order, and whether there are others: where these are all, it
    /// [follows](Self::follows) none of whose marks, all of them too, it has none. `None` where nothing has marks.
    fn marks<'tx>(&self, _tx: &'tx Tx) -> Option<(&'tx [u16], bool)> {
        None
    }

    /// Say whose the objects are that are made from now on: an instance of a function, by its name. A shared object is known by
    /// that and by its declaration, wherever it is held; a flow map, whose entries have one owner, by the instance's
    /// [share](Self::share) as well.
    fn make_for(&mut self, _instance: &str) {}

    /// Make an empty map for up to `capacity` entries.
    ///
    /// # Errors
    /// [`NoMemory`] where so many find no room.
    fn flow_map<K: Key, V: Plain>(
        &mut self,
        object: &Declaration,
        capacity: usize,
    ) -> Result<Self::FlowMap<K, V>, NoMemory>;

    /// Make an empty map for up to `capacity` entries with two keys, which are declared one after the other: the entries, and who has
    /// which other key.
    ///
    /// # Errors
    /// [`NoMemory`] where so many find no room.
    fn two_key_map<K: Key, V: Plain, X: Other<K, V>>(
        &mut self,
        objects: [&Declaration; 2],
        capacity: usize,
    ) -> Result<Self::TwoKeyMap<K, V, X>, NoMemory>;

    /// Make a shared object of its first value.
    fn shared<V: Held>(&mut self, object: &Declaration, value: V) -> Self::Shared<V> {
        let Ok(shared) = self.shared_of(object, || Ok::<V, Infallible>(value));
        shared
    }

    /// Make a shared object of its first value, which is worked out where there is no object yet, or to be held against that of the
    /// instance that came first: it is the same in all. One that is there is known when this returns: until the first packet,
    /// [`Shared::look`] answers what it was then.
    ///
    /// # Errors
    /// Why there is no such value.
    fn shared_of<V: Held, X>(
        &mut self,
        object: &Declaration,
        first: impl FnOnce() -> Result<V, X>,
    ) -> Result<Self::Shared<V>, X>;

    /// Make an empty map of shared entries, up to `capacity`, with what all of them have in common.
    ///
    /// # Errors
    /// [`NoMemory`] where so many find no room.
    fn shared_map<K: Key, V: Entry>(
        &mut self,
        object: &Declaration,
        capacity: usize,
        rules: V::Rules,
    ) -> Result<Self::SharedMap<K, V>, NoMemory>;

    /// Make an outlet to this sink; who makes it once more, as the instance was lost, gets the one to the sink that is there.
    fn outlet<S: Sink>(&mut self, object: &Declaration, sink: S) -> Self::Outlet<S>;

    /// Make the board on which this instance writes so many numbers that belong to an object, and sees all others'. Where there is
    /// none, the object is the only one, or knows all by itself.
    fn board(&mut self, _object: &Declaration, _numbers: usize) -> Option<Board> {
        None
    }

    /// Return the room that instances leave to each other which have parts of an object.
    fn room(&self, _object: &Declaration) -> Room {
        Room::default()
    }

    /// Return where the instances say of `count` things with numbers, which belong to an object, for which slot each is; `None` where
    /// nobody asks.
    ///
    /// # Errors
    /// [`NoMemory`] for so many.
    fn claims(&self, _object: &Declaration, _count: usize) -> Result<Option<Arc<Claims>>, NoMemory> {
        Ok(None)
    }

    /// Return whether slots go from one instance to another, with what objects have of their flows.
    fn moves(&self) -> bool {
        false
    }

    /// Return how many maps were made whose entries this instance has to itself: they go with their slots.
    fn own_maps(&self) -> usize {
        0
    }

    /// Return the share of the work that this instance has.
    fn share(&self) -> Share;

    /// Return which part an object has of what all instances may have together: the whole where all of them see the same one, else
    /// this instance's [share](Self::share).
    fn share_of(&self, object: &Declaration) -> Share {
        let is_shared = matches!(object.object, Object::Shared | Object::SharedMap);
        if Self::ALL_SEE && is_shared { Share::WHOLE } else { self.share() }
    }

    /// Return what keys are hashed with: secret where traffic may be hostile, and the same in all instances, and whenever one is made
    /// anew.
    fn seed(&self) -> Seed;
}

/// A map of per-flow entries. The instance that a flow is assigned to owns its entry, so *finish* may change
/// it in place. What needs no ticket (from [`Self::peek`] to [`Self::take_marked`]) is the owner's housekeeping, and answers at
/// once: whatever engine it is, the owner knows all its entries, and what is elsewhere are copies. All that a fate may depend on is
/// an operation of the packet or event that asks, so that it hears the same when it is processed again.
pub trait FlowMap<K: Key, V: Plain>: Send {
    /// The promise of an entry.
    type Ticket: Copy + Send;
    /// An entry in hand, to be read or changed in place. The engine knows which of them it was, and so what to write back.
    type Entry<'a>: DerefMut<Target = V>
    where
        Self: 'a;

    /// Ask for the entry of `key`, to do so much with it at most.
    fn want(&mut self, tx: &mut Tx, key: K, intent: Intent) -> Self::Ticket;

    /// Bring near what the ticket points at, a while after [`Self::want`] and before its use. Only a hint.
    fn warm(&mut self, _ticket: &mut Self::Ticket) {}

    /// Ask once more for what an earlier ticket of the same packet was for.
    fn want_again(&mut self, tx: &mut Tx, ticket: &Self::Ticket, intent: Intent) -> Self::Ticket {
        self.want(tx, Self::key(ticket), intent)
    }

    /// Return whether a ticket that was just warmed found no entry near by. Only a hint.
    fn seems_new(_ticket: &Self::Ticket) -> bool {
        false
    }

    /// Return the key that a ticket was asked with.
    fn key(ticket: &Self::Ticket) -> K;

    /// Return the entry to be read, as it stands after all packets before this one.
    fn read(&mut self, tx: &mut Tx, ticket: &Self::Ticket) -> Option<&V>;

    /// Return the entry to be changed, or read, as it stands after all packets before this one.
    fn get(&mut self, tx: &mut Tx, ticket: &Self::Ticket) -> Option<Self::Entry<'_>>;

    /// Put an entry in, which lasts `until` this time in ns since 1970 at least: then [`Self::expire`] looks at it. It takes the
    /// place of one that is there after all.
    ///
    /// # Errors
    /// [`Full`] when the map holds as many entries as it may.
    fn insert(&mut self, tx: &mut Tx, ticket: &Self::Ticket, value: V, until: u64) -> Result<Self::Entry<'_>, Full>;

    /// Say that an entry may be over sooner than was said before. That it lasts longer need not be said: it is found then.
    fn sooner(&mut self, tx: &mut Tx, ticket: &Self::Ticket, until: u64);

    /// Take the entry out.
    fn remove(&mut self, tx: &mut Tx, ticket: &Self::Ticket) -> Option<V>;

    /// Return what is known here of an entry, which may be old where entries are elsewhere: for tidying up, never for a
    /// packet's fate. Nobody waits for it.
    fn peek(&mut self, tx: &mut Tx, key: K) -> Option<&V>;

    /// Look at up to `most` entries that have lasted as long as was said, those that end first at first, and of one end (two
    /// milliseconds) in the order in which it was told: the same whatever lies where. `look` says what becomes of each.
    /// Returns how many were looked at. Constant work for each, so a few of them after every batch keep the map clean.
    fn expire(&mut self, tx: &mut Tx, now: u64, most: usize, look: impl FnMut(&mut Tx, &K, &V) -> Fate<V>) -> usize;

    /// Look at up to `most` entries in the same order, though their end is still to come, until one is over. Returns whether
    /// one was. For room that is wanted now.
    fn expire_one(&mut self, tx: &mut Tx, most: usize, look: impl FnMut(&mut Tx, &K, &V) -> Fate<V>) -> bool;

    /// Look at the next `count` places for entries, in no particular order but each once per round; take out
    /// those for which `goes` says so. Returns the number of places looked at, less than `count` when the map is smaller.
    fn sweep(&mut self, tx: &mut Tx, count: usize, goes: impl FnMut(&mut Tx, &K, &V) -> bool) -> usize;

    /// Return how many places may be looked at before something is refused at this time, in ns since 1970, for want of room:
    /// [`Looks`](crate::looks::Looks). What is not looked at now is not owed later.
    fn owed(&mut self, tx: &mut Tx, now: u64) -> usize;

    /// Mark an entry as one that may go when room is wanted, or take the mark from it; one that is marked keeps its
    /// place in the line. New entries have no mark.
    fn mark(&mut self, tx: &mut Tx, ticket: &Self::Ticket, marked: bool);

    /// Return the number of marked entries.
    fn marked(&mut self, tx: &mut Tx) -> usize;

    /// Take out the entry that has been marked longest. Constant work.
    fn take_marked(&mut self, tx: &mut Tx) -> Option<(K, V)>;

    /// Take out all entries of some slots, which go to another instance; those that are marked come last, in the order of their
    /// marks. Wherever they are kept, `each` hears of them, as other objects follow them; nothing where no slots move.
    fn leave(&mut self, _slots: &SlotSet, _each: impl FnMut(Moved<K, V>)) {}

    /// Take in an entry of another instance's. Where no slots move, none comes.
    ///
    /// # Errors
    /// [`Full`] where it finds no room: there is some for all that all instances may have, if the engine was made so.
    fn arrive(&mut self, _tx: &mut Tx, _moved: Moved<K, V>) -> Result<(), Full> {
        Err(Full)
    }

    /// Return whether there are as many entries as there may be.
    fn is_full(&mut self, tx: &mut Tx) -> bool;

    /// Return the number of entries: for tables and exports, never for a packet's fate.
    fn len(&self) -> usize;

    /// Return whether there is no entry: for tables and exports, never for a packet's fate.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Return what an entry holds, and let go of the entry.
#[inline(always)]
pub fn taken<V: Copy>(entry: impl Deref<Target = V>) -> V {
    *entry
}

#[cfg(test)]
mod tests {
    use super::Share;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parts_add_up_to_the_total_and_differ_by_at_most_one(
            total in prop_oneof![0u64..100, Just(u64::MAX), any::<u64>()],
            count in 1u32..200,
        ) {
            let parts: Vec<u64> = (0..count).map(|index| Share { index, count }.part_of(total)).collect();
            prop_assert_eq!(parts.iter().map(|part| u128::from(*part)).sum::<u128>(), u128::from(total));
            prop_assert!(parts[0] - parts[count as usize - 1] <= 1, "{parts:?}");
            prop_assert!(parts.is_sorted_by(|a, b| a >= b), "the first ones have one more: {parts:?}");
        }
    }
}

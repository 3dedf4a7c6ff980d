//! An engine for tests: it does to a function all that an engine may, and finds what a function must not do.
//!
//! Made from a seed, it lets each result be there at once or some polls later, in any order. A ticket that is used in the
//! step that asked for it, before its result is there, in a later step than the next, for another packet, or twice where it
//! stands for a reply, panics with the object and the place; so do a change in *prepare*, two operations of one name, a *prepare*
//! that asks for something else when it is asked again, and, without the place, a reply that nobody takes.
//!
//! Operations on shared objects go as bytes to whoever holds the objects, with some seeds another thread. They are applied late,
//! each object's in order. Some come twice, and of some the reply is lost, so that they are sent again: the holder knows them by
//! name. Entries are those of [`Local`], but a function gets a copy, made of the entry's bytes, and what it has changed is
//! written back: what a function does on both must be the same. What a packet puts out leaves once its operations are committed, and
//! some of it is brought to its sink twice.
//!
//! The function's instance may be lost at any operation ([`Crashes`]): a panic with [`Lost`] comes out of it. What was done is known by
//! (clock, index), so the one that is made anew finds its objects as they are, and its packets hear once more what they heard; who
//! does something else then is found. Maps are hashed otherwise than local ones of the same seed: what depends on hashes shows.

mod asked;
mod crash;
mod holder;
mod log;
mod made;
mod objects;
mod one_holder;
mod outlet;
mod post;
mod scopes;
mod shared;
mod two_keys;
mod uses;
mod view;
mod watch;
mod when;

pub use crash::{Crashes, Lost};
pub use objects::{DelayedEntry, DelayedMap, DelayedTicket};
pub use one_holder::OneHolder;
pub use outlet::DelayedOutlet;
pub use shared::{Asked, DelayedShared, DelayedSharedMap};
pub use two_keys::DelayedTwoKeyMap;
pub use view::{Holds, View};

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use catena_packet::wire::{FlowKey, Seed};

use crate::declare::{Declaration, Object};
use crate::engine::{Engine, NoMemory, Share};
use crate::key::Key;
use crate::local::Local;
use crate::outlet::Sink;
use crate::plain::Plain;
use crate::shared::Held;
use crate::shared_map::Entry;
use crate::two_keys::Other;
use crate::tx::Tx;
use made::Kind;
use objects::Entries;
use view::Maps;
use watch::{Watch, lock};

/// Makes another number of a seed.
const LAYOUT: u64 = 0x6c61_796f_7574;

/// The engine. Several may have [one holder](OneHolder) of their shared objects.
pub struct Delayed {
    /// Makes the maps, which are hashed otherwise than those of [`Local`] with the same seed.
    local: Local,
    /// What functions are told that keys are hashed with.
    seed: Seed,
    watch: Arc<Mutex<Watch>>,
    maps: Maps,
}

impl Delayed {
    /// Make the engine; `delays` decides which results are late.
    pub fn new(seed: Seed, share: Share, delays: u64) -> Self {
        let layout = Seed::from_number(delays ^ LAYOUT);
        let watch = Arc::new(Mutex::new(Watch::new(delays)));
        Delayed { local: Local::new(layout, share), seed, watch, maps: Maps::default() }
    }

    /// Let results be late by up to so many polls.
    #[must_use]
    pub fn slow(self, polls: u64) -> Self {
        self.watch().post.most_delay = polls;
        self
    }

    /// Lose the function's instance now and then: a panic with [`Lost`] comes out of an operation then.
    #[must_use]
    pub fn crashing(self, crashes: Crashes) -> Self {
        self.watch().crashing.crashes = crashes;
        self
    }

    /// Let whoever holds the shared objects be gone for good after so many polls.
    #[must_use]
    pub fn gone_after(self, polls: u64) -> Self {
        self.watch().post.goes_at = Some(polls);
        self
    }

    /// Let the shared objects be held with those of other engines: instances of one name see the same.
    #[must_use]
    pub fn held_by(self, holder: &OneHolder) -> Self {
        self.watch().post.holder = holder.way();
        self
    }

    /// Return how many instances were lost.
    pub fn crashes(&self) -> u64 {
        self.watch().crashing.count
    }

    /// Return what looks at the engine's objects, wherever the engine goes.
    pub fn view(&self) -> View {
        View { watch: Arc::clone(&self.watch), maps: Arc::clone(&self.maps) }
    }

    /// Return the objects that were made.
    pub fn objects(&self) -> Vec<Declaration> {
        self.watch().objects.iter().map(|object| object.declaration).collect()
    }

    fn watch(&self) -> MutexGuard<'_, Watch> {
        lock(&self.watch)
    }
}

impl Engine for Delayed {
    const WAITS: bool = true;
    const ALL_SEE: bool = true;
    const WATCHES: bool = true;
    const CRASHES: bool = true;

    type Ticket<K: Key> = DelayedTicket<K>;
    type FlowMap<K: Key, V: Plain> = DelayedMap<K, V>;
    type TwoKeyMap<K: Key, V: Plain, X: Other<K, V>> = DelayedTwoKeyMap<K, V, X>;
    type Shared<V: Held> = DelayedShared<V>;
    type SharedMap<K: Key, V: Entry> = DelayedSharedMap<K, V>;
    type Outlet<S: Sink> = DelayedOutlet<S>;

    fn begin(&mut self, tx: Tx) -> Tx {
        let unit = self.watch().begin(tx.pass());
        tx.known_as(unit)
    }

    fn sees(&mut self, tx: &Tx, flow: FlowKey) {
        self.watch().sees(tx, flow);
    }

    fn issue(&mut self, tx: &mut Tx) {
        self.watch().issue(tx);
    }

    fn step(&mut self, tx: &mut Tx) {
        self.watch().step(tx);
    }

    fn commit(&mut self, tx: &mut Tx) {
        self.watch().commit(tx);
    }

    fn end(&mut self, tx: Tx) {
        self.watch().end(&tx);
    }

    fn close(&mut self) -> Result<(), String> {
        let post = &mut self.watch().post;
        post.settle();
        match post.undone() {
            None => Ok(()),
            Some(undone) => {
                Err(format!("who holds the shared objects is gone, and {undone} operations on them are not done"))
            }
        }
    }

    fn is_gone(&self) -> bool {
        self.watch().post.is_gone()
    }

    fn is_loss(panic: &(dyn Any + Send)) -> bool {
        panic.is::<Lost>()
    }

    fn has_stepped(&self, tx: &Tx) -> bool {
        self.watch().has_stepped(tx)
    }

    fn begin_again(&mut self) {
        self.watch().begin_again();
    }

    fn poll(&mut self) -> bool {
        self.watch().post.poll();
        true
    }

    fn is_ready(&mut self, tx: &Tx) -> bool {
        self.watch().is_ready(tx)
    }

    fn follows(&self, tx: &Tx, earlier: &Tx) -> bool {
        self.watch().follows(tx, earlier)
    }

    fn make_for(&mut self, instance: &str) {
        self.watch().make_for(instance);
    }

    #[track_caller]
    fn flow_map<K: Key, V: Plain>(
        &mut self,
        object: &Declaration,
        capacity: usize,
    ) -> Result<DelayedMap<K, V>, NoMemory> {
        let made = self.watch().make(object, Object::FlowMap);
        let mut maps = self.maps.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, entries)) = maps.iter().find(|(known, _)| *known == made) {
            let entries: &dyn Any = &**entries;
            let entries = entries.downcast_ref::<Entries<K, V>>();
            let entries = entries.unwrap_or_else(|| panic!("{object}: made anew for other keys or entries"));
            return Ok(DelayedMap::new(Arc::clone(entries), made, &self.watch));
        }
        let entries: Entries<K, V> = Arc::new(Mutex::new(self.local.flow_map(object, capacity)?));
        maps.push((made, Box::new(Arc::clone(&entries))));
        Ok(DelayedMap::new(entries, made, &self.watch))
    }

    #[track_caller]
    fn two_key_map<K: Key, V: Plain, X: Other<K, V>>(
        &mut self,
        [object, others]: [&Declaration; 2],
        capacity: usize,
    ) -> Result<DelayedTwoKeyMap<K, V, X>, NoMemory> {
        let (entries, others) = (self.flow_map(object, capacity)?, self.flow_map(others, capacity)?);
        self.watch().scopes.leave_out(others.made());
        Ok(DelayedTwoKeyMap::new(entries, others))
    }

    #[track_caller]
    fn shared_of<V: Held, X>(
        &mut self,
        object: &Declaration,
        first: impl FnOnce() -> Result<V, X>,
    ) -> Result<DelayedShared<V>, X> {
        let made = self.watch().make(object, Object::Shared);
        DelayedShared::new(first, made, &self.watch)
    }

    #[track_caller]
    fn shared_map<K: Key, V: Entry>(
        &mut self,
        object: &Declaration,
        capacity: usize,
        rules: V::Rules,
    ) -> Result<DelayedSharedMap<K, V>, NoMemory> {
        let made = self.watch().make(object, Object::SharedMap);
        let kind = Kind::of_map::<K, V>(capacity, &rules);
        DelayedSharedMap::new(|| self.local.shared_map(object, capacity, rules), (made, kind), &self.watch)
    }

    #[track_caller]
    fn outlet<S: Sink>(&mut self, object: &Declaration, sink: S) -> DelayedOutlet<S> {
        let made = self.watch().make(object, Object::Outlet);
        DelayedOutlet::new(sink, made, &self.watch)
    }

    fn share(&self) -> Share {
        self.local.share()
    }

    fn seed(&self) -> Seed {
        self.seed
    }
}

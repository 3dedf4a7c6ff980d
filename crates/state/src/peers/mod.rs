//! The engine of several workers of one process that replay captures: flows are each worker's own, what they have in common is
//! shared, and what is done to it is done in the order of the packets' clocks. What live workers tell each other waits for nobody,
//! and stands on [boards](crate::board).
//!
//! Per-flow entries are local ones, of the worker that the flow belongs to. A shared object is owned by one worker, who does what is
//! asked of it; the others send it operations, as bytes, over a ring of words, and the packets that asked wait for the replies. What
//! is only told waits for nobody. Nothing of this is done twice or lost, so no operation needs a name here.
//!
//! Each worker does what it is asked when its engine is polled, also while it has no packets. Who stops, stops those that ask for its
//! objects, and nobody else.

mod desk;
mod map;
mod ring;
mod shared;
#[cfg(test)]
mod tests;

pub use map::PeersMap;
pub use shared::{PeersAsked, PeersShared, PeersSharedMap};

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use catena_packet::wire::Seed;

use crate::board::{Board, Room};
use crate::claims::Claims;
use crate::declare::{Access, Declaration};
use crate::engine::{Engine, NoMemory, Share};
use crate::key::Key;
use crate::local::{Local, LocalMap, LocalOutlet, LocalTicket, LocalTwoKeyMap};
use crate::outlet::Sink;
use crate::plain::Plain;
use crate::shared::Held;
use crate::shared_map::Entry;
use crate::two_keys::Other;
use crate::tx::Tx;
pub use desk::Horizon;
use desk::{Desk, Way};
use shared::{Kept, Place, open};

/// Words that a ring between two workers holds: some hundred operations.
const RING: usize = 4096;

/// The workers of a run, and what their functions' instances have in common.
pub struct Team {
    workers: usize,
    /// In a replay, whose engine is [`Peers`]: operations are done in the order of their packets.
    horizon: Option<Horizon>,
    /// Whether slots go from one worker to another.
    moves: bool,
    instances: Mutex<HashMap<String, Arc<Instance>>>,
}

/// What the workers' instances of a function of one name have in common.
#[derive(Default)]
struct Instance {
    /// The ends of the rings of each worker that has not taken them, by worker and peer; empty before the first has.
    ends: Mutex<Vec<Option<Vec<Option<Way>>>>>,
    /// The shared objects that were made, by number.
    objects: Mutex<Vec<(Declaration, Box<dyn Any + Send>)>>,
    /// What is claimed of things that belong to objects.
    claims: Mutex<Vec<(Declaration, Arc<Claims>)>>,
    /// Room that entries have left behind which had come from other workers, by object.
    spare: Mutex<Vec<(Declaration, Room)>>,
    /// The boards that no worker has taken yet, by object and worker.
    boards: Mutex<Vec<(Declaration, Vec<Option<Board>>)>>,
}

impl Team {
    /// Make a team of so many workers.
    pub fn new(workers: usize) -> Arc<Team> {
        Arc::new(Team { workers, horizon: None, moves: false, instances: Mutex::default() })
    }

    /// Make a team of so many workers, of whom any may get another's slots.
    pub fn moving(workers: usize) -> Arc<Team> {
        Arc::new(Team { workers, horizon: None, moves: true, instances: Mutex::default() })
    }

    /// Return whether slots go from one worker to another.
    pub fn moves(&self) -> bool {
        self.moves
    }

    /// Return what the instances of this name claim of `count` things with numbers, which belong to an object; nothing in a replay, where
    /// a claim would come as it happens.
    ///
    /// # Errors
    /// [`NoMemory`] for so many.
    pub fn claims(&self, instance: &str, object: &Declaration, count: usize) -> Result<Option<Arc<Claims>>, NoMemory> {
        if self.horizon.is_some() {
            return Ok(None);
        }
        let instance = self.instance(instance);
        let mut claims = instance.claims.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = claims.iter().find(|(known, _)| known.is_named_as(object)) {
            return Ok(Some(Arc::clone(known)));
        }
        let made = Arc::new(Claims::new(count)?);
        claims.push((*object, Arc::clone(&made)));
        Ok(Some(made))
    }

    /// Return the room that entries of an object have left behind which had come from other workers.
    pub(crate) fn room(&self, instance: &str, object: &Declaration) -> Room {
        let instance = self.instance(instance);
        let mut spare = instance.spare.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, room)) = spare.iter().find(|(known, _)| known.is_named_as(object)) {
            return room.clone();
        }
        let room = Room::default();
        spare.push((*object, room.clone()));
        room
    }

    /// Return the board of a worker's instance, for so many numbers that belong to an object.
    ///
    /// # Panics
    /// When the worker has it already, or another one says that there are fewer numbers.
    pub(crate) fn board(&self, instance: &str, object: &Declaration, numbers: usize, worker: usize) -> Board {
        let instance = self.instance(instance);
        let mut boards = instance.boards.lock().unwrap_or_else(PoisonError::into_inner);
        let known = boards.iter().position(|(known, _)| known.is_named_as(object));
        let at = known.unwrap_or_else(|| {
            boards.push((*object, Board::for_all(self.workers, numbers).into_iter().map(Some).collect()));
            boards.len() - 1
        });
        let board = boards[at].1[worker].take();
        board.unwrap_or_else(|| panic!("{object}: worker {worker} has its board already"))
    }

    /// Make a team that does what is asked in the order of the packets' clocks, whoever asks first: what it does is the same in
    /// every run, and where nothing is over meanwhile it is what one worker does. A worker takes no further packet while one waits.
    pub fn in_order(workers: usize, horizon: Horizon) -> Arc<Team> {
        Arc::new(Team { workers, horizon: Some(horizon), moves: false, instances: Mutex::default() })
    }

    fn instance(&self, name: &str) -> Arc<Instance> {
        let mut instances = self.instances.lock().unwrap_or_else(PoisonError::into_inner);
        let instance = instances.entry(name.to_owned()).or_default();
        Arc::clone(instance)
    }
}

impl Instance {
    /// Make the ends of the rings of each worker to each other one.
    fn rings(workers: usize) -> Vec<Option<Vec<Option<Way>>>> {
        let mut ends: Vec<Vec<Option<Way>>> = Vec::new();
        for _ in 0..workers {
            ends.push((0..workers).map(|_| None).collect());
        }
        for (a, b) in (0..workers).flat_map(|a| (0..a).map(move |b| (a, b))) {
            let ((to_b, from_a), (to_a, from_b)) = (ring::ring(RING), ring::ring(RING));
            (ends[a][b], ends[b][a]) = (Some(Way::new(to_b, from_b)), Some(Way::new(to_a, from_a)));
        }
        ends.into_iter().map(Some).collect()
    }

    /// Return an object and its number; it is made where it is not there.
    fn object<T: Send + 'static, X>(
        &self,
        declaration: &Declaration,
        make: impl FnOnce() -> Result<T, X>,
    ) -> Result<(usize, Kept<T>), X> {
        let mut objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = objects.iter().position(|(known, _)| known.is_named_as(declaration)) {
            let object = objects[number].1.downcast_ref::<Kept<T>>();
            let object = object.unwrap_or_else(|| panic!("{declaration}: made of another kind by another worker"));
            return Ok((number, Arc::clone(object)));
        }
        let object: Kept<T> = Arc::new(Mutex::new(make()?));
        objects.push((*declaration, Box::new(Arc::clone(&object))));
        Ok((objects.len() - 1, object))
    }
}

/// The engine of one worker, for one function.
pub struct Peers {
    local: Local,
    team: Arc<Team>,
    horizon: Horizon,
    worker: usize,
    /// What the worker's instance of the function has in common with the others', once it is known which function it is.
    joined: Option<Joined>,
    maps: u64,
}

struct Joined {
    instance: Arc<Instance>,
    desk: Kept<Desk>,
}

impl Peers {
    /// Make the engine of a worker of a team that keeps an [order](Team::in_order); none of another. `seed` as for [`Local::new`].
    pub fn new(seed: Seed, team: &Arc<Team>, worker: usize) -> Option<Self> {
        let horizon = team.horizon.clone()?;
        let local = Local::new(seed, Share { index: worker as u32, count: team.workers as u32 });
        Some(Peers { local, team: Arc::clone(team), horizon, worker, joined: None, maps: 0 })
    }

    fn joined(&self) -> &Joined {
        self.joined.as_ref().unwrap_or_else(|| panic!("an object is made before it is said for which instance"))
    }

    /// Return the place of an object, by its number. Owners take turns.
    fn place(&self, number: usize) -> Place {
        let owner = number % self.team.workers;
        let desk = Arc::clone(&self.joined().desk);
        Place { desk, owner, object: number as u16, is_mine: owner == self.worker }
    }

    /// Return whether nothing is left to be sent.
    pub fn has_sent_all(&self) -> bool {
        open(&self.joined().desk).has_left()
    }
}

impl Engine for Peers {
    const WAITS: bool = true;
    const ALL_SEE: bool = true;

    type Ticket<K: Key> = LocalTicket<K>;
    type FlowMap<K: Key, V: Plain> = PeersMap<LocalMap<K, V>>;
    type TwoKeyMap<K: Key, V: Plain, X: Other<K, V>> = PeersMap<LocalTwoKeyMap<K, V, X>>;
    type Shared<V: Held> = PeersShared<V>;
    type SharedMap<K: Key, V: Entry> = PeersSharedMap<K, V>;
    type Outlet<S: Sink> = LocalOutlet<S>;

    #[inline(always)]
    fn begin(&mut self, tx: Tx) -> Tx {
        open(&self.joined().desk).begins(&tx);
        tx
    }

    fn has_come_to(&mut self, clock: u64) {
        open(&self.joined().desk).has_come_to(clock);
    }

    #[inline(always)]
    fn issue(&mut self, tx: &mut Tx) {
        if tx.unit() != 0 {
            open(&self.joined().desk).issue(tx);
        }
    }

    #[inline(always)]
    fn end(&mut self, tx: Tx) {
        if tx.unit() != 0 {
            open(&self.joined().desk).end(&tx);
        }
    }

    fn flush(&mut self) {
        open(&self.joined().desk).flush();
    }

    fn first_unsent(&self) -> Option<u64> {
        open(&self.joined().desk).first_kept()
    }

    fn poll(&mut self) -> bool {
        open(&self.joined().desk).poll()
    }

    #[inline(always)]
    fn is_ready(&mut self, tx: &Tx) -> bool {
        tx.unit() == 0 || open(&self.joined().desk).is_ready(tx)
    }

    #[inline(always)]
    fn follows(&self, tx: &Tx, earlier: &Tx) -> bool {
        tx.meets(earlier)
    }

    #[inline(always)]
    fn keeps_order(&self) -> bool {
        true
    }

    #[inline(always)]
    fn marks<'tx>(&self, tx: &'tx Tx) -> Option<(&'tx [u16], bool)> {
        Some(tx.marks())
    }

    fn close(&mut self) -> Result<(), String> {
        self.poll();
        Ok(())
    }

    fn make_for(&mut self, instance: &str) {
        self.local.make_for(instance);
        let instance = self.team.instance(instance);
        let mut all = instance.ends.lock().unwrap_or_else(PoisonError::into_inner);
        if all.is_empty() {
            *all = Instance::rings(self.team.workers);
        }
        let ends = all[self.worker].take();
        drop(all);
        let ends = ends.unwrap_or_else(|| panic!("worker {} has this instance already", self.worker));
        let desk = Desk::new(ends, self.worker, Arc::clone(&self.horizon));
        self.joined = Some(Joined { instance, desk: Arc::new(Mutex::new(desk)) });
    }

    fn flow_map<K: Key, V: Plain>(
        &mut self,
        object: &Declaration,
        capacity: usize,
    ) -> Result<PeersMap<LocalMap<K, V>>, NoMemory> {
        self.maps += 1;
        Ok(PeersMap::new(self.local.flow_map(object, capacity)?, self.maps))
    }

    fn two_key_map<K: Key, V: Plain, X: Other<K, V>>(
        &mut self,
        objects: [&Declaration; 2],
        capacity: usize,
    ) -> Result<PeersMap<LocalTwoKeyMap<K, V, X>>, NoMemory> {
        self.maps += 1;
        Ok(PeersMap::new(self.local.two_key_map(objects, capacity)?, self.maps))
    }

    fn shared_of<V: Held, X>(
        &mut self,
        object: &Declaration,
        first: impl FnOnce() -> Result<V, X>,
    ) -> Result<PeersShared<V>, X> {
        if V::ABSORBS && object.access == Access::WriteMostly {
            let parts = self.joined().instance.object(object, || Ok::<_, X>(Vec::new()))?;
            return Ok(PeersShared::of_parts(self.place(parts.0), first()?, parts.1));
        }
        let (number, value) = self.joined().instance.object(object, first)?;
        Ok(PeersShared::new(self.place(number), value))
    }

    fn shared_map<K: Key, V: Entry>(
        &mut self,
        object: &Declaration,
        capacity: usize,
        rules: V::Rules,
    ) -> Result<PeersSharedMap<K, V>, NoMemory> {
        let mut local = self.local.clone();
        let make = || local.shared_map(object, capacity, rules);
        let (number, map) = self.joined().instance.object(object, make)?;
        Ok(PeersSharedMap::new(self.place(number), map))
    }

    fn outlet<S: Sink>(&mut self, object: &Declaration, sink: S) -> LocalOutlet<S> {
        self.local.outlet(object, sink)
    }

    fn room(&self, object: &Declaration) -> Room {
        self.local.room(object)
    }

    fn own_maps(&self) -> usize {
        self.local.own_maps()
    }

    fn share(&self) -> Share {
        self.local.share()
    }

    fn seed(&self) -> Seed {
        self.local.seed()
    }
}

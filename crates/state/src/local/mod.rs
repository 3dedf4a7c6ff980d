//! The local engine: state in the worker's own memory, every operation done on the spot.

mod bucket;
mod calendar;
mod chains;
mod entry;
mod expiry;
mod flow_map;
mod kept;
mod leaving;
mod line;
mod map;
mod moving;
mod near;
mod others;
mod outlet;
mod shared;
mod shared_map;
mod two_keys;

use std::sync::Arc;

pub use map::{LocalMap, LocalTicket};
pub use outlet::LocalOutlet;
pub use shared::LocalShared;
pub use shared_map::{LocalAsked, LocalSharedMap};
pub use two_keys::LocalTwoKeyMap;

use crate::board::{Board, Room};
use crate::claims::Claims;
use crate::declare::Declaration;
use crate::engine::{Engine, NoMemory, Share};
use crate::key::Key;
use crate::outlet::Sink;
use crate::peers::Team;
use crate::plain::Plain;
use crate::shared::Held;
use crate::shared_map::Entry;
use crate::two_keys::Other;
use crate::tx::Tx;
use catena_packet::wire::Seed;

/// The local engine of one worker.
#[derive(Clone)]
pub struct Local {
    seed: Seed,
    share: Share,
    /// Of several workers: their team, and whose the objects are.
    team: Option<(Arc<Team>, String)>,
    maps: usize,
}

impl Local {
    /// Make the engine; `seed` is secret where traffic may be hostile, fixed where a run must repeat.
    pub fn new(seed: Seed, share: Share) -> Self {
        Local { seed, share, team: None, maps: 0 }
    }

    /// Let the engine be that of a worker of a team, whose instances know of each other what they write on [boards](Board). Where
    /// slots go from one to another, objects have room for all that the instances may have together: it is address space, and no
    /// memory before something comes.
    #[must_use]
    pub fn of_team(self, team: &Arc<Team>) -> Self {
        Local { team: Some((Arc::clone(team), String::new())), ..self }
    }

    /// Return the team, and whose the objects are, where slots go from one instance to another.
    fn moving(&self) -> Option<&(Arc<Team>, String)> {
        self.team.as_ref().filter(|(team, _)| team.moves())
    }
}

impl Engine for Local {
    const WAITS: bool = false;

    type Ticket<K: Key> = LocalTicket<K>;
    type FlowMap<K: Key, V: Plain> = LocalMap<K, V>;
    type TwoKeyMap<K: Key, V: Plain, X: Other<K, V>> = LocalTwoKeyMap<K, V, X>;
    type Shared<V: Held> = LocalShared<V>;
    type SharedMap<K: Key, V: Entry> = LocalSharedMap<K, V>;
    type Outlet<S: Sink> = LocalOutlet<S>;

    #[inline(always)]
    fn begin(&mut self, tx: Tx) -> Tx {
        tx
    }

    fn flow_map<K: Key, V: Plain>(&mut self, object: &Declaration, entries: usize) -> Result<LocalMap<K, V>, NoMemory> {
        let instances = if self.moving().is_some() { self.share.count as usize } else { 1 };
        self.maps += 1;
        // Of what is shared out by blocks one part may be twice another.
        let room = entries.saturating_add(1).saturating_mul(2 * instances);
        let map = LocalMap::new(self.seed, entries, if instances > 1 { room } else { entries });
        let mut map = map.map_err(|_| NoMemory { object: object.name, entries })?;
        map.spare = self.moving().map(|(team, instance)| team.room(instance, object));
        Ok(map)
    }

    fn two_key_map<K: Key, V: Plain, X: Other<K, V>>(
        &mut self,
        objects: [&Declaration; 2],
        entries: usize,
    ) -> Result<LocalTwoKeyMap<K, V, X>, NoMemory> {
        let map = self.flow_map(objects[0], entries)?;
        LocalTwoKeyMap::new(map, self.seed).map_err(|_| NoMemory { object: objects[1].name, entries })
    }

    fn shared_of<V: Held, X>(
        &mut self,
        _object: &Declaration,
        first: impl FnOnce() -> Result<V, X>,
    ) -> Result<LocalShared<V>, X> {
        first().map(LocalShared::new)
    }

    fn shared_map<K: Key, V: Entry>(
        &mut self,
        object: &Declaration,
        entries: usize,
        rules: V::Rules,
    ) -> Result<LocalSharedMap<K, V>, NoMemory> {
        let map = self.flow_map(object, entries)?;
        Ok(LocalSharedMap::new(map, rules))
    }

    fn outlet<S: Sink>(&mut self, _object: &Declaration, sink: S) -> LocalOutlet<S> {
        LocalOutlet::new(sink)
    }

    fn make_for(&mut self, instance: &str) {
        if let Some((_, name)) = &mut self.team {
            instance.clone_into(name);
        }
    }

    fn board(&mut self, object: &Declaration, numbers: usize) -> Option<Board> {
        let (team, instance) = self.team.as_ref()?;
        Some(team.board(instance, object, numbers, self.share.index as usize))
    }

    fn room(&self, object: &Declaration) -> Room {
        self.moving().map(|(team, instance)| team.room(instance, object)).unwrap_or_default()
    }

    fn claims(&self, object: &Declaration, count: usize) -> Result<Option<Arc<Claims>>, NoMemory> {
        self.team.as_ref().map_or(Ok(None), |(team, instance)| team.claims(instance, object, count))
    }

    fn moves(&self) -> bool {
        self.moving().is_some()
    }

    fn own_maps(&self) -> usize {
        self.maps
    }

    fn share(&self) -> Share {
        self.share
    }

    fn seed(&self) -> Seed {
        self.seed
    }
}

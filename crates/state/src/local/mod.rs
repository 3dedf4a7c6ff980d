//! The local engine: state in the worker's own memory, every operation done on the spot.

mod bucket;
mod counters;
mod leaving;
mod line;
mod map;
mod shared;

pub use counters::LocalCounters;
pub use map::{LocalMap, LocalTicket};
pub use shared::LocalShared;

use crate::engine::{Engine, Key, NoMemory, Share};
use catena_packet::wire::Seed;

/// The local engine of one worker.
#[derive(Clone, Debug)]
pub struct Local {
    seed: Seed,
    share: Share,
}

impl Local {
    /// Make the engine; `seed` is secret where traffic may be hostile, fixed where a run must repeat.
    pub fn new(seed: Seed, share: Share) -> Self {
        Local { seed, share }
    }
}

impl Engine for Local {
    const WAITS: bool = false;

    type Tx = ();
    type Ticket<K: Key> = LocalTicket<K>;
    type FlowMap<K: Key, V: Send + 'static> = LocalMap<K, V>;
    type Shared<V: Send + 'static> = LocalShared<V>;
    type Counters = LocalCounters;

    #[inline(always)]
    fn begin(&mut self, _clock: u64) {}

    fn flow_map<K: Key, V: Send + 'static>(
        &mut self,
        object: &'static str,
        entries: usize,
    ) -> Result<LocalMap<K, V>, NoMemory> {
        LocalMap::new(self.seed, entries).map_err(|_| NoMemory { object, entries })
    }

    fn shared<V: Send + 'static>(&mut self, _name: &'static str, value: V) -> LocalShared<V> {
        LocalShared::new(value)
    }

    fn counters(&mut self, _name: &'static str, count: usize) -> LocalCounters {
        LocalCounters::new(count)
    }

    fn share(&self) -> Share {
        self.share
    }

    fn seed(&self) -> Seed {
        self.seed
    }
}

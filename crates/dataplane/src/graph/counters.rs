//! What is counted at a module, and what others may know of it.

use std::sync::Arc;

use crate::counter::{Counter, Histogram, Traffic};
use crate::module::Reason;

/// What is counted at one module.
#[derive(Debug, Default)]
pub struct NodeCounters {
    /// Batches that came in.
    pub batches: Counter,
    /// Packets that came in.
    pub input: Traffic,
    /// Cycles spent in the module and in bringing its packets to where its gates lead.
    pub cycles: Counter,
    /// Dropped packets by [`Reason`].
    pub drops: Drops,
    /// Cycles from the batch's coming in to its leaving the module, of sampled batches.
    pub residence: Histogram,
    /// Cycles since the port, of sampled packets that end here (empty at modules that are no exit).
    pub latency: Histogram,
}

/// Dropped packets by reason.
#[derive(Debug)]
pub struct Drops(pub(super) Box<[Counter]>);

impl Default for Drops {
    fn default() -> Self {
        Drops((0..Reason::COUNT).map(|_| Counter::default()).collect())
    }
}

impl Drops {
    /// Return the count of one reason.
    pub fn get(&self, reason: Reason) -> u64 {
        self.0[usize::from(reason.0)].get()
    }

    /// Return all reasons that occurred, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (Reason, u64)> + '_ {
        self.0.iter().zip(0u8..=255).map(|(c, code)| (Reason(code), c.get())).filter(|(_, count)| *count > 0)
    }

    /// Return how many packets were dropped for whatever reason.
    pub fn total(&self) -> u64 {
        self.0.iter().map(Counter::get).sum()
    }
}

/// What others may know of a module while it runs.
#[derive(Clone, Debug)]
pub struct NodeInfo {
    /// The module's name in the chain.
    pub name: Arc<str>,
    /// Its counters.
    pub counters: Arc<NodeCounters>,
    /// The names of its own drop reasons.
    pub reasons: &'static [&'static str],
    /// Packets and bytes by output gate.
    pub gates: Vec<Arc<Traffic>>,
    /// Whether packets end here.
    pub is_exit: bool,
}

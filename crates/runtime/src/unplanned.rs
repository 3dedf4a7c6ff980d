//! A run that was given no plan, and what makes one for it.

use crate::{Chain, Note, Planned, Ports};

/// A run that was given no plan.
pub struct Unplanned<'a> {
    /// Its chain file.
    pub chain: &'a Chain,
    /// Where its packets come from and go to.
    pub ports: &'a Ports,
    /// How many workers it has, 1 to 64.
    pub workers: u32,
    /// Whether slots of flows go from worker to worker: what that is called.
    pub rebalances: Option<&'static str>,
    /// Seed of the hash by which flows are numbered.
    pub seed: u64,
}

/// Makes the plans of runs that were given none.
pub trait Planner {
    /// Plan a run. None: it cannot be planned, and `tell` has heard why.
    fn plan(&self, run: &Unplanned<'_>, tell: &dyn Fn(&Note)) -> Option<Planned>;
}

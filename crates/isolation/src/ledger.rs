//! What a container may run until the next step, by what it ran and what network work it is charged and credited. Pure.
//!
//! The rules are [`crate::refill`]'s (Khalid's dissertation, section 2.2.2, Figures 2.7 and 2.8), for a scheduler that is told
//! one number a step: the quota that the kernel gives the cgroup. All of the cgroup's cores together are one [`Core`], and the
//! quota that was written last is the slice that it has taken. Times are in ns.

use crate::refill::{Core, Pool};

/// The least quota that the kernel takes (`min_cfs_quota_period` in `kernel/sched/core.c`), 1 ms.
pub const LEAST: i64 = 1_000_000;
/// The kernel counts in microseconds; what is less stays in the pool.
const UNIT: i64 = 1_000;

/// The books of a cgroup under a quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ledger {
    /// What it may run in a period.
    quota: u64,
    period: u64,
    /// What it keeps of what it did not want.
    burst: i64,
    pool: Pool,
    /// With what is left of the quota that was written last.
    core: Core,
    /// How long the ledger has been kept, and what was granted in that time: parts of a nanosecond are not lost.
    time: u128,
    granted: u128,
}

/// What happened since the last step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Came {
    /// How long that was.
    pub elapsed: u64,
    /// CPU that the cgroup's processes took, with the softirqs that ran in their time.
    pub own: u64,
    /// Softirq time on the cgroup's account.
    pub charged: u64,
    /// Softirq time that is in `own`, on whosever account. What the cgroup did for itself is in `charged` too, and so is paid
    /// once.
    pub hosted: u64,
    /// Whether its processes, or the threads that receive for it, took all that they had: what others of them left was wanted then.
    pub held_back: bool,
}

impl Ledger {
    /// Open the books of a cgroup that may run for `quota` in each `period`.
    ///
    /// # Panics
    /// When the period is 0.
    pub fn new(quota: u64, period: u64) -> Ledger {
        assert!(period > 0, "a quota is of a period");
        Ledger { quota, period, burst: 0, pool: Pool::new(0), core: Core::default(), time: 0, granted: 0 }
    }

    /// Let the cgroup keep so much of what it does not want, for when it wants more, as the kernel's `cpu.max.burst` does. Iron
    /// keeps nothing: a container that needs its quota on average then loses what it needs less in one period, and lacks what it
    /// needs more in another.
    #[must_use]
    pub fn keeping(mut self, burst: u64) -> Ledger {
        self.burst = signed(burst);
        self
    }

    /// Take in what came, and return the quota until the next step: at most `most`, at least [`LEAST`], in whole microseconds.
    ///
    /// A cgroup that was held back in one part and left something in another keeps that, up to one grant: else what it is to pay
    /// in one period it would pay twice, as who has little leaves little to the other part to do.
    ///
    /// The grant is by the time that passed. A step that comes late so takes nothing from the cgroup, and one that comes
    /// early gives it nothing.
    pub fn step(&mut self, came: &Came, most: u64) -> u64 {
        let handed_out = self.core.remain;
        self.core.remain -= signed(came.own);
        // Who leaves a part unused is not held back by the quota. Cores keep up to 1 ms each of what they took.
        let idled = self.core.remain > handed_out / 16 + LEAST;
        // The kernel forgets what is left, or overdrawn, when a quota is written; here it goes back to the pool.
        self.pool.runtime += std::mem::take(&mut self.core.remain);
        self.core.usage += signed(came.charged) - signed(came.hosted);
        self.pool.refill(&mut self.core, 0);
        self.time += came.elapsed as u128;
        let granted = u128::from(self.quota) * self.time / u128::from(self.period);
        self.pool.quota = i64::try_from(granted - self.granted).unwrap_or(i64::MAX / 4);
        self.granted = granted;
        let keep = if came.held_back { self.burst.max(self.pool.quota) } else { self.burst };
        let kept = if idled { self.balance().clamp(0, keep) } else { 0 };
        self.pool.end_period(idled);
        self.pool.runtime += kept;
        let most = signed(most).max(LEAST) / UNIT * UNIT;
        self.pool.refill(&mut self.core, most);
        // What is no whole microsecond is given back; what the kernel's minimum gives too much is a debt.
        let quota = (self.core.remain / UNIT * UNIT).max(LEAST);
        self.pool.runtime += self.core.remain - quota;
        self.core.remain = quota;
        quota.unsigned_abs()
    }

    /// Return what the cgroup owes beyond the quota that it has: later quotas are smaller by that.
    pub fn debt(&self) -> u64 {
        (-self.balance()).max(0).unsigned_abs()
    }

    /// Return what the cgroup has beyond the quota that was written last; below zero, what it owes.
    pub fn balance(&self) -> i64 {
        self.pool.runtime + self.pool.gained
    }

    /// Return what is granted in a period.
    pub fn quota(&self) -> u64 {
        self.quota
    }

    /// Return the period that the quota is of.
    pub fn period(&self) -> u64 {
        self.period
    }
}

/// Divide what a cgroup may run between its processes and the kernel's threads that receive for it, in this order: each has what
/// the other did not take in the last step, an eighth of all more, and half of all at least.
///
/// The eighth is for what differs from step to step: with exactly what the other left, who needs a little more one time leaves the
/// other less the next time, and both lose in turn. Where both take it, that is in the books one step later.
pub fn divide(may_run: u64, processes_took: u64, threads_took: u64) -> (u64, u64) {
    let least = LEAST.unsigned_abs();
    let part = |others: u64| (may_run.saturating_sub(others) + may_run / 8).clamp(may_run / 2, may_run);
    (part(threads_took).max(least) / 1000 * 1000, part(processes_took))
}

fn signed(ns: u64) -> i64 {
    // Centuries.
    i64::try_from(ns).unwrap_or(i64::MAX / 4)
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;

//! Iron's refill of a container's runtime: Khalid's dissertation, section 2.2.2, Figures 2.7 and 2.8. Pure.
//!
//! A container may run for its quota in each period. What the scheduler hands out is a global [`Pool`], of which each core takes
//! slices ([`Core`]). Softirq work changes both: a container is charged for what others' processes did on its packets, and
//! credited for what its processes did on others'. All times are in ns; a negative one is a debt.

/// What a container has on one core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Core {
    /// What it may still run before the next refill (`rt_remain`).
    pub remain: i64,
    /// Softirq time to be charged; to be credited where negative (`cpuusage`).
    pub usage: i64,
}

/// What a container has on all cores together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pool {
    /// What it may run in a period.
    pub quota: i64,
    /// What is left of it for this period.
    pub runtime: i64,
    /// What it gets back for softirq work that it did for others.
    pub gained: i64,
}

impl Pool {
    /// Make the pool of a container at the begin of a period.
    pub fn new(quota: i64) -> Pool {
        Pool { quota, runtime: quota, gained: 0 }
    }

    /// Refill the pool at a period's end (Figure 2.7); `idled` says whether the container used less than it could for want of
    /// work.
    pub fn end_period(&mut self, idled: bool) {
        if self.gained > 0 {
            self.runtime += self.gained;
            self.gained = 0;
        }
        // What it did not want it does not keep; a debt stays.
        if idled && self.runtime > 0 {
            self.runtime = 0;
        }
        self.runtime += self.quota;
    }

    /// Refill a core that has nothing left by up to `slice` (Figure 2.8), and return by how much. Where that leaves it without
    /// runtime, the container is throttled there.
    ///
    /// # Panics
    /// When the core has more than a slice left: the scheduler calls this when nothing is left.
    pub fn refill(&mut self, core: &mut Core, slice: i64) -> i64 {
        assert!(core.remain <= slice, "a core with {} ns left needs no slice of {slice} ns", core.remain);
        let wanted = slice - core.remain;
        if core.usage > 0 {
            if core.usage > self.gained {
                self.runtime -= core.usage - self.gained;
                self.gained = 0;
            } else {
                self.gained -= core.usage;
            }
        } else {
            self.gained += core.usage.abs();
        }
        core.usage = 0;
        // The corner case: nothing is left, but there is credit.
        if self.runtime == 0 && self.gained > 0 {
            let refill = wanted.min(self.gained);
            self.runtime = refill;
            self.gained -= refill;
        }
        let mut amount = 0;
        if self.runtime > 0 {
            amount = self.runtime.min(wanted);
            self.runtime -= amount;
        }
        core.remain += amount;
        amount
    }
}

#[cfg(test)]
#[path = "refill_tests.rs"]
mod tests;

//! Who owes rests: a quota that is written forgives what was overdrawn.

use crate::ledger::LEAST;

/// How long a cgroup that owes gets nothing at most: it has 1 ms then, and runs on to the next tick of the scheduler, which together is
/// some hundredth of a CPU.
const LONGEST_REST: u64 = 500_000_000;

/// A cgroup that owes gets no further quota until it has paid: each one that is written, were it the least, fills the pool again and
/// forgives what was overdrawn. What is there is the least already, so the kernel's own refill gives no more.
#[derive(Debug, Default)]
pub(crate) struct Rest {
    has_least: bool,
    ns: u64,
}

impl Rest {
    /// Return whether it rests until the next step, `elapsed` after the last one, with this quota and balance in the books.
    pub(crate) fn goes_on(&mut self, next: u64, balance: i64, elapsed: u64) -> bool {
        let (is_least, rested) = (next == LEAST.unsigned_abs(), self.ns.saturating_add(elapsed));
        let rests = is_least && self.has_least && balance < 0 && rested < LONGEST_REST;
        *self = Rest { has_least: is_least, ns: if rests { rested } else { 0 } };
        rests
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::held::most;
    use crate::ledger::{Came, Ledger};

    /// A process that always runs has what it is given and the rest of a tick, 5 ms in all, whenever a quota is written.
    #[test]
    fn who_overdraws_each_quota_has_what_he_may_all_the_same() {
        const TICK: u64 = 4_000_000;
        for (percent, ms) in [(1, 100), (1, 20), (1, 10), (5, 20), (5, 10), (10, 10), (30, 10)] {
            let period = ms * 1_000_000;
            let (mut ledger, mut rest) = (Ledger::new(percent * 10_000_000, 1_000_000_000), Rest::default());
            let (mut took, mut own) = (0, 0);
            for _ in 0..10_000 / ms {
                let came = Came { elapsed: period, own, ..Came::default() };
                let next = ledger.step(&came, most(period));
                own = if rest.goes_on(next, ledger.balance(), period) { 0 } else { (next + TICK).min(period) };
                took += own;
            }
            let part = took as f64 / 1e8;
            assert!((percent as f64 - 0.2..percent as f64 + 0.2).contains(&part), "{percent}% at {ms} ms: {part}%");
        }
        // Who owes more than he can ever pay is not left without anything.
        let mut rest = Rest::default();
        let wrote = (0..100).filter(|_| !rest.goes_on(LEAST.unsigned_abs(), -1 << 40, 20_000_000)).count();
        assert_eq!(wrote, 4);
    }
}

//! Before a table refuses, it looks for what is over: time pays for each entry that is looked at, so that a flood
//! of refusals costs next to nothing, and no packet waits long for another's place.

/// Most entries that are looked at for one packet: about 1 us while nothing is over, 0.15 ms when all of them are over and are
/// taken back.
pub const MOST: usize = 512;

/// How many entries may be looked at.
#[derive(Clone, Copy, Debug)]
pub struct Looks {
    /// Until when time is spent, in ns.
    until: u64,
    /// The most that time can be worth: each entry once.
    round: u64,
}

impl Looks {
    /// Time that must pass for each look, in ns: a million a second, under 1 % of a core while nothing is over.
    const EACH: u64 = 1024;
    /// Fewest at once.
    const LEAST: u64 = 16;

    /// Look at a table with places for `entries`.
    pub fn new(entries: usize) -> Self {
        Looks { until: 0, round: (entries as u64).max(Self::LEAST) }
    }

    /// Return how many looks are due; 0 most of the time in a flood. What is not spent now is kept.
    #[inline]
    pub fn due(&mut self, now: u64) -> usize {
        let owed = (now.saturating_sub(self.until) / Self::EACH).min(self.round);
        if owed < Self::LEAST {
            return 0;
        }
        let count = owed.min(MOST as u64);
        self.until = now - (owed - count) * Self::EACH;
        let_look(count);
        count as usize
    }
}

thread_local! {
    static LOOKED: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Return how many entries this thread has looked at, or let others look at, before something was refused, of all tables.
pub fn looked() -> u64 {
    LOOKED.get()
}

/// Count what another thread has looked at for this one.
pub(crate) fn let_look(count: u64) {
    LOOKED.set(LOOKED.get() + count);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_is_due_after_a_long_time_but_never_at_once() {
        let (mut looks, now) = (Looks::new(10_000), 1 << 60);
        let mut total = 0;
        for _ in 0..100 {
            let due = looks.due(now);
            assert!(due <= 512, "{due} at once");
            total += due;
        }
        assert_eq!(total, 10_000 / 16 * 16, "each entry once, but for fewer than the fewest");
        // In a flood each look waits for its time.
        let flood: usize = (0..1_000_000).map(|i| looks.due(now + i)).sum();
        assert_eq!(flood, 1_000_000 / 1024 / 16 * 16);
        assert_eq!(looks.due(0), 0, "time went back");
    }

    #[test]
    fn a_small_table_is_looked_at_too() {
        assert!(Looks::new(1).due(1 << 60) > 0);
    }
}

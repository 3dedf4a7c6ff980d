//! How many packets may come until the next step, by what those before cost. Pure.

/// The fewest, so that what they cost is seen again.
const FEWEST: u64 = 16;
/// The most by which the number changes in a step while some are dropped.
const STEP: f64 = 4.0;

/// Return what a cgroup's packets may cost of what it may cost in all, by what its processes took and might have taken, in ns.
///
/// Processes that took all they had get half; else packets have what they leave, but for a tenth of the quota, the T% of the paper: in
/// that it shows whether processes want more.
pub(crate) fn part(may: u64, processes_took: u64, processes_had: u64) -> u64 {
    let want_more = processes_took + processes_took / 16 >= processes_had;
    let left = may.saturating_sub(processes_took).saturating_sub(may / 10);
    if want_more { may / 2 } else { left.max(may / 2) }
}

/// What is known of a device's packets.
///
/// The cost of a packet is not asked for, as there are two: of those that pass and of those that are dropped. The number goes up and down
/// by what all of it cost together, until that is what it may be.
#[derive(Debug, Default)]
pub(crate) struct Intake {
    /// `None` as long as no packet has come.
    number: Option<u64>,
}

impl Intake {
    /// Take in a step, in which so many packets passed and so many were dropped, and which cost so much: return how many may pass until
    /// the next one, in which they may cost `may_ns`.
    pub(crate) fn step(&mut self, passed: u64, dropped: u64, cost_ns: u64, may_ns: u64) -> u64 {
        let part = may_ns as f64 / cost_ns.max(1) as f64;
        match (dropped, self.number) {
            (0, _) if passed > 0 && cost_ns > 0 => self.number = Some((passed as f64 * part) as u64),
            (0, _) => {}
            (_, number) => {
                // What owes gets nothing for a while: that says nothing of the packets' cost.
                let before = number.unwrap_or(FEWEST).max(FEWEST);
                if may_ns > 0 {
                    self.number = Some((before as f64 * part.clamp(1.0 / STEP, STEP)) as u64);
                }
            }
        }
        self.number = self.number.map(|number| number.max(FEWEST));
        if may_ns == 0 { 0 } else { self.number.unwrap_or(u64::MAX) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Let steps go by in which so many packets come, of which each costs so much when it passes and when it is dropped.
    fn play(intake: &mut Intake, steps: usize, come: u64, costs: [u64; 2], may_ns: u64) -> (u64, u64) {
        let mut may_pass = u64::MAX;
        let mut last = (0, 0);
        for _ in 0..steps {
            let passed = come.min(may_pass);
            let cost = passed * costs[0] + (come - passed) * costs[1];
            last = (passed, cost);
            may_pass = intake.step(passed, come - passed, cost, may_ns);
        }
        last
    }

    #[test]
    fn what_comes_costs_what_it_may() {
        let mut intake = Intake::default();
        // All of it may pass.
        assert_eq!(play(&mut intake, 5, 5000, [1000, 100], 10_000_000), (5000, 5_000_000));
        // A flood, and what is dropped costs, too.
        let (passed, cost) = play(&mut intake, 20, 50_000, [1000, 100], 10_000_000);
        assert!((5_400..5_700).contains(&passed) && (9_900_000..10_100_000).contains(&cost), "{passed} {cost}");
        // Packets get dearer.
        let (passed, cost) = play(&mut intake, 20, 50_000, [4000, 100], 10_000_000);
        assert!((1_200..1_400).contains(&passed) && (9_900_000..10_100_000).contains(&cost), "{passed} {cost}");
        // To drop them alone is too much: nearly nothing passes, and when the flood is over all does.
        assert_eq!(play(&mut intake, 20, 200_000, [1000, 100], 10_000_000).0, FEWEST);
        assert_eq!(play(&mut intake, 10, 5000, [1000, 100], 10_000_000).0, 5000);
    }

    /// What is settled on, where processes want so much of 30 ms and packets more than there is; both are what comes of a quota that
    /// pays for packets first.
    fn settles(processes_want: u64) -> (u64, u64) {
        let (mut processes, mut had, mut packets) = (0, 30, 0);
        for _ in 0..20 {
            packets = part(30_000, processes * 1000, had * 1000) / 1000;
            had = 30 - packets;
            processes = processes_want.min(had);
        }
        (processes, packets)
    }

    #[test]
    fn packets_have_what_processes_leave_and_each_has_half() {
        assert_eq!(settles(0), (0, 27));
        assert_eq!(settles(5), (5, 22));
        assert_eq!(settles(100), (15, 15));
    }

    #[test]
    fn who_owes_gets_nothing_and_then_as_much_as_before() {
        let mut intake = Intake::default();
        let before = intake.step(1000, 0, 1_000_000, 5_000_000);
        assert_eq!(before, 5000);
        assert_eq!(intake.step(5000, 100, 6_000_000, 0), 0);
        assert_eq!(intake.step(0, 5000, 500_000, 0), 0);
        assert!(intake.step(0, 5000, 500_000, 500_000) >= 5000);
    }
}

//! Over random schedules nobody gains time in sum, and no debt is lost.

use proptest::prelude::*;

use super::*;

const CORES: usize = 2;
const CONTAINERS: usize = 3;
const SLICE: i64 = 5_000_000;

/// What happens on a core.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// The container has the core so long, if it is not throttled there; a tick may come late.
    Run { core: usize, container: usize, ns: i64 },
    /// A softirq works so long in one container's time on another's packets.
    Softirq { core: usize, host: usize, owner: usize, ns: i64 },
    /// The period ends; who of the containers idled.
    Period { idled: [bool; CONTAINERS] },
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let (core, container) = (0..CORES, 0..CONTAINERS);
    let run = (core.clone(), container.clone(), 1..8_000_000i64);
    let softirq = (core, container.clone(), container, 1..3_000_000i64);
    let event = prop_oneof![
        6 => run.prop_map(|(core, container, ns)| Event::Run { core, container, ns }),
        4 => softirq.prop_map(|(core, host, owner, ns)| Event::Softirq { core, host, owner, ns }),
        1 => any::<[bool; CONTAINERS]>().prop_map(|idled| Event::Period { idled }),
    ];
    prop::collection::vec(event, 1..80)
}

/// A container, and what it was given and took, counted beside the algorithms.
struct Container {
    pool: Pool,
    cores: [Core; CORES],
    granted: i64,
    forfeited: i64,
    ran: i64,
    charged: i64,
    credited: i64,
}

impl Container {
    fn new(quota: i64) -> Container {
        let (pool, cores) = (Pool::new(quota), [Core::default(); CORES]);
        Container { pool, cores, granted: quota, forfeited: 0, ran: 0, charged: 0, credited: 0 }
    }

    /// All that it may still run, with what is not yet charged and credited.
    fn holds(&self) -> i64 {
        let cores: i64 = self.cores.iter().map(|core| core.remain - core.usage).sum();
        self.pool.runtime + self.pool.gained + cores
    }

    fn run(&mut self, core: usize, ns: i64) {
        if self.cores[core].remain <= 0 {
            let before = self.cores[core].remain;
            let amount = self.pool.refill(&mut self.cores[core], SLICE);
            assert_eq!(self.cores[core], Core { remain: before + amount, usage: 0 });
            assert!(self.cores[core].remain <= SLICE && amount >= 0);
        }
        // Throttled: its tasks do not run.
        if self.cores[core].remain > 0 {
            self.cores[core].remain -= ns;
            self.ran += ns;
        }
    }

    fn end_period(&mut self, idled: bool) {
        let before = self.pool;
        self.pool.end_period(idled);
        self.granted += before.quota;
        let kept = self.pool.runtime - before.quota;
        // Only what idling leaves is lost, and never a debt.
        assert!(kept == before.runtime + before.gained || (idled && kept == 0 && before.runtime + before.gained > 0));
        self.forfeited += before.runtime + before.gained - kept;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn nobody_gains_time_in_sum_and_no_debt_is_lost(
        events in events(),
        quotas in prop::array::uniform3(1_000_000..60_000_000i64),
    ) {
        let mut containers = quotas.map(Container::new);
        for event in events {
            match event {
                Event::Run { core, container, ns } => containers[container].run(core, ns),
                Event::Softirq { core, host, owner, ns } => {
                    containers[host].cores[core].usage -= ns;
                    containers[host].credited += ns;
                    containers[owner].cores[core].usage += ns;
                    containers[owner].charged += ns;
                }
                Event::Period { idled } => {
                    containers.iter_mut().zip(idled).for_each(|(container, idled)| container.end_period(idled));
                }
            }
            for c in &containers {
                prop_assert_eq!(c.holds(), c.granted - c.forfeited - c.ran - c.charged + c.credited);
                prop_assert!(c.forfeited >= 0 && c.pool.gained >= 0);
            }
        }
        // In sum softirqs moved time between containers and made none: what ran, and may yet, was granted.
        let sum = |of: fn(&Container) -> i64| containers.iter().map(of).sum::<i64>();
        prop_assert_eq!(sum(|c| c.ran) + sum(Container::holds) + sum(|c| c.forfeited), sum(|c| c.granted));
    }
}

#[test]
fn a_container_gets_back_what_others_used_of_its_time() {
    let mut pool = Pool::new(0);
    let mut core = Core { remain: 0, usage: -30 };
    // The corner case of Figure 2.8, lines 14 to 18: no runtime is left, but a credit.
    assert_eq!(pool.refill(&mut core, 20), 20);
    assert_eq!((pool, core), (Pool { quota: 0, runtime: 0, gained: 10 }, Core { remain: 20, usage: 0 }));
}

#[test]
fn who_overdrew_pays_in_later_periods() {
    let mut pool = Pool::new(100);
    let mut core = Core { remain: 0, usage: 250 };
    assert_eq!((pool.refill(&mut core, 10), pool.runtime), (0, -150));
    // Also who idles keeps a debt.
    pool.end_period(true);
    assert_eq!((pool.runtime, pool.refill(&mut core, 10)), (-50, 0));
    pool.end_period(false);
    assert_eq!((pool.runtime, pool.refill(&mut core, 10)), (50, 10));
}

#[test]
fn a_charge_takes_credit_first_and_idling_forfeits_what_is_left() {
    let mut pool = Pool { quota: 100, runtime: 40, gained: 30 };
    let mut core = Core { remain: 0, usage: 20 };
    assert_eq!(pool.refill(&mut core, 10), 10);
    assert_eq!(pool, Pool { quota: 100, runtime: 30, gained: 10 });
    let mut busy = pool;
    pool.end_period(true);
    assert_eq!(pool, Pool { quota: 100, runtime: 100, gained: 0 });
    busy.end_period(false);
    assert_eq!(busy, Pool { quota: 100, runtime: 140, gained: 0 });
}

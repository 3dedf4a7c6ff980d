//! The scheduler tree against tasks of known cost.

use super::*;
use proptest::prelude::*;

/// Tasks of a fixed cost a run, each with so many runs of work left.
struct Fixed {
    cost: Vec<u64>,
    work: Vec<u64>,
    cycles: Vec<u64>,
}

impl Fixed {
    fn new(cost: &[u64], work: &[u64]) -> Self {
        Fixed { cost: cost.into(), work: work.into(), cycles: vec![0; cost.len()] }
    }
}

impl Leaves for Fixed {
    fn run(&mut self, task: TaskId) -> Ran {
        let i = task.0 as usize;
        if self.work[i] == 0 {
            return Ran::default();
        }
        self.work[i] -= 1;
        self.cycles[i] += self.cost[i];
        Ran { packets: 32, bits: 32 * 512, cycles: self.cost[i] }
    }
}

fn task(id: u32) -> Tree {
    Tree::Task(TaskId(id))
}

#[test]
fn priority_starves_the_lower() {
    let mut tree = Tree::Priority(vec![task(0), task(1)]);
    let mut tasks = Fixed::new(&[100, 100], &[10, 10]);
    (0..12).for_each(|_| _ = tree.run(0, &mut tasks));
    assert_eq!(tasks.work, [0, 8]);
}

#[test]
fn turns_are_even_whatever_they_cost() {
    let mut tree = Tree::round_robin((0..3).map(task));
    let mut tasks = Fixed::new(&[1, 50, 900], &[100; 3]);
    (0..99).for_each(|_| _ = tree.run(0, &mut tasks));
    assert_eq!(tasks.work, [67; 3]);
}

#[test]
fn a_rate_limit_holds_over_a_second() {
    for (unit, rate, expected) in [(Unit::Packets, 32_000, 32_000), (Unit::Bits, 16_384_000, 32_000)] {
        let mut tree = Tree::limit(task(0), unit, rate, 1);
        let mut tasks = Fixed::new(&[1], &[u64::MAX]);
        let packets: u64 = (1..=1_000_000u64).map(|us| tree.run(us * 1000, &mut tasks).packets).sum();
        assert!(packets.abs_diff(expected) <= 64, "{packets} packets in a second at {rate} {unit:?}/s");
    }
}

#[test]
fn the_bucket_of_an_idle_child_keeps_its_tokens() {
    let mut tree = Tree::limit(task(0), Unit::Packets, 1, 32);
    let mut tasks = Fixed::new(&[1], &[0]);
    (0..10).for_each(|_| _ = tree.run(0, &mut tasks));
    tasks.work[0] = 5;
    assert_eq!((0..10).map(|_| tree.run(0, &mut tasks).packets).sum::<u64>(), 32);
}

#[test]
fn a_limit_holds_while_weights_change() {
    let of = |weight| Tree::fair([(weight, Tree::limit(task(0), Unit::Packets, 32_000, 320)), (10, task(1))]);
    let mut tree = of(10);
    let mut tasks = Fixed::new(&[1, 1], &[u64::MAX, u64::MAX]);
    for us in 1..=1_000_000u64 {
        if us % 5_000 == 0 {
            let mut next = of(if us % 2 == 0 { 10 } else { 20 });
            next.resume(&tree);
            tree = next;
        }
        tree.run(us * 1000, &mut tasks);
    }
    let packets = 32 * (u64::MAX - tasks.work[0]);
    assert!(packets.abs_diff(32_000) <= 320 + 64, "{packets} packets in a second");
}

#[test]
fn whoever_wakes_up_has_nothing_saved() {
    let mut tree = Tree::fair([(1, task(0)), (1, task(1))]);
    let mut tasks = Fixed::new(&[100, 100], &[2000, 0]);
    (0..1000).for_each(|_| _ = tree.run(0, &mut tasks));
    tasks.work[1] = 1000;
    tasks.cycles = vec![0, 0];
    (0..100).for_each(|_| _ = tree.run(0, &mut tasks));
    assert_eq!(tasks.cycles, [5000, 5000]);
}

/// Two tasks, the second of which has nothing to do for 50 of 100 runs and then more than it can do: returns how many runs each had.
fn by_fits_and_starts(mut tree: Tree) -> [u64; 2] {
    let mut tasks = Fixed::new(&[100, 100], &[u64::MAX, 0]);
    for run in 0..100_000 {
        tasks.work[1] = if run % 100 < 50 { 0 } else { 1 };
        tree.run(run * 100, &mut tasks);
    }
    [0, 1].map(|i| tasks.cycles[i] / 100)
}

#[test]
fn who_may_save_up_has_its_part_though_its_packets_come_by_fits_and_starts() {
    let even = || Tree::fair([(1, task(0)), (1, task(1))]);
    let second = |tree: &Tree| matches!(tree, Tree::Task(TaskId(1)));
    let [one, other] = by_fits_and_starts(even());
    assert!(one.abs_diff(75_000) < 10 && other.abs_diff(25_000) < 10, "{one} : {other}");
    let [one, other] = by_fits_and_starts(even().saving((5_100, 100_000), second));
    assert!(one.abs_diff(50_000) < 10 && other.abs_diff(50_000) < 10, "{one} : {other}");
    // 50 runs of 100 ns without anything are longer than that: it slept.
    let [one, other] = by_fits_and_starts(even().saving((4_900, 100_000), second));
    assert!(one.abs_diff(75_000) < 30 && other.abs_diff(25_000) < 30, "{one} : {other}");
}

#[test]
fn shares_hold_after_years() {
    let mut tree = Tree::fair([(1, task(0)), (3, task(1))]);
    // Each run takes more than a day of a core, and is paid for as half an hour.
    let mut tasks = Fixed::new(&[1 << 48; 2], &[u64::MAX; 2]);
    for _ in 0..4_000 {
        tree.run(0, &mut tasks);
    }
    // What is usual is learnt from nothing, by a sixteenth a run.
    assert!((u64::MAX - tasks.work[0]).abs_diff(1_000) <= 12, "{}", u64::MAX - tasks.work[0]);
}

#[test]
fn what_was_saved_up_is_kept_where_weights_change() {
    let of = |weight| Tree::fair([(weight, task(0)), (10, task(1))]).saving((10_000, 10_000), |_| true);
    let mut tree = of(10);
    let mut tasks = Fixed::new(&[100, 100], &[u64::MAX, 0]);
    (0..98).for_each(|run| _ = tree.run(run * 100, &mut tasks));
    let mut next = of(11);
    next.resume(&tree);
    tasks.work[1] = u64::MAX;
    (98..147).for_each(|run| _ = next.run(run * 100, &mut tasks));
    assert_eq!(tasks.cycles[1], 4_900);
    // Nor does who slept wake up where they change.
    tasks.work[1] = 0;
    (147..347).for_each(|run| _ = next.run(run * 100, &mut tasks));
    let mut last = of(10);
    last.resume(&next);
    (tasks.work[1], tasks.cycles) = (u64::MAX, vec![0, 0]);
    (347..447).for_each(|run| _ = last.run(run * 100, &mut tasks));
    assert_eq!(tasks.cycles, [5_000, 5_000]);
}

#[test]
fn nobody_saves_up_more_than_it_may() {
    let mut tree = Tree::fair([(1, task(0)), (3, task(1))]).saving((4_000, 4_000), |_| true);
    let mut tasks = Fixed::new(&[100, 100], &[u64::MAX, 0]);
    // One run of 30, of which it has 22 less than its part.
    for run in 0..3_000 {
        tasks.work[1] = u64::from(run % 30 == 29);
        tree.run(run * 100, &mut tasks);
    }
    tasks.work[1] = u64::MAX;
    tasks.cycles = vec![0, 0];
    // Three quarters of 4,000 cycles, and of what comes then.
    (3_000..3_130).for_each(|run| _ = tree.run(run * 100, &mut tasks));
    assert!(tasks.cycles[1].abs_diff(3_000 + 7_500) <= 300, "{:?}", tasks.cycles);
}

#[test]
fn who_slept_does_not_hold_up_others_when_it_wakes() {
    let mut tree = Tree::fair([(1, task(0)), (3, task(1))]).saving((4_000, 4_000), |_| true);
    let mut tasks = Fixed::new(&[100, 100], &[u64::MAX, 0]);
    (0..10_000).for_each(|run| _ = tree.run(run * 100, &mut tasks));
    tasks.work[1] = u64::MAX;
    let mut waited = 0;
    for run in 10_000..11_000 {
        let before = tasks.work[0];
        tree.run(run * 100, &mut tasks);
        waited = if tasks.work[0] == before { waited + 1 } else { 0 };
        assert!(waited <= 4, "the other waits for {waited} runs, and its weight is a quarter");
    }
}

#[test]
fn a_removed_task_runs_no_more() {
    let inner = Tree::Priority(vec![task(1), task(2)]);
    let mut tree = Tree::fair([(1, task(0)), (2, inner)]);
    tree.remove(TaskId(1));
    assert_eq!(tree.tasks(), [TaskId(0), TaskId(2)]);
    let mut only = task(7);
    only.remove(TaskId(7));
    assert!(only.tasks().is_empty());
    assert_eq!(only.run(0, &mut Fixed::new(&[], &[])), Ran::default());
}

#[test]
fn an_interrupted_task_does_not_pay_for_the_interruption() {
    let mut tree = Tree::fair([(1, task(0)), (1, task(1))]);
    let mut tasks = Fixed::new(&[1_000, 1_000], &[u64::MAX, u64::MAX]);
    (0..100).for_each(|_| _ = tree.run(0, &mut tasks));
    // Both run at a cost of a millisecond once, then as before: paid in full, it would be 1,000 turns.
    let before = tasks.work.clone();
    tasks.cost[0] = 1_000_000;
    while tasks.work[0] == before[0] {
        tree.run(0, &mut tasks);
    }
    tasks.cost[0] = 1_000;
    let after = tasks.work.clone();
    (0..100).for_each(|_| _ = tree.run(0, &mut tasks));
    let turns = after[0] - tasks.work[0];
    assert!((40..50).contains(&turns), "{turns} turns of 100");
}

#[test]
fn a_first_run_that_takes_long_is_not_paid_for_with_thousands_of_turns() {
    let mut tree = Tree::fair([(1, task(0)), (1, task(1))]);
    let mut tasks = Fixed::new(&[1_000_000_000, 1_000], &[u64::MAX, u64::MAX]);
    tree.run(0, &mut tasks);
    tasks.cost[0] = 1_000;
    (0..4_000).for_each(|_| _ = tree.run(0, &mut tasks));
    let turns = u64::MAX - tasks.work[0];
    assert!(turns > 1_000, "{turns} turns of 4,000");
}

#[test]
fn a_task_that_takes_more_from_now_on_pays_for_it() {
    let mut tree = Tree::fair([(1, task(0)), (1, task(1))]);
    let mut tasks = Fixed::new(&[1_000, 1_000], &[u64::MAX, u64::MAX]);
    (0..100).for_each(|_| _ = tree.run(0, &mut tasks));
    tasks.cost[0] = 1_000_000;
    (0..20_000).for_each(|_| _ = tree.run(0, &mut tasks));
    let before = tasks.cycles.clone();
    (0..20_000).for_each(|_| _ = tree.run(0, &mut tasks));
    let spent = [0, 1].map(|i| (tasks.cycles[i] - before[i]) as f64);
    assert!((spent[0] / spent[1] - 1.0).abs() < 0.1, "{spent:?}");
}

proptest! {
    /// Of cycles spent, each child gets its weight's share, whatever its runs cost.
    #[test]
    fn cycles_are_shared_by_weight(children in prop::collection::vec((1u32..20, 10u64..5000), 2..6)) {
        let mut tree = Tree::fair((0u32..).zip(&children).map(|(i, (weight, _))| (*weight, task(i))));
        let costs: Vec<u64> = children.iter().map(|c| c.1).collect();
        let mut tasks = Fixed::new(&costs, &vec![u64::MAX; costs.len()]);
        for _ in 0..20_000 {
            tree.run(0, &mut tasks);
        }
        let weights: u32 = children.iter().map(|c| c.0).sum();
        let total: u64 = tasks.cycles.iter().sum();
        for (i, (weight, cost)) in children.iter().enumerate() {
            let fair = total as f64 * f64::from(*weight) / f64::from(weights);
            let most: u64 = costs.iter().max().copied().unwrap_or(0) + cost;
            let off = (tasks.cycles[i] as f64 - fair).abs();
            prop_assert!(off <= most as f64 * 2.0 + fair * 0.01, "child {i}: {} cycles, fair {fair}", tasks.cycles[i]);
        }
    }

    /// A rate limit is never exceeded over any span by more than its burst and one batch.
    #[test]
    fn a_rate_limit_is_never_exceeded(rate in 1u64..10_000_000, burst in 0u64..10_000, steps in prop::collection::vec(0u64..2_000_000, 1..200)) {
        let mut tree = Tree::limit(task(0), Unit::Packets, rate, burst);
        let mut tasks = Fixed::new(&[1], &[u64::MAX]);
        let (mut now, mut packets) = (0, 0);
        for step in steps {
            now += step;
            packets += tree.run(now, &mut tasks).packets;
            let most = burst as u128 + u128::from(now) * u128::from(rate) / 1_000_000_000 + 32;
            prop_assert!(u128::from(packets) <= most, "{packets} packets at {now} ns, at most {most}");
        }
    }
}

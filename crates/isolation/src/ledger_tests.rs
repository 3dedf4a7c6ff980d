//! In sum no time is gained and no debt is lost, whatever came in between.

use proptest::prelude::*;

use super::*;

const MS: u64 = 1_000_000;
const PERIOD: u64 = 100 * MS;

fn came() -> impl Strategy<Value = Came> {
    // Steps late and early; a cgroup that overdraws what it has, as several cores together can; a flood.
    let elapsed = prop_oneof![4 => Just(PERIOD), 1 => 1..3 * PERIOD];
    let own = prop_oneof![Just(0), 0..PERIOD, 0..3 * PERIOD];
    let network = || prop_oneof![Just(0), 0..40 * MS, 0..PERIOD];
    (elapsed, own, network(), network(), prop::bool::ANY).prop_map(|(elapsed, own, charged, hosted, held_back)| Came {
        elapsed,
        own,
        charged,
        hosted,
        held_back,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn no_time_is_gained_and_no_debt_is_lost(
        steps in prop::collection::vec(came(), 1..60),
        quota in 1..200 * MS,
        most in 0..200 * MS,
        burst in prop_oneof![Just(0), 0..200 * MS],
    ) {
        let mut ledger = Ledger::new(quota, PERIOD).keeping(burst);
        let (mut time, mut spent, mut forfeited) = (0, 0i128, 0i128);
        let (mut handed_out, mut before_granted) = (0, 0);
        for came in steps {
            let before = i128::from(ledger.balance()) + i128::from(handed_out);
            time += came.elapsed as u128;
            let took = i128::from(came.own) + i128::from(came.charged) - i128::from(came.hosted);
            spent += took;
            let next = ledger.step(&came, most);
            let holds = i128::from(ledger.balance()) + i128::from(next);
            // All that was ever granted was spent, is held, or was not wanted.
            let granted = (u128::from(quota) * time / u128::from(PERIOD)).cast_signed();
            let lost = granted - spent - holds - forfeited;
            prop_assert!(lost >= 0, "{lost} gained in {ledger:?}");
            // Only what is left over is lost, and never a debt, and only by who did not use what it had.
            let left = before - took;
            // Who was held back keeps a grant.
            let grant = granted - before_granted;
            before_granted = granted;
            let keeps = if came.held_back { grant.max(i128::from(burst)) } else { i128::from(burst) };
            let beyond = left - keeps;
            prop_assert!(lost == 0 || (lost == beyond && came.own < handed_out), "{lost} of {left}: {ledger:?}");
            forfeited += lost;
            // The kernel's bounds, and the algorithm's: not more than is there, but for the least that the kernel takes.
            prop_assert!(next >= LEAST.unsigned_abs() && next.is_multiple_of(1000));
            prop_assert!(next <= most.max(LEAST.unsigned_abs()));
            prop_assert!(ledger.balance() >= 0 || next == LEAST.unsigned_abs(), "{next}: {ledger:?}");
            prop_assert_eq!(ledger.debt(), ledger.balance().min(0).unsigned_abs());
            handed_out = next;
        }
    }

    #[test]
    fn a_cgroup_that_always_runs_costs_its_quota_in_the_long_run(
        quota in 10 * MS..150 * MS,
        network in 0..9 * MS,
        hosted in 0..30 * MS,
    ) {
        let mut ledger = Ledger::new(quota, PERIOD);
        let mut next = ledger.step(&Came { elapsed: PERIOD, ..Came::default() }, 2 * PERIOD);
        let mut cost = 0i128;
        for _ in 0..1000 {
            let came = Came { elapsed: PERIOD, own: next, charged: network, hosted: hosted.min(next), held_back: false };
            let took = i128::from(came.own) + i128::from(came.charged) - i128::from(came.hosted);
            cost += took;
            next = ledger.step(&came, 2 * PERIOD);
        }
        // To within what the last step still holds, where two cores are enough for the quota and what it does for others.
        if quota + hosted < 2 * PERIOD {
            prop_assert!((cost - i128::from(quota) * 1000).abs() <= i128::from(2 * PERIOD), "{cost} of {quota}");
        }
    }
}

#[test]
fn what_the_minimum_could_not_take_stays_debt() {
    let mut ledger = Ledger::new(30 * MS, PERIOD);
    assert_eq!(ledger.step(&Came { elapsed: PERIOD, ..Came::default() }, PERIOD), 30 * MS);
    // 30 of its own and 80 by the network: 50 are owed after this period's grant, and the least that the kernel takes.
    let flooded = Came { elapsed: PERIOD, own: 30 * MS, charged: 80 * MS, ..Came::default() };
    assert_eq!((ledger.step(&flooded, PERIOD), ledger.debt()), (MS, 51 * MS));
    // The flood is over: two periods pay for it.
    let quiet = Came { elapsed: PERIOD, own: MS, ..Came::default() };
    assert_eq!((ledger.step(&quiet, PERIOD), ledger.debt()), (MS, 22 * MS));
    assert_eq!((ledger.step(&quiet, PERIOD), ledger.debt()), (8 * MS, 0));
}

#[test]
fn who_worked_for_others_gets_it_back_and_own_network_work_is_paid_once() {
    let mut ledger = Ledger::new(30 * MS, PERIOD);
    ledger.step(&Came { elapsed: PERIOD, ..Came::default() }, PERIOD);
    // 12 of its 30 ms were others' packets.
    let used = Came { elapsed: PERIOD, own: 30 * MS, hosted: 12 * MS, ..Came::default() };
    assert_eq!(ledger.step(&used, PERIOD), 42 * MS);
    // 5 ms of its own packets, in its own time.
    let own = Came { elapsed: PERIOD, own: 42 * MS, charged: 5 * MS, hosted: 5 * MS, ..Came::default() };
    assert_eq!((ledger.step(&own, PERIOD), ledger.balance()), (30 * MS, 0));
}

#[test]
fn what_is_not_wanted_is_not_kept_and_a_late_step_takes_nothing() {
    let mut ledger = Ledger::new(30 * MS, PERIOD);
    ledger.step(&Came { elapsed: PERIOD, ..Came::default() }, 2 * PERIOD);
    let idle = Came { elapsed: PERIOD, own: 3 * MS, ..Came::default() };
    assert_eq!(ledger.step(&idle, 2 * PERIOD), 30 * MS);
    let late = Came { elapsed: 2 * PERIOD, own: 30 * MS, ..Came::default() };
    assert_eq!(ledger.step(&late, 2 * PERIOD), 60 * MS);
}

#[test]
fn who_has_a_burst_keeps_as_much_of_what_it_did_not_want() {
    let mut ledger = Ledger::new(30 * MS, PERIOD).keeping(20 * MS);
    ledger.step(&Came { elapsed: PERIOD, ..Came::default() }, 2 * PERIOD);
    let quiet = Came { elapsed: PERIOD, own: 15 * MS, ..Came::default() };
    // 15 ms are left, and 20 of the 30 that are left after that.
    assert_eq!(ledger.step(&quiet, 2 * PERIOD), 45 * MS);
    assert_eq!(ledger.step(&quiet, 2 * PERIOD), 50 * MS);
    // What was kept pays for what the network takes beyond the quota.
    let busy = Came { elapsed: PERIOD, own: 30 * MS, charged: 15 * MS, ..Came::default() };
    assert_eq!((ledger.step(&busy, 2 * PERIOD), ledger.debt()), (35 * MS, 0));
}

#[test]
fn who_was_held_back_keeps_what_it_could_not_take_but_no_more_than_a_grant() {
    let mut ledger = Ledger::new(30 * MS, PERIOD);
    ledger.step(&Came { elapsed: PERIOD, ..Came::default() }, 4 * PERIOD);
    let held_back = Came { elapsed: PERIOD, own: 20 * MS, held_back: true, ..Came::default() };
    assert_eq!(ledger.step(&held_back, 4 * PERIOD), 40 * MS);
    assert_eq!(ledger.step(&held_back, 4 * PERIOD), 50 * MS);
    assert_eq!(ledger.step(&held_back, 4 * PERIOD), 60 * MS);
    assert_eq!(ledger.step(&held_back, 4 * PERIOD), 60 * MS);
    assert_eq!(ledger.step(&Came { held_back: false, ..held_back }, 4 * PERIOD), 30 * MS);
}

#[test]
fn processes_and_threads_have_what_the_other_does_not_take_and_an_eighth() {
    assert_eq!(divide(32 * MS, 32 * MS, 0), (32 * MS, 16 * MS));
    assert_eq!(divide(32 * MS, 10 * MS, 20 * MS), (16 * MS, 26 * MS));
    assert_eq!(divide(32 * MS, 16 * MS, 16 * MS), (20 * MS, 20 * MS));
    assert_eq!(divide(MS, 4 * MS, 9 * MS), (MS, MS / 2));
}

/// Who needs all of its quota for processes and threads together gets nearly all of it, where each needs a little more in every other
/// step, and a thread's runtime counts from its next period on only.
#[test]
fn processes_and_threads_that_need_all_of_it_together_get_it() {
    let mut ledger = Ledger::new(30 * MS, PERIOD);
    let next = ledger.step(&Came { elapsed: PERIOD, ..Came::default() }, 4 * PERIOD);
    let (mut processes_may, mut threads_may, mut got, mut needed) = (next, [next; 2], 0, 0);
    for step in 0..100 {
        // On average 10 ms and 20 ms.
        let more = if step % 2 == 0 { 2 * MS } else { 0 };
        let (processes, threads) = (9 * MS + more, 19 * MS + more);
        let received = threads.min(threads_may[0]);
        // A packet that no thread has received is not processed.
        let processed = (processes * received / threads).min(processes_may);
        needed += processes + threads;
        got += received + processed;
        let held_back = received + received / 16 >= threads_may[1] || processed + processed / 16 >= processes_may;
        let came = Came { elapsed: PERIOD, own: received + processed, held_back, ..Came::default() };
        threads_may[0] = threads_may[1];
        (processes_may, threads_may[1]) = divide(ledger.step(&came, 4 * PERIOD), processed, received);
    }
    assert!(got * 100 >= needed * 98, "{got} of {needed}");
}

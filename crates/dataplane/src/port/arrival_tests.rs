//! Arrival times held to simple statements.

use proptest::prelude::*;

use super::*;

const START: u64 = 1_800_000_000 * SECOND;
const YEAR: u64 = 365 * 24 * 3600 * SECOND;

/// The arrivals of records at `times`, with the next record in sight or never, and how many were corrected.
fn arrivals(times: &[u64], in_sight: bool) -> (Vec<u64>, u64) {
    let mut arrivals = Arrivals::default();
    let next = |at: usize| match times.get(at + 1) {
        _ if !in_sight => Ahead::NotYet,
        Some(time) => Ahead::Time(*time),
        None => Ahead::End,
    };
    let came = (0..times.len()).map(|at| arrivals.arrival(times[at], || next(at))).collect();
    (came, arrivals.corrected)
}

fn seconds(times: &[u64]) -> Vec<u64> {
    times.iter().map(|time| START + time * SECOND).collect()
}

#[test]
fn gaps_are_exact_and_nothing_is_corrected() {
    let times = seconds(&[0, 1, 9_001, 9_002, 800_000, 800_001]);
    assert_eq!(arrivals(&times, true), (times.clone(), 0));
    let neighbours = [START + SECOND, START, START + 2 * SECOND];
    assert_eq!(arrivals(&neighbours, true), (neighbours.to_vec(), 0));
}

#[test]
fn the_last_record_is_believed_within_a_day() {
    let near = seconds(&[0, 9_000]);
    assert_eq!(arrivals(&near, true), (near.clone(), 0));
    assert_eq!(arrivals(&seconds(&[0, 90_000]), true), (seconds(&[0, 0]), 1));
}

#[test]
fn a_first_record_from_another_century_is_found_out() {
    let mut times = seconds(&[0, 1, 2]);
    times.insert(0, START + 80 * YEAR);
    assert_eq!(arrivals(&times, true), (seconds(&[0, 0, 1, 2]), 1));
}

#[test]
fn records_without_a_time_arrive_with_those_before() {
    assert_eq!(arrivals(&[0, START, 0, START + SECOND], true), (vec![0, START, START, START + SECOND], 0));
}

#[test]
fn time_goes_on_when_the_clock_is_set_back() {
    // It stands for a minute, until it is certain that nothing else comes.
    let times = seconds(&[7200, 7201, 1, 2, 31, 61, 62, 100, 160]);
    let expected = seconds(&[7200, 7201, 7201, 7201, 7201, 7201, 7202, 7240, 7300]);
    assert_eq!(arrivals(&times, true), (expected, 7));
    // Put right again, it is taken as it is.
    let times = seconds(&[7200, 7201, 1, 61, 62, 9000, 9001]);
    assert_eq!(arrivals(&times, true).0, seconds(&[7200, 7201, 7201, 7201, 7202, 9000, 9001]));
    // By less than ten minutes: it stands until the records are there.
    let times = seconds(&[300, 301, 1, 31, 61, 121, 301, 302]);
    assert_eq!(arrivals(&times, true), (seconds(&[300, 301, 301, 301, 301, 301, 301, 302]), 4));
}

#[test]
fn where_no_next_record_is_in_sight_time_waits_for_it() {
    // An outlier moves time by 60 s, until the others are there too.
    let times = seconds(&[0, 1, 1_000_000, 2, 30, 61, 62]);
    assert_eq!(arrivals(&times, false), (seconds(&[0, 1, 61, 61, 61, 61, 62]), 3));
    // A gap is exact from the second record on.
    assert_eq!(arrivals(&seconds(&[0, 9_000, 9_001, 9_002]), false), (seconds(&[0, 60, 9_001, 9_002]), 1));
    // Packets that are minutes apart: time never stands.
    assert_eq!(arrivals(&seconds(&[0, 300, 600, 900]), false).0, seconds(&[0, 60, 360, 660]));
    // A clock that is set back.
    assert_eq!(arrivals(&seconds(&[7200, 1, 40, 61, 62]), false).0, seconds(&[7200, 7200, 7200, 7200, 7201]));
}

#[test]
fn one_wrong_time_of_a_few_seconds_moves_nothing() {
    for wrong in [3, 5, 30, 59, 60, 61, 3600] {
        let right = seconds(&(0..100).collect::<Vec<_>>());
        let mut times = right.clone();
        times[40] += wrong * SECOND;
        let mut expected = right;
        expected[40] = expected[39];
        assert_eq!(arrivals(&times, true), (expected, 1), "{wrong} s");
    }
}

/// Steps of a clock that is right: some short, some gaps.
fn steps() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(prop_oneof![8 => 0..2 * SECOND, 1 => 0..100_000 * SECOND], 2..60)
}

fn sums(steps: &[u64]) -> Vec<u64> {
    steps
        .iter()
        .scan(START, |time, step| {
            *time += step;
            Some(*time)
        })
        .collect()
}

proptest! {
    /// Single wrong records, with some right ones between them, change nobody else's time.
    #[test]
    fn outliers_move_nothing(
        steps in steps(),
        wrong in prop::collection::vec((any::<prop::sample::Index>(), prop_oneof![1..LATEST_NS, Just(u64::MAX)]), 0..5),
    ) {
        // A gap before the last record has no witness.
        let right = sums(&[&steps[..], &[SECOND; 2]].concat());
        let mut times = right.clone();
        let mut outliers: Vec<(usize, u64)> = wrong.iter().map(|(at, time)| (1 + at.index(right.len() - 1), *time)).collect();
        outliers.sort_unstable();
        outliers.dedup_by(|b, a| b.0 <= a.0 + 4);
        // What is no outlier at all, or stands beside a gap, is not meant: both would need the next record's word.
        outliers.retain(|(at, time)| {
            time.abs_diff(right[*at]) > 2 * 24 * 3600 * SECOND && at + 4 < right.len() && *at > 3
                && right[at + 1] - right[at - 2] <= NEAR
        });
        outliers.iter().for_each(|(at, time)| times[*at] = *time);
        let (came, corrected) = arrivals(&times, true);
        for at in (0..right.len()).filter(|at| outliers.iter().all(|outlier| outlier.0 != *at)) {
            prop_assert_eq!(came[at], right[at], "record {} of {:?}", at, times);
        }
        prop_assert_eq!(corrected, outliers.len() as u64);
    }

    /// Probes with clocks that differ, their records mixed up in any way: time goes with the foremost, not faster.
    #[test]
    fn clocks_that_differ_do_not_add_up(
        skews in prop_oneof![prop::collection::vec(0..540u64, 2..6), prop::collection::vec(0..7200u64, 2..3)],
        chunks in prop::collection::vec((any::<prop::sample::Index>(), 1usize..40), 10..300),
        each in 1..2 * SECOND,
    ) {
        let mut at = vec![0; skews.len()];
        let times: Vec<u64> = chunks
            .iter()
            .flat_map(|(probe, count)| {
                let probe = probe.index(skews.len());
                // None runs away from the others by more than half a minute.
                let least = at.iter().min().copied().unwrap_or(0);
                let count = (*count as u64).min((least + 28 * SECOND - at[probe]) / each);
                at[probe] += count * each;
                let (end, skew) = (at[probe], skews[probe] * SECOND);
                (0..count).rev().map(move |back| START + skew + end - back * each).collect::<Vec<_>>()
            })
            .collect();
        let latest = times.iter().max().copied().unwrap_or(START);
        for in_sight in [true, false] {
            let (came, _) = arrivals(&times, in_sight);
            let ahead = came.iter().max().map_or(0, |time| time.saturating_sub(latest));
            prop_assert!(ahead <= AHEAD, "{ahead} ns ahead of all clocks");
        }
    }

    /// Whatever the records say, time does not go back, and it goes on after.
    #[test]
    fn whatever_comes_time_does_not_go_back(
        times in prop::collection::vec(prop_oneof![Just(0), Just(u64::MAX), START..START + 300 * SECOND, any::<u64>()], 1..60),
        in_sight: bool,
    ) {
        let (came, _) = arrivals(&times, in_sight);
        let mut latest = 0;
        for (at, arrival) in came.iter().enumerate() {
            prop_assert!(arrival + NEAR >= latest, "back from {latest} to {arrival} at {at} of {times:?}");
            prop_assert!(*arrival <= LATEST_NS);
            latest = latest.max(*arrival);
        }
        let clock: Vec<u64> = times.into_iter().chain((1..400).map(|at| START + at * SECOND)).collect();
        let (came, _) = arrivals(&clock, in_sight);
        let [.., before, last] = came[..] else { return Ok(()) };
        prop_assert!(last == before + SECOND || last == LATEST_NS, "time stands at {last}, before {before}");
    }
}

//! From runs to what a profile says of them: how they spread, and the line over the sizes.

use catena_plan_model::profile::{Alone, Cycles, FULL_BATCH, Runs, Setting};

use super::chain::PARTS;

/// Describe the runs of one setting at one size.
pub fn runs(size: f64, setting: Setting, samples: &[f64]) -> Runs {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    // The least figure that so large a part of the runs does not pass.
    let at = |part: f64| {
        let rank = (part * sorted.len() as f64).ceil() as usize;
        sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0.0)
    };
    Runs {
        size,
        setting,
        alone: false,
        count: u32::try_from(sorted.len()).unwrap_or(u32::MAX),
        mean: sorted.iter().sum::<f64>() / sorted.len().max(1) as f64,
        min: at(0.0),
        median: at(0.5),
        p95: at(0.95),
        max: at(1.0),
    }
}

/// Make a function's cost of all its runs: the least-squares line through the larger of the means with long-lived
/// and with short-lived flows at each size (Yen et al., "Lemur", §3.2 and §5.2: "worst-case NF behavior"). Runs
/// across cores do not count: what packets from another core cost is among the overheads. The worst run is set against
/// the mean that the line goes through, on average over the sizes: a line through the worst runs would be so much higher. What all `flows` cost more than a part of them, at the same size, is what flows
/// cost; what small batches cost more than full ones, with the same flows, is what a batch costs.
pub fn cost(unit: &str, flows: f64, runs: Vec<Runs>) -> Cycles {
    let mut points: Vec<(f64, f64)> = Vec::new();
    for run in lived(&runs) {
        match points.iter_mut().find(|(size, _)| *size == run.size) {
            Some((_, mean)) => *mean = mean.max(run.mean),
            None => points.push((run.size, run.mean)),
        }
    }
    let worst = |(size, mean): &(f64, f64)| {
        let most = lived(&runs).filter(|run| run.size == *size).map(|run| run.max).fold(0.0, f64::max);
        most / mean.max(f64::MIN_POSITIVE)
    };
    let worst_factor = (points.iter().map(worst).sum::<f64>() / points.len().max(1) as f64).max(1.0);
    let (full, per_flow, per_batch) = parts(&runs, false, flows).unwrap_or_default();
    let alone = parts(&runs, true, flows).map(|(alone, per_flow, per_batch)| {
        let saved = (full - alone).max(0.0);
        Alone { saved, per_flow, per_batch }
    });
    let in_turn = in_turn(&runs).unwrap_or(0.0);
    let (base, per_unit) = line(&points);
    let distance = |(size, mean): &(f64, f64)| ((base + per_unit * size) / mean - 1.0).abs();
    let line_error = points.iter().filter(|(_, mean)| *mean > 0.0).map(distance).fold(0.0, f64::max);
    Cycles {
        unit: unit.to_owned(),
        base,
        per_unit,
        line_error,
        worst_factor,
        per_batch,
        per_flow,
        in_turn,
        alone,
        runs,
    }
}

/// The runs that the line goes through.
fn lived(runs: &[Runs]) -> impl Iterator<Item = &Runs> {
    runs.iter().filter(|run| matches!(run.setting, Setting::LongLived | Setting::ShortLived) && !run.alone)
}

/// What a packet costs with all flows, each flow, and a batch, by the runs that were alone or were not.
fn parts(runs: &[Runs], alone: bool, flows: f64) -> Option<(f64, f64, f64)> {
    let found = |setting, size: Option<f64>| {
        let mut same = runs.iter().filter(|run| run.setting == setting && run.alone == alone);
        same.find(|run| size.is_none_or(|size| run.size == size))
    };
    let few = found(Setting::FewerFlows, None)?;
    let full = found(Setting::ShortLived, Some(few.size))?;
    let small = found(Setting::SmallBatches, Some(few.size))?;
    let part = 1.0 / f64::from(PARTS);
    let per_flow = (full.median - few.median).max(0.0) / (flows.max(1.0) * (1.0 - part));
    let per_batch = (small.median - few.median).max(0.0) * FULL_BATCH / (1.0 / part - 1.0);
    Some((full.median, per_flow, per_batch))
}

/// What a batch costs more in turn with those of other chains: batches are full, as those of the same flows that come one after the other.
fn in_turn(runs: &[Runs]) -> Option<f64> {
    let found = |setting| runs.iter().find(|run| run.setting == setting && !run.alone);
    let (few, turns) = (found(Setting::FewerFlows)?, found(Setting::InTurn)?);
    Some((turns.median - few.median).max(0.0) * FULL_BATCH)
}

/// Return the least-squares line through points: its height at 0, and its slope. A cost does not fall with the
/// size: where the points do, by what is noise, the line is level.
fn line(points: &[(f64, f64)]) -> (f64, f64) {
    let count = points.len().max(1) as f64;
    let mean_x = points.iter().map(|p| p.0).sum::<f64>() / count;
    let mean_y = points.iter().map(|p| p.1).sum::<f64>() / count;
    let over = points.iter().map(|p| (p.0 - mean_x) * (p.1 - mean_y)).sum::<f64>();
    let under = points.iter().map(|p| (p.0 - mean_x).powi(2)).sum::<f64>();
    let slope = if under > 0.0 { (over / under).max(0.0) } else { 0.0 };
    (mean_y - slope * mean_x, slope)
}

/// Return the median of samples, the upper one of two; 0 of none.
pub(crate) fn median(samples: &mut [f64]) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples.get(samples.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use catena_plan_model::profile::Company;
    use proptest::prelude::*;

    #[test]
    fn runs_are_described() {
        let samples: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        let runs = runs(10.0, Setting::LongLived, &samples);
        assert_eq!((runs.count, runs.mean, runs.min, runs.median), (100, 50.5, 1.0, 50.0));
        assert_eq!((runs.p95, runs.max), (95.0, 100.0));
        let none = super::runs(1.0, Setting::LongLived, &[]);
        assert_eq!((none.count, none.mean, none.max), (0, 0.0, 0.0));
    }

    #[test]
    fn the_worse_setting_counts_and_other_cores_do_not() {
        let row = |size, setting, cycles: f64| runs(size, setting, &[cycles, cycles * 1.02]);
        let cost = cost(
            "rules",
            10_000.0,
            vec![
                row(10.0, Setting::LongLived, 50.0),
                row(10.0, Setting::ShortLived, 80.0),
                row(10.0, Setting::AcrossCores, 500.0),
            ],
        );
        assert!((cost.mean(10.0) / 80.8 - 1.0).abs() < 1e-9 && cost.per_unit == 0.0);
        assert!(cost.worst_factor > 1.005 && cost.worst_factor < 1.02);
    }

    #[test]
    fn what_a_batch_and_a_flow_cost_comes_from_parts() {
        // 40 cycles a packet, 320 a batch, and 1 for each thousand flows.
        let row = |setting, batch: f64, flows: f64| runs(10.0, setting, &[40.0 + 320.0 / batch + flows / 1e3]);
        let cost = cost(
            "rules",
            10_000.0,
            vec![
                row(Setting::ShortLived, 32.0, 10_000.0),
                row(Setting::FewerFlows, 32.0, 2_500.0),
                row(Setting::SmallBatches, 8.0, 2_500.0),
                runs(10.0, Setting::InTurn, &[57.5]),
            ],
        );
        assert!((cost.per_batch - 320.0).abs() < 1e-9 && (cost.base - 60.0).abs() < 1e-9);
        assert!((cost.per_flow - 1e-3).abs() < 1e-12);
        let at = |part, chains| cost.worst_in(10.0, Company { part, of_a_batch: part, functions: 3.0, chains });
        assert!((at(0.5, 0.0) - 65.0).abs() < 1e-9 && (at(1.0, 0.0) - 60.0).abs() < 1e-9);
        // Batches in turn with three chains cost 160 more each: 5 a packet of full ones, 10 where they are half as large. With more
        // chains than were measured it is no more, with one a third.
        assert!((cost.in_turn - 160.0).abs() < 1e-9);
        assert!((at(0.5, 3.0) - 75.0).abs() < 1e-9 && (at(1.0, 7.0) - 65.0).abs() < 1e-9);
        assert!((at(1.0, 1.0) - (60.0 + 5.0 / 3.0)).abs() < 1e-9);
    }

    #[test]
    fn the_fewer_functions_are_beside_it_the_less_it_costs() {
        let row = |setting, alone, cycles: f64| Runs { alone, ..runs(10.0, setting, &[cycles]) };
        let each = |alone, [full, few, small]: [f64; 3]| {
            let settings = [Setting::ShortLived, Setting::FewerFlows, Setting::SmallBatches];
            settings.into_iter().zip([full, few, small]).map(move |(setting, cycles)| row(setting, alone, cycles))
        };
        let rows = each(false, [60.0, 50.0, 80.0]).chain(each(true, [40.0, 38.0, 50.0]));
        let cost = cost("rules", 10_000.0, rows.collect());
        let at = |part, others| cost.worst_in(10.0, Company { part, of_a_batch: part, functions: others, chains: 0.0 });
        let measured = [((1.0, 3.0), 60.0), ((0.25, 3.0), 80.0), ((1.0, 0.0), 40.0), ((0.25, 0.0), 50.0)];
        for ((part, others), cycles) in measured {
            assert!((at(part, others) - cycles).abs() < 1e-9, "{part} {others}: {}", at(part, others));
        }
        assert!((at(0.25, 1.0) - 60.0).abs() < 1e-9 && (at(1.0, 9.0) - 60.0).abs() < 1e-9);
    }

    #[test]
    fn a_cost_does_not_fall_with_the_size() {
        let falling = [(1.0, 100.0), (10.0, 99.0)].map(|(s, c)| runs(s, Setting::LongLived, &[c]));
        let cost = cost("rules", 10_000.0, falling.into());
        assert_eq!((cost.base, cost.per_unit), (99.5, 0.0));
    }

    proptest! {
        /// A function whose cost is a line is found to have that line, and no error.
        #[test]
        fn a_line_comes_back(
            base in 1.0..10_000.0f64,
            per_unit in 0.0..10.0f64,
            sizes in prop::collection::btree_set(1..100_000u32, 2..8),
        ) {
            let at = |size: u32| base + per_unit * f64::from(size);
            let rows = sizes.iter().map(|&s| runs(f64::from(s), Setting::LongLived, &[at(s); 3])).collect();
            let cost = cost("rules", 10_000.0, rows);
            for &size in &sizes {
                prop_assert!((cost.mean(f64::from(size)) / at(size) - 1.0).abs() < 1e-6);
            }
            prop_assert!(cost.line_error < 1e-6 && (cost.worst_factor - 1.0).abs() < 1e-9);
        }

        /// Noise of so much in the means is noise of not much more on the line between the measured sizes.
        #[test]
        fn noise_does_not_grow(base in 10.0..1_000.0f64, noise in prop::collection::vec(-0.02..0.02f64, 5)) {
            let sizes = [10.0, 100.0, 1_000.0, 5_000.0, 10_000.0];
            let at = |size: f64| base * (1.0 + size / 5_000.0);
            let rows = sizes.iter().zip(noise).map(|(&s, n)| runs(s, Setting::LongLived, &[at(s) * (1.0 + n)]));
            let cost = cost("rules", 10_000.0, rows.collect());
            for size in sizes {
                prop_assert!((cost.mean(size) / at(size) - 1.0).abs() < 0.06);
            }
        }
    }
}

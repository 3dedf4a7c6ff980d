//! From runs to what a profile says of them: how they spread, and the line over the sizes.

use catena_plan::profile::{Cycles, FULL_BATCH, Runs, Setting};

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
/// across cores do not count: what packets from another core cost is among the overheads. What small batches
/// cost more than full ones, at the same size and with the same flows, is what a batch costs.
pub fn cost(unit: &str, runs: Vec<Runs>) -> Cycles {
    let mut points: Vec<(f64, f64)> = Vec::new();
    let mut worst_factor = 1.0_f64;
    for run in runs.iter().filter(|r| matches!(r.setting, Setting::LongLived | Setting::ShortLived)) {
        match points.iter_mut().find(|(size, _)| *size == run.size) {
            Some((_, mean)) => *mean = mean.max(run.mean),
            None => points.push((run.size, run.mean)),
        }
        if run.mean > 0.0 {
            worst_factor = worst_factor.max(run.max / run.mean);
        }
    }
    let small = runs.iter().find(|run| run.setting == Setting::SmallBatches);
    let full =
        small.and_then(|small| runs.iter().find(|run| run.setting == Setting::ShortLived && run.size == small.size));
    let per_batch = small.zip(full).map_or(0.0, |(small, full)| {
        (small.median - full.median).max(0.0) / (f64::from(PARTS) / FULL_BATCH - 1.0 / FULL_BATCH)
    });
    let (base, per_unit) = line(&points);
    let distance = |(size, mean): &(f64, f64)| ((base + per_unit * size) / mean - 1.0).abs();
    let line_error = points.iter().filter(|(_, mean)| *mean > 0.0).map(distance).fold(0.0, f64::max);
    Cycles { unit: unit.to_owned(), base, per_unit, line_error, worst_factor, per_batch, runs }
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

#[cfg(test)]
mod tests {
    use super::*;
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
    fn what_a_batch_costs_comes_from_small_ones() {
        // 40 cycles a packet and 320 a batch.
        let row = |setting, batch: f64| runs(10.0, setting, &[40.0 + 320.0 / batch]);
        let cost = cost("rules", vec![row(Setting::ShortLived, 32.0), row(Setting::SmallBatches, 8.0)]);
        assert!((cost.per_batch - 320.0).abs() < 1e-9 && (cost.base - 50.0).abs() < 1e-9);
        assert!((cost.worst_in_batches(10.0, 16.0) - 60.0).abs() < 1e-9);
        assert!((cost.worst_in_batches(10.0, 64.0) - 50.0).abs() < 1e-9);
    }

    #[test]
    fn a_cost_does_not_fall_with_the_size() {
        let falling = [(1.0, 100.0), (10.0, 99.0)].map(|(s, c)| runs(s, Setting::LongLived, &[c]));
        let cost = cost("rules", falling.into());
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
            let cost = cost("rules", rows);
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
            let cost = cost("rules", rows.collect());
            for size in sizes {
                prop_assert!((cost.mean(size) / at(size) - 1.0).abs() < 0.06);
            }
        }
    }
}

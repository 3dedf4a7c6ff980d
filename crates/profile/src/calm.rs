//! Measuring while the machine is calm.
//!
//! A core's own clock changes, and behind a virtual core there may be half a real one: for seconds, everything
//! takes half as long again. A yardstick, some packets through the empty pipeline, is timed before and after each
//! stretch: work like that which is measured, as work of another kind is not slowed down alike. Stretches during which it took longer than at its best do not count, nor those
//! during which the system gave the core to another thread.

use std::time::{Duration, Instant};

use catena_dataplane::clock;
use catena_dataplane::worker::thread_cpu_ns;
use catena_functions::workload::LONG_LIVED;

use super::bed::{Bed, Traffic};
use super::chain::Chain;
use super::figures::median;

/// How much longer than at its best the yardstick may take in calm.
const TOLERANCE: f64 = 1.08;
/// A run is the median of so many calm stretches of this length.
const STRETCHES: usize = 12;
/// How long a stretch is: long beside a batch, short beside a time slice of the system's.
pub const STRETCH: Duration = Duration::from_micros(1500);
/// A patience for measuring in earnest.
pub const PATIENT: usize = 20;

/// The yardstick, and its best time so far.
pub struct Calm {
    yardstick: Bed,
    /// Stretches tried for each that is wanted, before those that are not calm count as well.
    patience: usize,
    best: f64,
    /// Stretches that were wanted in calm, and those of them for which it never came.
    wanted: u64,
    missed: u64,
}

impl Calm {
    /// Learn how long the yardstick takes at its best; `patience` stretches are tried for each that is wanted in
    /// calm, before others count as well.
    ///
    /// # Errors
    /// When the system has no memory for packets.
    pub fn new(patience: usize) -> Result<Calm, String> {
        let yardstick = Bed::new(&Chain::of(&[]), Traffic { flows: LONG_LIVED, new: None, parts: 1 }, false, 1)?;
        let mut calm = Calm { yardstick, patience, best: f64::INFINITY, wanted: 0, missed: 0 };
        (0..2_000).for_each(|_| _ = calm.look());
        Ok(calm)
    }

    /// Return the part of stretches that had to be taken although the machine was not calm, 0 to 1.
    pub fn missed(&self) -> f64 {
        self.missed as f64 / self.wanted.max(1) as f64
    }

    /// Time the yardstick; returns how much longer than at its best it takes now.
    fn look(&mut self) -> f64 {
        // The first steps bring it back into the caches.
        self.yardstick.steps(20);
        let start = clock::cycles();
        self.yardstick.steps(60);
        let time = (clock::cycles() - start) as f64;
        self.best = self.best.min(time);
        time / self.best
    }

    /// Measure a run: several figures at once, each the median over calm stretches.
    ///
    /// # Errors
    /// The stretch's.
    pub fn run(&mut self, mut stretch: impl FnMut() -> Result<Vec<f64>, String>) -> Result<Vec<f64>, String> {
        let mut stretches: Vec<(f64, Vec<f64>)> = Vec::new();
        let mut calm = 0;
        for _ in 0..STRETCHES * self.patience.max(1) {
            let before = self.look();
            let (wall, own) = (Instant::now(), thread_cpu_ns());
            let figures = stretch()?;
            let own = thread_cpu_ns() - own;
            let away = wall.elapsed().as_nanos() as f64 / own.max(1) as f64;
            let slowness = before.max(self.look()).max(away);
            if slowness <= TOLERANCE {
                calm += 1;
            }
            stretches.push((slowness, figures));
            if calm == STRETCHES {
                break;
            }
        }
        self.wanted += STRETCHES as u64;
        self.missed += (STRETCHES - calm) as u64;
        stretches.sort_by(|a, b| a.0.total_cmp(&b.0));
        stretches.truncate(STRETCHES);
        let figures = stretches.first().map_or(0, |(_, figures)| figures.len());
        Ok((0..figures)
            .map(|i| {
                let mut each: Vec<f64> = stretches.iter().filter_map(|(_, f)| f.get(i)).copied().collect();
                median(&mut each)
            })
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_the_median_of_its_stretches() {
        let mut calm = Calm::new(3).unwrap();
        let mut count = 0.0;
        let run = calm.run(|| {
            count += 1.0;
            Ok(vec![7.0, if count == 3.0 { 1e9 } else { 11.0 }])
        });
        assert_eq!(run.unwrap(), [7.0, 11.0], "one disturbed stretch does not show");
        assert!((STRETCHES..=STRETCHES * 3).contains(&(count as usize)));
        assert!((0.0..=1.0).contains(&calm.missed()));
    }
}

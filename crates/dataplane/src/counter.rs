//! Counters that one worker writes and anyone may read while it runs.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A counter with a single writer: adding is a plain load and store.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Add to the counter; only its writer may.
    #[inline(always)]
    pub fn add(&self, n: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_add(n), Relaxed);
    }

    /// Read the counter.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// Packets and bytes.
#[derive(Debug, Default)]
pub struct Traffic {
    /// Packets.
    pub packets: Counter,
    /// Bytes of those packets, as they were when counted.
    pub bytes: Counter,
}

impl Traffic {
    #[inline(always)]
    pub(crate) fn add(&self, packets: usize, bytes: u64) {
        self.packets.add(packets as u64);
        self.bytes.add(bytes);
    }
}

/// A figure that a module tells, in one instance or of all of them together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gauge {
    /// What is counted.
    pub name: &'static str,
    /// How many of it.
    pub value: u64,
    /// Whether it is the same in every instance, as a number of rules is, and not a part of the whole.
    pub is_common: bool,
}

impl Gauge {
    /// Take in another instance's value: parts are summed; of what should be the same, the largest counts.
    pub fn join(&mut self, value: u64) {
        self.value = if self.is_common { self.value.max(value) } else { self.value.saturating_add(value) };
    }
}

const STEPS: usize = 16;

/// A histogram of times in cycles: 16 steps per power of two, so a percentile is right to 6%.
#[derive(Debug)]
pub struct Histogram(Box<[Counter]>);

impl Default for Histogram {
    fn default() -> Self {
        Histogram((0..64 * STEPS).map(|_| Counter::default()).collect())
    }
}

impl Histogram {
    fn index(value: u64) -> usize {
        if value < STEPS as u64 {
            return value as usize;
        }
        let power = 63 - value.leading_zeros() as usize;
        (power - 3) * STEPS + ((value >> (power - 4)) as usize & (STEPS - 1))
    }

    /// The largest value that falls into a place.
    fn upper(index: usize) -> u64 {
        if index < STEPS {
            return index as u64;
        }
        let (power, step) = (index / STEPS + 3, index % STEPS);
        ((STEPS + step + 1) as u128 * (1u128 << (power - 4)) - 1).min(u128::from(u64::MAX)) as u64
    }

    /// Count one value.
    #[inline]
    pub fn add(&self, value: u64) {
        self.0[Self::index(value)].add(1);
    }

    /// Return the number of values.
    pub fn count(&self) -> u64 {
        self.0.iter().map(Counter::get).sum()
    }

    /// Return the value that `share` (0 to 1) of all values do not exceed; `None` when there are none.
    pub fn percentile(&self, share: f64) -> Option<u64> {
        percentile(std::slice::from_ref(&self), share)
    }
}

/// Return the percentile over several histograms taken together.
pub fn percentile(all: &[&Histogram], share: f64) -> Option<u64> {
    let count: u64 = all.iter().map(|h| h.count()).sum();
    if count == 0 {
        return None;
    }
    let wanted = ((count as f64 * share).ceil() as u64).clamp(1, count);
    let mut seen = 0;
    (0..64 * STEPS).find_map(|i| {
        seen += all.iter().map(|h| h.0[i].get()).sum::<u64>();
        (seen >= wanted).then(|| Histogram::upper(i))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_falls_into_a_place_not_far_above_it() {
        for value in (0..70_000).chain((0..64).map(|p| 1u64 << p)).chain([u64::MAX, u64::MAX - 1]) {
            let upper = Histogram::upper(Histogram::index(value));
            assert!(upper >= value && upper as f64 <= value as f64 * 1.07 + 1.0, "{value} falls into {upper}");
        }
    }

    #[test]
    fn percentiles_of_a_line() {
        let histogram = Histogram::default();
        assert_eq!(histogram.percentile(0.5), None);
        (1..=1000).for_each(|v| histogram.add(v));
        let (half, most) = (histogram.percentile(0.5).unwrap(), histogram.percentile(0.99).unwrap());
        assert!((500..=535).contains(&half) && (990..=1060).contains(&most), "{half} {most}");
    }
}

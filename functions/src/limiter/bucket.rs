//! Token buckets in exact integer arithmetic.
//!
//! A rate of *r* units a second is *r* billionths of a unit a nanosecond. Counted in billionths of a bit
//! (or of a packet), a bucket therefore gains exactly *r* a nanosecond, whatever *r* is: nothing is
//! rounded, and no remainder is carried. The bucket keeps what is missing to full rather than what is
//! in it: memory filled with zeroes is a full bucket, at any time and for any rate.
//!
//! The bucket is that of RFC 2697 §3 (its bucket C, without the second one), but gains at every moment
//! rather than *r* times a second: in any span of *t* seconds at most `burst` + *r* · *t* pass.

use std::fmt;

use catena_state::Plain;

/// Billionths in a unit: nanoseconds in a second.
const PER_UNIT: u64 = 1_000_000_000;

/// Time that runs backwards by more than this many ns was set anew.
const CLOCK_SET_ANEW: u64 = 1_000_000_000;

/// The promise a bucket holds traffic to; one for any number of buckets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Plain)]
pub struct Rate {
    /// Billionths of a unit gained each ns: units a second.
    gain: u64,
    /// Billionths of a unit that a cost of 1 takes.
    unit: u64,
    /// Billionths of a unit that a full bucket holds.
    full: u64,
}

/// A rate that no bucket can hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RateError {
    /// Nothing would ever pass after the first burst.
    NoRate,
    /// Nothing would ever pass.
    NoBurst,
    /// The burst is beyond what is counted exactly.
    BurstTooLarge {
        /// The largest, in bytes or packets as asked for.
        max: u64,
    },
}

impl fmt::Display for RateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RateError::NoRate => f.write_str("a rate of 0 lets nothing pass"),
            RateError::NoBurst => f.write_str("a burst of 0 lets nothing pass"),
            RateError::BurstTooLarge { max } => write!(f, "a burst is at most {max}"),
        }
    }
}

impl std::error::Error for RateError {}

impl Rate {
    /// Whether something of this cost may pass at all.
    #[inline]
    pub const fn holds(&self, cost: u32) -> bool {
        self.unit.saturating_mul(cost as u64) <= self.full
    }

    /// `rate` bits a second; cost and `burst` in bytes. A packet longer than the burst never passes.
    ///
    /// # Errors
    /// `rate` or `burst` is 0, or `burst` is beyond 1,152,921,504 bytes (9 ms of 1 Tbps).
    pub const fn bits_per_second(rate: u64, burst: u64) -> Result<Rate, RateError> {
        Rate::new(rate, 8 * PER_UNIT, burst)
    }

    /// `rate` packets a second; cost and `burst` in packets.
    ///
    /// # Errors
    /// `rate` or `burst` is 0, or `burst` is beyond 9,223,372,036 packets.
    pub const fn packets_per_second(rate: u64, burst: u64) -> Result<Rate, RateError> {
        Rate::new(rate, PER_UNIT, burst)
    }

    const fn new(gain: u64, unit: u64, burst: u64) -> Result<Rate, RateError> {
        // Half the range: the sum of what is missing and a cost then never wraps.
        let max = (u64::MAX >> 1) / unit;
        match (gain, burst) {
            (0, _) => Err(RateError::NoRate),
            (_, 0) => Err(RateError::NoBurst),
            _ if burst > max => Err(RateError::BurstTooLarge { max }),
            _ => Ok(Rate { gain, unit, full: burst * unit }),
        }
    }
}

/// One bucket: 16 bytes. The default is full.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Plain)]
pub struct Bucket {
    /// When `missing` was true, ns.
    at: u64,
    /// Billionths of a unit missing to full.
    missing: u64,
}

impl Bucket {
    /// Whether something of `cost` (bytes or packets, as `rate` counts) may pass now; if so, its cost is
    /// taken. What may not pass costs nothing.
    ///
    /// `now_ns` may come out of order: an earlier time than one seen before gains nothing. If it is more
    /// than a second earlier, the clock was set anew and counts from there; the bucket keeps its level.
    /// A bucket may be used with another rate at any time.
    #[inline]
    pub fn take(&mut self, rate: &Rate, now_ns: u64, cost: u32) -> bool {
        let passed = now_ns.saturating_sub(self.at);
        let missing = self.missing.saturating_sub(passed.saturating_mul(rate.gain));
        let wanted = missing.saturating_add(rate.unit.saturating_mul(u64::from(cost)));
        let pass = wanted <= rate.full;
        self.missing = if pass { wanted } else { missing };
        let set_anew = self.at.saturating_sub(now_ns) > CLOCK_SET_ANEW;
        self.at = if set_anew { now_ns } else { self.at.max(now_ns) };
        pass
    }

    /// Return from when on, in ns since 1970, the bucket is full and was so a second before already. It then does as a new one
    /// does, also for packets that come out of order: an earlier time than that sets the clock anew.
    pub fn as_new_from(&self, rate: &Rate) -> u64 {
        self.at.saturating_add(CLOCK_SET_ANEW).saturating_add(self.missing.div_ceil(rate.gain))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use catena_packet::random::SplitMix64;
    use proptest::prelude::*;

    const SECOND: u64 = 1_000_000_000;

    fn rates() -> impl Strategy<Value = (u64, u64, bool)> {
        // From 1 a second to 1 Tbps, evenly over orders of magnitude.
        let rate = (0u32..13, 1u64..10).prop_map(|(zeroes, digit)| (digit * 10u64.pow(zeroes)).min(1_000_000_000_000));
        (rate, 1u64..1_000_000, any::<bool>())
    }

    fn made((rate, burst, bits): (u64, u64, bool)) -> Rate {
        if bits { Rate::bits_per_second(rate, burst) } else { Rate::packets_per_second(rate, burst) }.unwrap()
    }

    proptest! {
        /// In no window does more pass than the burst and what the rate gives in it; and every refusal
        /// was needed: the exact bucket, in wide arithmetic, refuses it too.
        #[test]
        fn no_window_passes_more_than_promised(
            promise in rates(),
            gaps in prop::collection::vec((0u32..40, 0u64..1 << 20, 0u32..20_000), 1..400),
        ) {
            let (rate, burst, bits) = promise;
            let unit = if bits { 8 * i128::from(PER_UNIT) } else { i128::from(PER_UNIT) };
            let (burst, per_ns) = (i128::from(burst) * unit, i128::from(rate));
            let rate = made(promise);
            let mut bucket = Bucket::default();
            let (mut now, mut sum, mut exact, mut last) = (0u64, 0i128, burst, 0u64);
            // The least of (passed before a window) - (what the rate gives up to its begin).
            let mut least = i128::MAX;
            for (zeroes, gap, cost) in gaps {
                now = now.saturating_add(gap << zeroes >> 20);
                exact = burst.min(exact + per_ns * i128::from(now - last));
                last = now;
                let cost_exact = i128::from(cost) * unit;
                let passes = bucket.take(&rate, now, cost);
                prop_assert_eq!(passes, cost_exact <= exact);
                if passes {
                    least = least.min(sum - per_ns * i128::from(now));
                    sum += cost_exact;
                    exact -= cost_exact;
                    prop_assert!(sum - per_ns * i128::from(now) - least <= burst);
                }
            }
        }

        /// Under random arrivals of twice the rate, as much passes in the long run as was promised.
        #[test]
        fn the_long_run_rate_is_the_promised_one(rate in 1_000_000u64..1_000_000_000_000, seed in any::<u64>()) {
            let burst = 64 * 1514;
            let limit = Rate::bits_per_second(rate, burst).unwrap();
            let mut bucket = Bucket::default();
            let (mut now, mut random, mut passed) = (0u64, SplitMix64::new(seed), 0u64);
            // Time in 1/1024 ns, so that gaps are right at 1 Tbps as well.
            let mut fine = 0u64;
            for _ in 0..100_000 {
                let len = u64::from(random.within(64, 1514));
                let mean = (len as u128 * 8 * 1024 * u128::from(SECOND) / 2 / u128::from(rate)) as u64;
                fine += ((random.bits() >> 40) * (2 * mean)) >> 24;
                now = fine >> 10;
                passed += if bucket.take(&limit, now, len as u32) { len } else { 0 };
            }
            let promised = (u128::from(now) * u128::from(rate) / u128::from(8 * SECOND)) as u64;
            prop_assert!(passed <= promised + burst + 1, "{passed} of {promised}");
            prop_assert!(passed + burst >= promised - promised / 1000, "{passed} of {promised}");
        }

        /// Arrivals that the clock reports out of order never gain by it.
        #[test]
        fn time_that_runs_backwards_gains_nothing(
            promise in rates(),
            times in prop::collection::vec((0u64..SECOND, 0u32..2_000), 1..200),
        ) {
            let limit = made(promise);
            let (mut shuffled, mut ordered) = (Bucket::default(), Bucket::default());
            let mut latest = 0;
            for (now, cost) in times {
                latest = now.max(latest);
                prop_assert_eq!(shuffled.take(&limit, now, cost), ordered.take(&limit, latest, cost));
            }
        }

        /// Buckets that are as new may be forgotten at any moment: nobody notices.
        #[test]
        fn a_forgotten_bucket_is_not_missed(
            promise in rates(),
            steps in prop::collection::vec((0u64..3 * SECOND, 0u64..SECOND, 0u32..2_000), 1..200),
        ) {
            let limit = made(promise);
            let (mut kept, mut forgotten) = (Bucket::default(), Bucket::default());
            let mut now = SECOND;
            for (gap, late, cost) in steps {
                now += gap;
                if forgotten.as_new_from(&limit) <= now {
                    forgotten = Bucket::default();
                }
                prop_assert_eq!(kept.take(&limit, now - late, cost), forgotten.take(&limit, now - late, cost));
            }
        }

        #[test]
        fn no_time_rate_or_cost_overflows(
            calls in prop::collection::vec((any::<u64>(), any::<u32>(), 1u64..=u64::MAX, 1u64..1_152_921_505), 1..50),
        ) {
            let mut bucket = Bucket::default();
            for (now, cost, rate, burst) in calls {
                let limit = Rate::bits_per_second(rate, burst).unwrap();
                let passed = bucket.take(&limit, now, cost);
                prop_assert!(!passed || u64::from(cost) <= burst);
            }
        }
    }

    #[test]
    fn a_bucket_is_small_and_full_at_first() {
        assert_eq!(size_of::<Bucket>(), 16);
        let limit = Rate::bits_per_second(8, 1500).unwrap();
        let mut bucket = Bucket::default();
        assert!(bucket.take(&limit, 0, 1500));
        assert!(!bucket.take(&limit, SECOND - 1, 1), "a byte a second");
        assert!(bucket.take(&limit, SECOND, 1));
    }

    #[test]
    fn an_idle_bucket_holds_one_burst_after_years() {
        let limit = Rate::bits_per_second(1_000_000_000_000, 1_000_000_000).unwrap();
        let mut bucket = Bucket::default();
        assert!(bucket.take(&limit, 1, 1_000_000_000));
        let years = 500 * 365 * 86_400 * SECOND;
        assert!(bucket.take(&limit, years, 1_000_000_000));
        assert!(!bucket.take(&limit, years, 1));
        assert!(bucket.take(&limit, years + 1, 125), "1,000 bits a nanosecond");
        assert!(!bucket.take(&limit, u64::MAX, u32::MAX));
    }

    #[test]
    fn a_clock_set_anew_counts_from_there() {
        let limit = Rate::packets_per_second(10, 1).unwrap();
        let mut bucket = Bucket::default();
        assert!(bucket.take(&limit, 3600 * SECOND, 1));
        assert!(!bucket.take(&limit, 5, 1), "the new clock gives nothing at once");
        assert!(bucket.take(&limit, 5 + SECOND / 10, 1), "and the rate from then on");
    }

    #[test]
    fn a_lower_rate_takes_effect_at_once() {
        let (wide, narrow) = (Rate::packets_per_second(100, 100).unwrap(), Rate::packets_per_second(1, 1).unwrap());
        let mut bucket = Bucket::default();
        assert!(bucket.take(&wide, 0, 100));
        assert!(!bucket.take(&narrow, 99 * SECOND, 1));
        assert!(bucket.take(&narrow, 100 * SECOND, 1));
    }

    #[test]
    fn impossible_promises_are_refused() {
        assert_eq!(Rate::bits_per_second(0, 1), Err(RateError::NoRate));
        assert_eq!(Rate::packets_per_second(1, 0), Err(RateError::NoBurst));
        let max = 1_152_921_504;
        assert_eq!(Rate::bits_per_second(1, max + 1), Err(RateError::BurstTooLarge { max }));
        assert!(Rate::bits_per_second(1, max).is_ok());
        assert!(Rate::packets_per_second(1, 9_223_372_036).is_ok());
    }
}

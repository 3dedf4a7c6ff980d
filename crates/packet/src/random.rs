//! Pseudo-random numbers that a seed determines: the same on every machine, and for ever. Not for secrets.

/// Scramble 64 bits so that every bit of the result depends on every bit of `z`: the finaliser of [`SplitMix64`].
#[inline]
pub const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A number below `bound` (0 when `bound` is 0) from 64 random bits, as good as evenly (bias under 2⁻³²).
#[inline]
const fn scale(bits: u64, bound: u64) -> u64 {
    ((bits >> 32) * bound) >> 32
}

/// A number in [0, 1) from 64 random bits.
#[inline]
const fn fraction(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

/// SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014): any seed is a good
/// one, so it also seeds others.
#[derive(Clone, Debug)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// Begin the series of `seed`.
    pub const fn new(seed: u64) -> Self {
        SplitMix64(seed)
    }

    /// Return the next 64 bits.
    #[inline]
    pub const fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// Return a number below `bound` (0 when `bound` is 0).
    #[inline]
    pub const fn below(&mut self, bound: u32) -> u32 {
        scale(self.bits(), bound as u64) as u32
    }

    /// Return a number from `least` to `most`, both included.
    #[inline]
    pub const fn within(&mut self, least: u32, most: u32) -> u32 {
        least + scale(self.bits(), (most - least) as u64 + 1) as u32
    }

    /// Return true once in `many` calls, on average.
    #[inline]
    pub const fn is_one_in(&mut self, many: u64) -> bool {
        self.bits().is_multiple_of(many)
    }
}

/// xoshiro256++ (Blackman and Vigna, "Scrambled linear pseudorandom number generators", §5), seeded by [`SplitMix64`].
#[derive(Clone, Debug)]
pub struct Random([u64; 4]);

impl Random {
    /// Begin the series of `seed`.
    pub fn new(seed: u64) -> Self {
        let mut words = SplitMix64::new(seed);
        Random(std::array::from_fn(|_| words.bits()))
    }

    /// Return the next 64 bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        let s = &mut self.0;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Return a number below `bound` (0 when `bound` is 0).
    #[inline]
    pub fn below(&mut self, bound: u32) -> u32 {
        scale(self.bits(), bound.into()) as u32
    }

    /// Return a number in [0, 1).
    pub fn unit(&mut self) -> f64 {
        fraction(self.bits())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_mix_gives_the_numbers_of_its_authors() {
        let mut random = SplitMix64::new(1_234_567);
        let numbers = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!([(); 3].map(|()| random.bits()), numbers);
    }

    #[test]
    fn the_same_seed_gives_the_same_numbers() {
        let (mut a, mut b) = (Random::new(7), Random::new(7));
        assert!((0..100).all(|_| a.bits() == b.bits()));
        assert_ne!(Random::new(7).bits(), Random::new(8).bits());
    }

    #[test]
    fn numbers_spread_evenly() {
        let mut random = Random::new(1);
        let mut counts = [0u32; 10];
        (0..100_000).for_each(|_| counts[random.below(10) as usize] += 1);
        assert!(counts.iter().all(|&c| (9_500..10_500).contains(&c)), "{counts:?}");
        assert_eq!(random.below(0), 0);
        assert!((0..1000).all(|_| (0.0..1.0).contains(&random.unit())));
    }

    #[test]
    fn the_ends_of_a_range_are_within_it() {
        let mut random = SplitMix64::new(2);
        let mut seen = [false; 5];
        (0..200).for_each(|_| seen[random.within(3, 7) as usize - 3] = true);
        assert_eq!(seen, [true; 5]);
        assert!((0..100).all(|_| random.within(9, 9) == 9 && random.is_one_in(1)));
        _ = random.within(0, u32::MAX);
    }
}

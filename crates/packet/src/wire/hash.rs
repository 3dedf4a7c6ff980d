//! A keyed 64-bit hash of flow keys, for tables that an attacker must not be able to flood.
//!
//! It multiplies and folds: the full 128-bit product of two words mixed with secrets, then once more (the construction
//! of wyhash). It is not cryptographic, but the places where keys collide depend on the [`Seed`]. A CRC, though the
//! machine has an instruction for it, would not do: it is linear, crc(a) ^ crc(b) depends on a ^ b alone, so keys that
//! collide under one seed collide under every seed, and anyone can compute a million flows that share a bucket.

use crate::random::SplitMix64;

/// The secret words of the hash. Draw them at random once per process or per table, and keep them to yourself.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Seed(pub [u64; 4]);

impl std::fmt::Debug for Seed {
    /// Hide the words: a log is no place for a secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seed(..)")
    }
}

impl Seed {
    /// Spread one number over the four words (splitmix64): for tests and for runs that must repeat exactly.
    pub const fn from_number(number: u64) -> Self {
        let mut series = SplitMix64::new(number);
        Seed([series.bits(), series.bits(), series.bits(), series.bits()])
    }

    /// Hash two words ([`FlowKeyV4::words`](super::FlowKeyV4::words)).
    #[inline]
    pub const fn hash2(&self, words: [u64; 2]) -> u64 {
        let s = &self.0;
        let (low, high) = product(words[0] ^ s[0], words[1] ^ s[1]);
        fold(low ^ s[2], high ^ s[3])
    }

    /// Hash five words ([`FlowKeyV6::words`](super::FlowKeyV6::words)).
    #[inline]
    pub const fn hash5(&self, words: [u64; 5]) -> u64 {
        let s = &self.0;
        // The two addresses are multiplied side by side; each half of the seed is used once per step.
        let src = fold(words[0] ^ s[0], words[1] ^ s[1]);
        let dst = fold(words[2] ^ s[2], words[3] ^ s[3]);
        let (low, high) = product(src ^ words[4] ^ s[1], dst ^ s[2]);
        fold(low ^ s[3], high ^ s[0])
    }
}

#[inline]
const fn product(a: u64, b: u64) -> (u64, u64) {
    let wide = (a as u128) * (b as u128);
    (wide as u64, (wide >> 64) as u64)
}

#[inline]
const fn fold(a: u64, b: u64) -> u64 {
    let (low, high) = product(a, b);
    low ^ high
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Flipping any bit of the key flips each bit of the hash half of the time, within what 2,000 draws allow.
    fn avalanche<const N: usize>(hash: impl Fn(&Seed, [u64; N]) -> u64, used: &[u64; N]) {
        const DRAWS: u64 = 2_000;
        for word in 0..N {
            for bit in (0..64).filter(|bit| used[word] >> bit & 1 == 1) {
                let mut flips = [0u32; 64];
                for draw in 0..DRAWS {
                    let random = Seed::from_number(draw << 16 | (word as u64) << 8 | bit);
                    let mut key = [0; N];
                    for (i, slot) in key.iter_mut().enumerate() {
                        *slot = random.0[i % 4].rotate_left(i as u32) & used[i];
                    }
                    let seed = Seed::from_number(7);
                    let before = hash(&seed, key);
                    key[word] ^= 1 << bit;
                    let changed = before ^ hash(&seed, key);
                    for (out, flip) in flips.iter_mut().enumerate() {
                        *flip += (changed >> out & 1) as u32;
                    }
                }
                // Seven standard deviations of a fair coin: 2,000 draws, sigma 22.4.
                assert!(flips.iter().all(|&f| f.abs_diff(1_000) < 157), "word {word} bit {bit}: {flips:?}");
            }
        }
    }

    #[test]
    fn every_bit_of_a_v4_key_matters() {
        avalanche(Seed::hash2, &[u64::MAX, 0xff_ffff_ffff]);
    }

    #[test]
    fn every_bit_of_a_v6_key_matters() {
        avalanche(Seed::hash5, &[u64::MAX, u64::MAX, u64::MAX, u64::MAX, 0xff_ffff_ffff]);
    }

    /// Neighbouring addresses and ports, as real traffic has them, fill buckets evenly by low and by high bits.
    #[test]
    fn sequential_keys_spread() {
        const BUCKETS: usize = 1 << 10;
        const KEYS: u64 = 1 << 16;
        for number in 0..20 {
            let seed = Seed::from_number(number);
            for shift in [0, 32, 54] {
                let mut fill = [0f64; BUCKETS];
                for key in 0..KEYS {
                    let words = [0xc0a8_0000_0a00_0000 + (key & 0xff), 0x06_0050_0400 + ((key >> 8) << 16)];
                    fill[(seed.hash2(words) >> shift) as usize % BUCKETS] += 1.0;
                }
                let mean = KEYS as f64 / BUCKETS as f64;
                let chi2: f64 = fill.iter().map(|n| (n - mean) * (n - mean) / mean).sum();
                // 1,023 degrees of freedom: mean 1,023, sigma 45. Six sigma either way.
                assert!((750.0..1_295.0).contains(&chi2), "seed {number} shift {shift}: {chi2}");
            }
        }
    }

    /// What a linear hash cannot do: keys that share a bucket under one seed part under another.
    #[test]
    fn collisions_depend_on_the_seed() {
        let (known, other) = (Seed::from_number(1), Seed::from_number(2));
        let bucket = |seed: &Seed, key: u64| seed.hash2([key, 6 << 32]) & 0xff;
        let chosen: Vec<u64> = (0..100_000).filter(|&key| bucket(&known, key) == 0).collect();
        let still = chosen.iter().filter(|&&key| bucket(&other, key) == 0).count();
        assert!(chosen.len() > 300);
        assert!(still < chosen.len() / 20, "{still} of {}", chosen.len());
    }
}

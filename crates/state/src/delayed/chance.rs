//! Chance that is the same for the same seed.

/// A series of numbers (splitmix64).
pub(super) struct Chance(pub(super) u64);

impl Chance {
    /// Return the next one.
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Return whether one in so many chances comes true.
    pub(super) fn is_one_in(&mut self, many: u64) -> bool {
        self.next().is_multiple_of(many)
    }
}

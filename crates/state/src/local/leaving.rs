//! Entries that are over, but still linked in their buckets.
//!
//! A sweep takes out entries in the order of memory, and the bucket of each is anywhere. It is asked for when the entry goes,
//! and looked at when it has come, some entries later.

/// How many may be leaving at a time.
pub(super) const MOST: usize = 32;

/// Those that are leaving.
#[derive(Clone, Copy)]
pub(super) struct Leaving {
    hashes: [u64; MOST],
    numbers: [u32; MOST],
    first: usize,
    count: usize,
}

impl Leaving {
    pub(super) const NOBODY: Leaving = Leaving { hashes: [0; MOST], numbers: [0; MOST], first: 0, count: 0 };

    /// Return the one that has been leaving longest: hash and number.
    #[inline(always)]
    pub(super) fn take(&mut self) -> Option<(u64, u32)> {
        if self.count == 0 {
            return None;
        }
        let (hash, number) = (self.hashes[self.first], self.numbers[self.first]);
        self.first = (self.first + 1) % MOST;
        self.count -= 1;
        Some((hash, number))
    }

    /// Add one; there is room for it.
    #[inline(always)]
    pub(super) fn add(&mut self, hash: u64, number: u32) {
        let at = (self.first + self.count) % MOST;
        (self.hashes[at], self.numbers[at]) = (hash, number);
        self.count += 1;
    }

    #[inline(always)]
    pub(super) fn is_full(&self) -> bool {
        self.count == MOST
    }
}

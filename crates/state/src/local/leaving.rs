//! Entries that are over, but still linked in their buckets.
//!
//! A sweep takes out entries in the order of memory, and the bucket of each is anywhere. It is asked for when the entry goes,
//! and looked at when it has come, some entries later.

/// How many may be leaving at a time.
const MOST: usize = 32;

/// Those that are leaving.
#[derive(Clone, Copy)]
pub(super) struct Leaving {
    /// Hash and number.
    entries: [(u64, u32); MOST],
    first: usize,
    count: usize,
}

impl Leaving {
    pub(super) const NOBODY: Leaving = Leaving { entries: [(0, 0); MOST], first: 0, count: 0 };

    /// Return the one that has been leaving longest.
    #[inline(always)]
    pub(super) fn take(&mut self) -> Option<(u64, u32)> {
        if self.count == 0 {
            return None;
        }
        let entry = self.entries[self.first];
        self.first = (self.first + 1) % MOST;
        self.count -= 1;
        Some(entry)
    }

    /// Add one; there is room for it.
    #[inline(always)]
    pub(super) fn add(&mut self, hash: u64, entry: u32) {
        self.entries[(self.first + self.count) % MOST] = (hash, entry);
        self.count += 1;
    }

    #[inline(always)]
    pub(super) fn is_full(&self) -> bool {
        self.count == MOST
    }
}

//! Buckets and their chains, by linear hashing: what is known by a hash is linked and unlinked, and the table grows by a bucket at a
//! time.
//!
//! What is linked are numbers. Whoever has the table knows what they stand for: the key of an entry, or another key of it.

use std::hint::select_unpredictable;
use std::io;

use catena_packet::buffer::prefetch;

use super::bucket::{Bucket, WAYS};
use crate::engine::Full;
use crate::memory::Reserved;

/// Buckets before the first split; a power of two.
const FIRST_BUCKETS: usize = 16;
/// The table splits a bucket when there are more numbers than this per bucket: few enough that one in
/// a hundred buckets overflows.
pub(super) const LOAD: usize = 5;
/// A bucket that is continued and has fewer numbers gets some from its overflow buckets: these are far, so not each time that one
/// goes.
const LEAST: usize = WAYS / 2;

#[inline(always)]
fn tag(hash: u64) -> u8 {
    ((hash >> 56) as u8).max(1)
}

/// The table.
pub(super) struct Buckets {
    /// The buckets by address, then those for overflow.
    buckets: Reserved<Bucket>,
    /// Buckets in use, and the mask of the address bits that all of them have.
    count: usize,
    mask: usize,
    most: usize,
    /// The first unused overflow bucket, plus one, chained through `next`; and how many were ever used.
    free_overflow: u32,
    overflows: usize,
}

impl Buckets {
    /// Make an empty table for up to `capacity` numbers.
    ///
    /// # Errors
    /// The system's, when it has not the address space.
    pub(super) fn new(capacity: usize) -> io::Result<Self> {
        let most = (capacity / LOAD + 1).max(FIRST_BUCKETS);
        // All buckets of a chain but the last have so many numbers at least. So `capacity / LEAST` is the most there
        // can be, and twice that while a bucket is split, whatever the hashes.
        let overflow = 2 * (capacity / LEAST) + 4;
        Ok(Buckets {
            buckets: Reserved::new(most + overflow)?,
            count: FIRST_BUCKETS,
            mask: FIRST_BUCKETS - 1,
            most,
            free_overflow: 0,
            overflows: 0,
        })
    }

    #[inline(always)]
    fn address(&self, hash: u64) -> usize {
        let wide = hash as usize & (2 * self.mask + 1);
        // Whether its bucket was split already is as good as drawn by lot: a branch would be guessed wrong.
        select_unpredictable(wide < self.count, wide, hash as usize & self.mask)
    }

    #[inline(always)]
    fn overflow(&self, link: u32) -> usize {
        self.most + link as usize - 1
    }

    /// Bring the bucket of a hash near.
    #[inline(always)]
    pub(super) fn bring(&self, hash: u64) {
        prefetch(&raw const self.buckets[self.address(hash)]);
    }

    /// Return the first number in the bucket of a hash that may be meant.
    #[inline(always)]
    pub(super) fn guess(&self, hash: u64) -> Option<u32> {
        let bucket = &self.buckets[self.address(hash)];
        let matches = bucket.matches(tag(hash));
        (matches != 0).then(|| bucket.entries[matches.trailing_zeros() as usize])
    }

    /// Return where the number is linked that has this hash and is the one: bucket, way, number.
    #[inline(always)]
    pub(super) fn search(&self, hash: u64, is_the_one: impl Fn(u32) -> bool) -> Option<(usize, usize, u32)> {
        let mut at = self.address(hash);
        loop {
            let bucket = &self.buckets[at];
            let mut matches = bucket.matches(tag(hash));
            while matches != 0 {
                let way = matches.trailing_zeros() as usize;
                let number = bucket.entries[way];
                if is_the_one(number) {
                    return Some((at, way, number));
                }
                matches &= matches - 1;
            }
            if bucket.next == 0 {
                return None;
            }
            at = self.overflow(bucket.next);
        }
    }

    /// Link a number under a hash.
    ///
    /// # Errors
    /// [`Full`] where there are as many as there may be.
    #[inline(always)]
    pub(super) fn link(&mut self, hash: u64, number: u32) -> Result<(), Full> {
        self.link_at(self.address(hash), tag(hash), number)
    }

    /// Let another number stand where one was found.
    pub(super) fn replace(&mut self, bucket: usize, way: usize, number: u32) {
        self.buckets[bucket].entries[way] = number;
    }

    /// Write a number into the first free way of a chain.
    fn link_at(&mut self, address: usize, tag: u8, number: u32) -> Result<(), Full> {
        let mut at = address;
        loop {
            let free = self.buckets[at].matches(0);
            if free != 0 {
                let way = free.trailing_zeros() as usize;
                self.buckets[at].tags[way] = tag;
                self.buckets[at].entries[way] = number;
                return Ok(());
            }
            if self.buckets[at].next == 0 {
                self.buckets[at].next = self.new_overflow()?;
            }
            at = self.overflow(self.buckets[at].next);
        }
    }

    fn new_overflow(&mut self) -> Result<u32, Full> {
        if self.free_overflow != 0 {
            let link = self.free_overflow;
            let at = self.overflow(link);
            self.free_overflow = std::mem::take(&mut self.buckets[at].next);
            return Ok(link);
        }
        if self.most + self.overflows == self.buckets.len() {
            return Err(Full);
        }
        self.overflows += 1;
        Ok(self.overflows as u32)
    }

    /// Give the chain's empty overflow buckets back, after moving numbers forward into free ways.
    fn tighten(&mut self, address: usize) {
        while self.buckets[address].next != 0 {
            let (mut before, mut last) = (address, self.overflow(self.buckets[address].next));
            while self.buckets[last].next != 0 {
                (before, last) = (last, self.overflow(self.buckets[last].next));
            }
            for way in 0..WAYS {
                let tag = std::mem::take(&mut self.buckets[last].tags[way]);
                if tag == 0 {
                    continue;
                }
                let number = self.buckets[last].entries[way];
                // The first free way is at worst the one just freed, so this always finds one.
                let _ = self.link_at(address, tag, number);
                if self.buckets[last].tags[way] != 0 {
                    return;
                }
            }
            if self.buckets[last].tags != [0; WAYS] {
                return;
            }
            let link = std::mem::replace(&mut self.buckets[before].next, 0);
            self.buckets[last].next = std::mem::replace(&mut self.free_overflow, link);
        }
    }

    /// Unlink what was found under a hash.
    #[inline(always)]
    pub(super) fn unlink(&mut self, hash: u64, bucket: usize, way: usize) {
        self.buckets[bucket].tags[way] = 0;
        let address = self.address(hash);
        if self.buckets[address].next != 0 && self.buckets[bucket].matches(0).count_ones() as usize > WAYS - LEAST {
            self.tighten(address);
        }
    }

    /// Return whether so many numbers are too many for the buckets that there are.
    #[inline(always)]
    pub(super) fn are_few_for(&self, numbers: usize) -> bool {
        numbers >= self.count * LOAD && self.count < self.most
    }

    /// Add a bucket, and move to it what belongs there from the bucket it splits: `hash` tells of each number under which hash it is
    /// linked.
    #[inline(never)]
    pub(super) fn split(&mut self, hash: impl Fn(u32) -> Option<u64>) {
        let (old, new, bit) = (self.count - (self.mask + 1), self.count, self.mask + 1);
        self.count += 1;
        if self.count == 2 * bit {
            self.mask = 2 * bit - 1;
        }
        let mut at = old;
        loop {
            for way in 0..WAYS {
                let (tag, number) = (self.buckets[at].tags[way], self.buckets[at].entries[way]);
                if tag != 0 && hash(number).is_some_and(|hash| hash as usize & bit != 0) {
                    self.link_at(new, tag, number).expect("there are overflow buckets for any hashes, see `new`");
                    self.buckets[at].tags[way] = 0;
                }
            }
            if self.buckets[at].next == 0 {
                break;
            }
            at = self.overflow(self.buckets[at].next);
        }
        self.tighten(old);
    }

    /// Return how many buckets there are, and how many of them overflow.
    #[cfg(test)]
    pub(super) fn overflowing(&self) -> (usize, usize) {
        (self.count, self.buckets[..self.count].iter().filter(|bucket| bucket.next != 0).count())
    }
}

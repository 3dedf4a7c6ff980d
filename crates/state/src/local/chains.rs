//! Chains of buckets: entries are linked and unlinked, and the table grows by a bucket at a time.

use super::bucket::WAYS;
use super::map::{LOAD, LocalMap};
use crate::engine::Full;
use crate::key::Key;

impl<K: Key, V> LocalMap<K, V> {
    #[inline(always)]
    pub(super) fn overflow(&self, link: u32) -> usize {
        self.most_buckets + link as usize - 1
    }

    /// Write an entry's number into the first free way of a chain.
    pub(super) fn link(&mut self, address: usize, tag: u8, entry: u32) -> Result<(), Full> {
        let mut at = address;
        loop {
            let free = self.buckets[at].matches(0);
            if free != 0 {
                let way = free.trailing_zeros() as usize;
                self.buckets[at].tags[way] = tag;
                self.buckets[at].entries[way] = entry;
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
        if self.most_buckets + self.overflows == self.buckets.len() {
            return Err(Full);
        }
        self.overflows += 1;
        Ok(self.overflows as u32)
    }

    /// Give the chain's empty overflow buckets back, after moving entries forward into free ways.
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
                let entry = self.buckets[last].entries[way];
                // The first free way is at worst the one just freed, so this always finds one.
                let _ = self.link(address, tag, entry);
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

    pub(super) fn unlink(&mut self, hash: u64, bucket: usize, way: usize) {
        self.buckets[bucket].tags[way] = 0;
        let address = self.address(hash);
        if self.buckets[address].next != 0 {
            self.tighten(address);
        }
    }

    /// Add a bucket where there are too many entries for those that there are.
    #[inline(always)]
    pub(super) fn grow(&mut self) {
        if self.len >= self.bucket_count * LOAD && self.bucket_count < self.most_buckets {
            self.split();
        }
    }

    /// Add a bucket, and move to it what belongs there from the bucket it splits.
    #[inline(never)]
    fn split(&mut self) {
        // Who is leaving is not moved.
        while self.unlink_one() {}
        let (old, new, bit) = (self.bucket_count - (self.mask + 1), self.bucket_count, self.mask + 1);
        self.bucket_count += 1;
        if self.bucket_count == 2 * bit {
            self.mask = 2 * bit - 1;
        }
        let mut at = old;
        loop {
            for way in 0..WAYS {
                let (tag, entry) = (self.buckets[at].tags[way], self.buckets[at].entries[way]);
                let Some((key, _)) = self.entries[entry as usize].pair().filter(|_| tag != 0) else { continue };
                if key.hash(&self.seed) as usize & bit != 0 {
                    self.link(new, tag, entry).expect("there are overflow buckets for any hashes, see `new`");
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
}

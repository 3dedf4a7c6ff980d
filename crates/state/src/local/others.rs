//! Entries by another key of theirs: their numbers, under the hashes of these keys.
//!
//! Whose number is found is asked what its key is, so nothing but numbers is kept here. A new entry's bucket is asked for when the entry
//! comes, and looked at some entries later; so is that of one that goes.

use std::io;

use catena_packet::wire::Seed;

use super::chains::Buckets;
use super::leaving::{self, Leaving};
use crate::key::Key;

/// How many may be coming at a time.
const MOST: usize = 32;
/// The entries whose other keys these are.
pub(super) trait Named {
    type Key: Key;

    /// Return the other key of the entry with this number, if it is found by one.
    fn key(&self, number: u32) -> Option<Self::Key>;

    /// The entry with this number is not found by its other key any more.
    fn hide(&self, number: u32);
}

/// The other keys of a map's entries.
pub(super) struct Others {
    seed: Seed,
    buckets: Buckets,
    linked: usize,
    /// Those that are coming, the oldest first: their hashes and numbers.
    hashes: [u64; MOST],
    numbers: [u32; MOST],
    coming: usize,
    leaving: Leaving,
}

impl Others {
    /// Make room for the other keys of up to `capacity` entries.
    ///
    /// # Errors
    /// The system's, when it has not the address space.
    pub(super) fn new(seed: Seed, capacity: usize) -> io::Result<Self> {
        // Who leaves is linked until its bucket has come.
        let buckets = Buckets::new(capacity + leaving::MOST)?;
        let (hashes, numbers) = ([0; MOST], [0; MOST]);
        Ok(Others { seed, buckets, linked: 0, hashes, numbers, coming: 0, leaving: Leaving::NOBODY })
    }

    /// Return the hash of a key.
    #[inline(always)]
    pub(super) fn hash(&self, key: &impl Key) -> u64 {
        key.hash(&self.seed)
    }

    /// Bring near what leads to a key; returns its hash.
    #[inline(always)]
    pub(super) fn bring(&self, key: &impl Key) -> u64 {
        let hash = self.hash(key);
        self.buckets.bring(hash);
        hash
    }

    /// Return the first entry that may have the key of this hash.
    #[inline(always)]
    pub(super) fn guess(&self, hash: u64) -> Option<u32> {
        self.buckets.guess(hash)
    }

    /// Return whether nobody is coming: who is found is the youngest then.
    #[inline(always)]
    pub(super) fn are_settled(&self) -> bool {
        self.coming == 0
    }

    /// Return which entry has this key.
    #[inline(always)]
    pub(super) fn find<N: Named>(&mut self, key: &N::Key, of: &N) -> Option<u32> {
        self.settle(of);
        self.buckets.search(key.hash(&self.seed), |number| of.key(number).as_ref() == Some(key)).map(|found| found.2)
    }

    /// An entry comes that has this key.
    #[inline(always)]
    pub(super) fn come<N: Named>(&mut self, key: &N::Key, number: u32, of: &N) {
        if self.coming == MOST {
            self.settle(of);
        }
        (self.hashes[self.coming], self.numbers[self.coming]) = (self.bring(key), number);
        self.coming += 1;
    }

    /// An entry goes that had this key, which may be another one's now. Nobody is coming: who goes while he comes would be linked when
    /// he has no key any more.
    #[inline(always)]
    pub(super) fn go(&mut self, key: &impl Key, number: u32) {
        debug_assert!(self.coming == 0, "those that are coming are linked before one goes");
        let hash = self.bring(key);
        if self.leaving.is_full() {
            self.unlink_one();
        }
        self.leaving.add(hash, number);
    }

    /// Link those that are coming.
    #[inline(always)]
    pub(super) fn settle(&mut self, of: &impl Named) {
        if self.coming > 0 {
            self.settle_all(of);
        }
    }

    #[inline(never)]
    fn settle_all(&mut self, of: &impl Named) {
        // The links of those that have left are not taken for those of entries that have their numbers now, nor moved by a key.
        self.unlink_all();
        for i in 0..std::mem::take(&mut self.coming) {
            self.link(self.hashes[i], self.numbers[i], of);
        }
    }

    #[inline(always)]
    fn link(&mut self, hash: u64, number: u32, of: &impl Named) {
        if self.buckets.are_few_for(self.linked) {
            let seed = &self.seed;
            self.buckets.split(|number| of.key(number).map(|key| key.hash(seed)));
        }
        let key = of.key(number);
        let is_older = |other: u32| other != number && of.key(other) == key;
        match self.buckets.search(hash, is_older) {
            Some((bucket, way, older)) => {
                self.buckets.replace(bucket, way, number);
                of.hide(older);
            }
            None => {
                self.buckets.link(hash, number).expect("there are overflow buckets for any hashes, see `Buckets::new`");
                self.linked += 1;
            }
        }
    }

    /// Unlink the entry that has been leaving longest.
    #[inline(always)]
    fn unlink_one(&mut self) -> bool {
        let Some((hash, number)) = self.leaving.take() else { return false };
        // Where it is not there, a younger one has taken its place.
        if let Some((bucket, way, _)) = self.buckets.search(hash, |one| one == number) {
            self.buckets.unlink(hash, bucket, way);
            self.linked -= 1;
        }
        true
    }

    /// Unlink all that are leaving.
    pub(super) fn unlink_all(&mut self) {
        while self.unlink_one() {}
    }
}

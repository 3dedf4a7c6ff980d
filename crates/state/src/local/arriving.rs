//! Entries that are written, but not yet linked in their buckets.
//!
//! Where a new entry's key was known only just before, its bucket is far. The entry waits here until some more have come: then
//! the buckets of all are asked for together, so that their misses overlap, and all are linked.
//!
//! An entry that arrives is found before any that is linked. Its bucket has not been looked at, so an older entry of the same key
//! may be linked there: that one gets the value when both meet, keeps its mark, and is not counted twice until then.

use super::map::LocalMap;
use crate::key::Key;

/// How many may be arriving at a time.
const MOST: usize = 32;

/// Those that are arriving.
pub(super) struct Arriving {
    /// A bit for each hash: most keys that are not arriving are told by it.
    seen: [u64; 4],
    hashes: [u64; MOST],
    entries: [u32; MOST],
    count: usize,
    /// Whether the buckets of some were asked for: they are linked the next time.
    is_asked: bool,
}

impl Arriving {
    pub(super) const NOBODY: Arriving =
        Arriving { seen: [0; 4], hashes: [0; MOST], entries: [0; MOST], count: 0, is_asked: false };

    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Return whether a key of this hash may be among them.
    #[inline(always)]
    pub(super) fn may_have(&self, hash: u64) -> bool {
        let (word, bit) = Self::bit(hash);
        self.seen[word] & bit != 0
    }

    /// Return a bit of `seen` for a hash, and the word it is in. Neither the bits that make addresses nor the tag.
    #[inline(always)]
    fn bit(hash: u64) -> (usize, u64) {
        ((hash >> 48) as usize % 4, 1 << ((hash >> 50) % 64))
    }
}

impl<K: Key, V> LocalMap<K, V> {
    /// Return the entry of a key, if it is arriving.
    #[inline(always)]
    pub(super) fn arriving(&self, key: &K, hash: u64) -> Option<u32> {
        if self.arriving.may_have(hash) { self.search_arriving(key) } else { None }
    }

    #[cold]
    #[inline(never)]
    fn search_arriving(&self, key: &K) -> Option<u32> {
        let mut arriving = self.arriving.entries[..self.arriving.count].iter().copied();
        arriving.find(|entry| self.entries[*entry as usize].pair().is_some_and(|pair| pair.0 == *key))
    }

    /// Take an entry for a key whose bucket nobody has looked at, to be written now; `None` where there is no room, or the
    /// key is arriving already.
    #[inline(always)]
    pub(super) fn arrive(&mut self, key: &K) -> Option<u32> {
        let hash = key.hash(&self.seed);
        if self.arriving.count == MOST {
            self.settle();
        }
        if self.arriving(key, hash).is_some() {
            return None;
        }
        self.grow();
        let entry = self.take_entry().ok()?;
        let at = self.arriving.count;
        let (word, bit) = Arriving::bit(hash);
        self.arriving.seen[word] |= bit;
        (self.arriving.hashes[at], self.arriving.entries[at]) = (hash, entry);
        self.arriving.count += 1;
        self.reach = 0;
        Some(entry)
    }

    /// Ask for the buckets of those that are arriving, or link them where that was done the last time: so nobody arrives for long where
    /// few come, and looking entries up is short again.
    #[inline(always)]
    pub(super) fn settle_in_turn(&mut self) {
        if !self.arriving.is_empty() {
            self.settle_soon();
        }
    }

    #[inline(never)]
    fn settle_soon(&mut self) {
        if std::mem::replace(&mut self.arriving.is_asked, true) {
            return self.settle_all();
        }
        for hash in &self.arriving.hashes[..self.arriving.count] {
            self.buckets.bring(*hash);
        }
    }

    /// Link those that are arriving.
    #[inline(always)]
    pub(super) fn settle(&mut self) {
        if !self.arriving.is_empty() {
            self.settle_all();
        }
    }

    #[inline(never)]
    fn settle_all(&mut self) {
        (self.arriving.seen, self.arriving.is_asked) = ([0; 4], false);
        self.reach = self.entries.len();
        for hash in &self.arriving.hashes[..self.arriving.count] {
            self.buckets.bring(*hash);
        }
        for i in 0..std::mem::take(&mut self.arriving.count) {
            let (hash, entry) = (self.arriving.hashes[i], self.arriving.entries[i]);
            let Some((key, _)) = self.entries[entry as usize].pair() else { continue };
            if let Some((_, _, older)) = self.find(key, hash) {
                let date = self.entries[entry as usize].date;
                if let Some(value) = self.give_entry(entry) {
                    self.overwrite(older, value);
                    self.lasts_as(older, date);
                }
                continue;
            }
            self.buckets.link(hash, entry).expect("there are overflow buckets for any hashes, see `Buckets::new`");
        }
    }

    /// Return how many entries are arriving whose key is linked already.
    pub(super) fn doubles(&self) -> usize {
        let arriving = (0..self.arriving.count).map(|i| (self.arriving.hashes[i], self.arriving.entries[i]));
        let key = |entry: u32| self.entries[entry as usize].pair().map(|pair| &pair.0);
        arriving.filter(|(hash, entry)| key(*entry).is_some_and(|key| self.find(key, *hash).is_some())).count()
    }
}

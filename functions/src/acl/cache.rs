//! Remembers what was ruled on which flow, so that a flow is searched for once.
//!
//! A bounded table of buckets of one cache line. Where a flow belongs is decided by a hash with a secret
//! seed: packets cannot be made to crowd into one bucket by someone who does not know it. An entry holds
//! the whole key, never only its hash, so that a wrong answer is impossible. Every bucket carries the
//! generation it was filled in; a change of rules begins a new one, and all older entries are gone
//! at once.
//!
//! A flow has two buckets, its home and another: the other is looked at only after the home has failed. Where both
//! are full, an entry moves to its own other bucket (cuckoo hashing: Pagh and Rodler, 2004, with one step), so that
//! ten thousand flows find room although an IPv6 flow takes a whole line and its bucket has but one entry.

use std::hint::select_unpredictable;

use catena_packet::wire::Seed;

use super::flow::{FlowV4, FlowV6};
use super::list::Ruling;

/// A flow, and how it is kept.
pub trait Remembered: Copy + Default + Send + 'static {
    /// A few entries in one cache line.
    type Bucket: Copy + Send;
    /// A bucket without entries, of no generation.
    const VACANT: Self::Bucket;
    /// Entries of a bucket.
    const WAYS: usize;
    /// Buckets of a table: a power of two.
    const BUCKETS: usize;

    /// The flow's hash.
    fn hash(&self, seed: &Seed) -> u64;
    /// What is remembered of the flow, or [`Ruling::UNKNOWN`].
    fn find(&self, bucket: &Self::Bucket, generation: u32) -> Ruling;
    /// Whether there is room for another entry.
    fn has_room(bucket: &Self::Bucket, generation: u32) -> bool;
    /// Remember a ruling; `victim` (below `WAYS`) says which entry to give up if there is no room.
    fn insert(&self, bucket: &mut Self::Bucket, generation: u32, ruling: Ruling, victim: usize);
    /// The entry of this number (below `WAYS`).
    fn entry(bucket: &Self::Bucket, way: usize) -> (Self, Ruling);
}

/// Rulings by flow, for one worker and one family of addresses.
pub struct Cache<F: Remembered> {
    buckets: Box<[F::Bucket]>,
    seed: Seed,
    /// Counts up with every change of rules; 0 is never current.
    generation: u32,
    victim: usize,
}

impl<F: Remembered> Cache<F> {
    /// Entries the table can hold.
    pub const ENTRIES: usize = F::BUCKETS * F::WAYS;

    /// An empty table; `seed` should be secret.
    pub fn new(seed: Seed) -> Self {
        Self { buckets: vec![F::VACANT; F::BUCKETS].into_boxed_slice(), seed, generation: 1, victim: 0 }
    }

    /// Forgets everything.
    pub fn forget(&mut self) {
        self.generation = self.generation.wrapping_add(1);
        if self.generation == 0 {
            // After four thousand million changes numbers repeat: once, clear by hand.
            self.buckets.fill(F::VACANT);
            self.generation = 1;
        }
    }

    /// The flow's hash, which says where it belongs.
    #[inline(always)]
    pub fn hash(&self, flow: &F) -> u64 {
        flow.hash(&self.seed)
    }

    /// The bucket to look for a flow first.
    #[inline(always)]
    pub fn home(hash: u64) -> usize {
        hash as usize % F::BUCKETS
    }

    /// The bucket to look for a flow then: never its home.
    #[inline(always)]
    pub fn other(hash: u64) -> usize {
        (hash ^ (hash >> 32 | 1)) as usize % F::BUCKETS
    }

    /// Where a bucket lies, to be fetched ahead.
    #[inline(always)]
    pub fn address(&self, bucket: usize) -> *const F::Bucket {
        self.buckets.as_ptr().wrapping_add(bucket)
    }

    /// What a bucket says of a flow, or [`Ruling::UNKNOWN`].
    #[inline(always)]
    pub fn find(&self, bucket: usize, flow: &F) -> Ruling {
        flow.find(&self.buckets[bucket % F::BUCKETS], self.generation)
    }

    /// Remembers a ruling on a flow with this hash.
    pub fn insert(&mut self, hash: u64, flow: &F, ruling: Ruling) {
        self.victim = self.victim.wrapping_add(1);
        let way = self.victim % F::WAYS;
        let places = [Self::home(hash), Self::other(hash)];
        let room = places.into_iter().find(|&place| F::has_room(&self.buckets[place], self.generation));
        let place = room.or_else(|| places.into_iter().find(|&place| self.make_room(place, way)));
        let place = place.unwrap_or(places[self.victim / F::WAYS % 2]);
        flow.insert(&mut self.buckets[place], self.generation, ruling, way);
    }

    /// Moves an entry of a full bucket to its other bucket if there is room, so that its place can be taken.
    fn make_room(&mut self, bucket: usize, way: usize) -> bool {
        let (flow, ruling) = F::entry(&self.buckets[bucket], way);
        let hash = self.hash(&flow);
        let other = bucket ^ Self::home(hash) ^ Self::other(hash);
        let room = F::has_room(&self.buckets[other], self.generation);
        if room {
            flow.insert(&mut self.buckets[other], self.generation, ruling, way);
        }
        room
    }
}

/// Three IPv4 flows in a cache line.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub struct BucketV4 {
    addresses: [u64; 3],
    /// The flow's last word; never 0 in a flow, so that a vacant entry matches none.
    last: [u64; 3],
    rulings: [Ruling; 3],
    generation: u32,
}

impl Remembered for FlowV4 {
    type Bucket = BucketV4;
    const VACANT: BucketV4 = BucketV4 { addresses: [0; 3], last: [0; 3], rulings: [Ruling::UNKNOWN; 3], generation: 0 };
    const WAYS: usize = 3;
    const BUCKETS: usize = 16 << 10;

    #[inline(always)]
    fn hash(&self, seed: &Seed) -> u64 {
        self.hash(seed)
    }

    #[inline(always)]
    fn find(&self, bucket: &BucketV4, generation: u32) -> Ruling {
        let [addresses, last] = self.0;
        let stale = u64::from(bucket.generation ^ generation);
        let mut found = Ruling::UNKNOWN;
        for way in 0..Self::WAYS {
            let differs = (bucket.addresses[way] ^ addresses) | (bucket.last[way] ^ last) | stale;
            // Which entry it is cannot be foreseen: a branch would go wrong for every third packet.
            found = select_unpredictable(differs == 0, bucket.rulings[way], found);
        }
        found
    }

    #[inline(always)]
    fn has_room(bucket: &BucketV4, generation: u32) -> bool {
        bucket.generation != generation || bucket.last.contains(&0)
    }

    #[inline(always)]
    fn insert(&self, bucket: &mut BucketV4, generation: u32, ruling: Ruling, victim: usize) {
        if bucket.generation != generation {
            *bucket = BucketV4 { generation, ..Self::VACANT };
        }
        let way = bucket.last.iter().position(|&last| last == 0).unwrap_or(victim);
        [bucket.addresses[way], bucket.last[way]] = self.0;
        bucket.rulings[way] = ruling;
    }

    #[inline(always)]
    fn entry(bucket: &BucketV4, way: usize) -> (Self, Ruling) {
        (Self([bucket.addresses[way], bucket.last[way]]), bucket.rulings[way])
    }
}

/// One IPv6 flow in a cache line.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub struct BucketV6 {
    flow: FlowV6,
    ruling: Ruling,
    generation: u32,
}

impl Remembered for FlowV6 {
    type Bucket = BucketV6;
    const VACANT: BucketV6 = BucketV6 { flow: FlowV6([0; 5]), ruling: Ruling::UNKNOWN, generation: 0 };
    const WAYS: usize = 1;
    const BUCKETS: usize = 32 << 10;

    #[inline(always)]
    fn hash(&self, seed: &Seed) -> u64 {
        self.hash(seed)
    }

    #[inline(always)]
    fn find(&self, bucket: &BucketV6, generation: u32) -> Ruling {
        let mut differs = u64::from(bucket.generation ^ generation);
        for (word, kept) in self.0.iter().zip(&bucket.flow.0) {
            differs |= word ^ kept;
        }
        select_unpredictable(differs == 0, bucket.ruling, Ruling::UNKNOWN)
    }

    #[inline(always)]
    fn has_room(bucket: &BucketV6, generation: u32) -> bool {
        bucket.generation != generation
    }

    #[inline(always)]
    fn insert(&self, bucket: &mut BucketV6, generation: u32, ruling: Ruling, _victim: usize) {
        *bucket = BucketV6 { flow: *self, ruling, generation };
    }

    #[inline(always)]
    fn entry(bucket: &BucketV6, _way: usize) -> (Self, Ruling) {
        (bucket.flow, bucket.ruling)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acl::key::{KeyV4, KeyV6};
    use crate::acl::list::List;
    use crate::acl::rule::{Action, Rule};

    fn v4(n: u32) -> FlowV4 {
        FlowV4::from(&KeyV4 { src: n, dst: n.rotate_left(9), sport: n as u16, ..KeyV4::default() })
    }

    fn v6(n: u32) -> FlowV6 {
        let n = u128::from(n);
        FlowV6::from(&KeyV6 { src: n << 77 | 1, dst: n, dport: n as u16, ..KeyV6::default() })
    }

    fn look<F: Remembered>(cache: &Cache<F>, flow: &F) -> Ruling {
        let hash = cache.hash(flow);
        match cache.find(Cache::<F>::home(hash), flow) {
            Ruling::UNKNOWN => cache.find(Cache::<F>::other(hash), flow),
            found => found,
        }
    }

    fn remembers<F: Remembered>(flow: fn(u32) -> F) {
        let list = List::new(&[Rule::any(Action::Deny)], Action::Deny).unwrap();
        let ruling = |n: u32| if n.is_multiple_of(3) { Ruling::DENIED_BY_DEFAULT } else { list.ruling(0) };
        let mut cache = Cache::<F>::new(Seed::from_number(3));
        let flows = (Cache::<F>::ENTRIES / 3) as u32;
        let nothing = F::default();
        assert_eq!(look(&cache, &nothing), Ruling::UNKNOWN);
        for n in 0..flows {
            let p = flow(n);
            assert_eq!(look(&cache, &p), Ruling::UNKNOWN);
            cache.insert(cache.hash(&p), &p, ruling(n));
            assert_eq!(look(&cache, &p), ruling(n));
        }
        let kept = (0..flows).filter(|&n| {
            let found = look(&cache, &flow(n));
            assert!(found == ruling(n) || found == Ruling::UNKNOWN);
            found == ruling(n)
        });
        // A third of the room is in use: hardly any flow has pushed another out.
        assert!(kept.count() as f64 > 0.995 * f64::from(flows));
        cache.forget();
        assert!((0..flows).all(|n| look(&cache, &flow(n)) == Ruling::UNKNOWN));
    }

    #[test]
    fn what_was_put_in_comes_out_until_forgotten() {
        remembers(v4);
        remembers(v6);
    }

    #[test]
    fn generations_that_wrap_around_do_not_revive_entries() {
        let mut cache = Cache::new(Seed::from_number(1));
        let p = v4(5);
        cache.insert(cache.hash(&p), &p, Ruling::DENIED_BY_DEFAULT);
        cache.generation = u32::MAX;
        cache.forget();
        assert_eq!(cache.generation, 1);
        assert_eq!(look(&cache, &p), Ruling::UNKNOWN);
    }

    #[test]
    fn ports_that_are_absent_are_not_ports_zero() {
        let mut cache = Cache::new(Seed::from_number(1));
        let without = KeyV4 { protocol: 17, ..KeyV4::default() };
        let with = FlowV4::from(&KeyV4 { has_ports: true, ..without });
        let without = FlowV4::from(&without);
        cache.insert(cache.hash(&without), &without, Ruling::DENIED_BY_DEFAULT);
        assert_eq!(look(&cache, &with), Ruling::UNKNOWN);
    }
}

//! Remembers what was ruled on which flow, so that a flow is searched for once.
//!
//! A bounded table of buckets of one cache line. Where a flow belongs is decided by a hash with a secret
//! seed: packets cannot be made to crowd into one bucket by someone who does not know it. An entry holds
//! the whole key, never only its hash, so that a wrong answer is impossible. Every bucket carries the
//! generation it was filled in; a change of rules begins a new one, and all older entries are gone
//! at once.
//!
//! An IPv6 flow takes a whole line, so its bucket has one entry: it may also stand in the neighbouring one,
//! which is looked at only after the first has failed.

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
    /// What the number of the neighbouring bucket differs in; 0 if there is none.
    const NEIGHBOUR: usize;

    /// The flow's hash.
    fn hash(&self, seed: &Seed) -> u64;
    /// What is remembered of the flow, or [`Ruling::UNKNOWN`].
    fn find(&self, bucket: &Self::Bucket, generation: u32) -> Ruling;
    /// Whether there is room for another entry.
    fn has_room(bucket: &Self::Bucket, generation: u32) -> bool;
    /// Remember a ruling; `victim` says which entry to give up if there is no room.
    fn insert(&self, bucket: &mut Self::Bucket, generation: u32, ruling: Ruling, victim: usize);
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

    /// The bucket that a flow belongs to.
    #[inline(always)]
    pub fn place(&self, flow: &F) -> u32 {
        flow.hash(&self.seed) as u32 % F::BUCKETS as u32
    }

    /// The bucket where a flow may stand as well.
    #[inline(always)]
    pub fn neighbour(place: u32) -> u32 {
        place ^ F::NEIGHBOUR as u32
    }

    /// Where the bucket lies, to be fetched ahead.
    #[inline(always)]
    pub fn address(&self, place: u32) -> *const F::Bucket {
        self.buckets.as_ptr().wrapping_add(place as usize)
    }

    /// What the bucket at `place` says of a flow, or [`Ruling::UNKNOWN`].
    #[inline(always)]
    pub fn find(&self, place: u32, flow: &F) -> Ruling {
        flow.find(&self.buckets[place as usize % F::BUCKETS], self.generation)
    }

    /// Remembers a ruling on a flow that belongs to `place`.
    #[inline]
    pub fn insert(&mut self, place: u32, flow: &F, ruling: Ruling) {
        self.victim = self.victim.wrapping_add(1);
        let places = [place, Self::neighbour(place)].map(|place| place as usize % F::BUCKETS);
        let room = places.iter().find(|&&place| F::has_room(&self.buckets[place], self.generation));
        let place = room.copied().unwrap_or(places[self.victim % 2]);
        flow.insert(&mut self.buckets[place], self.generation, ruling, self.victim / 2);
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
    const NEIGHBOUR: usize = 0;

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
            found = found.unless(bucket.rulings[way], differs);
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
        let way = bucket.last.iter().position(|&last| last == 0).unwrap_or(victim % Self::WAYS);
        [bucket.addresses[way], bucket.last[way]] = self.0;
        bucket.rulings[way] = ruling;
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
    const NEIGHBOUR: usize = 1;

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
        Ruling::UNKNOWN.unless(bucket.ruling, differs)
    }

    #[inline(always)]
    fn has_room(bucket: &BucketV6, generation: u32) -> bool {
        bucket.generation != generation
    }

    #[inline(always)]
    fn insert(&self, bucket: &mut BucketV6, generation: u32, ruling: Ruling, _victim: usize) {
        *bucket = BucketV6 { flow: *self, ruling, generation };
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
        let place = cache.place(flow);
        match cache.find(place, flow) {
            Ruling::UNKNOWN => cache.find(Cache::<F>::neighbour(place), flow),
            found => found,
        }
    }

    fn remembers<F: Remembered>(flow: fn(u32) -> F) {
        let list = List::new(&[Rule::any(Action::Deny)], Action::Deny).unwrap();
        let ruling = |n: u32| if n.is_multiple_of(3) { Ruling::DENIED_BY_DEFAULT } else { list.ruling(0) };
        let mut cache = Cache::<F>::new(Seed::from_number(3));
        let flows = (Cache::<F>::ENTRIES / 8) as u32;
        let nothing = F::default();
        assert_eq!(look(&cache, &nothing), Ruling::UNKNOWN);
        for n in 0..flows {
            let p = flow(n);
            assert_eq!(look(&cache, &p), Ruling::UNKNOWN);
            cache.insert(cache.place(&p), &p, ruling(n));
            assert_eq!(look(&cache, &p), ruling(n));
        }
        let kept = (0..flows).filter(|&n| {
            let found = look(&cache, &flow(n));
            assert!(found == ruling(n) || found == Ruling::UNKNOWN);
            found == ruling(n)
        });
        // An eighth of the room is in use: few can have met in one bucket.
        assert!(kept.count() as f64 > 0.97 * f64::from(flows));
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
        cache.insert(cache.place(&p), &p, Ruling::DENIED_BY_DEFAULT);
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
        cache.insert(cache.place(&without), &without, Ruling::DENIED_BY_DEFAULT);
        assert_eq!(cache.find(cache.place(&without), &with), Ruling::UNKNOWN);
    }
}

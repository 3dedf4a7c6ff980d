//! Remembers which rule matched which 5-tuple, so that a flow is searched for once.
//!
//! A bounded table of small sets. Where a key belongs is decided by a hash with a secret seed:
//! packets cannot be made to crowd into one set by someone who does not know it. An entry holds
//! the whole key, never only its hash, so that a wrong answer is impossible. Every set carries the
//! generation it was filled in; a change of rules begins a new one, and all older entries are gone
//! at once.

use super::classifier::{Point, V4, V6};

/// Sets of a table: a power of two.
const SETS: usize = 16 << 10;

/// Answer for a key that is not in the table. No rule has this index.
pub const MISS: u32 = u32::MAX - 1;

/// A few entries that are fetched together.
pub trait Set<const W: usize>: Copy {
    /// A set without entries, of no generation.
    const VACANT: Self;
    /// Index remembered for the point, or [`MISS`].
    fn find(&self, point: &Point<W>, generation: u32) -> u32;
    /// Remembers an index; `victim` says which entry to give up.
    fn insert(&mut self, point: &Point<W>, generation: u32, index: u32, victim: usize);
    /// The hash of the point's key.
    fn hash(point: &Point<W>, seed: &[u64; 4]) -> u64;
}

/// Verdicts by key, for one worker and one family of addresses.
pub struct Cache<S> {
    sets: Box<[S]>,
    seed: [u64; 4],
    /// Counts up with every change of rules; 0 is never current.
    generation: u32,
    victim: usize,
}

impl<S> Cache<S> {
    /// An empty table; `seed` should be secret.
    pub fn new<const W: usize>(seed: u64) -> Self
    where
        S: Set<W>,
    {
        let mut state = seed;
        let mut word = || {
            // SplitMix64: four words that do not repeat each other.
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ z >> 31
        };
        let seed = [word(), word(), word(), word()];
        Self { sets: vec![S::VACANT; SETS].into_boxed_slice(), seed, generation: 1, victim: 0 }
    }

    /// Forgets everything.
    pub fn forget<const W: usize>(&mut self)
    where
        S: Set<W>,
    {
        self.generation = self.generation.wrapping_add(1);
        if self.generation == 0 {
            // After four thousand million changes numbers repeat: once, clear by hand.
            self.sets.fill(S::VACANT);
            self.generation = 1;
        }
    }

    /// The set that a point belongs to.
    #[inline(always)]
    pub fn place<const W: usize>(&self, point: &Point<W>) -> usize
    where
        S: Set<W>,
    {
        S::hash(point, &self.seed) as usize % SETS
    }

    /// Where the set lies, to be fetched ahead.
    #[inline(always)]
    pub fn address(&self, place: usize) -> *const S {
        &raw const self.sets[place % SETS]
    }

    /// The index remembered for a point that belongs to `place`, or [`MISS`].
    #[inline(always)]
    pub fn find<const W: usize>(&self, place: usize, point: &Point<W>) -> u32
    where
        S: Set<W>,
    {
        self.sets[place % SETS].find(point, self.generation)
    }

    /// Remembers an index for a point that belongs to `place`.
    #[inline(always)]
    pub fn insert<const W: usize>(&mut self, place: usize, point: &Point<W>, index: u32)
    where
        S: Set<W>,
    {
        self.victim = self.victim.wrapping_add(1);
        self.sets[place % SETS].insert(point, self.generation, index, self.victim);
    }

    /// Entries the table can hold.
    pub const fn entries(ways: usize) -> usize {
        SETS * ways
    }
}

/// Folds a product of 128 bits into 64.
#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// Two words of a point as one.
#[inline(always)]
fn pair<const W: usize>(point: &Point<W>, first: usize) -> u64 {
    u64::from(point.0[first]) | u64::from(point.0[first + 1]) << 32
}

/// Three IPv4 entries in a cache line.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub struct SetV4 {
    addresses: [u64; 3],
    /// Ports, protocol, flag; never 0 in a point, so that a vacant entry matches none.
    upper: [u64; 3],
    index: [u32; 3],
    generation: u32,
}

impl SetV4 {
    /// Entries of a set.
    pub const WAYS: usize = 3;
}

impl Set<V4> for SetV4 {
    const VACANT: Self = Self { addresses: [0; 3], upper: [0; 3], index: [0; 3], generation: 0 };

    #[inline(always)]
    fn find(&self, point: &Point<V4>, generation: u32) -> u32 {
        let (addresses, upper) = (pair(point, 0), pair(point, V4 - 2));
        let stale = u64::from(self.generation ^ generation);
        let mut found = MISS;
        for way in 0..Self::WAYS {
            let differs = (self.addresses[way] ^ addresses) | (self.upper[way] ^ upper) | stale;
            found = if differs == 0 { self.index[way] } else { found };
        }
        found
    }

    #[inline(always)]
    fn insert(&mut self, point: &Point<V4>, generation: u32, index: u32, victim: usize) {
        if self.generation != generation {
            *self = Self { generation, ..Self::VACANT };
        }
        let way = self.upper.iter().position(|&u| u == 0).unwrap_or(victim % Self::WAYS);
        self.addresses[way] = pair(point, 0);
        self.upper[way] = pair(point, V4 - 2);
        self.index[way] = index;
    }

    #[inline(always)]
    fn hash(point: &Point<V4>, seed: &[u64; 4]) -> u64 {
        fold(fold(pair(point, 0) ^ seed[0], pair(point, V4 - 2) ^ seed[1]) ^ seed[2], seed[3] | 1)
    }
}

/// Two IPv6 entries in two neighbouring cache lines.
#[derive(Clone, Copy)]
#[repr(C, align(128))]
pub struct SetV6([EntryV6; 2]);

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct EntryV6 {
    addresses: [u64; 4],
    upper: u64,
    index: u32,
    generation: u32,
}

impl SetV6 {
    /// Entries of a set.
    pub const WAYS: usize = 2;
}

impl Set<V6> for SetV6 {
    const VACANT: Self = Self([EntryV6 { addresses: [0; 4], upper: 0, index: 0, generation: 0 }; 2]);

    #[inline(always)]
    fn find(&self, point: &Point<V6>, generation: u32) -> u32 {
        let mut found = MISS;
        for entry in &self.0 {
            let mut differs = (entry.upper ^ pair(point, V6 - 2)) | u64::from(entry.generation ^ generation);
            for (w, address) in entry.addresses.iter().enumerate() {
                differs |= address ^ pair(point, 2 * w);
            }
            found = if differs == 0 { entry.index } else { found };
        }
        found
    }

    #[inline(always)]
    fn insert(&mut self, point: &Point<V6>, generation: u32, index: u32, victim: usize) {
        let stale = self.0.iter().position(|entry| entry.generation != generation);
        let way = stale.unwrap_or(victim % Self::WAYS);
        let addresses = std::array::from_fn(|w| pair(point, 2 * w));
        self.0[way] = EntryV6 { addresses, upper: pair(point, V6 - 2), index, generation };
    }

    #[inline(always)]
    fn hash(point: &Point<V6>, seed: &[u64; 4]) -> u64 {
        let src = fold(pair(point, 0) ^ seed[0], pair(point, 2) ^ seed[1]);
        let dst = fold(pair(point, 4) ^ seed[2], pair(point, 6) ^ seed[3]);
        fold(src ^ seed[3], dst.rotate_left(32) ^ pair(point, V6 - 2) ^ seed[0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acl::key::{KeyV4, KeyV6};

    fn v4(n: u32) -> Point<V4> {
        Point::from(&KeyV4 { src: n, dst: n.rotate_left(9), sport: n as u16, ..KeyV4::default() })
    }

    fn v6(n: u32) -> Point<V6> {
        let n = u128::from(n);
        Point::from(&KeyV6 { src: n << 77 | 1, dst: n, dport: n as u16, ..KeyV6::default() })
    }

    fn remembers<S: Set<W>, const W: usize>(point: fn(u32) -> Point<W>, ways: usize) {
        let mut cache = Cache::<S>::new(3);
        let flows = (Cache::<S>::entries(ways) / 8) as u32;
        let zero = Point::ORIGIN;
        assert_eq!(cache.find(cache.place(&zero), &zero), MISS);
        for n in 0..flows {
            let p = point(n);
            assert_eq!(cache.find(cache.place(&p), &p), MISS);
            cache.insert(cache.place(&p), &p, n);
            assert_eq!(cache.find(cache.place(&p), &p), n);
        }
        let kept = (0..flows).filter(|&n| {
            let p = point(n);
            let found = cache.find(cache.place(&p), &p);
            assert!(found == n || found == MISS);
            found == n
        });
        // An eighth of the room is in use: few can have met in one set.
        assert!(kept.count() as f64 > 0.97 * f64::from(flows));
        cache.forget();
        assert!((0..flows).all(|n| cache.find(cache.place(&point(n)), &point(n)) == MISS));
    }

    #[test]
    fn what_was_put_in_comes_out_until_forgotten() {
        remembers::<SetV4, V4>(v4, SetV4::WAYS);
        remembers::<SetV6, V6>(v6, SetV6::WAYS);
    }

    #[test]
    fn generations_that_wrap_around_do_not_revive_entries() {
        let mut cache = Cache::<SetV4>::new(1);
        let p = v4(5);
        cache.insert(cache.place(&p), &p, 7);
        cache.generation = u32::MAX;
        cache.forget();
        assert_eq!(cache.generation, 1);
        assert_eq!(cache.find(cache.place(&p), &p), MISS);
    }

    #[test]
    fn ports_that_are_absent_are_not_ports_zero() {
        let mut cache = Cache::<SetV4>::new(1);
        let without = KeyV4 { protocol: 17, ..KeyV4::default() };
        let with = Point::from(&KeyV4 { has_ports: true, ..without });
        let without = Point::from(&without);
        cache.insert(cache.place(&without), &without, 1);
        assert_eq!(cache.find(cache.place(&without), &with), MISS);
    }
}

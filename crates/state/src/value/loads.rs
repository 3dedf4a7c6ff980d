//! Loads, of which the least is wanted.

use super::counts::{Add, Get, LeastAndAdd};
use crate::plain::Plain;
use crate::shared::{Look, Op};
use crate::stored::Stored;

/// Things with a load each, the leaves of a tree in which above two stands the lesser one: a load that changes changes the numbers
/// above it, one a level.
///
/// Not groups that are compared at once: a vector is read from memory, and a number that was written a moment ago would have to get
/// there first, behind all that was written before it to lines that are far.
#[derive(Debug)]
pub struct Loads {
    count: usize,
    /// Above number `i` stands number `i / 2`; the leaves are the last `count`, and nothing stands at 0.
    ranks: Vec<Rank>,
}

/// A thing's index, above it its load, above that whether it is down: the lesser one is wanted. One number, as that is
/// compared fastest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank(u64);

impl Rank {
    const DOWN: u64 = 1 << 63;
    /// So many things there may be.
    const MOST: u64 = 1 << 20;
    /// The load in the middle of those that there may be, 4 * 10^12: others' news may come before what they are about, so one
    /// is less than nothing for a while.
    const ZERO: u64 = 1 << 42;

    fn new(thing: usize) -> Rank {
        Rank(Self::ZERO * Self::MOST + thing as u64)
    }

    fn thing(self) -> usize {
        (self.0 % Self::MOST) as usize
    }

    fn is_up(self) -> bool {
        self.0 < Self::DOWN
    }

    fn load(self) -> i64 {
        ((self.0 & !Self::DOWN) / Self::MOST) as i64 - Self::ZERO as i64
    }

    fn add(self, n: i64) -> Rank {
        Rank(self.0.wrapping_add_signed(n.wrapping_mul(Self::MOST as i64)))
    }
}

impl Loads {
    /// Make `count` things, a million at most, all with load 0 and up.
    pub fn new(count: usize) -> Self {
        Loads::of((0..count.min(Rank::MOST as usize)).map(Rank::new).collect())
    }

    /// Make those of these ranks, at most [`Rank::MOST`].
    fn of(leaves: Vec<Rank>) -> Self {
        let count = leaves.len();
        let mut ranks = [vec![Rank(0); count], leaves].concat();
        for at in (1..count).rev() {
            ranks[at] = ranks[2 * at].min(ranks[2 * at + 1]);
        }
        Loads { count, ranks }
    }

    /// Return how many things there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Give a thing another rank.
    #[inline]
    fn set(&mut self, thing: usize, rank: Rank) {
        let (mut at, mut least) = (self.count + thing, rank);
        self.ranks[at] = rank;
        while at > 1 {
            least = least.min(self.ranks[at ^ 1]);
            at /= 2;
            self.ranks[at] = least;
        }
    }

    /// Return a thing's rank; `None` beyond the last: an operation may come from one who knows of more.
    fn rank(&self, thing: usize) -> Option<Rank> {
        self.ranks.get(self.count + thing).copied()
    }

    /// Return the least loaded thing that is up, the first of several; `None` when none is up.
    pub fn least(&self) -> Option<usize> {
        self.ranks.get(1).filter(|rank| rank.is_up()).map(|rank| rank.thing())
    }

    /// Add to a thing's load. Nothing happens beyond the last.
    #[inline]
    pub fn add(&mut self, index: usize, n: i64) {
        if let Some(rank) = self.rank(index) {
            self.set(index, rank.add(n));
        }
    }

    /// Say whether a thing is up. Nothing happens beyond the last.
    pub fn set_up(&mut self, index: usize, up: bool) {
        if let Some(Rank(rank)) = self.rank(index) {
            self.set(index, Rank(if up { rank & !Rank::DOWN } else { rank | Rank::DOWN }));
        }
    }

    /// Return whether a thing is there and up.
    pub fn is_up(&self, index: usize) -> bool {
        self.rank(index).is_some_and(Rank::is_up)
    }

    /// Return a thing's load; 0 beyond the last.
    pub fn load(&self, index: usize) -> i64 {
        self.rank(index).map_or(0, Rank::load)
    }
}

/// As the ranks: a load each, and whether it is up.
impl Stored for Loads {
    fn store(&self, to: &mut Vec<u8>) {
        let ranks: Vec<u64> = self.ranks[self.count..].iter().map(|rank| rank.0).collect();
        ranks.store(to);
    }

    fn restore(from: &mut &[u8]) -> Option<Loads> {
        let ranks: Vec<u64> = Stored::restore(from)?;
        let is_its_own = ranks.iter().enumerate().all(|(thing, rank)| Rank(*rank).thing() == thing);
        is_its_own.then(|| Loads::of(ranks.into_iter().map(Rank).collect()))
    }
}

crate::operations!("loads": Loads { 0 => Add, 2 => LeastAndAdd, 3 => SetUp } looks { 1 => Get });

impl Op<Loads> for Add {
    type Reply = ();

    fn apply(self, loads: &mut Loads) {
        loads.add(self.index as usize, self.n);
    }
}

impl Op<Loads> for LeastAndAdd {
    type Reply = Option<u32>;

    fn apply(self, loads: &mut Loads) -> Option<u32> {
        let thing = loads.least()?;
        loads.add(thing, self.n);
        Some(thing as u32)
    }
}

impl Look<Loads> for Get {
    type Reply = i64;

    fn look(self, loads: &Loads) -> i64 {
        loads.load(self.index())
    }
}

/// Say whether a thing is up: one that is down is not the least, whatever its load. Nothing happens beyond the last.
#[derive(Clone, Copy, Debug, Plain)]
pub struct SetUp {
    /// Which one.
    pub index: u32,
    /// Whether it is up.
    pub up: bool,
}

impl Op<Loads> for SetUp {
    type Reply = ();

    fn apply(self, loads: &mut Loads) {
        loads.set_up(self.index as usize, self.up);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_least_loaded_that_is_up_is_taken(
            count in prop::sample::select(vec![1usize, 2, 3, 7, 16, 17, 300, 5000]),
            steps in prop::collection::vec((any::<prop::sample::Index>(), -3i64..4, any::<bool>()), 1..300),
        ) {
            let mut tested = Loads::new(count);
            prop_assert_eq!(tested.count(), count);
            Add::to(count, 5).apply(&mut tested);
            SetUp { index: count as u32, up: false }.apply(&mut tested);
            prop_assert_eq!((Get::at(count).look(&tested), tested.is_up(count)), (0, false));
            let (mut loads, mut ups) = (vec![0i64; count], vec![true; count]);
            for (thing, n, up) in steps {
                let thing = thing.index(count);
                Add::to(thing, n).apply(&mut tested);
                loads[thing] += n;
                SetUp { index: thing as u32, up }.apply(&mut tested);
                ups[thing] = up;
                prop_assert!((0..count).all(|i| tested.is_up(i) == ups[i]));
                let expected = (0..count).filter(|&i| ups[i]).min_by_key(|&i| (loads[i], i));
                let taken = LeastAndAdd { n: 1 }.apply(&mut tested);
                prop_assert_eq!(taken.map(|thing| thing as usize), expected);
                if let Some(i) = expected {
                    loads[i] += 1;
                    prop_assert_eq!(Get::at(i).look(&tested), loads[i]);
                }
            }
        }
    }
}

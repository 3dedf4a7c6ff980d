//! Loads, of which the least is wanted.

/// Things with a load each: a binary heap that knows where everything stands in it.
#[derive(Debug)]
pub struct Loads {
    /// The ranks of all things, heap-ordered: those that are up before those that are not, then by load, then by index.
    heap: Vec<Rank>,
    /// Where each thing stands in `heap`.
    place: Vec<u32>,
}

/// A thing's index, above it its load, above that whether it is down: the lesser one is wanted. One number, as that is
/// compared fastest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank(i128);

impl Rank {
    const DOWN: i128 = 1 << 100;
    const ONE: i128 = 1 << 32;

    fn thing(self) -> usize {
        self.0 as u32 as usize
    }

    fn is_up(self) -> bool {
        self.0 < Self::DOWN / 2
    }

    fn load(self) -> i64 {
        (self.0 >> 32) as i64
    }
}

impl Loads {
    /// Make `count` things, all with load 0 and up.
    pub fn new(count: usize) -> Self {
        Loads { heap: (0..count as i128).map(Rank).collect(), place: (0..count as u32).collect() }
    }

    /// Return how many things there are.
    pub fn count(&self) -> usize {
        self.heap.len()
    }

    /// Give the thing at a place in the heap another rank, and put it where that belongs.
    fn settle(&mut self, mut at: usize, rank: Rank) {
        let Loads { heap, place } = self;
        while at > 0 && rank < heap[(at - 1) / 2] {
            heap[at] = heap[(at - 1) / 2];
            place[heap[at].thing()] = at as u32;
            at = (at - 1) / 2;
        }
        while let Some(mut least) = heap.get(2 * at + 1).copied() {
            let mut child = 2 * at + 1;
            if let Some(other) = heap.get(child + 1).filter(|other| **other < least) {
                (least, child) = (*other, child + 1);
            }
            if rank <= least {
                break;
            }
            heap[at] = least;
            place[least.thing()] = at as u32;
            at = child;
        }
        heap[at] = rank;
        place[rank.thing()] = at as u32;
    }

    /// Return the least loaded thing that is up, the first of several; `None` when none is up.
    pub fn least(&self) -> Option<usize> {
        self.heap.first().filter(|rank| rank.is_up()).map(|rank| rank.thing())
    }

    /// Return the least loaded thing that is up, the first of several, with one more added to its load; `None` when none is
    /// up.
    pub fn take_least(&mut self) -> Option<usize> {
        let thing = self.least()?;
        self.add(thing, 1);
        Some(thing)
    }

    /// Add to a thing's load.
    pub fn add(&mut self, index: usize, n: i64) {
        let at = self.place[index] as usize;
        self.settle(at, Rank(self.heap[at].0 + i128::from(n) * Rank::ONE));
    }

    /// Say whether a thing is up.
    pub fn set_up(&mut self, index: usize, up: bool) {
        let at = self.place[index] as usize;
        let rank = self.heap[at];
        if rank.is_up() != up {
            self.settle(at, Rank(if up { rank.0 - Rank::DOWN } else { rank.0 + Rank::DOWN }));
        }
    }

    /// Return whether a thing is up.
    pub fn is_up(&self, index: usize) -> bool {
        self.heap[self.place[index] as usize].is_up()
    }

    /// Return a thing's load.
    pub fn load(&self, index: usize) -> i64 {
        self.heap[self.place[index] as usize].load()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_least_loaded_that_is_up_is_taken(steps in prop::collection::vec((0usize..7, -3i64..4, any::<bool>()), 1..300)) {
            let mut tested = Loads::new(7);
            let (mut loads, mut ups) = ([0i64; 7], [true; 7]);
            for (thing, n, up) in steps {
                tested.add(thing, n);
                loads[thing] += n;
                tested.set_up(thing, up);
                ups[thing] = up;
                prop_assert_eq!(std::array::from_fn(|i| tested.is_up(i)), ups);
                let expected = (0..7).filter(|&i| ups[i]).min_by_key(|&i| (loads[i], i));
                prop_assert_eq!(tested.take_least(), expected);
                if let Some(i) = expected {
                    loads[i] += 1;
                    prop_assert_eq!(tested.load(i), loads[i]);
                }
            }
        }
    }
}

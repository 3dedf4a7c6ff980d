//! Counters, pools and rankings in the worker's own memory.

use std::collections::VecDeque;

use crate::engine::{Counters, Pool, Ranking};

/// Counters.
#[derive(Debug)]
pub struct LocalCounters(Box<[i64]>);

impl LocalCounters {
    pub(super) fn new(count: usize) -> Self {
        LocalCounters(vec![0; count].into())
    }
}

impl Counters for LocalCounters {
    type Tx = ();

    #[inline(always)]
    fn add(&mut self, _tx: (), index: usize, n: i64) {
        self.0[index] = self.0[index].wrapping_add(n);
    }

    fn read(&self, index: usize) -> i64 {
        self.0[index]
    }
}

/// A pool; what was given back first goes out first, so that a port rests as long as it can before it is
/// used again.
#[derive(Debug)]
pub struct LocalPool(VecDeque<u64>);

impl LocalPool {
    pub(super) fn new(things: Vec<u64>) -> Self {
        LocalPool(things.into())
    }
}

impl Pool for LocalPool {
    type Tx = ();
    type Ticket = ();

    #[inline(always)]
    fn want_take(&mut self, _tx: ()) {}

    #[inline]
    fn taken(&mut self, _tx: (), _ticket: ()) -> Option<u64> {
        self.0.pop_front()
    }

    #[inline]
    fn give(&mut self, _tx: (), thing: u64) {
        self.0.push_back(thing);
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}

/// A ranking: a binary heap of loads that knows where everything stands in it.
#[derive(Debug)]
pub struct LocalRanking {
    loads: Vec<i64>,
    up: Vec<bool>,
    /// Things, heap-ordered: those that are up before those that are not, then by load, then by index.
    heap: Vec<u32>,
    /// Where each thing stands in `heap`.
    place: Vec<u32>,
}

impl LocalRanking {
    pub(super) fn new(count: usize) -> Self {
        let all: Vec<u32> = (0..count as u32).collect();
        LocalRanking { loads: vec![0; count], up: vec![true; count], heap: all.clone(), place: all }
    }

    fn rank(&self, place: usize) -> (bool, i64, u32) {
        let thing = self.heap[place];
        (!self.up[thing as usize], self.loads[thing as usize], thing)
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        self.place[self.heap[a] as usize] = a as u32;
        self.place[self.heap[b] as usize] = b as u32;
    }

    fn settle(&mut self, thing: usize) {
        let mut at = self.place[thing] as usize;
        while at > 0 && self.rank(at) < self.rank((at - 1) / 2) {
            self.swap(at, (at - 1) / 2);
            at = (at - 1) / 2;
        }
        loop {
            let children = 2 * at + 1..(2 * at + 3).min(self.heap.len());
            let Some(least) = children.min_by_key(|&child| self.rank(child)) else { return };
            if self.rank(least) >= self.rank(at) {
                return;
            }
            self.swap(at, least);
            at = least;
        }
    }
}

impl Ranking for LocalRanking {
    type Tx = ();
    type Ticket = ();

    fn want_least(&mut self, _tx: ()) {}

    fn least(&mut self, _tx: (), _ticket: ()) -> Option<usize> {
        let thing = *self.heap.first()? as usize;
        if !self.up[thing] {
            return None;
        }
        self.loads[thing] += 1;
        self.settle(thing);
        Some(thing)
    }

    fn add(&mut self, _tx: (), index: usize, n: i64) {
        self.loads[index] += n;
        self.settle(index);
    }

    fn set_up(&mut self, index: usize, up: bool) {
        self.up[index] = up;
        self.settle(index);
    }

    fn load(&self, index: usize) -> i64 {
        self.loads[index]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_pool_gives_the_longest_rested() {
        let mut pool = LocalPool::new(vec![1, 2]);
        assert_eq!(pool.taken((), ()), Some(1));
        pool.give((), 1);
        assert_eq!((pool.taken((), ()), pool.taken((), ()), pool.taken((), ())), (Some(2), Some(1), None));
        assert!(pool.is_empty());
    }

    proptest! {
        #[test]
        fn the_least_loaded_that_is_up_is_taken(steps in prop::collection::vec((0usize..7, -3i64..4, any::<bool>()), 1..300)) {
            let mut ranking = LocalRanking::new(7);
            let (mut loads, mut ups) = ([0i64; 7], [true; 7]);
            for (thing, n, up) in steps {
                ranking.add((), thing, n);
                loads[thing] += n;
                ranking.set_up(thing, up);
                ups[thing] = up;
                let expected = (0..7).filter(|&i| ups[i]).min_by_key(|&i| (loads[i], i));
                prop_assert_eq!(ranking.least((), ()), expected);
                if let Some(i) = expected {
                    loads[i] += 1;
                    prop_assert_eq!(ranking.load(i), loads[i]);
                }
            }
        }
    }
}

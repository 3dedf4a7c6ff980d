//! Counters, pools and rankings in the worker's own memory.

use std::collections::VecDeque;

use crate::engine::{Counters, Pool, Ranking};
use crate::value::Loads;

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

/// A ranking.
#[derive(Debug)]
pub struct LocalRanking(Loads);

impl LocalRanking {
    pub(super) fn new(count: usize) -> Self {
        LocalRanking(Loads::new(count))
    }
}

impl Ranking for LocalRanking {
    type Tx = ();
    type Ticket = ();

    fn want_least(&mut self, _tx: ()) {}

    fn least(&mut self, _tx: (), _ticket: ()) -> Option<usize> {
        self.0.take_least()
    }

    fn add(&mut self, _tx: (), index: usize, n: i64) {
        self.0.add(index, n);
    }

    fn set_up(&mut self, index: usize, up: bool) {
        self.0.set_up(index, up);
    }

    fn load(&self, index: usize) -> i64 {
        self.0.load(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_gives_the_longest_rested() {
        let mut pool = LocalPool::new(vec![1, 2]);
        assert_eq!(pool.taken((), ()), Some(1));
        pool.give((), 1);
        assert_eq!((pool.taken((), ()), pool.taken((), ()), pool.taken((), ())), (Some(2), Some(1), None));
        assert!(pool.is_empty());
    }
}

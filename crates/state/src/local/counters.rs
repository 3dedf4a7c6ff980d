//! Counters in the worker's own memory.

use crate::engine::Counters;

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

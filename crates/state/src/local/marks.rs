//! A set of numbers below a bound, in which the next one after any other is found in constant time: bits, and above
//! each 64 of them a bit that says whether one is set, and so on, up to one word.

use super::memory::{Reserved, Zeroed};

// SAFETY: zero is a number.
unsafe impl Zeroed for u64 {}

const BITS: usize = u64::BITS as usize;
/// Enough levels for all numbers of 36 bits.
const LEVELS: usize = 6;

/// The set.
pub(super) struct Marks {
    /// All levels, the lowest first; nothing is touched before something is set.
    words: Reserved<u64>,
    /// Where each level begins, and how many levels there are.
    starts: [usize; LEVELS],
    levels: usize,
    len: usize,
}

impl Marks {
    /// Make an empty set for numbers below `bound`.
    ///
    /// # Panics
    /// When the system has not the address space.
    pub(super) fn new(bound: usize) -> Self {
        let (mut starts, mut levels, mut total, mut count) = ([0; LEVELS], 0, 0, bound.max(1));
        while levels < LEVELS {
            count = count.div_ceil(BITS);
            starts[levels] = total;
            (levels, total) = (levels + 1, total + count);
            if count == 1 {
                break;
            }
        }
        assert_eq!(count, 1, "a table has less than 2^36 entries");
        let words = Reserved::new(total).expect("the system has the address space for a bit per entry");
        Marks { words, starts, levels, len: 0 }
    }

    /// Return how many numbers are in the set.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn set(&mut self, number: usize) {
        if self.words[number / BITS] & 1 << (number % BITS) != 0 {
            return;
        }
        self.len += 1;
        let mut at = number;
        for start in &self.starts[..self.levels] {
            self.words[start + at / BITS] |= 1 << (at % BITS);
            at /= BITS;
        }
    }

    pub(super) fn clear(&mut self, number: usize) {
        if self.len == 0 || self.words[number / BITS] & 1 << (number % BITS) == 0 {
            return;
        }
        self.len -= 1;
        let mut at = number;
        for start in &self.starts[..self.levels] {
            let word = &mut self.words[start + at / BITS];
            *word &= !(1 << (at % BITS));
            if *word != 0 {
                return;
            }
            at /= BITS;
        }
    }

    /// Return the first number of the set after `number`, or the first of all where none is after it.
    pub(super) fn after(&self, number: usize) -> Option<usize> {
        if self.len == 0 {
            return None;
        }
        self.at_least(number + 1).or_else(|| self.at_least(0))
    }

    fn at_least(&self, number: usize) -> Option<usize> {
        let mut at = number;
        for level in 0..self.levels {
            let end = self.starts.get(level + 1).filter(|_| level + 1 < self.levels).copied();
            let index = self.starts[level] + at / BITS;
            if index >= end.unwrap_or(self.words.len()) {
                return None;
            }
            let rest = self.words[index] & u64::MAX << (at % BITS);
            if rest != 0 {
                return Some(self.down(level, at / BITS * BITS + rest.trailing_zeros() as usize));
            }
            at = at / BITS + 1;
        }
        None
    }

    /// Return the lowest number below a bit of a level.
    fn down(&self, level: usize, bit: usize) -> usize {
        self.starts[..level]
            .iter()
            .rev()
            .fold(bit, |bit, start| bit * BITS + self.words[start + bit].trailing_zeros() as usize)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_an_ordered_set(
            bound in prop::sample::select(vec![1usize, 63, 64, 65, 4096, 4097, 300_000]),
            steps in prop::collection::vec((0u8..4, any::<u32>()), 1..200),
        ) {
            let mut marks = Marks::new(bound);
            let mut model = BTreeSet::new();
            for (action, number) in steps {
                let number = number as usize % bound;
                match action {
                    0 | 1 => {
                        marks.set(number);
                        model.insert(number);
                    }
                    2 => {
                        marks.clear(number);
                        model.remove(&number);
                    }
                    _ => if let Some(next) = marks.after(number) {
                        marks.clear(next);
                        prop_assert!(model.contains(&next));
                        prop_assert_eq!(Some(&next), model.range(number + 1..).next().or(model.first()));
                        model.remove(&next);
                    }
                }
                prop_assert_eq!(marks.len(), model.len());
                prop_assert_eq!(marks.after(number), model.range(number + 1..).next().or(model.first()).copied());
            }
        }
    }
}

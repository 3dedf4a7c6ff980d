//! Numbers that many add to.

use crate::plain::Plain;
use crate::shared::{Look, Op};

/// Numbers, all 0 at first.
#[derive(Debug)]
pub struct Counts(Box<[i64]>);

impl Counts {
    /// Make so many.
    pub fn new(count: usize) -> Self {
        Counts(vec![0; count].into())
    }

    /// Add what others count, which are 0 then.
    fn absorb(&mut self, other: &mut Counts) {
        for (count, more) in self.0.iter_mut().zip(&mut other.0) {
            *count = count.wrapping_add(std::mem::take(more));
        }
    }
}

crate::operations!(Counts { 0 => Add } looks { 1 => Get } absorbs Counts::absorb);

/// Add to one of them (*increment/decrement a value*: Khalid's dissertation, Table 3.6). Nothing happens beyond the last.
#[derive(Clone, Copy, Debug, Plain)]
pub struct Add {
    /// Which one.
    pub index: u32,
    /// How much.
    pub n: i64,
}

impl Add {
    /// Add `n` to the count with this index.
    #[inline(always)]
    pub fn to(index: usize, n: i64) -> Add {
        Add { index: index as u32, n }
    }
}

impl Op<Counts> for Add {
    type Reply = ();

    #[inline(always)]
    fn apply(self, counts: &mut Counts) {
        if let Some(count) = counts.0.get_mut(self.index as usize) {
            *count = count.wrapping_add(self.n);
        }
    }
}

/// What is the count with this index? 0 beyond the last.
#[derive(Clone, Copy, Debug, Plain)]
pub struct Get(u32);

impl Get {
    /// Ask for the count with this index.
    pub fn at(index: usize) -> Get {
        Get(index as u32)
    }
}

impl Look<Counts> for Get {
    type Reply = i64;

    fn look(self, counts: &Counts) -> i64 {
        counts.0.get(self.0 as usize).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_is_counted() {
        let mut counts = Counts::new(2);
        [Add::to(0, 3), Add::to(1, -1), Add::to(0, 4), Add::to(2, 9)]
            .into_iter()
            .for_each(|add| add.apply(&mut counts));
        assert_eq!([0, 1, 2].map(|index| Get::at(index).look(&counts)), [7, -1, 0]);
    }
}

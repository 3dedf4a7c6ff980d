//! Numbers, and the operations on them that functions need most (Khalid's dissertation, Table 3.6, and *admit*, which such tables
//! leave out: who asks whether there is room, and takes it later, finds that others have taken it).
//!
//! [`Add`] answers nothing, so nobody waits for it. All others answer, those that change something with what was there before: none of
//! them is for a count that is written mostly, of which every worker may have a part.

use crate::plain::Plain;
use crate::shared::{Look, Op};
use crate::stored::Stored;

/// Numbers, all 0 at first.
#[derive(Debug, Stored)]
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

crate::operations!("counts": Counts {
    0 => Add,
    2 => Set,
    3 => Take,
    4 => Replace,
    5 => Admit,
    6 => LeastAndAdd,
} looks { 1 => Get } absorbs Counts::absorb);

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

    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

impl Look<Counts> for Get {
    type Reply = i64;

    fn look(self, counts: &Counts) -> i64 {
        counts.0.get(self.index()).copied().unwrap_or(0)
    }
}

/// Give one of them another value; answers what it was. Nothing happens beyond the last, which is 0.
#[derive(Clone, Copy, Debug, Plain)]
pub struct Set {
    /// Which one.
    pub index: u32,
    /// Its new value.
    pub n: i64,
}

impl Op<Counts> for Set {
    type Reply = i64;

    fn apply(self, counts: &mut Counts) -> i64 {
        counts.0.get_mut(self.index as usize).map_or(0, |count| std::mem::replace(count, self.n))
    }
}

/// Take all there is of one of them, which is 0 then; answers how much that was.
#[derive(Clone, Copy, Debug, Plain)]
pub struct Take {
    /// Which one.
    pub index: u32,
}

impl Op<Counts> for Take {
    type Reply = i64;

    fn apply(self, counts: &mut Counts) -> i64 {
        Set { index: self.index, n: 0 }.apply(counts)
    }
}

/// Give one of them another value if it has an expected one (*compare and update*: Khalid's dissertation, Table 3.6); answers what it
/// was, so it has the new value if that is what was expected. Nothing happens beyond the last, which is 0.
#[derive(Clone, Copy, Debug, Plain)]
pub struct Replace {
    /// Which one.
    pub index: u32,
    /// What it is expected to be.
    pub old: i64,
    /// Its new value.
    pub new: i64,
}

impl Op<Counts> for Replace {
    type Reply = i64;

    fn apply(self, counts: &mut Counts) -> i64 {
        let Some(count) = counts.0.get_mut(self.index as usize) else { return 0 };
        std::mem::replace(count, if *count == self.old { self.new } else { *count })
    }
}

/// Is there room, and if so, take it: add to one of them, unless that makes it more than the most. Answers whether it was added. There is
/// no room beyond the last. Who leaves [adds](Add) less than nothing.
#[derive(Clone, Copy, Debug, Plain)]
pub struct Admit {
    /// Which one.
    pub index: u32,
    /// How much.
    pub n: i64,
    /// What it may be at most.
    pub most: i64,
}

impl Op<Counts> for Admit {
    type Reply = bool;

    fn apply(self, counts: &mut Counts) -> bool {
        let Some(count) = counts.0.get_mut(self.index as usize) else { return false };
        match count.checked_add(self.n).filter(|sum| *sum <= self.most) {
            Some(sum) => *count = sum,
            None => return false,
        }
        true
    }
}

/// Add to the least of them, the first of several; answers which one it is, `None` where there are none. Looks at all of them: where they
/// are many, [`Loads`](super::Loads) knows the least at once.
#[derive(Clone, Copy, Debug, Plain)]
pub struct LeastAndAdd {
    /// How much.
    pub n: i64,
}

impl Op<Counts> for LeastAndAdd {
    type Reply = Option<u32>;

    fn apply(self, counts: &mut Counts) -> Option<u32> {
        let (index, least) = (0u32..).zip(&mut counts.0).min_by_key(|(_, count)| **count)?;
        *least = least.wrapping_add(self.n);
        Some(index)
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

    #[test]
    fn operations_do_what_they_say() {
        let mut counts = Counts::new(2);
        assert_eq!((Set { index: 1, n: 9 }.apply(&mut counts), Set { index: 2, n: 9 }.apply(&mut counts)), (0, 0));
        assert_eq!((Replace { index: 1, old: 8, new: 1 }.apply(&mut counts), Get::at(1).apply(&mut counts)), (9, 9));
        assert_eq!((Replace { index: 1, old: 9, new: 4 }.apply(&mut counts), Get::at(1).apply(&mut counts)), (9, 4));
        let admit = |counts: &mut Counts, n, index| Admit { index, n, most: 5 }.apply(counts);
        assert!(!admit(&mut counts, 2, 1) && admit(&mut counts, 1, 1) && !admit(&mut counts, 1, 1));
        assert!(!admit(&mut counts, 0, 2) && !admit(&mut counts, i64::MAX, 1));
        assert_eq!([1, 9, 3].map(|n| LeastAndAdd { n }.apply(&mut counts)), [Some(0), Some(0), Some(1)]);
        assert_eq!([0, 1].map(|index| Take { index }.apply(&mut counts)), [10, 8]);
        assert_eq!([0, 1].map(|index| Take { index }.apply(&mut counts)), [0, 0]);
        assert_eq!(LeastAndAdd { n: 1 }.apply(&mut Counts::new(0)), None);
    }
}

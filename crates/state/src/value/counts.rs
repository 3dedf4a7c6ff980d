//! Numbers that many add to.

use crate::shared::Op;

/// Numbers, all 0 at first.
#[derive(Debug)]
pub struct Counts(Box<[i64]>);

impl Counts {
    /// Make so many.
    pub fn new(count: usize) -> Self {
        Counts(vec![0; count].into())
    }

    /// Return one of them; 0 beyond the last.
    pub fn get(&self, index: usize) -> i64 {
        self.0.get(index).copied().unwrap_or(0)
    }
}

/// Add to one of them (*increment/decrement a value*: Khalid's dissertation, Table 3.6). Nothing happens beyond the last.
#[derive(Clone, Copy, Debug)]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_is_counted() {
        let mut counts = Counts::new(2);
        [Add::to(0, 3), Add::to(1, -1), Add::to(0, 4), Add::to(2, 9)]
            .into_iter()
            .for_each(|add| add.apply(&mut counts));
        assert_eq!([0, 1, 2].map(|index| counts.get(index)), [7, -1, 0]);
    }
}

//! A line of numbers below a bound: they stand in the order in which they came, and any of them may leave at any time.

use std::io;

use crate::memory::{Reserved, Zeroed};

/// Who stands before and after, plus one; 0 for nobody.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Link {
    before: u32,
    after: u32,
}

// SAFETY: zero is a link to nobody.
unsafe impl Zeroed for Link {}

/// The line.
pub(super) struct Line {
    /// By number; nothing is touched before something stands in the line.
    links: Reserved<Link>,
    /// Who stands first and last, plus one.
    first: u32,
    last: u32,
    len: usize,
}

impl Line {
    /// Make an empty line for numbers below `bound`, which is less than 2^32.
    ///
    /// # Errors
    /// The system's, when it has not the address space.
    pub(super) fn new(bound: usize) -> io::Result<Self> {
        Ok(Line { links: Reserved::new(bound)?, first: 0, last: 0, len: 0 })
    }

    /// Return how many numbers stand in the line.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Return the number that has stood there longest.
    pub(super) fn first(&self) -> Option<u32> {
        self.first.checked_sub(1)
    }

    /// Return the number that stands behind one that stands there.
    pub(super) fn after(&self, number: u32) -> Option<u32> {
        self.links[number as usize].after.checked_sub(1)
    }

    /// Put a number last, if it is not in the line.
    pub(super) fn join(&mut self, number: u32) {
        if self.holds(number) {
            return;
        }
        let name = number + 1;
        self.links[number as usize] = Link { before: self.last, after: 0 };
        match self.last.checked_sub(1) {
            Some(last) => self.links[last as usize].after = name,
            None => self.first = name,
        }
        self.last = name;
        self.len += 1;
    }

    /// Take a number out, if it is in the line.
    pub(super) fn leave(&mut self, number: u32) {
        if self.len == 0 || !self.holds(number) {
            return;
        }
        let Link { before, after } = std::mem::take(&mut self.links[number as usize]);
        match before.checked_sub(1) {
            Some(before) => self.links[before as usize].after = after,
            None => self.first = after,
        }
        match after.checked_sub(1) {
            Some(after) => self.links[after as usize].before = before,
            None => self.last = before,
        }
        self.len -= 1;
    }

    /// Return whether a number stands in the line.
    pub(super) fn holds(&self, number: u32) -> bool {
        self.first == number + 1 || self.links[number as usize] != Link::default()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_a_line(
            bound in prop::sample::select(vec![1u32, 2, 3, 10, 300_000]),
            steps in prop::collection::vec((0u8..4, any::<u32>()), 1..200),
        ) {
            let mut line = Line::new(bound as usize).unwrap();
            let mut model: Vec<u32> = Vec::new();
            for (action, number) in steps {
                let number = number % bound;
                match action {
                    0 | 1 => {
                        line.join(number);
                        if !model.contains(&number) {
                            model.push(number);
                        }
                    }
                    2 => {
                        line.leave(number);
                        model.retain(|one| *one != number);
                    }
                    _ => if let Some(first) = line.first() {
                        line.leave(first);
                        model.remove(0);
                    }
                }
                prop_assert_eq!((line.first(), line.len()), (model.first().copied(), model.len()));
            }
            while let Some(first) = line.first() {
                prop_assert_eq!(first, model.remove(0));
                line.leave(first);
            }
            prop_assert!(model.is_empty());
        }
    }
}

//! A list of numbers: free ports, addresses to be lent, whose turn it is (*push/pop a value to/from list*: Khalid's dissertation,
//! Table 3.6). Which number comes next is decided where the list is, so no two get the same.

use std::collections::VecDeque;

use crate::plain::Plain;
use crate::shared::{Look, Op};
use crate::stored::Stored;

/// A list with room for so many numbers, reserved at once.
#[derive(Debug)]
pub struct List {
    numbers: VecDeque<u64>,
    most: usize,
}

impl List {
    /// Make a list of up to `most` numbers that begins with these, as far as there is room.
    pub fn new(most: usize, numbers: impl IntoIterator<Item = u64>) -> List {
        let mut list = VecDeque::with_capacity(most);
        list.extend(numbers.into_iter().take(most));
        List { numbers: list, most }
    }
}

impl Stored for List {
    fn store(&self, to: &mut Vec<u8>) {
        self.most.store(to);
        self.numbers.store(to);
    }

    fn restore(from: &mut &[u8]) -> Option<List> {
        let most = Stored::restore(from)?;
        let numbers: VecDeque<u64> = Stored::restore(from)?;
        (numbers.len() <= most).then_some(List { numbers, most })
    }
}

crate::operations!("list": List { 0 => Push, 1 => Pop } looks { 2 => Length });

/// Put a number at the end of the list; answers whether there was room.
#[derive(Clone, Copy, Debug, Plain)]
pub struct Push(pub u64);

impl Op<List> for Push {
    type Reply = bool;

    fn apply(self, list: &mut List) -> bool {
        let has_room = list.numbers.len() < list.most;
        if has_room {
            list.numbers.push_back(self.0);
        }
        has_room
    }
}

/// Take the number out that has been in the list longest; answers it, `None` where there is none.
#[derive(Clone, Copy, Debug, Plain)]
pub struct Pop;

impl Op<List> for Pop {
    type Reply = Option<u64>;

    fn apply(self, list: &mut List) -> Option<u64> {
        list.numbers.pop_front()
    }
}

/// How many numbers are in the list?
#[derive(Clone, Copy, Debug, Plain)]
pub struct Length;

impl Look<List> for Length {
    type Reply = u64;

    fn look(self, list: &List) -> u64 {
        list.numbers.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_in_first_comes_out_first() {
        let mut list = List::new(3, [7, 8]);
        assert!(Push(9).apply(&mut list) && !Push(1).apply(&mut list));
        assert_eq!(Length.look(&list), 3);
        assert_eq!([Pop, Pop, Pop, Pop].map(|pop| pop.apply(&mut list)), [Some(7), Some(8), Some(9), None]);
        assert_eq!(List::new(1, [4, 5]).numbers, [4]);
    }
}

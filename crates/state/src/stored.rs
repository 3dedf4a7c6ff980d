//! Values that have bytes, however many: those of shared objects. Who holds an object can keep it, hand it to somebody else, or go on
//! with it after it was lost, and knows nothing of what it is.
//!
//! The layout is that of [plain data](Plain); a list is the number of its members, eight bytes, and these one after the other.

use std::collections::VecDeque;

use catena_packet::wire::Seed;

/// Derives [`trait@Stored`] for a struct whose fields all are.
pub use catena_state_derive::Stored;

use crate::plain::Plain;

/// A value that is what its bytes say. What follows from the rest, as the least of some loads does, need not be among them, and is
/// worked out when it comes back.
pub trait Stored: Sized {
    /// Append the value's bytes.
    fn store(&self, to: &mut Vec<u8>);

    /// Take a value off the front; `None` where there are too few bytes, or some that no value has, or no memory for it.
    fn restore(from: &mut &[u8]) -> Option<Self>;
}

/// Return a value's bytes.
pub fn stored<T: Stored>(value: &T) -> Vec<u8> {
    let mut bytes = Vec::new();
    value.store(&mut bytes);
    bytes
}

/// Return the value that has these bytes, all of them; `None` where no value has.
pub fn restored<T: Stored>(mut bytes: &[u8]) -> Option<T> {
    T::restore(&mut bytes).filter(|_| bytes.is_empty())
}

impl<T: Plain> Stored for T {
    fn store(&self, to: &mut Vec<u8>) {
        self.write(to);
    }

    fn restore(from: &mut &[u8]) -> Option<T> {
        T::read(from)
    }
}

/// As eight bytes, on every machine.
impl Stored for usize {
    fn store(&self, to: &mut Vec<u8>) {
        (*self as u64).write(to);
    }

    fn restore(from: &mut &[u8]) -> Option<usize> {
        u64::read(from)?.try_into().ok()
    }
}

impl Stored for Seed {
    fn store(&self, to: &mut Vec<u8>) {
        self.0.write(to);
    }

    fn restore(from: &mut &[u8]) -> Option<Seed> {
        Plain::read(from).map(Seed)
    }
}

/// Append a list.
pub fn store_all<'a, T: Stored + 'a>(list: impl IntoIterator<Item = &'a T>, to: &mut Vec<u8>) {
    let start = to.len();
    0_u64.write(to);
    let mut count: u64 = 0;
    for member in list {
        member.store(to);
        count += 1;
    }
    to[start..start + 8].copy_from_slice(&count.to_le_bytes());
}

impl<T: Stored> Stored for Vec<T> {
    fn store(&self, to: &mut Vec<u8>) {
        store_all(self, to);
    }

    fn restore(from: &mut &[u8]) -> Option<Vec<T>> {
        const { assert!(size_of::<T>() > 0, "a list of nothing could be as long as somebody says") };
        let count = usize::restore(from)?;
        // Each member has a byte at least: who says that there are more than there are bytes is not believed.
        let mut list = Vec::with_capacity(count.min(from.len()).min(1 << 16));
        for _ in 0..count {
            list.push(T::restore(from)?);
        }
        Some(list)
    }
}

impl<T: Stored> Stored for Box<[T]> {
    fn store(&self, to: &mut Vec<u8>) {
        store_all(self.iter(), to);
    }

    fn restore(from: &mut &[u8]) -> Option<Box<[T]>> {
        Vec::restore(from).map(Vec::into_boxed_slice)
    }
}

impl<T: Stored> Stored for VecDeque<T> {
    fn store(&self, to: &mut Vec<u8>) {
        store_all(self, to);
    }

    fn restore(from: &mut &[u8]) -> Option<VecDeque<T>> {
        Vec::restore(from).map(VecDeque::from)
    }
}

/// As the array itself: how many there are is known.
impl<T: Plain, const N: usize> Stored for Box<[T; N]> {
    fn store(&self, to: &mut Vec<u8>) {
        self.write(to);
    }

    fn restore(from: &mut &[u8]) -> Option<Box<[T; N]>> {
        let list: Option<Box<[T]>> = (0..N).map(|_| T::read(from)).collect();
        list?.try_into().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, PartialEq, Stored)]
    struct Several {
        numbers: Vec<(u16, bool)>,
        turn: VecDeque<u8>,
        places: Box<[usize]>,
        table: Box<[u32; 2]>,
        seed: Seed,
        inner: Inner,
    }

    #[derive(Debug, PartialEq, Stored)]
    struct Inner(Vec<Vec<u8>>);

    fn several(numbers: Vec<(u16, bool)>, bytes: Vec<u8>) -> Several {
        let places = bytes.iter().map(|byte| usize::from(*byte)).collect();
        let turn = bytes.iter().copied().collect();
        Several { numbers, turn, places, table: [7, 8].into(), seed: Seed([1; 4]), inner: Inner(vec![bytes, vec![]]) }
    }

    proptest! {
        #[test]
        fn values_come_back_from_their_bytes_and_from_no_fewer(
            numbers in prop::collection::vec(any::<(u16, bool)>(), 0..9),
            bytes in prop::collection::vec(any::<u8>(), 0..9),
        ) {
            let value = several(numbers, bytes);
            let all = stored(&value);
            prop_assert_eq!(restored::<Several>(&all), Some(value));
            prop_assert!((0..all.len()).all(|few| restored::<Several>(&all[..few]).is_none()));
            prop_assert!(restored::<Several>(&[&all[..], &[0]].concat()).is_none(), "bytes are left over");
        }
    }

    #[test]
    fn the_layout_is_the_one_that_is_written_down() {
        assert_eq!(stored(&vec![0x0102_u16, 3]), [2, 0, 0, 0, 0, 0, 0, 0, 2, 1, 3, 0]);
        assert_eq!(stored(&Inner(vec![vec![9]])), [1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9]);
        assert_eq!(stored(&Box::new([1_u16, 2])), [1, 0, 2, 0]);
    }

    #[test]
    fn a_list_that_says_to_be_longer_than_its_bytes_is_none_and_takes_no_memory() {
        assert_eq!(restored::<Vec<u64>>(&[255; 8]), None);
        assert_eq!(restored::<Vec<Vec<u64>>>(&[255; 24]), None);
    }
}

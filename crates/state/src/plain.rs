//! Plain data: values that have bytes, so that an engine can send, store, compare and count them.

/// Derives [`trait@Plain`] for a struct or an enum whose fields all are.
pub use catena_state_derive::Plain;

/// A value that is what its bytes say, and nothing more: entries, keys, operations and replies are.
///
/// The layout is the same on every machine: numbers are little-endian, fields stand in the order of the source without a gap, a
/// `bool` is a byte of 0 or 1. Of an enum the first byte is the variant's number from 0, of an `Option` 0 for `None`; what
/// a variant is shorter than the longest is filled up with zeros. So all values of a type have as many bytes.
pub trait Plain: Copy + Send + 'static {
    /// How many bytes a value has.
    const BYTES: usize;

    /// Append the value's bytes: [`Self::BYTES`] of them.
    fn write(&self, to: &mut Vec<u8>);

    /// Take a value off the front; `None` where there are too few bytes, or some that no value has.
    fn read(from: &mut &[u8]) -> Option<Self>;
}

/// Return a value's bytes.
pub fn bytes<T: Plain>(value: &T) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(T::BYTES);
    value.write(&mut bytes);
    bytes
}

/// Return the value that has these bytes, all of them; `None` where no value has.
pub fn value<T: Plain>(mut bytes: &[u8]) -> Option<T> {
    T::read(&mut bytes).filter(|_| bytes.is_empty())
}

macro_rules! numbers_are_plain {
    ($($number:ty)*) => {$(
        impl Plain for $number {
            const BYTES: usize = size_of::<$number>();

            #[inline]
            fn write(&self, to: &mut Vec<u8>) {
                to.extend_from_slice(&self.to_le_bytes());
            }

            #[inline]
            fn read(from: &mut &[u8]) -> Option<Self> {
                let (first, rest) = from.split_first_chunk()?;
                *from = rest;
                Some(<$number>::from_le_bytes(*first))
            }
        }
    )*};
}
numbers_are_plain!(u8 u16 u32 u64 u128 i8 i16 i32 i64 i128);

impl Plain for bool {
    const BYTES: usize = 1;

    #[inline]
    fn write(&self, to: &mut Vec<u8>) {
        to.push((*self).into());
    }

    #[inline]
    fn read(from: &mut &[u8]) -> Option<bool> {
        match u8::read(from)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

impl<T: Plain, const N: usize> Plain for [T; N] {
    const BYTES: usize = N * T::BYTES;

    #[inline]
    fn write(&self, to: &mut Vec<u8>) {
        self.iter().for_each(|value| value.write(to));
    }

    #[inline]
    fn read(from: &mut &[u8]) -> Option<[T; N]> {
        let mut values = [None; N];
        for value in &mut values {
            *value = Some(T::read(from)?);
        }
        Some(values.map(|value| value.unwrap_or_else(|| unreachable!("all of them were read"))))
    }
}

impl<T: Plain> Plain for Option<T> {
    const BYTES: usize = 1 + T::BYTES;

    #[inline]
    fn write(&self, to: &mut Vec<u8>) {
        let end = to.len() + Self::BYTES;
        to.push(self.is_some().into());
        self.iter().for_each(|value| value.write(to));
        to.resize(end, 0);
    }

    #[inline]
    fn read(from: &mut &[u8]) -> Option<Option<T>> {
        let mut bytes = from.split_off(..Self::BYTES)?;
        let it = if bool::read(&mut bytes)? { Some(T::read(&mut bytes)?) } else { None };
        bytes.iter().all(|byte| *byte == 0).then_some(it)
    }
}

macro_rules! tuples_are_plain {
    ($(($($name:ident $number:tt),*))*) => {$(
        impl<$($name: Plain),*> Plain for ($($name,)*) {
            const BYTES: usize = 0 $(+ $name::BYTES)*;

            #[inline]
            fn write(&self, _to: &mut Vec<u8>) {
                $(self.$number.write(_to);)*
            }

            #[inline]
            fn read(_from: &mut &[u8]) -> Option<Self> {
                Some(($($name::read(_from)?,)*))
            }
        }
    )*};
}
tuples_are_plain!(() (A 0, B 1) (A 0, B 1, C 2));

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fmt::Debug;

    #[derive(Clone, Copy, Debug, PartialEq, Eq, Plain)]
    struct Both<A> {
        first: u16,
        second: A,
    }

    #[derive(Clone, Copy, Debug, PartialEq, Eq, Plain)]
    struct One(bool);

    #[derive(Clone, Copy, Debug, PartialEq, Eq, Plain)]
    enum Which {
        Nothing,
        Pair(u8, One),
        Named { wide: Both<u32> },
    }

    /// All values of a type have as many bytes, come back from them, and from no fewer.
    fn comes_back<T: Plain + PartialEq + Debug>(it: T) {
        let bytes = bytes(&it);
        assert_eq!(bytes.len(), T::BYTES);
        assert_eq!(value(&bytes), Some(it));
        assert!((0..bytes.len()).all(|few| value::<T>(&bytes[..few]).is_none()));
    }

    #[test]
    fn the_layout_is_the_one_that_is_written_down() {
        let both = Both { first: 0x0102, second: 0x0304_0506_u32 };
        assert_eq!(bytes(&both), [2, 1, 6, 5, 4, 3]);
        assert_eq!(bytes(&Which::Nothing), [0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes(&Which::Pair(9, One(true))), [1, 9, 1, 0, 0, 0, 0]);
        assert_eq!(bytes(&Which::Named { wide: both }), [2, 2, 1, 6, 5, 4, 3]);
        assert_eq!(bytes(&[Some(-1_i16), None]), [1, 255, 255, 0, 0, 0]);
        assert_eq!(bytes(&(7_u8, 8_u32)), [7, 8, 0, 0, 0]);
    }

    #[test]
    fn bytes_that_no_value_has_are_refused() {
        assert_eq!(value::<Which>(&[3, 0, 0, 0, 0, 0, 0]), None);
        assert_eq!(value::<Which>(&[1, 9, 2, 0, 0, 0, 0]), None);
        assert_eq!(value::<bool>(&[2]), None);
        assert_eq!(value::<u8>(&[2, 0]), None, "bytes are left over");
        assert_eq!(value::<Option<u16>>(&[0, 7, 7]), None, "what fills up is zeros");
        assert_eq!(value::<Which>(&[1, 9, 1, 0, 0, 0, 7]), None, "what fills up is zeros");
    }

    proptest! {
        #[test]
        fn values_come_back_from_their_bytes(a in any::<u64>(), b in any::<i32>(), c in any::<bool>(), which in 0..3) {
            comes_back([a, !a]);
            comes_back(Both { first: a as u16, second: (b, One(c)) });
            comes_back(Some(b).filter(|_| c));
            comes_back(match which {
                0 => Which::Nothing,
                1 => Which::Pair(a as u8, One(c)),
                _ => Which::Named { wide: Both { first: a as u16, second: b as u32 } },
            });
        }

        #[test]
        fn any_bytes_are_those_of_a_value_or_of_none(it in prop::collection::vec(0u8..4, 0..12)) {
            if let Some(which) = value::<Which>(&it) {
                prop_assert_eq!(bytes(&which), it);
            }
        }
    }
}

//! Big-endian reads and writes at a named place of a header.
//!
//! A place that lies outside panics, as slicing does: views check their length once, in `check_len`.

use std::ops::Range;

#[inline]
pub fn u16_at(data: &[u8], place: Range<usize>) -> u16 {
    u16::from_be_bytes(array_at(data, place))
}

#[inline]
pub fn u32_at(data: &[u8], place: Range<usize>) -> u32 {
    u32::from_be_bytes(array_at(data, place))
}

#[inline]
pub fn array_at<const N: usize>(data: &[u8], place: Range<usize>) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&data[place]);
    array
}

#[inline]
pub fn put_u16(data: &mut [u8], place: Range<usize>, value: u16) {
    data[place].copy_from_slice(&value.to_be_bytes());
}

#[inline]
pub fn put_u32(data: &mut [u8], place: Range<usize>, value: u32) {
    data[place].copy_from_slice(&value.to_be_bytes());
}

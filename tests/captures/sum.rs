//! The error of an Internet checksum (RFC 1071), by arithmetic that owes nothing to the code under test.
//!
//! One's complement addition of 16-bit words is addition modulo 65535. Data and its checksum sum up to 0
//! there; what they sum up to instead is the checksum's *error*. Whoever updates a checksum for what he
//! changed, and changes nothing else, leaves the error as it was, be it 0 or not, and even if a part of the data
//! was never captured: the part that is missing is the same before and after.

/// Return the sum of big-endian 16-bit words, an odd last byte padded with zero.
pub fn words(data: &[u8]) -> u64 {
    data.chunks(2).map(|pair| u64::from(pair[0]) << 8 | u64::from(*pair.get(1).unwrap_or(&0))).sum()
}

/// Return the error of a checksum, which `total` includes: 0 for a right one.
pub fn error(total: u64) -> u16 {
    (total % 65535) as u16
}

/// Return the checksum that is right beside data whose words add up to `total`.
pub fn right(total: u64) -> u16 {
    (65535 - total % 65535) as u16 % 65535
}

#[test]
fn the_example_of_rfc_1071() {
    let data = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
    let check = right(words(&data));
    assert_eq!(check, !0xddf2);
    assert_eq!(error(words(&data) + u64::from(check)), 0);
    assert_eq!(error(words(&data) + u64::from(check) + 5), 5);
}

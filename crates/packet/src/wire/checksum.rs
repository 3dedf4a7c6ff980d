//! The Internet checksum (RFC 1071), its pseudo headers, and incremental updates (RFC 1624).
//!
//! A *sum* here is the one's complement sum of big-endian 16-bit words, not yet complemented; a *checksum* is
//! its complement, as it stands in a header. Sums add up in any order and grouping, so a pseudo header, a
//! header and a payload are summed apart and joined by [`add`].

/// Return the one's complement sum of `data`, an odd last byte padded with zero (RFC 1071 §1).
#[inline]
pub fn sum(data: &[u8]) -> u16 {
    // RFC 1071 §2(B): the sum does not depend on byte order, so words are added as the machine loads them and
    // only the result is swapped; §2(C): wider words add as well, as 2^32 = 1 (mod 2^16 - 1). A u64 lane
    // takes 2^32 words of 32 bits before it overflows.
    let (blocks, rest) = data.as_chunks::<64>();
    let mut total = 0;
    if !blocks.is_empty() {
        let mut lanes = [0u64; 16];
        for block in blocks {
            let (words, _) = block.as_chunks::<4>();
            for (lane, word) in lanes.iter_mut().zip(words) {
                *lane += u64::from(u32::from_ne_bytes(*word));
            }
        }
        total = lanes.iter().sum();
    }
    let (words, rest) = rest.as_chunks::<4>();
    for word in words {
        total += u64::from(u32::from_ne_bytes(*word));
    }
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    total += u64::from(u32::from_ne_bytes(last));
    fold64(total).to_be()
}

/// Return the checksum of `data`: the complement of its [`sum`]. The checksum field itself must be zero in it.
#[inline]
pub fn checksum(data: &[u8]) -> u16 {
    !sum(data)
}

/// Join two sums. The first part's length must have been even.
#[inline]
pub const fn add(a: u16, b: u16) -> u16 {
    // An addition that carries leaves at most 0xfffe: there is no second carry.
    let (sum, carry) = a.overflowing_add(b);
    sum + carry as u16
}

/// Return the sum of the IPv4 pseudo header (RFC 793 §3.1). `length` is the upper layer's, header included, in bytes.
#[inline]
pub const fn pseudo_v4(src: u32, dst: u32, proto: u8, length: u16) -> u16 {
    let total = src as u64 + dst as u64 + proto as u64 + length as u64;
    fold64(total)
}

/// Return the sum of the IPv6 pseudo header (RFC 8200 §8.1). `length` is the upper layer's, header included, in
/// bytes; `proto` is the upper layer's, not the fixed header's next header.
#[inline]
pub fn pseudo_v6(src: [u8; 16], dst: [u8; 16], proto: u8, length: u32) -> u16 {
    let rest = fold64(u64::from(length) + u64::from(proto));
    add(add(sum(&src), sum(&dst)), rest)
}

/// Whether the checksum of an IPv4 header holds. `header` is the whole header, options included.
#[inline]
pub fn verify_ipv4_checksum(header: &[u8]) -> bool {
    let Ok(plain) = <&[u8; 20]>::try_from(header) else {
        return header.len() > 20 && sum(header) == 0xffff;
    };
    let (words, _) = plain.as_chunks::<4>();
    let mut total = 0u64;
    for word in words {
        total += u64::from(u32::from_ne_bytes(*word));
    }
    fold64(total) == 0xffff
}

/// Return what stands in a UDP header for this checksum.
///
/// RFC 768: "If the computed checksum is zero, it is transmitted as all ones (the equivalent in one's complement
/// arithmetic). An all zero transmitted checksum value means that the transmitter generated no checksum."
#[inline]
pub const fn udp_nonzero(checksum: u16) -> u16 {
    if checksum == 0 { 0xffff } else { checksum }
}

/// Return the checksum after one 16-bit word under it changed from `old` to `new`.
#[inline]
pub const fn update16(check: u16, old: u16, new: u16) -> u16 {
    Delta::new().change16(old, new).apply(check)
}

/// Return the checksum after two adjacent words under it, at an even offset, changed from `old` to `new`.
#[inline]
pub const fn update32(check: u16, old: u32, new: u32) -> u16 {
    Delta::new().change32(old, new).apply(check)
}

/// Several changes to what a checksum covers, folded into one; applied to any number of checksums.
///
/// A NAT that rewrites an address and a port adds both changes up once, and applies them to the IP and to the
/// upper layer's checksum (the address alone to the first).
///
/// RFC 1624 §3, derived: let HC be the old checksum, m the old word and m' the new. With C the one's complement sum
/// of everything else, HC = ~(C + m) by definition. We want HC' = ~(C + m'). From the first, C + m = ~HC, and as ~m
/// is -m in one's complement, C = ~HC + ~m. Hence
///
/// ```text
///     HC' = ~(~HC + ~m + m')        [Eqn. 3]
/// ```
///
/// It differs from RFC 1141's HC' = HC + m + ~m' (Eqn. 2 there) only where the result is a zero: one's
/// complement has two, and a sum of words not all +0 can only be -0 (0xffff), so that the right checksum of such
/// data is 0x0000, never 0xffff. Eqn. 3 adds before it complements, as a full computation does, and so gives the
/// same zero.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Delta(u32);

impl Delta {
    /// Start with no change.
    #[inline]
    pub const fn new() -> Self {
        Delta(0)
    }

    /// Add the change of one 16-bit word.
    #[inline]
    #[must_use]
    pub const fn change16(self, old: u16, new: u16) -> Self {
        self.plus(!old as u32 + new as u32)
    }

    /// Add the change of two adjacent words (an IPv4 address) at an even offset.
    #[inline]
    #[must_use]
    pub const fn change32(self, old: u32, new: u32) -> Self {
        self.plus(!old).plus(new)
    }

    /// Add the change of eight adjacent words (an IPv6 address) at an even offset.
    #[inline]
    #[must_use]
    pub fn change128(self, old: [u8; 16], new: [u8; 16]) -> Self {
        self.plus(u32::from(!sum(&old))).plus(u32::from(sum(&new)))
    }

    /// Add another set of changes.
    #[inline]
    #[must_use]
    pub const fn and(self, other: Delta) -> Self {
        self.plus(other.0)
    }

    /// Return `check` after all changes.
    #[inline]
    #[must_use]
    pub const fn apply(self, check: u16) -> u16 {
        !add(!check, fold32(self.0))
    }

    /// Return a UDP checksum after all changes: none stays none, and a zero result becomes all ones (RFC 768).
    #[inline]
    #[must_use]
    pub const fn apply_udp(self, check: u16) -> u16 {
        if check == 0 { 0 } else { udp_nonzero(self.apply(check)) }
    }

    /// Add with end-around carry, so that any number of changes stays exact.
    #[inline]
    const fn plus(self, value: u32) -> Self {
        let (total, carry) = self.0.overflowing_add(value);
        Delta(total + carry as u32)
    }
}

/// Fold to 16 bits with end-around carry; zero only for zero.
#[inline]
const fn fold32(value: u32) -> u16 {
    add(value as u16, (value >> 16) as u16)
}

/// Fold to 16 bits with end-around carry; zero only for zero.
#[inline]
const fn fold64(value: u64) -> u16 {
    let (value, carry) = (value as u32).overflowing_add((value >> 32) as u32);
    fold32(value + carry as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 1071 §1 as it is written: 16-bit words, one by one.
    fn plain_sum(data: &[u8]) -> u16 {
        let mut total = 0u32;
        for pair in data.chunks(2) {
            total += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
            total = (total & 0xffff) + (total >> 16);
        }
        total as u16
    }

    #[test]
    fn rfc_1071_example() {
        assert_eq!(sum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), 0xddf2);
    }

    #[test]
    fn rfc_1624_example() {
        // §4: HC = 0xDD2F, m = 0x5555, m' = 0x3285: the right answer is 0x0000; Eqn. 2 would give 0xFFFF.
        assert_eq!(update16(0xdd2f, 0x5555, 0x3285), 0x0000);
    }

    #[test]
    fn udp_zero_rules() {
        let to_zero = Delta::new().change16(0x5555, 0x3285);
        assert_eq!(to_zero.apply_udp(0xdd2f), 0xffff);
        assert_eq!(to_zero.apply_udp(0), 0);
    }

    #[test]
    fn a_header_of_the_wrong_size_never_verifies() {
        assert!(!verify_ipv4_checksum(&[]));
        assert!(!verify_ipv4_checksum(&[0xff; 2]));
    }

    proptest! {
        #[test]
        fn agrees_with_the_plain_sum(data in proptest::collection::vec(any::<u8>(), 0..300)) {
            prop_assert_eq!(sum(&data), plain_sum(&data));
        }

        #[test]
        fn parts_add_up(data in proptest::collection::vec(any::<u8>(), 0..100), cut in 0usize..50) {
            let cut = (cut * 2).min(data.len() & !1);
            prop_assert_eq!(add(sum(&data[..cut]), sum(&data[cut..])), sum(&data));
        }

        #[test]
        fn pseudo_headers_are_sums(src: [u8; 16], dst: [u8; 16], proto: u8, length: u16) {
            let v6 = [&src[..], &dst, &u32::from(length).to_be_bytes(), &[0, 0, 0, proto]].concat();
            prop_assert_eq!(pseudo_v6(src, dst, proto, length.into()), plain_sum(&v6));
            let v4 = [&src[..4], &dst[..4], &[0, proto], &length.to_be_bytes()].concat();
            let word = |a: [u8; 16]| u32::from_be_bytes([a[0], a[1], a[2], a[3]]);
            prop_assert_eq!(pseudo_v4(word(src), word(dst), proto, length), plain_sum(&v4));
        }

        #[test]
        fn updates_equal_recomputation(
            mut data in proptest::collection::vec(any::<u8>(), 40..60),
            new16: u16, new32: u32, new128: [u8; 16],
        ) {
            // The data holds one word that is never all zero, as every real header does (its version, its ports).
            data[0] |= 0x40;
            let check = checksum(&data);
            let old16 = u16::from_be_bytes([data[2], data[3]]);
            let old32 = u32::from_be_bytes([data[4], data[5], data[6], data[7]]);
            let old128: [u8; 16] = data[8..24].try_into().unwrap();
            let delta = Delta::new().change16(old16, new16).change32(old32, new32)
                .and(Delta::new().change128(old128, new128));
            data[2..4].copy_from_slice(&new16.to_be_bytes());
            prop_assert_eq!(update16(check, old16, new16), checksum(&data));
            data[4..8].copy_from_slice(&new32.to_be_bytes());
            data[8..24].copy_from_slice(&new128);
            prop_assert_eq!(delta.apply(check), checksum(&data));
            prop_assert_eq!(update32(update16(check, old16, new16), old32, new32), Delta::new()
                .change16(old16, new16).change32(old32, new32).apply(check));
        }

        #[test]
        fn a_filled_in_header_verifies(mut header in proptest::collection::vec(any::<u8>(), 20..=60)) {
            header.truncate(header.len() & !3);
            header[10..12].fill(0);
            let check = checksum(&header);
            header[10..12].copy_from_slice(&check.to_be_bytes());
            prop_assert!(verify_ipv4_checksum(&header));
            header[0] ^= 1;
            prop_assert!(!verify_ipv4_checksum(&header));
        }
    }
}

//! Addresses as integers and prefixes over them: the little arithmetic that the trie needs, once for
//! 32 and once for 128 bits.

use std::fmt;
use std::hash::Hash;
use std::net::{Ipv4Addr, Ipv6Addr};

/// An address as an unsigned integer in host byte order: `u32` (IPv4) or `u128` (IPv6).
pub trait Address: Copy + Ord + Hash + fmt::Debug + Send + Sync + 'static + sealed::Sealed {
    /// Length of an address in bits.
    const BITS: u8;
    /// The address all of whose bits are 0.
    const ZERO: Self;

    /// The first `len` bits, the others 0. A `len` beyond [`Self::BITS`] keeps all.
    fn truncate(self, len: u8) -> Self;
    /// How many leading bits two addresses share.
    fn common_bits(self, other: Self) -> u8;
    /// The first 16 bits.
    fn first_16(self) -> u16;
    /// The eight bits that end `shift` bits before the end.
    fn byte(self, shift: u8) -> u8;
    /// Those eight bits, and whether all bits before them equal those of `key`, whose own eight bits
    /// and all behind them are 0.
    fn step(self, key: Self, shift: u8) -> (bool, u8);
    /// Writes the address as its family does.
    fn write(self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for u32 {}
    impl Sealed for u128 {}
}

macro_rules! address {
    ($int:ty, $text:ty) => {
        impl Address for $int {
            const BITS: u8 = <$int>::BITS as u8;
            const ZERO: Self = 0;

            #[inline]
            fn truncate(self, len: u8) -> Self {
                let tail = <$int>::MAX.checked_shr(len.into()).unwrap_or(0);
                self & !tail
            }

            #[inline]
            fn common_bits(self, other: Self) -> u8 {
                (self ^ other).leading_zeros() as u8
            }

            #[inline]
            fn first_16(self) -> u16 {
                (self >> (<$int>::BITS - 16)) as u16
            }

            #[inline]
            fn byte(self, shift: u8) -> u8 {
                self.wrapping_shr(shift.into()) as u8
            }

            #[inline]
            fn step(self, key: Self, shift: u8) -> (bool, u8) {
                let rest = (self ^ key).wrapping_shr(shift.into());
                (rest < 256, rest as u8)
            }

            fn write(self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&<$text>::from_bits(self), f)
            }
        }
    };
}

address!(u32, Ipv4Addr);
address!(u128, Ipv6Addr);

/// An address prefix; bits beyond its length are 0.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Prefix<A> {
    addr: A,
    len: u8,
}

/// A prefix length beyond the address's own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BadLength {
    /// The length asked for, bits.
    pub len: u8,
    /// The longest possible, bits.
    pub max: u8,
}

impl fmt::Display for BadLength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a prefix length is 0 to {}, not {}", self.max, self.len)
    }
}

impl std::error::Error for BadLength {}

impl<A: Address> Prefix<A> {
    /// The first `len` bits of `addr`; what stands behind them is dropped.
    ///
    /// # Errors
    /// `len` is beyond the address's length.
    pub fn new(addr: A, len: u8) -> Result<Self, BadLength> {
        if len > A::BITS {
            return Err(BadLength { len, max: A::BITS });
        }
        Ok(Prefix { addr: addr.truncate(len), len })
    }

    /// The first address of the prefix.
    pub fn addr(self) -> A {
        self.addr
    }

    /// How many bits must match.
    pub fn len_bits(self) -> u8 {
        self.len
    }

    /// Whether `addr` lies within.
    pub fn contains(self, addr: A) -> bool {
        addr.truncate(self.len) == self.addr
    }
}

impl<A: Address> fmt::Display for Prefix<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.addr.write(f)?;
        write!(f, "/{}", self.len)
    }
}

impl<A: Address> fmt::Debug for Prefix<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_hold_their_first_bits() {
        let p = Prefix::new(0x0a01_0203u32, 15).unwrap();
        assert_eq!((p.addr(), p.len_bits(), p.to_string().as_str()), (0x0a00_0000, 15, "10.0.0.0/15"));
        assert!(p.contains(0x0a01_ffff) && !p.contains(0x0a02_0000));
        assert_eq!(Prefix::new(1u32, 33), Err(BadLength { len: 33, max: 32 }));
        assert_eq!(Prefix::new(1u128, 129).unwrap_err().to_string(), "a prefix length is 0 to 128, not 129");
        assert_eq!(Prefix::new(u128::MAX, 0).unwrap().to_string(), "::/0");
        assert_eq!(Prefix::new(u32::MAX, 32).unwrap().to_string(), "255.255.255.255/32");
    }

    #[test]
    fn a_step_compares_what_stands_before_its_byte() {
        assert_eq!(0x0a01_0203u32.step(0x0a01_0000, 8), (true, 2));
        assert_eq!(0x0a01_0203u32.step(0x0a02_0000, 8), (false, 2));
        assert_eq!((0x2001_0db8u128 << 96).step(0x2001 << 112, 104), (true, 0x0d));
        assert_eq!(0x0a01_0203u32.common_bits(0x0a01_0303), 23);
    }
}

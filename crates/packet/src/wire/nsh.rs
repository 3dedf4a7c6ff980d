//! Network Service Header (RFC 8300): base header, service path header, metadata of type 1 and 2.
//!
//! It says which service path a packet is on (SPI) and how far it has come (SI).

use super::Malformed;
use super::bytes::{put_u16, put_u32, u16_at, u32_at};
use std::fmt;

mod field {
    use std::ops::Range;

    /// Version (2 bits), O, unassigned, TTL (6), length (6).
    pub const BASE: Range<usize> = 0..2;
    pub const METADATA_TYPE: usize = 2;
    pub const NEXT_PROTOCOL: usize = 3;
    pub const PATH: Range<usize> = 4..8;
}

/// Length of base header and service path header, in bytes.
pub const HEADER_LEN: usize = field::PATH.end;
/// Length of the metadata of type 1, in bytes (RFC 8300 §2.4).
pub const FIXED_METADATA_LEN: usize = 16;
/// Where a TTL starts unless configured otherwise (RFC 8300 §2.2).
pub const DEFAULT_TTL: u8 = 63;

const WORD: usize = 4;
const VERSION: u16 = 0xc000;
const OAM: u16 = 0x2000;
const TTL_SHIFT: u32 = 6;
const SIX_BITS: u16 = 0x3f;
const METADATA_TYPE: u8 = 0x0f;

/// Types of metadata (RFC 8300 §2.2).
pub mod metadata {
    /// Four words of fixed length, whose meaning is agreed upon elsewhere.
    pub const FIXED: u8 = 1;
    /// Any number of [`Context`](super::Context) headers.
    pub const VARIABLE: u8 = 2;
}

/// What follows the header (RFC 8300 §2.2, "Next Protocol").
pub mod next {
    /// IPv4.
    pub const IPV4: u8 = 1;
    /// IPv6.
    pub const IPV6: u8 = 2;
    /// Ethernet.
    pub const ETHERNET: u8 = 3;
    /// Another NSH.
    pub const NSH: u8 = 4;
}

/// A view of a packet with a network service header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet<T: AsRef<[u8]>> {
    buffer: T,
}

impl<T: AsRef<[u8]>> Packet<T> {
    /// View a buffer without a check: accessors panic where it is too short.
    pub const fn new_unchecked(buffer: T) -> Self {
        Packet { buffer }
    }

    /// View a buffer and check it as [`check_len`](Self::check_len) does.
    pub fn new_checked(buffer: T) -> Result<Self, Malformed> {
        let packet = Self::new_unchecked(buffer);
        packet.check_len()?;
        Ok(packet)
    }

    /// Ensure that no accessor will panic: version 0, and a length that fits metadata type and buffer.
    ///
    /// RFC 8300 §2.2: "The Length MUST be of value 0x6 for MD Type 0x1, and it MUST be of value 0x2 or greater for
    /// MD Type 0x2"; packets with MD type 0 are silently discarded.
    pub fn check_len(&self) -> Result<(), Malformed> {
        let data = self.buffer.as_ref();
        if data.len() < HEADER_LEN {
            return Err(Malformed::NshTruncated);
        }
        if u16_at(data, field::BASE) & VERSION != 0 {
            return Err(Malformed::NshVersion);
        }
        let length = self.header_len();
        let fits = match self.metadata_type() {
            0 => false,
            metadata::FIXED => length == HEADER_LEN + FIXED_METADATA_LEN,
            _ => length >= HEADER_LEN,
        };
        if !fits {
            return Err(Malformed::NshLength);
        }
        if length > data.len() {
            return Err(Malformed::NshTruncated);
        }
        Ok(())
    }

    /// Return the buffer.
    pub fn into_inner(self) -> T {
        self.buffer
    }

    /// Whether the packet is for operation and maintenance (RFC 9451).
    pub fn is_oam(&self) -> bool {
        u16_at(self.buffer.as_ref(), field::BASE) & OAM != 0
    }

    /// Return how many more forwarders the packet may cross, 6 bits.
    pub fn ttl(&self) -> u8 {
        (u16_at(self.buffer.as_ref(), field::BASE) >> TTL_SHIFT & SIX_BITS) as u8
    }

    /// Return the length of the header with its metadata, in bytes.
    pub fn header_len(&self) -> usize {
        usize::from(u16_at(self.buffer.as_ref(), field::BASE) & SIX_BITS) * WORD
    }

    /// Return the type of the metadata ([`metadata`]).
    pub fn metadata_type(&self) -> u8 {
        self.buffer.as_ref()[field::METADATA_TYPE] & METADATA_TYPE
    }

    /// Return what follows the header ([`next`]).
    pub fn next_protocol(&self) -> u8 {
        self.buffer.as_ref()[field::NEXT_PROTOCOL]
    }

    /// Return the service path identifier (SPI), 24 bits.
    pub fn path(&self) -> u32 {
        u32_at(self.buffer.as_ref(), field::PATH) >> 8
    }

    /// Return the service index (SI): it counts down along the path.
    pub fn index(&self) -> u8 {
        u32_at(self.buffer.as_ref(), field::PATH) as u8
    }

    /// Return the metadata: 16 bytes of type 1, any number of words of other types.
    pub fn metadata(&self) -> &[u8] {
        &self.buffer.as_ref()[HEADER_LEN..self.header_len()]
    }

    /// Walk through the context headers of metadata type 2; of other types there are none.
    pub fn contexts(&self) -> Contexts<'_> {
        let rest = if self.metadata_type() == metadata::VARIABLE { self.metadata() } else { &[] };
        Contexts { rest }
    }

    /// Return the packet within.
    pub fn payload(&self) -> &[u8] {
        &self.buffer.as_ref()[self.header_len()..]
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Packet<T> {
    /// Write the base header: metadata type, the length of the metadata in bytes (a multiple of 4 up to 244), what
    /// follows, and the TTL to start with. The packet is none for maintenance.
    pub fn set_base(&mut self, metadata_type: u8, metadata_len: usize, next_protocol: u8, ttl: u8) {
        let words = (HEADER_LEN + metadata_len) / WORD;
        debug_assert!(metadata_len.is_multiple_of(WORD) && words <= usize::from(SIX_BITS));
        let data = self.buffer.as_mut();
        let base = (u16::from(ttl) & SIX_BITS) << TTL_SHIFT | words as u16 & SIX_BITS;
        put_u16(data, field::BASE, base);
        data[field::METADATA_TYPE] = metadata_type & METADATA_TYPE;
        data[field::NEXT_PROTOCOL] = next_protocol;
    }

    /// Set service path identifier (its lowest 24 bits) and service index.
    pub fn set_path(&mut self, path: u32, index: u8) {
        put_u32(self.buffer.as_mut(), field::PATH, path << 8 | u32::from(index));
    }

    /// Count the TTL down, as a forwarder must before it looks up where to go; `false` if the packet must end here.
    ///
    /// RFC 8300 §2.2: "Decrementing by 1 from an incoming value of 0 shall result in a TTL value of 63. The packet
    /// MUST NOT be forwarded if TTL is, after decrement, 0."
    #[must_use]
    pub fn decrement_ttl(&mut self) -> bool {
        let base = u16_at(self.buffer.as_ref(), field::BASE);
        let ttl = (base >> TTL_SHIFT).wrapping_sub(1) & SIX_BITS;
        let base = base & !(SIX_BITS << TTL_SHIFT) | ttl << TTL_SHIFT;
        put_u16(self.buffer.as_mut(), field::BASE, base);
        ttl != 0
    }

    /// Return the metadata, to be written. The base header must be set.
    pub fn metadata_mut(&mut self) -> &mut [u8] {
        let header = self.header_len();
        &mut self.buffer.as_mut()[HEADER_LEN..header]
    }

    /// Return the packet within, to be written. The base header must be set.
    pub fn payload_mut(&mut self) -> &mut [u8] {
        let header = self.header_len();
        &mut self.buffer.as_mut()[header..]
    }
}

impl<T: AsRef<[u8]>> fmt::Display for Packet<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, index, next) = (self.path(), self.index(), self.next_protocol());
        write!(f, "NSH path {path} index {index} next {next} ttl {}", self.ttl())
    }
}

/// One context header of metadata type 2 (RFC 8300 §2.5.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Context<'a> {
    /// Scope of the type: IETF is 0.
    pub class: u16,
    /// What the data is.
    pub kind: u8,
    /// The data without its padding.
    pub data: &'a [u8],
}

/// Walk through context headers. The walk ends after the first bad length.
#[derive(Clone, Debug)]
pub struct Contexts<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Contexts<'a> {
    type Item = Result<Context<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        const LENGTH: u8 = 0x7f;
        let rest = std::mem::take(&mut self.rest);
        let [a, b, kind, length, data @ ..] = rest else {
            return (!rest.is_empty()).then_some(Err(Malformed::NshMetadata));
        };
        let length = usize::from(length & LENGTH);
        let Some((padded, after)) = data.split_at_checked(length.next_multiple_of(WORD)) else {
            return Some(Err(Malformed::NshMetadata));
        };
        self.rest = after;
        Some(Ok(Context { class: u16::from_be_bytes([*a, *b]), kind: *kind, data: &padded[..length] }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(metadata_type: u8, metadata: &[u8]) -> Vec<u8> {
        let mut nsh = Packet::new_unchecked(vec![0; HEADER_LEN + metadata.len() + 1]);
        nsh.set_base(metadata_type, metadata.len(), next::IPV4, DEFAULT_TTL);
        nsh.set_path(0xff12_3456, 254);
        nsh.metadata_mut().copy_from_slice(metadata);
        nsh.payload_mut()[0] = 0x45;
        nsh.into_inner()
    }

    #[test]
    fn reads_what_it_writes() {
        let bytes = packet(metadata::FIXED, &[7; 16]);
        // RFC 8300 figure 2: version 0, TTL 63, length 6, MD type 1, next protocol 1.
        assert_eq!(bytes[..8], [0x0f, 0xc6, 1, 1, 0x12, 0x34, 0x56, 254]);
        let nsh = Packet::new_checked(&bytes).unwrap();
        assert_eq!(nsh.to_string(), "NSH path 1193046 index 254 next 1 ttl 63");
        assert_eq!((nsh.metadata(), nsh.payload()), (&[7; 16][..], &[0x45][..]));
        assert_eq!(nsh.contexts().next(), None);
        assert!(!nsh.is_oam());
    }

    #[test]
    fn walks_contexts() {
        let contexts = [0x01, 0xf6, 4, 5, 1, 2, 3, 4, 5, 0, 0, 0, 0, 0, 9, 0x80];
        let bytes = packet(metadata::VARIABLE, &contexts);
        let nsh = Packet::new_checked(&bytes).unwrap();
        let seen: Vec<_> = nsh.contexts().map(Result::unwrap).collect();
        let expected =
            [Context { class: 0x01f6, kind: 4, data: &[1, 2, 3, 4, 5] }, Context { class: 0, kind: 9, data: &[] }];
        assert_eq!(seen, expected);
        let bytes = packet(metadata::VARIABLE, &[0, 0, 9, 1]);
        let nsh = Packet::new_checked(&bytes).unwrap();
        assert_eq!(nsh.contexts().last(), Some(Err(Malformed::NshMetadata)));
    }

    #[test]
    fn the_ttl_counts_down_and_wraps_from_zero() {
        let mut nsh = Packet::new_checked(packet(metadata::VARIABLE, &[])).unwrap();
        assert!(nsh.decrement_ttl());
        assert_eq!((nsh.ttl(), nsh.header_len()), (62, 8));
        nsh.set_base(2, 0, 1, 1);
        assert!(!nsh.decrement_ttl());
        assert!(nsh.decrement_ttl());
        assert_eq!(nsh.ttl(), 63);
    }

    #[test]
    fn refuses() {
        let bytes = packet(metadata::FIXED, &[0; 16]);
        let broken = |at: usize, value: u8| {
            let mut bytes = bytes.clone();
            bytes[at] = value;
            Packet::new_checked(bytes).unwrap_err()
        };
        assert_eq!(Packet::new_checked(&bytes[..7]), Err(Malformed::NshTruncated));
        assert_eq!(Packet::new_checked(&bytes[..23]), Err(Malformed::NshTruncated));
        assert_eq!(broken(0, 0x40), Malformed::NshVersion);
        assert_eq!(broken(1, 0xc5), Malformed::NshLength);
        assert_eq!(broken(2, 0), Malformed::NshLength);
        assert_eq!(Packet::new_checked([0, 1, 2, 1, 0, 0, 0, 0]), Err(Malformed::NshLength));
    }
}

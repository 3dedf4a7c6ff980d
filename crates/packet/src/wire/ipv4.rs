//! IPv4 (RFC 791), with options.

use super::bytes::{array_at, put_u16, u16_at};
use super::{Malformed, checksum};
use std::fmt;
use std::net::Ipv4Addr;

mod field {
    use std::ops::Range;

    pub const VERSION_IHL: usize = 0;
    pub const TOS: usize = 1;
    pub const TOTAL_LEN: Range<usize> = 2..4;
    pub const IDENT: Range<usize> = 4..6;
    pub const FRAGMENT: Range<usize> = 6..8;
    pub const TTL: usize = 8;
    pub const PROTO: usize = 9;
    pub const CHECKSUM: Range<usize> = 10..12;
    pub const SRC: Range<usize> = 12..16;
    pub const DST: Range<usize> = 16..20;
}

/// Length of a header without options, in bytes.
pub const HEADER_LEN: usize = field::DST.end;

const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;
const FRAGMENT_OFFSET: u16 = 0x1fff;

/// A view of an IPv4 packet. The buffer may be longer than the packet (Ethernet padding): the total length counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet<T: AsRef<[u8]>> {
    buffer: T,
}

impl<T: AsRef<[u8]>> Packet<T> {
    /// View a buffer without a check: accessors panic where it is too short or its lengths contradict each other.
    pub const fn new_unchecked(buffer: T) -> Self {
        Packet { buffer }
    }

    /// View a buffer and check it as [`check_len`](Self::check_len) does.
    pub fn new_checked(buffer: T) -> Result<Self, Malformed> {
        let packet = Self::new_unchecked(buffer);
        packet.check_len()?;
        Ok(packet)
    }

    /// Ensure that no accessor will panic: version, header length and total length fit the buffer.
    pub fn check_len(&self) -> Result<(), Malformed> {
        let data = self.buffer.as_ref();
        if data.len() < HEADER_LEN {
            return Err(Malformed::Ipv4Truncated);
        }
        if self.version() != 4 {
            return Err(Malformed::Ipv4Version);
        }
        let (header, total) = (self.header_len(), usize::from(self.total_len()));
        if header < HEADER_LEN || header > data.len() {
            return Err(Malformed::Ipv4HeaderLength);
        }
        if total < header {
            return Err(Malformed::Ipv4TotalShort);
        }
        if total > data.len() {
            return Err(Malformed::Ipv4TotalLong);
        }
        Ok(())
    }

    /// Return the buffer.
    pub fn into_inner(self) -> T {
        self.buffer
    }

    /// Return the version.
    pub fn version(&self) -> u8 {
        self.buffer.as_ref()[field::VERSION_IHL] >> 4
    }

    /// Return the length of the header with its options, in bytes.
    pub fn header_len(&self) -> usize {
        usize::from(self.buffer.as_ref()[field::VERSION_IHL] & 0x0f) * 4
    }

    /// Return the differentiated services field and congestion bits (RFC 2474, RFC 3168).
    pub fn tos(&self) -> u8 {
        self.buffer.as_ref()[field::TOS]
    }

    /// Return the length of header and payload, in bytes.
    pub fn total_len(&self) -> u16 {
        u16_at(self.buffer.as_ref(), field::TOTAL_LEN)
    }

    /// Return the identification that the fragments of one datagram share.
    pub fn ident(&self) -> u16 {
        u16_at(self.buffer.as_ref(), field::IDENT)
    }

    /// Whether the packet must not be fragmented.
    pub fn dont_fragment(&self) -> bool {
        u16_at(self.buffer.as_ref(), field::FRAGMENT) & DONT_FRAGMENT != 0
    }

    /// Whether further fragments of the datagram follow.
    pub fn more_fragments(&self) -> bool {
        u16_at(self.buffer.as_ref(), field::FRAGMENT) & MORE_FRAGMENTS != 0
    }

    /// Return where in the datagram this fragment's payload belongs, in bytes.
    pub fn fragment_offset(&self) -> u16 {
        (u16_at(self.buffer.as_ref(), field::FRAGMENT) & FRAGMENT_OFFSET) << 3
    }

    /// Whether this is a part of a datagram.
    pub fn is_fragment(&self) -> bool {
        u16_at(self.buffer.as_ref(), field::FRAGMENT) & (MORE_FRAGMENTS | FRAGMENT_OFFSET) != 0
    }

    /// Return how many hops the packet may still take.
    pub fn ttl(&self) -> u8 {
        self.buffer.as_ref()[field::TTL]
    }

    /// Return the protocol of the payload ([`number::proto`](super::number::proto)).
    pub fn proto(&self) -> u8 {
        self.buffer.as_ref()[field::PROTO]
    }

    /// Return the header checksum.
    pub fn checksum(&self) -> u16 {
        u16_at(self.buffer.as_ref(), field::CHECKSUM)
    }

    /// Return the source address.
    pub fn src(&self) -> Ipv4Addr {
        Ipv4Addr::from(array_at(self.buffer.as_ref(), field::SRC))
    }

    /// Return the destination address.
    pub fn dst(&self) -> Ipv4Addr {
        Ipv4Addr::from(array_at(self.buffer.as_ref(), field::DST))
    }

    /// Return the header, options included.
    pub fn header(&self) -> &[u8] {
        &self.buffer.as_ref()[..self.header_len()]
    }

    /// Walk through the options. The walk ends at the end of the list or after the first bad length.
    pub fn options(&self) -> Options<'_> {
        Options { rest: &self.buffer.as_ref()[HEADER_LEN..self.header_len()] }
    }

    /// Whether the header checksum holds.
    pub fn verify_checksum(&self) -> bool {
        checksum::verify_ipv4_checksum(self.header())
    }

    /// Return the sum of the pseudo header of an unfragmented payload (RFC 793 §3.1).
    pub fn pseudo_sum(&self) -> u16 {
        let length = self.total_len() - self.header_len() as u16;
        checksum::pseudo_v4(self.src().to_bits(), self.dst().to_bits(), self.proto(), length)
    }

    /// Return the payload: up to the total length, not to the end of the frame.
    pub fn payload(&self) -> &[u8] {
        &self.buffer.as_ref()[self.header_len()..usize::from(self.total_len())]
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Packet<T> {
    /// Set version 4 and the length of the header in bytes, a multiple of 4 from 20 to 60.
    pub fn set_header_len(&mut self, length: usize) {
        debug_assert!((HEADER_LEN..=60).contains(&length) && length.is_multiple_of(4));
        self.buffer.as_mut()[field::VERSION_IHL] = 0x40 | (length / 4) as u8 & 0x0f;
    }

    /// Set the differentiated services field and congestion bits.
    pub fn set_tos(&mut self, tos: u8) {
        self.buffer.as_mut()[field::TOS] = tos;
    }

    /// Set the length of header and payload, in bytes.
    pub fn set_total_len(&mut self, length: u16) {
        put_u16(self.buffer.as_mut(), field::TOTAL_LEN, length);
    }

    /// Set the identification.
    pub fn set_ident(&mut self, ident: u16) {
        put_u16(self.buffer.as_mut(), field::IDENT, ident);
    }

    /// Set both flags and the offset, in bytes; its lowest three bits are dropped.
    pub fn set_fragment(&mut self, dont_fragment: bool, more_fragments: bool, offset: u16) {
        let mut value = offset >> 3;
        if dont_fragment {
            value |= DONT_FRAGMENT;
        }
        if more_fragments {
            value |= MORE_FRAGMENTS;
        }
        put_u16(self.buffer.as_mut(), field::FRAGMENT, value);
    }

    /// Set the number of hops left.
    pub fn set_ttl(&mut self, ttl: u8) {
        self.buffer.as_mut()[field::TTL] = ttl;
    }

    /// Set the protocol of the payload.
    pub fn set_proto(&mut self, proto: u8) {
        self.buffer.as_mut()[field::PROTO] = proto;
    }

    /// Set the header checksum.
    pub fn set_checksum(&mut self, checksum: u16) {
        put_u16(self.buffer.as_mut(), field::CHECKSUM, checksum);
    }

    /// Set the source address.
    pub fn set_src(&mut self, addr: Ipv4Addr) {
        self.buffer.as_mut()[field::SRC].copy_from_slice(&addr.octets());
    }

    /// Set the destination address.
    pub fn set_dst(&mut self, addr: Ipv4Addr) {
        self.buffer.as_mut()[field::DST].copy_from_slice(&addr.octets());
    }

    /// Compute the header checksum and set it.
    pub fn fill_checksum(&mut self) {
        self.set_checksum(0);
        let checksum = checksum::checksum(self.header());
        self.set_checksum(checksum);
    }

    /// Return the option bytes, to be written. The header length must be set.
    pub fn options_mut(&mut self) -> &mut [u8] {
        let header = self.header_len();
        &mut self.buffer.as_mut()[HEADER_LEN..header]
    }

    /// Return the payload, to be written. Header length and total length must be set.
    pub fn payload_mut(&mut self) -> &mut [u8] {
        let range = self.header_len()..usize::from(self.total_len());
        &mut self.buffer.as_mut()[range]
    }
}

impl<T: AsRef<[u8]>> fmt::Display for Packet<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IPv4 {} > {} proto {} ttl {}", self.src(), self.dst(), self.proto(), self.ttl())?;
        if self.is_fragment() {
            let more = if self.more_fragments() { "+" } else { "" };
            write!(f, " id {} fragment {}{more}", self.ident(), self.fragment_offset())?;
        }
        Ok(())
    }
}

/// One option of an IPv4 header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ipv4Option<'a> {
    /// Copied flag, class and number in one byte: 7 record route, 68 timestamp, 131 and 137 source routes.
    pub kind: u8,
    /// What follows kind and length; empty for a no-operation.
    pub data: &'a [u8],
}

/// Walk through the options of an IPv4 header (RFC 791 §3.1).
#[derive(Clone, Debug)]
pub struct Options<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Options<'a> {
    type Item = Result<Ipv4Option<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        const END: u8 = 0;
        const NO_OPERATION: u8 = 1;
        let rest = std::mem::take(&mut self.rest);
        match *rest {
            [] | [END, ..] => None,
            [NO_OPERATION, ref after @ ..] => {
                self.rest = after;
                Some(Ok(Ipv4Option { kind: NO_OPERATION, data: &[] }))
            }
            [kind, length, ..] if length >= 2 && usize::from(length) <= rest.len() => {
                let (option, after) = rest.split_at(usize::from(length));
                self.rest = after;
                Some(Ok(Ipv4Option { kind, data: &option[2..] }))
            }
            _ => Some(Err(Malformed::Ipv4Option)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 192.0.2.1 > 198.51.100.7, UDP, a router-alert option, four bytes of payload, two of padding.
    const PACKET: [u8; 30] = [
        0x46, 0x02, 0x00, 0x1c, 0x12, 0x34, 0x40, 0x00, 0x40, 0x11, 0xa7, 0x5a, 192, 0, 2, 1, 198, 51, 100, 7, //
        0x94, 0x04, 0x00, 0x00, 1, 2, 3, 4, 0, 0,
    ];

    #[test]
    fn reads() {
        let packet = Packet::new_checked(&PACKET).unwrap();
        assert_eq!(packet.to_string(), "IPv4 192.0.2.1 > 198.51.100.7 proto 17 ttl 64");
        assert_eq!((packet.header_len(), packet.tos(), packet.ident()), (24, 2, 0x1234));
        assert!(packet.dont_fragment() && !packet.is_fragment());
        assert_eq!(packet.payload(), [1, 2, 3, 4]);
        assert!(packet.verify_checksum());
        let options: Vec<_> = packet.options().collect();
        assert_eq!(options, [Ok(Ipv4Option { kind: 0x94, data: &[0, 0] })]);
    }

    #[test]
    fn writes_what_it_reads() {
        let mut packet = Packet::new_unchecked([0; 30]);
        packet.set_header_len(24);
        packet.set_tos(2);
        packet.set_total_len(28);
        packet.set_ident(0x1234);
        packet.set_fragment(true, false, 0);
        packet.set_ttl(64);
        packet.set_proto(17);
        packet.set_src(Ipv4Addr::new(192, 0, 2, 1));
        packet.set_dst(Ipv4Addr::new(198, 51, 100, 7));
        packet.options_mut().copy_from_slice(&[0x94, 4, 0, 0]);
        packet.payload_mut().copy_from_slice(&[1, 2, 3, 4]);
        packet.fill_checksum();
        assert_eq!(packet.into_inner(), PACKET);
    }

    #[test]
    fn reads_fragments() {
        let mut packet = Packet::new_checked(PACKET).unwrap();
        packet.set_fragment(false, true, 1480);
        assert!(packet.is_fragment() && packet.more_fragments() && !packet.dont_fragment());
        assert_eq!(packet.fragment_offset(), 1480);
        assert!(packet.to_string().ends_with("id 4660 fragment 1480+"));
    }

    #[test]
    fn refuses_contradicting_lengths() {
        let refused = |place: usize, value: u8| {
            let mut bytes = PACKET;
            bytes[place] = value;
            Packet::new_checked(bytes).unwrap_err()
        };
        assert_eq!(Packet::new_checked(&PACKET[..19]), Err(Malformed::Ipv4Truncated));
        assert_eq!(refused(0, 0x56), Malformed::Ipv4Version);
        assert_eq!(refused(0, 0x44), Malformed::Ipv4HeaderLength);
        assert_eq!(refused(0, 0x4f), Malformed::Ipv4HeaderLength);
        assert_eq!(refused(3, 23), Malformed::Ipv4TotalShort);
        assert_eq!(refused(3, 31), Malformed::Ipv4TotalLong);
    }

    #[test]
    fn a_bad_option_ends_the_walk() {
        let mut packet = Packet::new_checked(PACKET).unwrap();
        for bad in [[1, 7, 1, 0], [7, 5, 0, 0], [1, 1, 1, 7]] {
            packet.options_mut().copy_from_slice(&bad);
            let options: Vec<_> = packet.options().skip_while(Result::is_ok).collect();
            assert_eq!(options, [Err(Malformed::Ipv4Option)]);
        }
    }
}

//! IPv6 (RFC 8200): the fixed header. Extension headers are walked in [`ipv6ext`].

use super::bytes::{array_at, put_u16, put_u32, u16_at, u32_at};
use super::{Malformed, checksum, ipv6ext};
use std::fmt;
use std::net::Ipv6Addr;

mod field {
    use std::ops::Range;

    pub const VERSION_CLASS_LABEL: Range<usize> = 0..4;
    pub const PAYLOAD_LEN: Range<usize> = 4..6;
    pub const NEXT_HEADER: usize = 6;
    pub const HOP_LIMIT: usize = 7;
    pub const SRC: Range<usize> = 8..24;
    pub const DST: Range<usize> = 24..40;
}

/// Length of the fixed header, in bytes.
pub const HEADER_LEN: usize = field::DST.end;

const LABEL: u32 = 0x000f_ffff;

/// A view of an IPv6 packet. The buffer may be longer than the packet (Ethernet padding): the payload length counts.
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

    /// Ensure that no accessor will panic: version and payload length fit the buffer.
    pub fn check_len(&self) -> Result<(), Malformed> {
        let data = self.buffer.as_ref();
        if data.len() < HEADER_LEN {
            return Err(Malformed::Ipv6Truncated);
        }
        if self.version() != 6 {
            return Err(Malformed::Ipv6Version);
        }
        if HEADER_LEN + usize::from(self.payload_len()) > data.len() {
            return Err(Malformed::Ipv6PayloadLong);
        }
        Ok(())
    }

    /// Return the buffer.
    pub fn into_inner(self) -> T {
        self.buffer
    }

    /// Return the version.
    pub fn version(&self) -> u8 {
        self.buffer.as_ref()[field::VERSION_CLASS_LABEL.start] >> 4
    }

    /// Return the traffic class.
    pub fn traffic_class(&self) -> u8 {
        (u32_at(self.buffer.as_ref(), field::VERSION_CLASS_LABEL) >> 20) as u8
    }

    /// Return the flow label, 20 bits (RFC 6437).
    pub fn flow_label(&self) -> u32 {
        u32_at(self.buffer.as_ref(), field::VERSION_CLASS_LABEL) & LABEL
    }

    /// Return the length of what follows the fixed header, in bytes.
    pub fn payload_len(&self) -> u16 {
        u16_at(self.buffer.as_ref(), field::PAYLOAD_LEN)
    }

    /// Return the type of what follows the fixed header: an extension header or the upper-layer protocol.
    pub fn next_header(&self) -> u8 {
        self.buffer.as_ref()[field::NEXT_HEADER]
    }

    /// Return how many hops the packet may still take.
    pub fn hop_limit(&self) -> u8 {
        self.buffer.as_ref()[field::HOP_LIMIT]
    }

    /// Return the source address.
    pub fn src(&self) -> Ipv6Addr {
        Ipv6Addr::from(array_at(self.buffer.as_ref(), field::SRC))
    }

    /// Return the destination address.
    pub fn dst(&self) -> Ipv6Addr {
        Ipv6Addr::from(array_at(self.buffer.as_ref(), field::DST))
    }

    /// Walk the extension headers to the upper layer.
    pub fn extensions(&self) -> Result<ipv6ext::Chain, Malformed> {
        ipv6ext::walk(self.next_header(), self.payload())
    }

    /// Return the sum of the pseudo header of an upper layer of `length` bytes (RFC 8200 §8.1).
    ///
    /// With a routing header that has segments left, the destination would be its last segment: not looked up here.
    pub fn pseudo_sum(&self, proto: u8, length: u32) -> u16 {
        checksum::pseudo_v6(self.src().octets(), self.dst().octets(), proto, length)
    }

    /// Return what follows the fixed header: up to the payload length, not to the end of the frame.
    pub fn payload(&self) -> &[u8] {
        &self.buffer.as_ref()[HEADER_LEN..HEADER_LEN + usize::from(self.payload_len())]
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Packet<T> {
    /// Set version 6, the traffic class and the lowest 20 bits of the flow label.
    pub fn set_class_and_label(&mut self, class: u8, label: u32) {
        let word = 6 << 28 | u32::from(class) << 20 | label & LABEL;
        put_u32(self.buffer.as_mut(), field::VERSION_CLASS_LABEL, word);
    }

    /// Set the length of what follows the fixed header, in bytes.
    pub fn set_payload_len(&mut self, length: u16) {
        put_u16(self.buffer.as_mut(), field::PAYLOAD_LEN, length);
    }

    /// Set the type of what follows the fixed header.
    pub fn set_next_header(&mut self, next: u8) {
        self.buffer.as_mut()[field::NEXT_HEADER] = next;
    }

    /// Set the number of hops left.
    pub fn set_hop_limit(&mut self, hops: u8) {
        self.buffer.as_mut()[field::HOP_LIMIT] = hops;
    }

    /// Set the source address.
    pub fn set_src(&mut self, addr: Ipv6Addr) {
        self.buffer.as_mut()[field::SRC].copy_from_slice(&addr.octets());
    }

    /// Set the destination address.
    pub fn set_dst(&mut self, addr: Ipv6Addr) {
        self.buffer.as_mut()[field::DST].copy_from_slice(&addr.octets());
    }

    /// Return what follows the fixed header, to be written. The payload length must be set.
    pub fn payload_mut(&mut self) -> &mut [u8] {
        let end = HEADER_LEN + usize::from(self.payload_len());
        &mut self.buffer.as_mut()[HEADER_LEN..end]
    }
}

impl<T: AsRef<[u8]>> fmt::Display for Packet<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IPv6 {} > {} next {} hops {}", self.src(), self.dst(), self.next_header(), self.hop_limit())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet() -> Packet<[u8; 46]> {
        let mut packet = Packet::new_unchecked([0; 46]);
        packet.set_class_and_label(0xab, 0xfff1_2345);
        packet.set_payload_len(4);
        packet.set_next_header(59);
        packet.set_hop_limit(64);
        packet.set_src("fe80::1".parse().unwrap());
        packet.set_dst("2001:db8::2".parse().unwrap());
        packet.payload_mut().copy_from_slice(&[1, 2, 3, 4]);
        packet
    }

    #[test]
    fn reads_what_it_writes() {
        let packet = Packet::new_checked(packet().into_inner()).unwrap();
        assert_eq!(packet.to_string(), "IPv6 fe80::1 > 2001:db8::2 next 59 hops 64");
        assert_eq!((packet.traffic_class(), packet.flow_label()), (0xab, 0x1_2345));
        assert_eq!(packet.payload(), [1, 2, 3, 4]);
        assert_eq!(packet.into_inner()[..8], [0x6a, 0xb1, 0x23, 0x45, 0, 4, 59, 64]);
    }

    #[test]
    fn refuses_contradicting_lengths() {
        let bytes = packet().into_inner();
        assert_eq!(Packet::new_checked(&bytes[..39]), Err(Malformed::Ipv6Truncated));
        assert_eq!(Packet::new_checked(&bytes[..43]), Err(Malformed::Ipv6PayloadLong));
        assert_eq!(Packet::new_checked([0; 40]), Err(Malformed::Ipv6Version));
    }
}

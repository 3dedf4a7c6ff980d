//! UDP (RFC 768).

use super::bytes::{put_u16, u16_at};
use super::{Malformed, checksum};
use std::fmt;

mod field {
    use std::ops::Range;

    pub const SRC_PORT: Range<usize> = 0..2;
    pub const DST_PORT: Range<usize> = 2..4;
    pub const LENGTH: Range<usize> = 4..6;
    pub const CHECKSUM: Range<usize> = 6..8;
}

/// Length of the header, in bytes.
pub const HEADER_LEN: usize = field::CHECKSUM.end;

/// A view of a UDP datagram. The buffer may be longer than the datagram: the length field counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet<T: AsRef<[u8]>> {
    buffer: T,
}

impl<T: AsRef<[u8]>> Packet<T> {
    /// View a buffer without a check: accessors panic where it is too short or its length is wrong.
    pub const fn new_unchecked(buffer: T) -> Self {
        Packet { buffer }
    }

    /// View a buffer and check it as [`check_len`](Self::check_len) does.
    pub fn new_checked(buffer: T) -> Result<Self, Malformed> {
        let packet = Self::new_unchecked(buffer);
        packet.check_len()?;
        Ok(packet)
    }

    /// Ensure that no accessor will panic: the length field fits header and buffer.
    ///
    /// Length 0 (a jumbogram, RFC 2675 §4) is refused: no frame here is that long.
    pub fn check_len(&self) -> Result<(), Malformed> {
        let data = self.buffer.as_ref();
        if data.len() < HEADER_LEN {
            return Err(Malformed::UdpTruncated);
        }
        if !(HEADER_LEN..=data.len()).contains(&usize::from(self.length())) {
            return Err(Malformed::UdpLength);
        }
        Ok(())
    }

    /// Return the buffer.
    pub fn into_inner(self) -> T {
        self.buffer
    }

    /// Return the source port.
    pub fn src_port(&self) -> u16 {
        u16_at(self.buffer.as_ref(), field::SRC_PORT)
    }

    /// Return the destination port.
    pub fn dst_port(&self) -> u16 {
        u16_at(self.buffer.as_ref(), field::DST_PORT)
    }

    /// Return the length of header and payload, in bytes.
    pub fn length(&self) -> u16 {
        u16_at(self.buffer.as_ref(), field::LENGTH)
    }

    /// Return the checksum; 0 where the sender made none.
    pub fn checksum(&self) -> u16 {
        u16_at(self.buffer.as_ref(), field::CHECKSUM)
    }

    /// Whether the checksum holds or is absent. `pseudo` is the sum of the pseudo header.
    ///
    /// Over IPv6 an absent checksum is legal for tunnels only (RFC 6935): ask [`checksum`](Self::checksum) there.
    pub fn verify_checksum(&self, pseudo: u16) -> bool {
        let datagram = &self.buffer.as_ref()[..usize::from(self.length())];
        self.checksum() == 0 || checksum::add(pseudo, checksum::sum(datagram)) == 0xffff
    }

    /// Return the payload: up to the length field.
    pub fn payload(&self) -> &[u8] {
        &self.buffer.as_ref()[HEADER_LEN..usize::from(self.length())]
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Packet<T> {
    /// Set the source port.
    pub fn set_src_port(&mut self, port: u16) {
        put_u16(self.buffer.as_mut(), field::SRC_PORT, port);
    }

    /// Set the destination port.
    pub fn set_dst_port(&mut self, port: u16) {
        put_u16(self.buffer.as_mut(), field::DST_PORT, port);
    }

    /// Set the length of header and payload, in bytes.
    pub fn set_length(&mut self, length: u16) {
        put_u16(self.buffer.as_mut(), field::LENGTH, length);
    }

    /// Set the checksum.
    pub fn set_checksum(&mut self, checksum: u16) {
        put_u16(self.buffer.as_mut(), field::CHECKSUM, checksum);
    }

    /// Compute the checksum over the datagram and set it. `pseudo` is the sum of the pseudo header.
    pub fn fill_checksum(&mut self, pseudo: u16) {
        self.set_checksum(0);
        let datagram = &self.buffer.as_ref()[..usize::from(self.length())];
        let checksum = !checksum::add(pseudo, checksum::sum(datagram));
        self.set_checksum(checksum::udp_nonzero(checksum));
    }

    /// Return the payload, to be written. The length must be set.
    pub fn payload_mut(&mut self) -> &mut [u8] {
        let length = usize::from(self.length());
        &mut self.buffer.as_mut()[HEADER_LEN..length]
    }
}

impl<T: AsRef<[u8]>> fmt::Display for Packet<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UDP {} > {} length {}", self.src_port(), self.dst_port(), self.length())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::checksum::pseudo_v4;

    const DATAGRAM: [u8; 13] = [0xbf, 0x00, 0x00, 0x35, 0x00, 0x0c, 0x12, 0x4d, 0xaa, 0x00, 0x00, 0xff, 0x77];
    const PSEUDO: u16 = pseudo_v4(0xc0a8_0101, 0xc0a8_0102, 17, 12);

    #[test]
    fn reads() {
        let udp = Packet::new_checked(&DATAGRAM).unwrap();
        assert_eq!(udp.to_string(), "UDP 48896 > 53 length 12");
        assert_eq!(udp.payload(), [0xaa, 0x00, 0x00, 0xff]);
        assert!(udp.verify_checksum(PSEUDO));
        assert!(!udp.verify_checksum(PSEUDO + 1));
    }

    #[test]
    fn writes_what_it_reads() {
        let mut bytes = [0; 13];
        bytes[12] = 0x77;
        let mut udp = Packet::new_unchecked(bytes);
        udp.set_src_port(48896);
        udp.set_dst_port(53);
        udp.set_length(12);
        udp.payload_mut().copy_from_slice(&[0xaa, 0x00, 0x00, 0xff]);
        udp.fill_checksum(PSEUDO);
        assert_eq!(udp.into_inner(), DATAGRAM);
    }

    #[test]
    fn a_computed_zero_is_sent_as_all_ones() {
        let mut udp = Packet::new_unchecked([0; 8]);
        udp.set_length(8);
        udp.fill_checksum(!8);
        assert_eq!(udp.checksum(), 0xffff);
        assert!(udp.verify_checksum(!8));
        udp.set_checksum(0);
        assert!(udp.verify_checksum(1234));
    }

    #[test]
    fn refuses_contradicting_lengths() {
        assert_eq!(Packet::new_checked(&DATAGRAM[..7]), Err(Malformed::UdpTruncated));
        assert_eq!(Packet::new_checked(&DATAGRAM[..11]), Err(Malformed::UdpLength));
        assert_eq!(Packet::new_checked([0, 1, 0, 2, 0, 7, 0, 0, 0]), Err(Malformed::UdpLength));
        assert_eq!(Packet::new_checked([0; 8]), Err(Malformed::UdpLength));
    }
}

//! SCTP (RFC 9260): the common header. Chunks are not read.
//!
//! The checksum is a CRC32c over the packet without a pseudo header: rewriting an address leaves it right, rewriting a
//! port does not, and Catena does not compute it. A function that must rewrite ports cannot serve SCTP.

use super::Malformed;
use super::bytes::{put_u16, put_u32, u16_at, u32_at};
use std::fmt;

mod field {
    use std::ops::Range;

    pub const SRC_PORT: Range<usize> = 0..2;
    pub const DST_PORT: Range<usize> = 2..4;
    pub const VERIFICATION_TAG: Range<usize> = 4..8;
    pub const CHECKSUM: Range<usize> = 8..12;
}

/// Length of the common header, in bytes.
pub const HEADER_LEN: usize = field::CHECKSUM.end;

/// A view of an SCTP packet.
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

    /// Ensure that no accessor will panic.
    pub fn check_len(&self) -> Result<(), Malformed> {
        if self.buffer.as_ref().len() < HEADER_LEN {
            return Err(Malformed::SctpTruncated);
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

    /// Return the verification tag, which the receiver of the packet has chosen.
    pub fn verification_tag(&self) -> u32 {
        u32_at(self.buffer.as_ref(), field::VERIFICATION_TAG)
    }

    /// Return the checksum field as it stands.
    pub fn checksum(&self) -> u32 {
        u32_at(self.buffer.as_ref(), field::CHECKSUM)
    }

    /// Return the chunks.
    pub fn payload(&self) -> &[u8] {
        &self.buffer.as_ref()[HEADER_LEN..]
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Packet<T> {
    /// Set the source port; the checksum stays as it was.
    pub fn set_src_port(&mut self, port: u16) {
        put_u16(self.buffer.as_mut(), field::SRC_PORT, port);
    }

    /// Set the destination port; the checksum stays as it was.
    pub fn set_dst_port(&mut self, port: u16) {
        put_u16(self.buffer.as_mut(), field::DST_PORT, port);
    }

    /// Set the verification tag; the checksum stays as it was.
    pub fn set_verification_tag(&mut self, tag: u32) {
        put_u32(self.buffer.as_mut(), field::VERIFICATION_TAG, tag);
    }
}

impl<T: AsRef<[u8]>> fmt::Display for Packet<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SCTP {} > {} tag 0x{:08x}", self.src_port(), self.dst_port(), self.verification_tag())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_writes() {
        let mut sctp = Packet::new_checked([0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 9]).unwrap();
        sctp.set_src_port(0x1234);
        sctp.set_dst_port(36412);
        sctp.set_verification_tag(0xdead_beef);
        assert_eq!(sctp.to_string(), "SCTP 4660 > 36412 tag 0xdeadbeef");
        assert_eq!((sctp.checksum(), sctp.payload()), (0x0102_0304, &[9][..]));
        assert_eq!(sctp.into_inner()[..8], [0x12, 0x34, 0x8e, 0x3c, 0xde, 0xad, 0xbe, 0xef]);
    }

    #[test]
    fn refuses_a_truncated_header() {
        assert_eq!(Packet::new_checked([0; 11]), Err(Malformed::SctpTruncated));
    }
}

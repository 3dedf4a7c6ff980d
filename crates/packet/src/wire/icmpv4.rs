//! ICMP for IPv4 (RFC 792).

use super::bytes::{array_at, put_u16, u16_at};
use super::{Malformed, checksum};
use std::fmt;

mod field {
    use std::ops::Range;

    pub const TYPE: usize = 0;
    pub const CODE: usize = 1;
    pub const CHECKSUM: Range<usize> = 2..4;
    pub const REST: Range<usize> = 4..8;
    pub const IDENT: Range<usize> = 4..6;
    pub const SEQUENCE: Range<usize> = 6..8;
    pub const NEXT_HOP_MTU: Range<usize> = 6..8;
}

/// Length of the header, in bytes.
pub const HEADER_LEN: usize = field::REST.end;

/// Message types.
pub mod kind {
    /// Echo reply.
    pub const ECHO_REPLY: u8 = 0;
    /// Destination unreachable.
    pub const UNREACHABLE: u8 = 3;
    /// Source quench (obsolete, RFC 6633).
    pub const SOURCE_QUENCH: u8 = 4;
    /// Redirect.
    pub const REDIRECT: u8 = 5;
    /// Echo request.
    pub const ECHO_REQUEST: u8 = 8;
    /// Time exceeded.
    pub const TIME_EXCEEDED: u8 = 11;
    /// Parameter problem.
    pub const PARAMETER_PROBLEM: u8 = 12;
}

/// A view of an ICMP message.
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
            return Err(Malformed::IcmpTruncated);
        }
        Ok(())
    }

    /// Return the buffer.
    pub fn into_inner(self) -> T {
        self.buffer
    }

    /// Return the type ([`kind`]).
    pub fn kind(&self) -> u8 {
        self.buffer.as_ref()[field::TYPE]
    }

    /// Return the code, whose meaning depends on the type.
    pub fn code(&self) -> u8 {
        self.buffer.as_ref()[field::CODE]
    }

    /// Return the checksum.
    pub fn checksum(&self) -> u16 {
        u16_at(self.buffer.as_ref(), field::CHECKSUM)
    }

    /// Return the four bytes whose meaning depends on the type.
    pub fn rest(&self) -> [u8; 4] {
        array_at(self.buffer.as_ref(), field::REST)
    }

    /// Return the identifier of an echo.
    pub fn ident(&self) -> u16 {
        u16_at(self.buffer.as_ref(), field::IDENT)
    }

    /// Return the sequence number of an echo.
    pub fn sequence(&self) -> u16 {
        u16_at(self.buffer.as_ref(), field::SEQUENCE)
    }

    /// Return the next hop's MTU of a "fragmentation needed" (RFC 1191), in bytes.
    pub fn next_hop_mtu(&self) -> u16 {
        u16_at(self.buffer.as_ref(), field::NEXT_HOP_MTU)
    }

    /// Whether the message reports an error, and so quotes the packet that caused it (RFC 1122 §3.2.2).
    pub fn is_error(&self) -> bool {
        matches!(
            self.kind(),
            kind::UNREACHABLE | kind::SOURCE_QUENCH | kind::REDIRECT | kind::TIME_EXCEEDED | kind::PARAMETER_PROBLEM
        )
    }

    /// Whether the checksum holds.
    pub fn verify_checksum(&self) -> bool {
        checksum::sum(self.buffer.as_ref()) == 0xffff
    }

    /// Return what follows the header; in an error, the start of the packet that caused it.
    pub fn payload(&self) -> &[u8] {
        &self.buffer.as_ref()[HEADER_LEN..]
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Packet<T> {
    /// Set type and code.
    pub fn set_kind(&mut self, kind: u8, code: u8) {
        let data = self.buffer.as_mut();
        data[field::TYPE] = kind;
        data[field::CODE] = code;
    }

    /// Set the checksum.
    pub fn set_checksum(&mut self, checksum: u16) {
        put_u16(self.buffer.as_mut(), field::CHECKSUM, checksum);
    }

    /// Set the four bytes whose meaning depends on the type.
    pub fn set_rest(&mut self, rest: [u8; 4]) {
        self.buffer.as_mut()[field::REST].copy_from_slice(&rest);
    }

    /// Set the identifier of an echo.
    pub fn set_ident(&mut self, ident: u16) {
        put_u16(self.buffer.as_mut(), field::IDENT, ident);
    }

    /// Set the sequence number of an echo.
    pub fn set_sequence(&mut self, sequence: u16) {
        put_u16(self.buffer.as_mut(), field::SEQUENCE, sequence);
    }

    /// Compute the checksum over the message and set it.
    pub fn fill_checksum(&mut self) {
        self.set_checksum(0);
        let checksum = checksum::checksum(self.buffer.as_ref());
        self.set_checksum(checksum);
    }

    /// Return what follows the header, to be written.
    pub fn payload_mut(&mut self) -> &mut [u8] {
        &mut self.buffer.as_mut()[HEADER_LEN..]
    }
}

impl<T: AsRef<[u8]>> fmt::Display for Packet<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind() {
            kind::ECHO_REQUEST => write!(f, "ICMP echo request id {} seq {}", self.ident(), self.sequence()),
            kind::ECHO_REPLY => write!(f, "ICMP echo reply id {} seq {}", self.ident(), self.sequence()),
            other => write!(f, "ICMP type {other} code {}", self.code()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ECHO: [u8; 12] = [8, 0, 0x8e, 0xfe, 0x12, 0x34, 0xab, 0xcd, 0xaa, 0, 0, 0xff];

    #[test]
    fn reads() {
        let echo = Packet::new_checked(&ECHO).unwrap();
        assert_eq!(echo.to_string(), "ICMP echo request id 4660 seq 43981");
        assert_eq!(echo.payload(), [0xaa, 0, 0, 0xff]);
        assert!(echo.verify_checksum() && !echo.is_error());
    }

    #[test]
    fn writes_what_it_reads() {
        let mut echo = Packet::new_checked([0; 12]).unwrap();
        echo.set_kind(kind::ECHO_REQUEST, 0);
        echo.set_ident(0x1234);
        echo.set_sequence(0xabcd);
        echo.payload_mut().copy_from_slice(&[0xaa, 0, 0, 0xff]);
        echo.fill_checksum();
        assert_eq!(echo.into_inner(), ECHO);
    }

    #[test]
    fn reads_errors() {
        let mut error = Packet::new_checked([0; 8]).unwrap();
        error.set_kind(kind::UNREACHABLE, 4);
        error.set_rest([0, 0, 0x05, 0xdc]);
        assert!(error.is_error());
        assert_eq!((error.next_hop_mtu(), error.rest()), (1500, [0, 0, 5, 0xdc]));
        assert_eq!(error.to_string(), "ICMP type 3 code 4");
    }

    #[test]
    fn refuses_a_truncated_header() {
        assert_eq!(Packet::new_checked(&ECHO[..7]), Err(Malformed::IcmpTruncated));
    }
}

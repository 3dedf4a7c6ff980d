//! ICMP for IPv6 (RFC 4443).

use super::bytes::{put_u16, u16_at, u32_at};
use super::{Malformed, checksum};
use std::fmt;

mod field {
    use std::ops::Range;

    pub const TYPE: usize = 0;
    pub const CODE: usize = 1;
    pub const CHECKSUM: Range<usize> = 2..4;
    /// What follows is the message body: these are at its start.
    pub const IDENT: Range<usize> = 0..2;
    pub const SEQUENCE: Range<usize> = 2..4;
    pub const MTU: Range<usize> = 0..4;
}

/// Length of the header, in bytes. The body of an echo or an error starts with four bytes of its own.
pub const HEADER_LEN: usize = field::CHECKSUM.end;

const WORD: usize = 4;

/// Message types.
pub mod kind {
    /// Destination unreachable.
    pub const UNREACHABLE: u8 = 1;
    /// Packet too big.
    pub const TOO_BIG: u8 = 2;
    /// Time exceeded.
    pub const TIME_EXCEEDED: u8 = 3;
    /// Parameter problem.
    pub const PARAMETER_PROBLEM: u8 = 4;
    /// Echo request.
    pub const ECHO_REQUEST: u8 = 128;
    /// Echo reply.
    pub const ECHO_REPLY: u8 = 129;
    /// Router solicitation (RFC 4861), the first of five neighbour discovery messages.
    pub const ROUTER_SOLICITATION: u8 = 133;
    /// Redirect (RFC 4861), the last of five neighbour discovery messages.
    pub const REDIRECT: u8 = 137;
}

/// A view of an ICMPv6 message.
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
            return Err(Malformed::Icmpv6Truncated);
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

    /// Return what follows the checksum.
    pub fn body(&self) -> &[u8] {
        &self.buffer.as_ref()[HEADER_LEN..]
    }

    /// Return identifier and sequence number of an echo; `None` for other messages and a body too short.
    pub fn echo(&self) -> Option<(u16, u16)> {
        let body = self.body();
        (self.is_echo() && body.len() >= WORD).then(|| (u16_at(body, field::IDENT), u16_at(body, field::SEQUENCE)))
    }

    /// Return the MTU of a "packet too big", in bytes; `None` for other messages and a body too short.
    pub fn mtu(&self) -> Option<u32> {
        let body = self.body();
        (self.kind() == kind::TOO_BIG && body.len() >= WORD).then(|| u32_at(body, field::MTU))
    }

    /// Whether the message is an echo request or reply.
    pub fn is_echo(&self) -> bool {
        matches!(self.kind(), kind::ECHO_REQUEST | kind::ECHO_REPLY)
    }

    /// Whether the message reports an error: types below 128 do (RFC 4443 §2.1).
    pub fn is_error(&self) -> bool {
        self.kind() < 128
    }

    /// Return the start of the packet that caused an error; `None` for other messages and a body too short.
    pub fn original(&self) -> Option<&[u8]> {
        if self.is_error() { self.body().get(WORD..) } else { None }
    }

    /// Whether the checksum holds. `pseudo` is the sum of the pseudo header.
    pub fn verify_checksum(&self, pseudo: u16) -> bool {
        checksum::add(pseudo, checksum::sum(self.buffer.as_ref())) == 0xffff
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

    /// Compute the checksum over the message and set it. `pseudo` is the sum of the pseudo header.
    pub fn fill_checksum(&mut self, pseudo: u16) {
        self.set_checksum(0);
        let checksum = !checksum::add(pseudo, checksum::sum(self.buffer.as_ref()));
        self.set_checksum(checksum);
    }

    /// Return what follows the checksum, to be written.
    pub fn body_mut(&mut self) -> &mut [u8] {
        &mut self.buffer.as_mut()[HEADER_LEN..]
    }
}

impl<T: AsRef<[u8]>> fmt::Display for Packet<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.kind(), self.echo()) {
            (kind::ECHO_REQUEST, Some((ident, seq))) => {
                write!(f, "ICMPv6 echo request id {ident} seq {seq}")
            }
            (kind::ECHO_REPLY, Some((ident, seq))) => {
                write!(f, "ICMPv6 echo reply id {ident} seq {seq}")
            }
            (other, _) => write!(f, "ICMPv6 type {other} code {}", self.code()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::checksum::pseudo_v6;
    use std::net::Ipv6Addr;

    fn pseudo() -> u16 {
        let address = |text: &str| text.parse::<Ipv6Addr>().unwrap().octets();
        pseudo_v6(address("fe80::1"), address("fe80::2"), 58, 12)
    }

    fn echo() -> Packet<[u8; 12]> {
        let mut echo = Packet::new_checked([0; 12]).unwrap();
        echo.set_kind(kind::ECHO_REQUEST, 0);
        echo.body_mut().copy_from_slice(&[0x12, 0x34, 0xab, 0xcd, 0xaa, 0, 0, 0xff]);
        echo.fill_checksum(pseudo());
        echo
    }

    #[test]
    fn reads_what_it_writes() {
        let echo = echo();
        assert_eq!(echo.to_string(), "ICMPv6 echo request id 4660 seq 43981");
        assert_eq!(echo.echo(), Some((0x1234, 0xabcd)));
        assert!(echo.verify_checksum(pseudo()) && !echo.verify_checksum(0));
        // Computed apart from this code.
        assert_eq!(echo.checksum(), 0x19b3);
        assert_eq!(echo.original(), None);
    }

    #[test]
    fn reads_errors() {
        let error = Packet::new_checked([2, 0, 0, 0, 0, 0, 5, 0, 0x60]).unwrap();
        assert!(error.is_error());
        assert_eq!((error.mtu(), error.original()), (Some(1280), Some(&[0x60][..])));
        assert_eq!(Packet::new_checked([2, 0, 0, 0, 0]).unwrap().mtu(), None);
        assert_eq!(Packet::new_checked([2, 0, 0, 0, 0]).unwrap().original(), None);
    }

    #[test]
    fn refuses_a_truncated_header() {
        assert_eq!(Packet::new_checked([0; 3]), Err(Malformed::Icmpv6Truncated));
    }
}

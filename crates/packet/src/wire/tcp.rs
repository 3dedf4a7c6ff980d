//! TCP (RFC 9293), with options.

use super::bytes::{put_u16, put_u32, u16_at, u32_at};
use super::number::proto;
use super::{Layers, Malformed, checksum};
use std::fmt;
use std::hint::select_unpredictable;

mod field {
    use std::ops::Range;

    pub const SRC_PORT: Range<usize> = 0..2;
    pub const DST_PORT: Range<usize> = 2..4;
    pub const SEQ: Range<usize> = 4..8;
    pub const ACK: Range<usize> = 8..12;
    pub const DATA_OFFSET: usize = 12;
    pub const FLAGS: usize = 13;
    pub const WINDOW: Range<usize> = 14..16;
    pub const CHECKSUM: Range<usize> = 16..18;
    pub const URGENT: Range<usize> = 18..20;
}

/// Length of a header without options, in bytes.
pub const HEADER_LEN: usize = field::URGENT.end;

/// The control bits (RFC 9293 §3.1), as [`Packet::flags`] returns them.
pub mod flag {
    /// No more data from the sender.
    pub const FIN: u8 = 0x01;
    /// Synchronize sequence numbers.
    pub const SYN: u8 = 0x02;
    /// Reset the connection.
    pub const RST: u8 = 0x04;
    /// Push.
    pub const PSH: u8 = 0x08;
    /// The acknowledgment number counts.
    pub const ACK: u8 = 0x10;
    /// The urgent pointer counts.
    pub const URG: u8 = 0x20;
    /// Congestion echo (RFC 3168).
    pub const ECE: u8 = 0x40;
    /// Congestion window reduced (RFC 3168).
    pub const CWR: u8 = 0x80;
}

/// Return the control bits ([`flag`]) of a packet by what was parsed of it: 0 where its protocol is another or the frame ends
/// before them. A later fragment has none, but only the caller knows whether it may be one.
#[inline(always)]
pub fn flags(frame: &[u8], layers: &Layers) -> u8 {
    let at = usize::from(layers.l4) + field::FLAGS;
    let are_there = (layers.proto == proto::TCP) & (at < frame.len());
    // Where there are none the first byte is read instead: small UDP ends before them, and in a mix of both a branch would be mispredicted.
    let flags = frame.get(select_unpredictable(are_there, at, 0)).copied().unwrap_or(0);
    select_unpredictable(are_there, flags, 0)
}

/// A view of a TCP segment. The buffer ends where the segment ends: IP says where.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet<T: AsRef<[u8]>> {
    buffer: T,
}

impl<T: AsRef<[u8]>> Packet<T> {
    /// View a buffer without a check: accessors panic where it is too short or its data offset is wrong.
    pub const fn new_unchecked(buffer: T) -> Self {
        Packet { buffer }
    }

    /// View a buffer and check it as [`check_len`](Self::check_len) does.
    pub fn new_checked(buffer: T) -> Result<Self, Malformed> {
        let packet = Self::new_unchecked(buffer);
        packet.check_len()?;
        Ok(packet)
    }

    /// Ensure that no accessor will panic: the data offset fits header and buffer.
    pub fn check_len(&self) -> Result<(), Malformed> {
        let data = self.buffer.as_ref();
        if data.len() < HEADER_LEN {
            return Err(Malformed::TcpTruncated);
        }
        if !(HEADER_LEN..=data.len()).contains(&self.header_len()) {
            return Err(Malformed::TcpDataOffset);
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

    /// Return the sequence number.
    pub fn seq(&self) -> u32 {
        u32_at(self.buffer.as_ref(), field::SEQ)
    }

    /// Return the acknowledgment number.
    pub fn ack(&self) -> u32 {
        u32_at(self.buffer.as_ref(), field::ACK)
    }

    /// Return the length of the header with its options, in bytes.
    pub fn header_len(&self) -> usize {
        usize::from(self.buffer.as_ref()[field::DATA_OFFSET] >> 4) * 4
    }

    /// Return the control bits ([`flag`]).
    pub fn flags(&self) -> u8 {
        self.buffer.as_ref()[field::FLAGS]
    }

    /// Return the window, not scaled.
    pub fn window(&self) -> u16 {
        u16_at(self.buffer.as_ref(), field::WINDOW)
    }

    /// Return the checksum.
    pub fn checksum(&self) -> u16 {
        u16_at(self.buffer.as_ref(), field::CHECKSUM)
    }

    /// Return the urgent pointer.
    pub fn urgent(&self) -> u16 {
        u16_at(self.buffer.as_ref(), field::URGENT)
    }

    /// Walk through the options. The walk ends at the end of the list or after the first bad length.
    pub fn options(&self) -> Options<'_> {
        Options { rest: &self.buffer.as_ref()[HEADER_LEN..self.header_len()] }
    }

    /// Whether the checksum holds. `pseudo` is the sum of the pseudo header.
    pub fn verify_checksum(&self, pseudo: u16) -> bool {
        checksum::add(pseudo, checksum::sum(self.buffer.as_ref())) == 0xffff
    }

    /// Return the payload.
    pub fn payload(&self) -> &[u8] {
        &self.buffer.as_ref()[self.header_len()..]
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

    /// Set the sequence number.
    pub fn set_seq(&mut self, seq: u32) {
        put_u32(self.buffer.as_mut(), field::SEQ, seq);
    }

    /// Set the acknowledgment number.
    pub fn set_ack(&mut self, ack: u32) {
        put_u32(self.buffer.as_mut(), field::ACK, ack);
    }

    /// Set the length of the header in bytes, a multiple of 4 from 20 to 60; reserved bits become zero.
    pub fn set_header_len(&mut self, length: usize) {
        debug_assert!((HEADER_LEN..=60).contains(&length) && length.is_multiple_of(4));
        self.buffer.as_mut()[field::DATA_OFFSET] = ((length / 4) << 4) as u8;
    }

    /// Set the control bits.
    pub fn set_flags(&mut self, flags: u8) {
        self.buffer.as_mut()[field::FLAGS] = flags;
    }

    /// Set the window.
    pub fn set_window(&mut self, window: u16) {
        put_u16(self.buffer.as_mut(), field::WINDOW, window);
    }

    /// Set the checksum.
    pub fn set_checksum(&mut self, checksum: u16) {
        put_u16(self.buffer.as_mut(), field::CHECKSUM, checksum);
    }

    /// Set the urgent pointer.
    pub fn set_urgent(&mut self, urgent: u16) {
        put_u16(self.buffer.as_mut(), field::URGENT, urgent);
    }

    /// Compute the checksum over the segment and set it. `pseudo` is the sum of the pseudo header.
    pub fn fill_checksum(&mut self, pseudo: u16) {
        self.set_checksum(0);
        let checksum = !checksum::add(pseudo, checksum::sum(self.buffer.as_ref()));
        self.set_checksum(checksum);
    }

    /// Return the option bytes, to be written. The header length must be set.
    pub fn options_mut(&mut self) -> &mut [u8] {
        let header = self.header_len();
        &mut self.buffer.as_mut()[HEADER_LEN..header]
    }

    /// Return the payload, to be written. The header length must be set.
    pub fn payload_mut(&mut self) -> &mut [u8] {
        let header = self.header_len();
        &mut self.buffer.as_mut()[header..]
    }
}

impl<T: AsRef<[u8]>> fmt::Display for Packet<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TCP {} > {} [", self.src_port(), self.dst_port())?;
        for (bit, letter) in "FSRPAUEW".chars().enumerate() {
            if self.flags() >> bit & 1 == 1 {
                write!(f, "{letter}")?;
            }
        }
        write!(f, "] seq {} ack {} win {} length {}", self.seq(), self.ack(), self.window(), self.payload().len())
    }
}

/// One option of a TCP header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TcpOption<'a> {
    /// Padding between options.
    NoOperation,
    /// Largest segment the sender takes, in bytes (RFC 9293 §3.7.1).
    MaxSegmentSize(u16),
    /// Shift of the window (RFC 7323 §2).
    WindowScale(u8),
    /// Selective acknowledgments may be sent (RFC 2018 §2).
    SackPermitted,
    /// Pairs of sequence numbers, 8 bytes each (RFC 2018 §3).
    Sack(&'a [u8]),
    /// Timestamps (RFC 7323 §3).
    Timestamps {
        /// The sender's clock.
        value: u32,
        /// The value being echoed.
        echo: u32,
    },
    /// Any other option, or one of the above with an unusual length.
    Other {
        /// The option's number.
        kind: u8,
        /// What follows kind and length.
        data: &'a [u8],
    },
}

/// Walk through the options of a TCP header (RFC 9293 §3.2).
#[derive(Clone, Debug)]
pub struct Options<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Options<'a> {
    type Item = Result<TcpOption<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        const END: u8 = 0;
        const NO_OPERATION: u8 = 1;
        let rest = std::mem::take(&mut self.rest);
        match *rest {
            [] | [END, ..] => None,
            [NO_OPERATION, ref after @ ..] => {
                self.rest = after;
                Some(Ok(TcpOption::NoOperation))
            }
            [kind, length, ..] if length >= 2 && usize::from(length) <= rest.len() => {
                let (option, after) = rest.split_at(usize::from(length));
                self.rest = after;
                Some(Ok(TcpOption::read(kind, &option[2..])))
            }
            _ => Some(Err(Malformed::TcpOption)),
        }
    }
}

impl<'a> TcpOption<'a> {
    fn read(kind: u8, data: &'a [u8]) -> Self {
        match (kind, data) {
            (2, &[a, b]) => TcpOption::MaxSegmentSize(u16::from_be_bytes([a, b])),
            (3, &[shift]) => TcpOption::WindowScale(shift),
            (4, []) => TcpOption::SackPermitted,
            (5, _) if !data.is_empty() && data.len().is_multiple_of(8) => TcpOption::Sack(data),
            (8, &[a, b, c, d, e, f, g, h]) => TcpOption::Timestamps {
                value: u32::from_be_bytes([a, b, c, d]),
                echo: u32::from_be_bytes([e, f, g, h]),
            },
            _ => TcpOption::Other { kind, data },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::checksum::pseudo_v4;

    const OPTIONS: [u8; 20] = [2, 4, 0x05, 0xb4, 4, 2, 8, 10, 0, 0, 0, 9, 0, 0, 0, 3, 1, 3, 3, 7];
    const PSEUDO: u16 = pseudo_v4(0xc0a8_0101, 0xc0a8_0102, 6, 42);

    fn segment() -> Packet<[u8; 42]> {
        let mut tcp = Packet::new_unchecked([0; 42]);
        tcp.set_src_port(48896);
        tcp.set_dst_port(80);
        tcp.set_seq(0x0123_4567);
        tcp.set_ack(0x89ab_cdef);
        tcp.set_header_len(40);
        tcp.set_flags(flag::SYN | flag::ACK | flag::ECE);
        tcp.set_window(0x0123);
        tcp.set_urgent(0x0201);
        tcp.options_mut().copy_from_slice(&OPTIONS);
        tcp.payload_mut().copy_from_slice(b"hi");
        tcp.fill_checksum(PSEUDO);
        tcp
    }

    #[test]
    fn reads_what_it_writes() {
        let tcp = Packet::new_checked(segment().into_inner()).unwrap();
        assert_eq!(tcp.to_string(), "TCP 48896 > 80 [SAE] seq 19088743 ack 2309737967 win 291 length 2");
        assert_eq!((tcp.urgent(), tcp.payload()), (0x0201, &b"hi"[..]));
        assert!(tcp.verify_checksum(PSEUDO) && !tcp.verify_checksum(PSEUDO + 1));
    }

    #[test]
    fn the_header_lies_as_rfc_9293_draws_it() {
        let bytes = segment().into_inner();
        let expected = [0xbf, 0, 0, 80, 1, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0xa0, 0x52, 1, 0x23];
        assert_eq!(bytes[..16], expected);
        assert_eq!(bytes[18..20], [2, 1]);
    }

    #[test]
    fn walks_options() {
        let options: Result<Vec<_>, _> = segment().options().map(|o| o.map(|o| format!("{o:?}"))).collect();
        let expected = [
            "MaxSegmentSize(1460)",
            "SackPermitted",
            "Timestamps { value: 9, echo: 3 }",
            "NoOperation",
            "WindowScale(7)",
        ];
        assert_eq!(options.unwrap(), expected);
    }

    #[test]
    fn a_bad_option_ends_the_walk() {
        for bad in [&[1, 2][..], &[2, 1, 0, 0], &[2, 5, 0, 0], &[253]] {
            let last = Options { rest: bad }.last();
            assert_eq!(last, Some(Err(Malformed::TcpOption)), "{bad:?}");
        }
        assert_eq!(Options { rest: &[2, 3, 0] }.next(), Some(Ok(TcpOption::Other { kind: 2, data: &[0] })));
        assert_eq!(Options { rest: &[0, 2] }.next(), None);
    }

    #[test]
    fn flags_are_found_by_what_was_parsed() {
        let frame = segment().into_inner();
        let layers = Layers { proto: proto::TCP, ..Layers::default() };
        assert_eq!(flags(&frame, &layers), flag::SYN | flag::ACK | flag::ECE);
        assert_eq!(flags(&frame, &Layers { proto: proto::UDP, ..layers }), 0);
        assert_eq!(flags(&frame[..field::FLAGS], &layers), 0);
    }

    #[test]
    fn refuses_contradicting_lengths() {
        let bytes = segment().into_inner();
        assert_eq!(Packet::new_checked(&bytes[..19]), Err(Malformed::TcpTruncated));
        assert_eq!(Packet::new_checked(&bytes[..39]), Err(Malformed::TcpDataOffset));
        assert_eq!(Packet::new_checked([0; 20]), Err(Malformed::TcpDataOffset));
    }
}

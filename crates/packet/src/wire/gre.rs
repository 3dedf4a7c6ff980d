//! GRE (RFC 2784) with key and sequence number (RFC 2890).

use super::bytes::{put_u16, put_u32, u16_at, u32_at};
use super::{Malformed, checksum};
use std::fmt;

mod field {
    use std::ops::Range;

    pub const FLAGS: Range<usize> = 0..2;
    pub const PROTOCOL: Range<usize> = 2..4;
    /// Where it is there, the checksum is the first of the optional words.
    pub const CHECKSUM: Range<usize> = 4..6;
}

/// Length of a header without optional words, in bytes.
pub const HEADER_LEN: usize = field::PROTOCOL.end;

const WORD: usize = 4;
const CHECKSUM: u16 = 0x8000;
const KEY: u16 = 0x2000;
const SEQUENCE: u16 = 0x1000;
/// RFC 2784 §2.3: "a receiver MUST discard a packet where any of bits 1-5 are non-zero, unless that receiver implements
/// RFC 1701"; RFC 2890 has since given a meaning to bits 2 and 3.
const ROUTING: u16 = 0x4c00;
const VERSION: u16 = 0x0007;

/// A view of a GRE packet.
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

    /// Ensure that no accessor will panic: version 0, and all words that the flags announce.
    pub fn check_len(&self) -> Result<(), Malformed> {
        let data = self.buffer.as_ref();
        if data.len() < HEADER_LEN {
            return Err(Malformed::GreTruncated);
        }
        if self.flags() & VERSION != 0 {
            return Err(Malformed::GreVersion);
        }
        if self.flags() & ROUTING != 0 {
            return Err(Malformed::GreRouting);
        }
        if data.len() < self.header_len() {
            return Err(Malformed::GreTruncated);
        }
        Ok(())
    }

    /// Return the buffer.
    pub fn into_inner(self) -> T {
        self.buffer
    }

    /// Return the EtherType of the payload.
    pub fn protocol(&self) -> u16 {
        u16_at(self.buffer.as_ref(), field::PROTOCOL)
    }

    /// Return the length of the header with its optional words, in bytes.
    pub fn header_len(&self) -> usize {
        self.behind(CHECKSUM | KEY | SEQUENCE)
    }

    /// Return the checksum, if there is one.
    pub fn checksum(&self) -> Option<u16> {
        self.has(CHECKSUM).then(|| u16_at(self.buffer.as_ref(), field::CHECKSUM))
    }

    /// Return the key that tells the flows of a tunnel apart, if there is one.
    pub fn key(&self) -> Option<u32> {
        let at = self.behind(CHECKSUM);
        self.has(KEY).then(|| u32_at(self.buffer.as_ref(), at..at + WORD))
    }

    /// Return the sequence number, if there is one.
    pub fn sequence(&self) -> Option<u32> {
        let at = self.behind(CHECKSUM | KEY);
        self.has(SEQUENCE).then(|| u32_at(self.buffer.as_ref(), at..at + WORD))
    }

    /// Whether the checksum holds or is absent.
    pub fn verify_checksum(&self) -> bool {
        !self.has(CHECKSUM) || checksum::sum(self.buffer.as_ref()) == 0xffff
    }

    /// Return the payload.
    pub fn payload(&self) -> &[u8] {
        &self.buffer.as_ref()[self.header_len()..]
    }

    fn flags(&self) -> u16 {
        u16_at(self.buffer.as_ref(), field::FLAGS)
    }

    fn has(&self, flag: u16) -> bool {
        self.flags() & flag != 0
    }

    /// Return where the optional words end that these flags announce.
    fn behind(&self, flags: u16) -> usize {
        HEADER_LEN + WORD * (self.flags() & flags).count_ones() as usize
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Packet<T> {
    /// Set which optional words there are, and version 0.
    pub fn set_words(&mut self, checksum: bool, key: bool, sequence: bool) {
        let mut flags = 0;
        for (is_there, flag) in [(checksum, CHECKSUM), (key, KEY), (sequence, SEQUENCE)] {
            if is_there {
                flags |= flag;
            }
        }
        put_u16(self.buffer.as_mut(), field::FLAGS, flags);
    }

    /// Set the EtherType of the payload.
    pub fn set_protocol(&mut self, ethertype: u16) {
        put_u16(self.buffer.as_mut(), field::PROTOCOL, ethertype);
    }

    /// Set the key, if there is one.
    pub fn set_key(&mut self, key: u32) {
        if self.has(KEY) {
            let at = self.behind(CHECKSUM);
            put_u32(self.buffer.as_mut(), at..at + WORD, key);
        }
    }

    /// Set the sequence number, if there is one.
    pub fn set_sequence(&mut self, sequence: u32) {
        if self.has(SEQUENCE) {
            let at = self.behind(CHECKSUM | KEY);
            put_u32(self.buffer.as_mut(), at..at + WORD, sequence);
        }
    }

    /// Compute the checksum over header and payload and set it, if there is one.
    pub fn fill_checksum(&mut self) {
        if self.has(CHECKSUM) {
            put_u32(self.buffer.as_mut(), HEADER_LEN..HEADER_LEN + WORD, 0);
            let checksum = checksum::checksum(self.buffer.as_ref());
            put_u16(self.buffer.as_mut(), field::CHECKSUM, checksum);
        }
    }

    /// Return the payload, to be written. The optional words must be set.
    pub fn payload_mut(&mut self) -> &mut [u8] {
        let header = self.header_len();
        &mut self.buffer.as_mut()[header..]
    }
}

impl<T: AsRef<[u8]>> fmt::Display for Packet<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GRE type 0x{:04x}", self.protocol())?;
        if let Some(key) = self.key() {
            write!(f, " key 0x{key:08x}")?;
        }
        if let Some(sequence) = self.sequence() {
            write!(f, " seq {sequence}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_writes() {
        for bits in 0..8 {
            let (checksum, key, sequence) = (bits & 1 != 0, bits & 2 != 0, bits & 4 != 0);
            let mut gre = Packet::new_checked([0; 19]).unwrap();
            gre.set_words(checksum, key, sequence);
            gre.set_protocol(0x0800);
            gre.set_key(0xaabb_ccdd);
            gre.set_sequence(7);
            gre.payload_mut().fill(0x45);
            gre.fill_checksum();
            let gre = Packet::new_checked(gre.into_inner()).unwrap();
            assert_eq!(gre.protocol(), 0x0800);
            assert_eq!((gre.key(), gre.sequence()), (key.then_some(0xaabb_ccdd), sequence.then_some(7)));
            assert_eq!(gre.header_len(), 4 + 4 * u32::count_ones(bits) as usize);
            assert!(gre.verify_checksum() && gre.payload().iter().all(|&byte| byte == 0x45));
            assert_eq!(gre.checksum().is_some(), checksum);
        }
    }

    #[test]
    fn words_lie_as_rfc_2890_draws_them() {
        let gre = Packet::new_checked([0x30, 0, 0x65, 0x58, 0, 0, 0, 9, 0, 0, 0, 1, 0xff]).unwrap();
        assert_eq!(gre.to_string(), "GRE type 0x6558 key 0x00000009 seq 1");
        assert_eq!(gre.payload(), [0xff]);
    }

    #[test]
    fn refuses() {
        assert_eq!(Packet::new_checked(&[0, 0, 8][..]), Err(Malformed::GreTruncated));
        assert_eq!(Packet::new_checked(&[0x20, 0, 8, 0, 1, 2, 3][..]), Err(Malformed::GreTruncated));
        // PPTP's version 1 (RFC 2637).
        assert_eq!(Packet::new_checked(&[0x30, 1, 0x88, 0x0b][..]), Err(Malformed::GreVersion));
        assert_eq!(Packet::new_checked(&[0x40, 0, 8, 0][..]), Err(Malformed::GreRouting));
    }
}

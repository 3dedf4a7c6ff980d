//! Ethernet II frames (IEEE 802.3): addresses and EtherType. The frame check sequence is not part of a frame here.

use super::Malformed;
use super::bytes::{array_at, put_u16, u16_at};
use std::fmt;

mod field {
    use std::ops::Range;

    pub const DST: Range<usize> = 0..6;
    pub const SRC: Range<usize> = 6..12;
    pub const ETHERTYPE: Range<usize> = 12..14;
}

/// Length of the header, in bytes.
pub const HEADER_LEN: usize = field::ETHERTYPE.end;

/// A 48-bit station address.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// All stations.
    pub const BROADCAST: Mac = Mac([0xff; 6]);

    /// Whether the address names a group of stations (broadcast included).
    pub const fn is_multicast(self) -> bool {
        self.0[0] & 1 == 1
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// A view of an Ethernet frame.
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
            return Err(Malformed::EthernetTruncated);
        }
        Ok(())
    }

    /// Return the buffer.
    pub fn into_inner(self) -> T {
        self.buffer
    }

    /// Return the destination address.
    pub fn dst(&self) -> Mac {
        Mac(array_at(self.buffer.as_ref(), field::DST))
    }

    /// Return the source address.
    pub fn src(&self) -> Mac {
        Mac(array_at(self.buffer.as_ref(), field::SRC))
    }

    /// Return the EtherType ([`number::ethertype`](super::number::ethertype)); below 0x0600 an 802.3 length.
    pub fn ethertype(&self) -> u16 {
        u16_at(self.buffer.as_ref(), field::ETHERTYPE)
    }

    /// Return what follows the header, padding included.
    pub fn payload(&self) -> &[u8] {
        &self.buffer.as_ref()[HEADER_LEN..]
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Packet<T> {
    /// Set the destination address.
    pub fn set_dst(&mut self, mac: Mac) {
        self.buffer.as_mut()[field::DST].copy_from_slice(&mac.0);
    }

    /// Set the source address.
    pub fn set_src(&mut self, mac: Mac) {
        self.buffer.as_mut()[field::SRC].copy_from_slice(&mac.0);
    }

    /// Set the EtherType.
    pub fn set_ethertype(&mut self, ethertype: u16) {
        put_u16(self.buffer.as_mut(), field::ETHERTYPE, ethertype);
    }

    /// Return what follows the header, to be written.
    pub fn payload_mut(&mut self) -> &mut [u8] {
        &mut self.buffer.as_mut()[HEADER_LEN..]
    }
}

impl<T: AsRef<[u8]>> fmt::Display for Packet<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ethernet {} > {} type 0x{:04x}", self.src(), self.dst(), self.ethertype())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: [u8; 15] = [1, 2, 3, 4, 5, 6, 0x1a, 0x1b, 0x1c, 0x1d, 0x1e, 0x1f, 0x08, 0x00, 0x45];

    #[test]
    fn reads() {
        let frame = Packet::new_checked(&FRAME).unwrap();
        assert_eq!(frame.to_string(), "Ethernet 1a:1b:1c:1d:1e:1f > 01:02:03:04:05:06 type 0x0800");
        assert_eq!(frame.payload(), [0x45]);
        assert!(frame.dst().is_multicast() && !frame.src().is_multicast());
    }

    #[test]
    fn writes_what_it_reads() {
        let mut frame = Packet::new_checked([0; 15]).unwrap();
        frame.set_dst(Mac([1, 2, 3, 4, 5, 6]));
        frame.set_src(Mac([0x1a, 0x1b, 0x1c, 0x1d, 0x1e, 0x1f]));
        frame.set_ethertype(0x0800);
        frame.payload_mut()[0] = 0x45;
        assert_eq!(frame.into_inner(), FRAME);
    }

    #[test]
    fn refuses_a_truncated_header() {
        assert_eq!(Packet::new_checked(&FRAME[..13]), Err(Malformed::EthernetTruncated));
    }
}

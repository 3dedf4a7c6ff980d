//! VXLAN (RFC 7348): an Ethernet frame in UDP.

use super::Malformed;
use super::bytes::{put_u32, u32_at};
use std::fmt;

mod field {
    use std::ops::Range;

    pub const FLAGS: usize = 0;
    pub const NETWORK: Range<usize> = 4..8;
}

/// Length of the header, in bytes.
pub const HEADER_LEN: usize = field::NETWORK.end;

const NETWORK_VALID: u8 = 0x08;

/// A view of a VXLAN packet.
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

    /// Ensure that no accessor will panic, and that there is a network identifier.
    ///
    /// RFC 7348 §5: the I flag "MUST be set to 1 for a valid VXLAN Network ID"; reserved bits are "ignored on receipt".
    pub fn check_len(&self) -> Result<(), Malformed> {
        let data = self.buffer.as_ref();
        if data.len() < HEADER_LEN {
            return Err(Malformed::VxlanTruncated);
        }
        if data[field::FLAGS] & NETWORK_VALID == 0 {
            return Err(Malformed::VxlanFlags);
        }
        Ok(())
    }

    /// Return the buffer.
    pub fn into_inner(self) -> T {
        self.buffer
    }

    /// Return the network identifier, 24 bits.
    pub fn network(&self) -> u32 {
        u32_at(self.buffer.as_ref(), field::NETWORK) >> 8
    }

    /// Return the Ethernet frame within.
    pub fn payload(&self) -> &[u8] {
        &self.buffer.as_ref()[HEADER_LEN..]
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Packet<T> {
    /// Write the whole header: the flags, and the lowest 24 bits of the network identifier.
    pub fn set_network(&mut self, network: u32) {
        let data = self.buffer.as_mut();
        data[..HEADER_LEN].fill(0);
        data[field::FLAGS] = NETWORK_VALID;
        put_u32(data, field::NETWORK, network << 8);
    }

    /// Return the Ethernet frame within, to be written.
    pub fn payload_mut(&mut self) -> &mut [u8] {
        &mut self.buffer.as_mut()[HEADER_LEN..]
    }
}

impl<T: AsRef<[u8]>> fmt::Display for Packet<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VXLAN network {}", self.network())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_writes() {
        let mut vxlan = Packet::new_unchecked([0xff; 9]);
        vxlan.set_network(0xff12_3456);
        vxlan.payload_mut()[0] = 7;
        assert_eq!(vxlan.into_inner(), [8, 0, 0, 0, 0x12, 0x34, 0x56, 0, 7]);
        let vxlan = Packet::new_checked(vxlan.into_inner()).unwrap();
        assert_eq!(vxlan.to_string(), "VXLAN network 1193046");
        assert_eq!(vxlan.payload(), [7]);
    }

    #[test]
    fn refuses() {
        assert_eq!(Packet::new_checked([8; 7].as_slice()), Err(Malformed::VxlanTruncated));
        assert_eq!(Packet::new_checked([0; 8].as_slice()), Err(Malformed::VxlanFlags));
    }
}

//! VLAN tags: IEEE 802.1Q customer tags and 802.1ad service tags, which nest (QinQ).

use super::Malformed;
use super::bytes::{put_u16, u16_at};
use std::fmt;

mod field {
    use std::ops::Range;

    pub const CONTROL: Range<usize> = 0..2;
    pub const ETHERTYPE: Range<usize> = 2..4;
}

/// Length of what follows the EtherType that announces a tag, in bytes.
pub const HEADER_LEN: usize = field::ETHERTYPE.end;

const ID: u16 = 0x0fff;
const DROP_ELIGIBLE: u16 = 0x1000;

/// A view of a tag: it starts behind the EtherType that announces it, as the payload of an Ethernet frame does.
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
            return Err(Malformed::VlanTruncated);
        }
        Ok(())
    }

    /// Return the buffer.
    pub fn into_inner(self) -> T {
        self.buffer
    }

    /// Return the VLAN identifier, 12 bits; 0 carries a priority alone.
    pub fn id(&self) -> u16 {
        u16_at(self.buffer.as_ref(), field::CONTROL) & ID
    }

    /// Return the priority, 0 to 7 (IEEE 802.1p).
    pub fn priority(&self) -> u8 {
        (u16_at(self.buffer.as_ref(), field::CONTROL) >> 13) as u8
    }

    /// Whether the frame may be dropped first under congestion.
    pub fn drop_eligible(&self) -> bool {
        u16_at(self.buffer.as_ref(), field::CONTROL) & DROP_ELIGIBLE != 0
    }

    /// Return the EtherType of what follows: another tag or a protocol.
    pub fn ethertype(&self) -> u16 {
        u16_at(self.buffer.as_ref(), field::ETHERTYPE)
    }

    /// Return what follows the tag.
    pub fn payload(&self) -> &[u8] {
        &self.buffer.as_ref()[HEADER_LEN..]
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Packet<T> {
    /// Set identifier (its lowest 12 bits), priority (its lowest 3) and drop eligibility.
    pub fn set_control(&mut self, id: u16, priority: u8, drop_eligible: bool) {
        let mut control = id & ID | u16::from(priority) << 13;
        if drop_eligible {
            control |= DROP_ELIGIBLE;
        }
        put_u16(self.buffer.as_mut(), field::CONTROL, control);
    }

    /// Set the EtherType of what follows.
    pub fn set_ethertype(&mut self, ethertype: u16) {
        put_u16(self.buffer.as_mut(), field::ETHERTYPE, ethertype);
    }

    /// Return what follows the tag, to be written.
    pub fn payload_mut(&mut self) -> &mut [u8] {
        &mut self.buffer.as_mut()[HEADER_LEN..]
    }
}

impl<T: AsRef<[u8]>> fmt::Display for Packet<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VLAN {} priority {} type 0x{:04x}", self.id(), self.priority(), self.ethertype())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_writes() {
        let mut tag = Packet::new_checked([0; 5]).unwrap();
        tag.set_control(0x123, 5, true);
        tag.set_ethertype(0x0800);
        tag.payload_mut()[0] = 0x45;
        assert_eq!(tag.into_inner(), [0xb1, 0x23, 0x08, 0x00, 0x45]);
        assert_eq!(tag.to_string(), "VLAN 291 priority 5 type 0x0800");
        assert!(tag.drop_eligible());
        assert_eq!(tag.payload(), [0x45]);
    }

    #[test]
    fn refuses_a_truncated_tag() {
        assert_eq!(Packet::new_checked([0; 3]), Err(Malformed::VlanTruncated));
    }
}

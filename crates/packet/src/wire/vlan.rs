//! VLAN tags: IEEE 802.1Q customer tags and 802.1ad service tags, which nest (QinQ).

use std::fmt;

use super::bytes::{put_u16, u16_at};
use super::number::ethertype;
use super::{Layers, Malformed};

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

/// A VLAN: 24 bits, a customer's identifier below a service's (IEEE 802.1ad); 0 for none.
pub type Vlan = u32;

/// Return the VLAN of a frame. A tag that has a priority alone (identifier 0) names none. `None` where more than two name one.
#[inline]
pub fn of(frame: &[u8], layers: &Layers) -> Option<Vlan> {
    /// Where the first tag stands, behind two station addresses.
    const FIRST: usize = 12;
    if !layers.has(Layers::VLAN) {
        return Some(0);
    }
    // Each with the EtherType that announces it.
    let (tags, _) = frame.get(FIRST..usize::from(layers.l3).checked_sub(2)?)?.as_chunks::<4>();
    let mut vlan = 0;
    let mut count = 0;
    for &[kind, of_kind, control, below] in tags {
        let id = u32::from(control & 0xf) << 8 | u32::from(below);
        if id == 0 {
            continue;
        }
        let is_customer = u16::from_be_bytes([kind, of_kind]) == ethertype::VLAN;
        vlan = match count {
            0 if is_customer => id,
            0 => id << 12,
            // The second is the customer's, whatever type the first has.
            1 if vlan >> 12 == 0 => vlan << 12 | id,
            1 => vlan | id,
            _ => return None,
        };
        count += 1;
    }
    Some(vlan)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::parse;

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

    #[test]
    fn tags_are_told_apart_by_identifier_place_and_kind() {
        const SERVICE: u16 = 0x88a8;
        const CUSTOMER: u16 = 0x8100;
        let vlan = |tags: &[(u16, u16)]| {
            let tags = tags.iter().flat_map(|(kind, id)| [kind.to_be_bytes(), id.to_be_bytes()].concat());
            let mut frame: Vec<u8> = [0; 12].into_iter().chain(tags).collect();
            frame.extend([0x08, 0x00, 0x45, 0, 0, 20, 0, 0, 0, 0, 64, 253, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
            of(&frame, &parse(&frame).unwrap())
        };
        assert_eq!(vlan(&[]), Some(0));
        assert_eq!(vlan(&[(CUSTOMER, 10)]), Some(10));
        assert_eq!(vlan(&[(SERVICE, 10)]), Some(10 << 12));
        assert_eq!(vlan(&[(SERVICE, 10), (CUSTOMER, 4094)]), Some(10 << 12 | 4094));
        // Before IEEE 802.1ad both had one type, or others.
        assert_eq!(vlan(&[(CUSTOMER, 10), (CUSTOMER, 20)]), vlan(&[(SERVICE, 10), (CUSTOMER, 20)]));
        assert_eq!(vlan(&[(0x9100, 10), (CUSTOMER, 20)]), vlan(&[(SERVICE, 10), (CUSTOMER, 20)]));
        assert_ne!(vlan(&[(SERVICE, 20), (CUSTOMER, 10)]), vlan(&[(SERVICE, 10), (CUSTOMER, 20)]));
        // Identifier 0 is a priority alone.
        assert_eq!(vlan(&[(CUSTOMER, 0xe000)]), Some(0));
        assert_eq!(vlan(&[(SERVICE, 10), (CUSTOMER, 0)]), vlan(&[(SERVICE, 10)]));
        assert_eq!(vlan(&[(CUSTOMER, 0), (CUSTOMER, 10)]), vlan(&[(CUSTOMER, 10)]));
        assert_eq!(vlan(&[(SERVICE, 10), (CUSTOMER, 20), (CUSTOMER, 30)]), None);
        let between = [(SERVICE, 10), (CUSTOMER, 0), (CUSTOMER, 20), (CUSTOMER, 0)];
        assert_eq!(vlan(&between), vlan(&[(SERVICE, 10), (CUSTOMER, 20)]));
    }
}

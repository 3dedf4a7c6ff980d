//! ARP (RFC 826), for hardware and protocol addresses of any length.

use super::Malformed;
use super::bytes::{put_u16, u16_at};
use super::ethernet::Mac;
use super::number::ethertype;
use std::fmt;
use std::net::Ipv4Addr;

mod field {
    use std::ops::Range;

    pub const HARDWARE: Range<usize> = 0..2;
    pub const PROTOCOL: Range<usize> = 2..4;
    pub const HARDWARE_LEN: usize = 4;
    pub const PROTOCOL_LEN: usize = 5;
    pub const OPERATION: Range<usize> = 6..8;

    /// The four addresses: `hardware` and `protocol` are the lengths of theirs.
    pub const fn sender_hardware(hardware: usize, _protocol: usize) -> Range<usize> {
        8..8 + hardware
    }
    pub const fn sender_protocol(hardware: usize, protocol: usize) -> Range<usize> {
        8 + hardware..8 + hardware + protocol
    }
    pub const fn target_hardware(hardware: usize, protocol: usize) -> Range<usize> {
        8 + hardware + protocol..8 + 2 * hardware + protocol
    }
    pub const fn target_protocol(hardware: usize, protocol: usize) -> Range<usize> {
        8 + 2 * hardware + protocol..8 + 2 * hardware + 2 * protocol
    }
}

/// Length of the part before the addresses, in bytes.
pub const HEADER_LEN: usize = field::OPERATION.end;
/// Length of a message for IPv4 over Ethernet, in bytes.
pub const ETHERNET_IPV4_LEN: usize = field::target_protocol(6, 4).end;
/// Hardware type of Ethernet.
pub const ETHERNET: u16 = 1;
/// Operation: who has the target protocol address?
pub const REQUEST: u16 = 1;
/// Operation: the sender has.
pub const REPLY: u16 = 2;

/// A view of an ARP message.
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

    /// Ensure that no accessor will panic: all four addresses are there.
    pub fn check_len(&self) -> Result<(), Malformed> {
        let data = self.buffer.as_ref();
        if data.len() < HEADER_LEN || data.len() < self.len() {
            return Err(Malformed::ArpTruncated);
        }
        Ok(())
    }

    /// Return the buffer.
    pub fn into_inner(self) -> T {
        self.buffer
    }

    /// Return the length of the message, in bytes.
    #[expect(clippy::len_without_is_empty, reason = "a message is never empty")]
    pub fn len(&self) -> usize {
        self.place(field::target_protocol).end
    }

    /// Return the hardware type.
    pub fn hardware(&self) -> u16 {
        u16_at(self.buffer.as_ref(), field::HARDWARE)
    }

    /// Return the protocol type, an EtherType.
    pub fn protocol(&self) -> u16 {
        u16_at(self.buffer.as_ref(), field::PROTOCOL)
    }

    /// Return the operation.
    pub fn operation(&self) -> u16 {
        u16_at(self.buffer.as_ref(), field::OPERATION)
    }

    /// Return the sender's hardware address.
    pub fn sender_hardware(&self) -> &[u8] {
        &self.buffer.as_ref()[self.place(field::sender_hardware)]
    }

    /// Return the sender's protocol address.
    pub fn sender_protocol(&self) -> &[u8] {
        &self.buffer.as_ref()[self.place(field::sender_protocol)]
    }

    /// Return the target's hardware address; without meaning in a request.
    pub fn target_hardware(&self) -> &[u8] {
        &self.buffer.as_ref()[self.place(field::target_hardware)]
    }

    /// Return the target's protocol address.
    pub fn target_protocol(&self) -> &[u8] {
        &self.buffer.as_ref()[self.place(field::target_protocol)]
    }

    /// Return the sender's and the target's addresses if the message is for IPv4 over Ethernet.
    pub fn ethernet_ipv4(&self) -> Option<[(Mac, Ipv4Addr); 2]> {
        if (self.hardware(), self.protocol()) != (ETHERNET, ethertype::IPV4) {
            return None;
        }
        let pair = |hardware: &[u8], protocol: &[u8]| {
            let address: [u8; 4] = protocol.try_into().ok()?;
            Some((Mac(hardware.try_into().ok()?), Ipv4Addr::from(address)))
        };
        Some([
            pair(self.sender_hardware(), self.sender_protocol())?,
            pair(self.target_hardware(), self.target_protocol())?,
        ])
    }

    fn place(&self, field: fn(usize, usize) -> std::ops::Range<usize>) -> std::ops::Range<usize> {
        let data = self.buffer.as_ref();
        field(data[field::HARDWARE_LEN].into(), data[field::PROTOCOL_LEN].into())
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Packet<T> {
    /// Write a whole message for IPv4 over Ethernet; the buffer must hold [`ETHERNET_IPV4_LEN`] bytes.
    pub fn set_ethernet_ipv4(&mut self, operation: u16, sender: (Mac, Ipv4Addr), target: (Mac, Ipv4Addr)) {
        let data = self.buffer.as_mut();
        put_u16(data, field::HARDWARE, ETHERNET);
        put_u16(data, field::PROTOCOL, ethertype::IPV4);
        data[field::HARDWARE_LEN] = 6;
        data[field::PROTOCOL_LEN] = 4;
        put_u16(data, field::OPERATION, operation);
        data[field::sender_hardware(6, 4)].copy_from_slice(&sender.0.0);
        data[field::sender_protocol(6, 4)].copy_from_slice(&sender.1.octets());
        data[field::target_hardware(6, 4)].copy_from_slice(&target.0.0);
        data[field::target_protocol(6, 4)].copy_from_slice(&target.1.octets());
    }

    /// Set the operation.
    pub fn set_operation(&mut self, operation: u16) {
        put_u16(self.buffer.as_mut(), field::OPERATION, operation);
    }
}

impl<T: AsRef<[u8]>> fmt::Display for Packet<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.operation(), self.ethernet_ipv4()) {
            (REQUEST, Some([(_, sender), (_, target)])) => {
                write!(f, "ARP who has {target}? tell {sender}")
            }
            (REPLY, Some([(mac, sender), _])) => write!(f, "ARP {sender} is at {mac}"),
            (operation, _) => {
                write!(f, "ARP operation {operation} hardware {} protocol 0x{:04x}", self.hardware(), self.protocol())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGE: [u8; 28] = [
        0, 1, 8, 0, 6, 4, 0, 1, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 192, 0, 2, 1, //
        0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 192, 0, 2, 2,
    ];
    const SENDER: (Mac, Ipv4Addr) = (Mac([0x11, 0x12, 0x13, 0x14, 0x15, 0x16]), Ipv4Addr::new(192, 0, 2, 1));
    const TARGET: (Mac, Ipv4Addr) = (Mac([0x21, 0x22, 0x23, 0x24, 0x25, 0x26]), Ipv4Addr::new(192, 0, 2, 2));

    #[test]
    fn reads() {
        let arp = Packet::new_checked(&MESSAGE).unwrap();
        assert_eq!(arp.ethernet_ipv4(), Some([SENDER, TARGET]));
        assert_eq!(arp.to_string(), "ARP who has 192.0.2.2? tell 192.0.2.1");
    }

    #[test]
    fn writes_what_it_reads() {
        let mut arp = Packet::new_unchecked([0; 28]);
        arp.set_ethernet_ipv4(REQUEST, SENDER, TARGET);
        assert_eq!(arp.into_inner(), MESSAGE);
        arp.set_operation(REPLY);
        assert_eq!(arp.to_string(), "ARP 192.0.2.1 is at 11:12:13:14:15:16");
    }

    #[test]
    fn other_address_lengths() {
        let arp = Packet::new_checked([0, 7, 8, 0, 1, 4, 0, 9, 0xaa, 1, 2, 3, 4, 0xbb, 5, 6, 7, 8]).unwrap();
        assert_eq!((arp.sender_hardware(), arp.target_hardware()), (&[0xaa][..], &[0xbb][..]));
        assert_eq!((arp.sender_protocol(), arp.target_protocol()), (&[1, 2, 3, 4][..], &[5, 6, 7, 8][..]));
        assert_eq!(arp.ethernet_ipv4(), None);
        assert_eq!(arp.to_string(), "ARP operation 9 hardware 7 protocol 0x0800");
    }

    #[test]
    fn refuses_truncated_messages() {
        assert_eq!(Packet::new_checked(&MESSAGE[..27]), Err(Malformed::ArpTruncated));
        assert_eq!(Packet::new_checked(&MESSAGE[..7]), Err(Malformed::ArpTruncated));
    }
}

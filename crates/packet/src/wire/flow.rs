//! Flow keys: the 5-tuple of a packet, read through its [`Layers`].
//!
//! A key's ports are 0 for every protocol without ports, ICMP included (its type and code are no ports; the
//! identifier of an echo has [`icmp_identifier`]), and for every fragment, the first included: so all fragments of a
//! datagram have one key. Whoever needs the ports of a first fragment asks [`ports`].
//!
//! Addresses and ports are numbers, in the machine's byte order.

use super::number::proto;
use super::{Layers, Net, Seed};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// An IPv4 flow: two words.
#[repr(C, align(8))]
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FlowKeyV4 {
    /// Source address.
    pub src: u32,
    /// Destination address.
    pub dst: u32,
    /// Source port, or 0.
    pub sport: u16,
    /// Destination port, or 0.
    pub dport: u16,
    /// Upper-layer protocol.
    pub proto: u8,
}

impl FlowKeyV4 {
    /// Read the key of a packet; `None` if it is not IPv4 or `layers` is not this frame's.
    #[inline]
    pub fn read(frame: &[u8], layers: &Layers) -> Option<Self> {
        if layers.net != Net::Ipv4 {
            return None;
        }
        let addresses = u64::from_be_bytes(array(frame, usize::from(layers.l3) + 12)?);
        let ports = key_ports(frame, layers)?;
        Some(FlowKeyV4 {
            src: (addresses >> 32) as u32,
            dst: addresses as u32,
            sport: (ports >> 16) as u16,
            dport: ports as u16,
            proto: layers.proto,
        })
    }

    /// Return the key as two words: equal words, equal keys.
    #[inline]
    pub const fn words(&self) -> [u64; 2] {
        [self.src as u64 | (self.dst as u64) << 32, tail(self.sport, self.dport, self.proto)]
    }

    /// Return the key of the opposite direction.
    #[inline]
    #[must_use]
    pub const fn reverse(&self) -> Self {
        FlowKeyV4 { src: self.dst, dst: self.src, sport: self.dport, dport: self.sport, proto: self.proto }
    }

    /// Return the one of the key and its reverse whose source is smaller: the same for both directions.
    #[inline]
    #[must_use]
    pub fn canonical(&self) -> Self {
        let source = (self.src as u64) << 16 | self.sport as u64;
        let destination = (self.dst as u64) << 16 | self.dport as u64;
        if source <= destination { *self } else { self.reverse() }
    }

    /// Hash the key.
    #[inline]
    pub const fn hash(&self, seed: &Seed) -> u64 {
        seed.hash2(self.words())
    }

    /// Hash the key so that both directions give the same: for spreading flows over workers.
    #[inline]
    pub fn symmetric_hash(&self, seed: &Seed) -> u64 {
        seed.hash2(self.canonical().words())
    }
}

/// An IPv6 flow: five words. Addresses are two words each, the upper half first.
#[repr(C)]
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FlowKeyV6 {
    /// Source address.
    pub src: [u64; 2],
    /// Destination address.
    pub dst: [u64; 2],
    /// Source port, or 0.
    pub sport: u16,
    /// Destination port, or 0.
    pub dport: u16,
    /// Upper-layer protocol.
    pub proto: u8,
}

impl FlowKeyV6 {
    /// Read the key of a packet; `None` if it is not IPv6 or `layers` is not this frame's.
    #[inline]
    pub fn read(frame: &[u8], layers: &Layers) -> Option<Self> {
        if layers.net != Net::Ipv6 {
            return None;
        }
        let addresses: [u8; 32] = array(frame, usize::from(layers.l3) + 8)?;
        let (words, _) = addresses.as_chunks::<8>();
        let ports = key_ports(frame, layers)?;
        Some(FlowKeyV6 {
            src: [u64::from_be_bytes(words[0]), u64::from_be_bytes(words[1])],
            dst: [u64::from_be_bytes(words[2]), u64::from_be_bytes(words[3])],
            sport: (ports >> 16) as u16,
            dport: ports as u16,
            proto: layers.proto,
        })
    }

    /// Return the key as five words: equal words, equal keys.
    #[inline]
    pub const fn words(&self) -> [u64; 5] {
        let tail = tail(self.sport, self.dport, self.proto);
        [self.src[0], self.src[1], self.dst[0], self.dst[1], tail]
    }

    /// Return the key of the opposite direction.
    #[inline]
    #[must_use]
    pub const fn reverse(&self) -> Self {
        FlowKeyV6 { src: self.dst, dst: self.src, sport: self.dport, dport: self.sport, proto: self.proto }
    }

    /// Return the one of the key and its reverse whose source is smaller: the same for both directions.
    #[inline]
    #[must_use]
    pub fn canonical(&self) -> Self {
        let source = (number(self.src), self.sport);
        let destination = (number(self.dst), self.dport);
        if source <= destination { *self } else { self.reverse() }
    }

    /// Hash the key.
    #[inline]
    pub const fn hash(&self, seed: &Seed) -> u64 {
        seed.hash5(self.words())
    }

    /// Hash the key so that both directions give the same: for spreading flows over workers.
    #[inline]
    pub fn symmetric_hash(&self, seed: &Seed) -> u64 {
        seed.hash5(self.canonical().words())
    }
}

/// A flow of either family, for the paths that need not be fast.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FlowKey {
    /// IPv4.
    V4(FlowKeyV4),
    /// IPv6.
    V6(FlowKeyV6),
}

impl FlowKey {
    /// Read the key of a packet; `None` if it is not IP or `layers` is not this frame's.
    #[inline]
    pub fn read(frame: &[u8], layers: &Layers) -> Option<Self> {
        match layers.net {
            Net::Ipv4 => FlowKeyV4::read(frame, layers).map(FlowKey::V4),
            Net::Ipv6 => FlowKeyV6::read(frame, layers).map(FlowKey::V6),
            Net::Other | Net::Arp => None,
        }
    }

    /// Make a key of two addresses of one family; `None` if they differ in family.
    pub fn new(src: SocketAddr, dst: SocketAddr, proto: u8) -> Option<Self> {
        let (sport, dport) = (src.port(), dst.port());
        match (src.ip(), dst.ip()) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => {
                Some(FlowKey::V4(FlowKeyV4 { src: src.to_bits(), dst: dst.to_bits(), sport, dport, proto }))
            }
            (IpAddr::V6(src), IpAddr::V6(dst)) => {
                Some(FlowKey::V6(FlowKeyV6 { src: halves(src), dst: halves(dst), sport, dport, proto }))
            }
            _ => None,
        }
    }

    /// Return source address and port.
    pub fn src(&self) -> SocketAddr {
        match *self {
            FlowKey::V4(key) => (Ipv4Addr::from_bits(key.src), key.sport).into(),
            FlowKey::V6(key) => (Ipv6Addr::from_bits(number(key.src)), key.sport).into(),
        }
    }

    /// Return destination address and port.
    pub fn dst(&self) -> SocketAddr {
        self.reverse().src()
    }

    /// Return the upper-layer protocol.
    pub const fn proto(&self) -> u8 {
        match self {
            FlowKey::V4(key) => key.proto,
            FlowKey::V6(key) => key.proto,
        }
    }

    /// Return the key of the opposite direction.
    #[must_use]
    pub const fn reverse(&self) -> Self {
        match self {
            FlowKey::V4(key) => FlowKey::V4(key.reverse()),
            FlowKey::V6(key) => FlowKey::V6(key.reverse()),
        }
    }

    /// Hash the key, as its family does.
    #[inline]
    pub const fn hash(&self, seed: &Seed) -> u64 {
        match self {
            FlowKey::V4(key) => key.hash(seed),
            FlowKey::V6(key) => key.hash(seed),
        }
    }

    /// Hash the key so that both directions give the same.
    #[inline]
    pub fn symmetric_hash(&self, seed: &Seed) -> u64 {
        match self {
            FlowKey::V4(key) => key.symmetric_hash(seed),
            FlowKey::V6(key) => key.symmetric_hash(seed),
        }
    }
}

impl fmt::Display for FlowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (src, dst) = (self.src(), self.dst());
        match self.proto() {
            proto::TCP => write!(f, "tcp {src} > {dst}"),
            proto::UDP => write!(f, "udp {src} > {dst}"),
            proto::SCTP => write!(f, "sctp {src} > {dst}"),
            proto::ICMP => write!(f, "icmp {} > {}", src.ip(), dst.ip()),
            proto::ICMPV6 => write!(f, "icmpv6 {} > {}", src.ip(), dst.ip()),
            other => write!(f, "proto {other} {} > {}", src.ip(), dst.ip()),
        }
    }
}

/// Read the source address as a key of two words, the upper half first: an IPv4 address as IPv6 maps it (RFC 4291
/// §2.5.5.2). `None` if the packet is not IP or `layers` is not this frame's.
#[inline]
pub fn source_address(frame: &[u8], layers: &Layers) -> Option<[u64; 2]> {
    address(frame, layers, 12, 8)
}

/// Read the destination address as [`source_address`] reads the source.
#[inline]
pub fn destination_address(frame: &[u8], layers: &Layers) -> Option<[u64; 2]> {
    address(frame, layers, 16, 24)
}

/// Read the address at an offset from the start of an IPv4 or an IPv6 header.
#[inline]
fn address(frame: &[u8], layers: &Layers, in_v4: usize, in_v6: usize) -> Option<[u64; 2]> {
    let header = usize::from(layers.l3);
    match layers.net {
        Net::Ipv4 => {
            let address = u32::from_be_bytes(array(frame, header + in_v4)?);
            Some([0, 0xffff_0000_0000 | u64::from(address)])
        }
        Net::Ipv6 => {
            let address = u128::from_be_bytes(array(frame, header + in_v6)?);
            Some([(address >> 64) as u64, address as u64])
        }
        Net::Arp | Net::Other => None,
    }
}

/// Read source and destination port where the packet carries them: also of a first fragment that holds its whole
/// upper-layer header, never of a later one.
#[inline]
pub fn ports(frame: &[u8], layers: &Layers) -> Option<(u16, u16)> {
    if !layers.has(Layers::PORTS) {
        return None;
    }
    let ports = u32::from_be_bytes(array(frame, usize::from(layers.l4))?);
    Some(((ports >> 16) as u16, ports as u16))
}

/// Read the identifier of an ICMP or ICMPv6 query, which tells the pings of one host apart; `None` for errors, other
/// messages and later fragments.
pub fn icmp_identifier(frame: &[u8], layers: &Layers) -> Option<u16> {
    if layers.has(Layers::LATER) {
        return None;
    }
    // A fragment may be cut within the header: the payload then starts where the header does.
    let message: [u8; 6] = match layers.payload.wrapping_sub(layers.l4) {
        8 => array(frame, usize::from(layers.l4))?,
        _ => return None,
    };
    let is_query = match (layers.net, layers.proto) {
        // RFC 792: echo, timestamp, information; RFC 950: address mask.
        (Net::Ipv4, proto::ICMP) => matches!(message[0], 0 | 8 | 13..=18),
        // RFC 4443 §4: echo request and reply.
        (Net::Ipv6, proto::ICMPV6) => matches!(message[0], 128 | 129),
        _ => false,
    };
    is_query.then(|| u16::from_be_bytes([message[4], message[5]]))
}

/// Both ports in one word where they belong to the key: whole packets that carry ports.
#[inline]
fn key_ports(frame: &[u8], layers: &Layers) -> Option<u32> {
    if layers.flags & (Layers::PORTS | Layers::FRAGMENT) != Layers::PORTS {
        return Some(0);
    }
    Some(u32::from_be_bytes(array(frame, usize::from(layers.l4))?))
}

#[inline]
fn array<const N: usize>(frame: &[u8], at: usize) -> Option<[u8; N]> {
    frame.get(at..)?.first_chunk().copied()
}

#[inline]
const fn tail(sport: u16, dport: u16, proto: u8) -> u64 {
    sport as u64 | (dport as u64) << 16 | (proto as u64) << 32
}

#[inline]
const fn number(halves: [u64; 2]) -> u128 {
    (halves[0] as u128) << 64 | halves[1] as u128
}

#[inline]
const fn halves(address: Ipv6Addr) -> [u64; 2] {
    let bits = address.to_bits();
    [(bits >> 64) as u64, bits as u64]
}

#[cfg(test)]
#[path = "flow_tests.rs"]
mod tests;

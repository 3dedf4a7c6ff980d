//! What differs between IPv4 and IPv6 for the balancer: keys, addresses, and how a header is rewritten.

use std::fmt::Debug;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use catena_packet::wire::checksum::{Delta, udp_nonzero};
use catena_packet::wire::number::proto;
use catena_packet::wire::{FlowKeyV4, FlowKeyV6, Layers, ipv4, ipv6, ports};
use catena_state::{Key, Plain};

/// Which table entry a packet asks for; part of the key, so that ways out and back never meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class(u8);

impl Class {
    /// Towards the servers.
    pub const FORWARD: Class = Class(0);
    /// From the servers.
    pub const BACK: Class = Class(1);
    const FRAGMENT: u8 = 2;

    pub const fn of_gate(gate: u16) -> Class {
        if gate == 1 { Class::BACK } else { Class::FORWARD }
    }

    pub const fn is_back(self) -> bool {
        self.0 & 1 == 1
    }

    /// Whether the entry is for the later fragments of one datagram.
    pub const fn is_fragment(self) -> bool {
        self.0 & Self::FRAGMENT != 0
    }

    /// The same direction, for later fragments.
    pub const fn fragment(self) -> Class {
        Class(self.0 | Self::FRAGMENT)
    }

    pub const fn other_way(self) -> Class {
        Class(self.0 ^ 1)
    }

    const fn bits(self) -> u64 {
        (self.0 as u64) << 40
    }

    const fn from_word(word: u64) -> Class {
        Class((word >> 40) as u8 & 3)
    }
}

/// What a key is made of. Of later fragments the ports are the two halves of the datagram's identification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuple<A> {
    pub src: A,
    pub dst: A,
    pub sport: u16,
    pub dport: u16,
    pub proto: u8,
}

impl<A> Tuple<A> {
    fn word(&self, class: Class) -> u64 {
        u64::from(self.sport) | u64::from(self.dport) << 16 | u64::from(self.proto) << 32 | class.bits()
    }

    fn from_word(src: A, dst: A, word: u64) -> (Self, Class) {
        let (sport, dport, proto) = (word as u16, (word >> 16) as u16, (word >> 32) as u8);
        (Tuple { src, dst, sport, dport, proto }, Class::from_word(word))
    }
}

/// IPv4 or IPv6.
pub trait Family: Send + Sized + 'static {
    /// A flow's key, its class in it.
    type Key: Key;
    /// An address.
    type Address: Plain + Eq + Ord + Debug;
    /// Whether it is IPv6.
    const IS_V6: bool;
    /// Which of the two families' objects are its own.
    const PART: u8 = Self::IS_V6 as u8;

    /// Return an address of this family.
    fn address(ip: IpAddr) -> Option<Self::Address>;
    /// Return the address as others know it.
    fn ip(address: Self::Address) -> IpAddr;
    /// Read the key of a whole packet.
    fn read(frame: &[u8], layers: &Layers, class: Class) -> Option<Self::Key>;
    /// Read the identification of a fragment's datagram.
    fn ident(frame: &[u8], layers: &Layers) -> Option<u32>;
    /// Return who shares a part of the table with whom: an address of IPv4, 64 bits of one of IPv6.
    fn sender(address: Self::Address) -> [u64; 2];
    /// Make a key.
    fn key(tuple: &Tuple<Self::Address>, class: Class) -> Self::Key;
    /// Take a key apart.
    fn tuple(key: &Self::Key) -> (Tuple<Self::Address>, Class);
    /// Return what changing an address changes in checksums.
    fn delta(old: Self::Address, new: Self::Address) -> Delta;
    /// Write the source (`back`) or the destination address, and the network header's checksum.
    fn put(frame: &mut [u8], l3: usize, back: bool, address: Self::Address, change: Change);

    /// Read the key of a fragment: of the first by its ports, where it has them, of others by the identification.
    fn read_fragment(frame: &[u8], layers: &Layers, class: Class) -> Option<Self::Key> {
        let (mut tuple, _) = Self::tuple(&Self::read(frame, layers, class)?);
        if layers.has(Layers::LATER) {
            let ident = Self::ident(frame, layers)?;
            (tuple.sport, tuple.dport) = (ident as u16, (ident >> 16) as u16);
            return Some(Self::key(&tuple, class.fragment()));
        }
        match ports(frame, layers) {
            Some((sport, dport)) => (tuple.sport, tuple.dport) = (sport, dport),
            // Its ports are cut off: nobody can say whose it is.
            None if has_ports(layers.proto) => return None,
            None => {}
        }
        Some(Self::key(&tuple, class))
    }
}

/// Whether a protocol's header begins with two ports.
pub const fn has_ports(proto: u8) -> bool {
    matches!(proto, proto::TCP | proto::UDP | proto::SCTP)
}

/// IPv4.
pub struct V4;

impl Family for V4 {
    type Key = [u64; 2];
    type Address = u32;
    const IS_V6: bool = false;

    fn address(ip: IpAddr) -> Option<u32> {
        match ip {
            IpAddr::V4(ip) => Some(ip.to_bits()),
            IpAddr::V6(_) => None,
        }
    }

    fn ip(address: u32) -> IpAddr {
        Ipv4Addr::from_bits(address).into()
    }

    #[inline(always)]
    fn read(frame: &[u8], layers: &Layers, class: Class) -> Option<[u64; 2]> {
        let [addresses, rest] = FlowKeyV4::read(frame, layers)?.words();
        Some([addresses, rest | class.bits()])
    }

    fn ident(frame: &[u8], layers: &Layers) -> Option<u32> {
        let packet = ipv4::Packet::new_checked(frame.get(usize::from(layers.l3)..)?).ok()?;
        Some(u32::from(packet.ident()))
    }

    fn sender(address: u32) -> [u64; 2] {
        [u64::from(address), 4]
    }

    fn key(tuple: &Tuple<u32>, class: Class) -> [u64; 2] {
        [u64::from(tuple.src) | u64::from(tuple.dst) << 32, tuple.word(class)]
    }

    fn tuple(key: &[u64; 2]) -> (Tuple<u32>, Class) {
        Tuple::from_word(key[0] as u32, (key[0] >> 32) as u32, key[1])
    }

    fn delta(old: u32, new: u32) -> Delta {
        Delta::new().change32(old, new)
    }

    #[inline(always)]
    fn put(frame: &mut [u8], l3: usize, back: bool, address: u32, change: Change) {
        let Some(header) = frame.get_mut(l3..).and_then(<[u8]>::first_chunk_mut::<{ ipv4::HEADER_LEN }>) else {
            return;
        };
        let at = if back { 12 } else { 16 };
        header[at..at + 4].copy_from_slice(&address.to_be_bytes());
        let check = change.apply(u16::from_be_bytes([header[10], header[11]]));
        header[10..12].copy_from_slice(&check.to_be_bytes());
    }
}

/// IPv6.
pub struct V6;

impl Family for V6 {
    type Key = [u64; 5];
    type Address = [u64; 2];
    const IS_V6: bool = true;

    fn address(ip: IpAddr) -> Option<[u64; 2]> {
        match ip {
            IpAddr::V4(_) => None,
            IpAddr::V6(ip) => Some([(ip.to_bits() >> 64) as u64, ip.to_bits() as u64]),
        }
    }

    fn ip(address: [u64; 2]) -> IpAddr {
        Ipv6Addr::from_bits(u128::from(address[0]) << 64 | u128::from(address[1])).into()
    }

    #[inline(always)]
    fn read(frame: &[u8], layers: &Layers, class: Class) -> Option<[u64; 5]> {
        let [a, b, c, d, rest] = FlowKeyV6::read(frame, layers)?.words();
        Some([a, b, c, d, rest | class.bits()])
    }

    fn ident(frame: &[u8], layers: &Layers) -> Option<u32> {
        let packet = ipv6::Packet::new_checked(frame.get(usize::from(layers.l3)..)?).ok()?;
        packet.extensions().ok()?.fragment.map(|fragment| fragment.ident)
    }

    fn sender(address: [u64; 2]) -> [u64; 2] {
        [address[0], 6]
    }

    fn key(tuple: &Tuple<[u64; 2]>, class: Class) -> [u64; 5] {
        [tuple.src[0], tuple.src[1], tuple.dst[0], tuple.dst[1], tuple.word(class)]
    }

    fn tuple(key: &[u64; 5]) -> (Tuple<[u64; 2]>, Class) {
        Tuple::from_word([key[0], key[1]], [key[2], key[3]], key[4])
    }

    fn delta(old: [u64; 2], new: [u64; 2]) -> Delta {
        Delta::new().change128(bytes(old), bytes(new))
    }

    #[inline(always)]
    fn put(frame: &mut [u8], l3: usize, back: bool, address: [u64; 2], _change: Change) {
        let Some(header) = frame.get_mut(l3..).and_then(<[u8]>::first_chunk_mut::<{ ipv6::HEADER_LEN }>) else {
            return;
        };
        let at = if back { 8 } else { 24 };
        header[at..at + 8].copy_from_slice(&address[0].to_be_bytes());
        header[at + 8..at + 16].copy_from_slice(&address[1].to_be_bytes());
    }
}

fn bytes(address: [u64; 2]) -> [u8; 16] {
    (u128::from(address[0]) << 64 | u128::from(address[1])).to_be_bytes()
}

/// What a rewrite changes in a checksum: a [`Delta`] folded to 16 bits once, because every packet needs it.
#[derive(Clone, Copy, Debug, Plain)]
pub struct Change(u16);

impl From<Delta> for Change {
    fn from(delta: Delta) -> Change {
        // RFC 1624: HC' = ~(~HC + d); with HC = 0xffff, which is -0, that is ~d.
        Change(!delta.apply(0xffff))
    }
}

impl Change {
    #[inline(always)]
    fn apply(self, check: u16) -> u16 {
        let sum = u32::from(!check) + u32::from(self.0);
        !((sum & 0xffff) + (sum >> 16)) as u16
    }
}

/// How a packet is rewritten: its new address and port, and what they change in checksums.
#[derive(Clone, Copy, Debug, Plain)]
pub struct Rewrite<A> {
    pub address: A,
    /// What the address changes.
    pub network: Change,
    /// What address and port change together.
    pub transport: Change,
    /// The new port; meaningless where the protocol has none.
    pub port: u16,
}

impl<A: Copy + Eq + Ord + Debug + Send + 'static> Rewrite<A> {
    /// Rewrite the source (`back`) or the destination of a packet.
    #[inline(always)]
    pub fn apply<F: Family<Address = A>>(&self, frame: &mut [u8], layers: &Layers, back: bool) {
        F::put(frame, usize::from(layers.l3), back, self.address, self.network);
        if layers.has(Layers::PORTS) && layers.proto != proto::SCTP {
            self.apply_ports(frame, layers, back);
        } else {
            self.apply_portless(frame, layers);
        }
    }

    #[inline(always)]
    fn apply_ports(&self, frame: &mut [u8], layers: &Layers, back: bool) {
        let Some(upper) = frame.get_mut(usize::from(layers.l4)..) else { return };
        let is_udp = layers.proto == proto::UDP;
        let at = if is_udp { 6 } else { 16 };
        if let Some(check) = upper.get_mut(at..at + 2) {
            let old = u16::from_be_bytes([check[0], check[1]]);
            let new = self.transport.apply(old);
            // As `Delta::apply_udp`, but by selection instead of branches: mixed traffic would mispredict them.
            let udp = if old == 0 { 0 } else { udp_nonzero(new) };
            check.copy_from_slice(&(if is_udp { udp } else { new }).to_be_bytes());
        }
        let at = if back { 0 } else { 2 };
        if let Some(port) = upper.get_mut(at..at + 2) {
            port.copy_from_slice(&self.port.to_be_bytes());
        }
    }

    /// Only ICMPv6 covers addresses with its checksum (RFC 4443 §2.3); later fragments have no header at all.
    #[cold]
    fn apply_portless(&self, frame: &mut [u8], layers: &Layers) {
        if layers.proto != proto::ICMPV6 || layers.has(Layers::LATER) {
            return;
        }
        let at = usize::from(layers.l4) + 2;
        if let Some(check) = frame.get_mut(at..at + 2) {
            let new = self.network.apply(u16::from_be_bytes([check[0], check[1]]));
            check.copy_from_slice(&new.to_be_bytes());
        }
    }
}

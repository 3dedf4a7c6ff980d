//! What the balancer must know of IPv4 and of IPv6 beside [`Family`]: keys and addresses.

use catena_packet::wire::number::proto;
use catena_packet::wire::{FlowKeyV4, FlowKeyV6, Layers, ports};
use catena_state::Key;

use crate::family::{Family, V4, V6};

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

/// What the balancer needs of a family of addresses.
pub trait Balance: Family {
    /// A flow's key, its class in it.
    type Key: Key;
    /// Read the key of a whole packet.
    fn read(frame: &[u8], layers: &Layers, class: Class) -> Option<Self::Key>;
    /// Return who shares a part of the table with whom: an address of IPv4, 64 bits of one of IPv6.
    fn sender(address: Self::Address) -> [u64; 2];
    /// Make a key.
    fn key(tuple: &Tuple<Self::Address>, class: Class) -> Self::Key;
    /// Take a key apart.
    fn tuple(key: &Self::Key) -> (Tuple<Self::Address>, Class);
    /// Read the key of a fragment: of the first by its ports, where it has them, of others by the identification.
    fn read_fragment(frame: &[u8], layers: &Layers, class: Class) -> Option<Self::Key> {
        let (mut tuple, _) = Self::tuple(&Self::read(frame, layers, class)?);
        if layers.has(Layers::LATER) {
            let ident = Self::fragment_ident(frame, layers.l3.into())?;
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

impl Balance for V4 {
    type Key = [u64; 2];

    #[inline(always)]
    fn read(frame: &[u8], layers: &Layers, class: Class) -> Option<[u64; 2]> {
        let [addresses, rest] = FlowKeyV4::read(frame, layers)?.words();
        Some([addresses, rest | class.bits()])
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
}

impl Balance for V6 {
    type Key = [u64; 5];

    #[inline(always)]
    fn read(frame: &[u8], layers: &Layers, class: Class) -> Option<[u64; 5]> {
        let [a, b, c, d, rest] = FlowKeyV6::read(frame, layers)?.words();
        Some([a, b, c, d, rest | class.bits()])
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
}

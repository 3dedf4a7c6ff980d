//! Conditions on a packet, on the headers that the parser found: VLAN tags, extension headers and authentication headers
//! before them change nothing.

use catena_packet::Packet;
use catena_packet::wire::number::ethertype;
use catena_packet::wire::{FlowKey, Layers, Net, Seed};

use super::bpf::Program;
use super::view::View;
use crate::attribute::Slot;

/// A condition on a packet.
#[derive(Clone, Debug)]
pub enum Test {
    /// All of these hold.
    All(Vec<Test>),
    /// Any of these holds.
    Any(Vec<Test>),
    /// This does not hold.
    Not(Box<Test>),
    /// The packet is of this network layer.
    Network(Net),
    /// The upper layer is this protocol, over this network layer or any.
    Protocol {
        /// IPv4 or IPv6, or either.
        over: Option<Net>,
        /// IANA's number.
        number: u8,
    },
    /// An address lies in one of these networks; of a frame that is not IP, one of these programs finds it.
    Address {
        /// Which address.
        endpoint: Endpoint,
        /// The networks.
        prefixes: Vec<Prefix>,
        /// The programs, which are shown the frame without VLAN tags.
        resolution: Vec<Program>,
    },
    /// The upper layer is one of these protocols, and a port lies in `from..=to`.
    Port {
        /// Which port.
        endpoint: Endpoint,
        /// The protocols.
        protocols: Protocols,
        /// The lowest port.
        from: u16,
        /// The highest port.
        to: u16,
    },
    /// There is a VLAN tag.
    Vlan {
        /// Tags that stand before it.
        depth: u8,
        /// Its number; any without.
        id: Option<u16>,
    },
    /// A program matches what it is shown of the packet.
    Program(Box<Program>, View),
    /// An attribute has one of these values.
    Attribute {
        /// Where the attribute stands.
        slot: Slot,
        /// The values.
        values: Vec<u16>,
        /// Any value but these.
        negated: bool,
    },
    /// The flow's hash, as a number in 0..2³², lies in `from..to`; both directions of a connection have
    /// the same.
    Split {
        /// The lower end, included.
        from: u64,
        /// The upper end, excluded.
        to: u64,
        /// What makes this split differ from others.
        seed: Seed,
    },
}

/// Which of a packet's two addresses, or ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// The source.
    Source,
    /// The destination.
    Destination,
    /// At least one of the two.
    Either,
    /// Both.
    Both,
}

impl Endpoint {
    #[inline(always)]
    fn holds<T: Copy>(self, [src, dst]: [T; 2], test: impl Fn(T) -> bool) -> bool {
        match self {
            Endpoint::Source => test(src),
            Endpoint::Destination => test(dst),
            Endpoint::Either => test(src) | test(dst),
            Endpoint::Both => test(src) & test(dst),
        }
    }
}

/// A network of one family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefix {
    /// Of IPv4: the address and a mask.
    V4(u32, u32),
    /// Of IPv6.
    V6(u128, u128),
}

/// Some of the protocols whose headers begin with ports: TCP, UDP and SCTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocols(u8);

impl Protocols {
    /// Collect them by IANA's numbers; `None` if one is none of the three.
    pub fn of(numbers: &[u8]) -> Option<Protocols> {
        numbers.iter().try_fold(Protocols(0), |found, number| match Self::bit(*number) {
            0 => None,
            bit => Some(Protocols(found.0 | bit)),
        })
    }

    #[inline(always)]
    const fn bit(number: u8) -> u8 {
        match number {
            6 => 1,
            17 => 2,
            132 => 4,
            _ => 0,
        }
    }
}

impl Test {
    #[inline]
    /// Return whether the condition holds for a packet whose headers were parsed.
    pub fn holds(&self, packet: &Packet) -> bool {
        match self {
            Test::All(_) | Test::Any(_) | Test::Not(_) => self.joined_holds(packet),
            _ => self.holds_alone(packet),
        }
    }

    /// Apart, so that a condition that is none of several is decided without a call.
    #[inline(never)]
    fn joined_holds(&self, packet: &Packet) -> bool {
        match self {
            Test::All(tests) => tests.iter().all(|test| test.holds(packet)),
            Test::Any(tests) => tests.iter().any(|test| test.holds(packet)),
            Test::Not(test) => !test.holds(packet),
            _ => self.holds_alone(packet),
        }
    }

    #[inline(always)]
    fn holds_alone(&self, packet: &Packet) -> bool {
        let layers = packet.layers();
        match self {
            Test::All(_) | Test::Any(_) | Test::Not(_) => false,
            Test::Network(net) => layers.net == *net,
            Test::Protocol { over, number } => {
                // Without IP the protocol is 0, as is that of hop-by-hop options.
                layers.proto == *number && over.map_or(is_ip(layers.net), |net| layers.net == net)
            }
            Test::Address { endpoint, prefixes, resolution } => match layers.net {
                Net::Ipv4 => ipv4(packet.data(), layers.l3, *endpoint, prefixes),
                Net::Ipv6 => ipv6(packet.data(), layers.l3, *endpoint, prefixes),
                Net::Arp | Net::Other => {
                    resolution.iter().any(|program| View::Untagged.matches(program, packet.data(), layers))
                }
            },
            Test::Port { endpoint, protocols, from, to } => {
                protocols.0 & Protocols::bit(layers.proto) != 0
                    && layers.has(Layers::PORTS)
                    && ports(packet.data(), layers.l4)
                        .is_some_and(|ports| endpoint.holds(ports, |port| (*from..=*to).contains(&port)))
            }
            Test::Vlan { depth, id } => vlan(packet.data(), *depth, *id),
            Test::Program(program, view) => view.matches(program, packet.data(), layers),
            Test::Attribute { slot, values, negated } => values.contains(&slot.get(packet)) != *negated,
            Test::Split { from, to, seed } => {
                let hash = FlowKey::read(packet.data(), &layers).map_or(0, |key| key.symmetric_hash(seed));
                (*from..*to).contains(&(hash >> 32))
            }
        }
    }

    /// Return how much the condition costs beside others, roughly: to try cheap ones first.
    pub fn cost(&self) -> usize {
        match self {
            Test::All(tests) | Test::Any(tests) => tests.iter().map(Test::cost).sum::<usize>() + 1,
            Test::Not(test) => test.cost() + 1,
            Test::Network(_) | Test::Protocol { .. } | Test::Attribute { .. } => 1,
            Test::Address { prefixes, .. } => 1 + prefixes.len(),
            Test::Port { .. } | Test::Vlan { .. } => 2,
            Test::Program(..) => 16,
            Test::Split { .. } => 8,
        }
    }

    /// Return whether the packet's headers must be known for this test.
    pub(super) fn needs_layers(&self) -> bool {
        match self {
            Test::All(tests) | Test::Any(tests) => tests.iter().any(Test::needs_layers),
            Test::Not(test) => test.needs_layers(),
            Test::Attribute { .. } | Test::Vlan { .. } | Test::Program(_, View::Frame) => false,
            _ => true,
        }
    }

    /// Return whether the test looks at what only the first fragment of a datagram holds.
    pub(super) fn needs_upper_layer(&self) -> bool {
        match self {
            Test::All(tests) | Test::Any(tests) => tests.iter().any(Test::needs_upper_layer),
            Test::Not(test) => test.needs_upper_layer(),
            Test::Protocol { .. } | Test::Port { .. } | Test::Program(..) | Test::Split { .. } => true,
            Test::Network(_) | Test::Address { .. } | Test::Vlan { .. } | Test::Attribute { .. } => false,
        }
    }
}

#[inline(always)]
fn is_ip(net: Net) -> bool {
    matches!(net, Net::Ipv4 | Net::Ipv6)
}

#[inline(always)]
fn ports(data: &[u8], l4: u16) -> Option<[u16; 2]> {
    let [a, b, c, d] = *data.get(usize::from(l4)..)?.first_chunk()?;
    Some([u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])])
}

#[inline(always)]
fn ipv4(data: &[u8], l3: u8, endpoint: Endpoint, prefixes: &[Prefix]) -> bool {
    let Some([src, dst]) = data.get(usize::from(l3) + 12..).and_then(|rest| rest.first_chunk::<8>()).map(|bytes| {
        let both = u64::from_be_bytes(*bytes);
        [(both >> 32) as u32, both as u32]
    }) else {
        return false;
    };
    prefixes.iter().any(|prefix| match *prefix {
        Prefix::V4(network, mask) => endpoint.holds([src, dst], |address| address & mask == network),
        Prefix::V6(..) => false,
    })
}

#[inline(always)]
fn ipv6(data: &[u8], l3: u8, endpoint: Endpoint, prefixes: &[Prefix]) -> bool {
    let word = |at: usize| data.get(usize::from(l3) + at..)?.first_chunk().map(|bytes| u128::from_be_bytes(*bytes));
    let (Some(src), Some(dst)) = (word(8), word(24)) else { return false };
    prefixes.iter().any(|prefix| match *prefix {
        Prefix::V6(network, mask) => endpoint.holds([src, dst], |address| address & mask == network),
        Prefix::V4(..) => false,
    })
}

/// Whether a frame's tag behind `depth` others is there and has this number.
fn vlan(data: &[u8], depth: u8, id: Option<u16>) -> bool {
    let mut types = data.get(12..).unwrap_or_default().chunks_exact(4).take(usize::from(depth) + 1);
    let is_tag = |tag: &[u8]| ethertype::is_vlan(u16::from_be_bytes([tag[0], tag[1]]));
    let number = |tag: &[u8]| u16::from_be_bytes([tag[2], tag[3]]) & 0xfff;
    let mut last = None;
    let all = types.all(|tag| {
        last = Some(tag);
        is_tag(tag)
    });
    all && types.len() == 0 && last.is_some_and(|tag| id.is_none_or(|id| number(tag) == id))
}

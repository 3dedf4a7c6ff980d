//! What a filter asks of a packet: a tree of conditions on the headers that Catena's parser finds.
//!
//! libpcap's program reads a packet at fixed offsets, so that one more header in front of the ports (an IPv6 extension
//! header, an authentication header, a VLAN tag) takes a packet out of every filter that names a port. These conditions
//! hold for what the parser found, wherever it stands, as the functions' own rules do. What only libpcap can say is left
//! to its program.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::Insn;

/// Conditions, joined.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Expression {
    /// All hold; with none, every packet matches.
    All(Vec<Expression>),
    /// At least one holds.
    Any(Vec<Expression>),
    /// It does not hold.
    Not(Box<Expression>),
    /// One condition.
    Is(Condition),
}

/// A condition on a packet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// It is of this network layer.
    Network(Network),
    /// The upper layer, behind all extension headers, is this protocol, over this family of addresses or any.
    Protocol {
        /// IPv4 or IPv6, or either.
        over: Option<Network>,
        /// IANA's number.
        number: u8,
    },
    /// An address lies in this network: of an IP packet, or else as libpcap's program finds it in ARP and RARP.
    Address {
        /// Which address.
        endpoint: Endpoint,
        /// The network's first address; no bits are set behind the prefix.
        network: IpAddr,
        /// Bits of the prefix.
        prefix: u8,
        /// The program, if such frames are meant too; it is shown the frame without VLAN tags.
        resolution: Option<Vec<Insn>>,
    },
    /// The upper layer is one of these protocols and its port lies in `from..=to`.
    Port {
        /// Which port.
        endpoint: Endpoint,
        /// IANA's numbers, of TCP, UDP and SCTP.
        protocols: Vec<u8>,
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
    /// libpcap's program matches what it is shown.
    Program {
        /// The program.
        program: Vec<Insn>,
        /// What it is shown of the packet.
        view: View,
    },
}

/// A network layer that filters have a word for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
    /// ARP.
    Arp,
}

/// Which of a packet's two addresses or ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Endpoint {
    /// The source's.
    Source,
    /// The destination's.
    Destination,
    /// At least one of them.
    Either,
    /// Both of them.
    Both,
}

/// What a program is shown of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum View {
    /// The frame as it came.
    Frame,
    /// The frame without VLAN tags.
    Untagged,
    /// The frame without VLAN tags, and the upper layer right behind an IP header that names it.
    Bare,
}

impl Expression {
    /// What a packet that nothing decides early is held against: numbers compared, and instructions of programs.
    #[must_use]
    pub fn steps(&self) -> u32 {
        match self {
            Self::All(parts) | Self::Any(parts) => parts.iter().map(Self::steps).sum(),
            Self::Not(inner) => 1 + inner.steps(),
            Self::Is(Condition::Network(_) | Condition::Protocol { .. }) => 1,
            Self::Is(Condition::Address { .. } | Condition::Port { .. } | Condition::Vlan { .. }) => 2,
            Self::Is(Condition::Program { program, .. }) => super::longest_way(program),
        }
    }

    /// Join two, without nesting what is joined in the same way already.
    pub(super) fn joined(self, other: Self, by: Joint) -> Self {
        match (by, self) {
            (Joint::And, Self::All(mut parts)) if !parts.is_empty() => {
                parts.push(other);
                Self::All(parts)
            }
            (Joint::Or, Self::Any(mut parts)) => {
                parts.push(other);
                Self::Any(parts)
            }
            (Joint::And, first) => Self::All(vec![first, other]),
            (Joint::Or, first) => Self::Any(vec![first, other]),
        }
    }
}

/// How two conditions are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Joint {
    And,
    Or,
}

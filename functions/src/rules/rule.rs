//! One rule of an access control list, and what it means: the plain definition that the parsers
//! produce, the classifier compiles, and the tests take as the reference.

use std::fmt;

use super::key::{KeyV4, KeyV6};
use super::protocol;

/// What happens to a packet that a rule matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// The packet goes on.
    Permit,
    /// The packet is dropped.
    Deny,
}

/// An IPv4 or IPv6 network: the addresses that share the first `length` bits.
///
/// Bits behind the prefix are always zero, so that equal networks compare equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Prefix {
    /// An IPv4 network.
    V4 {
        /// The network's first address, in host byte order.
        bits: u32,
        /// Bits that count, 0 to 32.
        length: u8,
    },
    /// An IPv6 network.
    V6 {
        /// The network's first address, in host byte order.
        bits: u128,
        /// Bits that count, 0 to 128.
        length: u8,
    },
}

impl Prefix {
    /// The IPv4 network of `length` bits (at most 32, more counts as 32) that contains `address`.
    pub fn v4(address: u32, length: u8) -> Self {
        let length = length.min(32);
        Self::V4 { bits: address & mask_v4(length), length }
    }

    /// The IPv6 network of `length` bits (at most 128, more counts as 128) that contains `address`.
    pub fn v6(address: u128, length: u8) -> Self {
        let length = length.min(128);
        Self::V6 { bits: address & mask_v6(length), length }
    }

    /// Bits that count.
    pub fn length(&self) -> u8 {
        match self {
            Self::V4 { length, .. } | Self::V6 { length, .. } => *length,
        }
    }

    /// Whether every address of `other` lies in this network.
    pub fn contains(&self, other: &Self) -> bool {
        match (*self, *other) {
            (Self::V4 { bits, length }, Self::V4 { bits: inner, length: l }) => {
                length <= l && inner & mask_v4(length) == bits
            }
            (Self::V6 { bits, length }, Self::V6 { bits: inner, length: l }) => {
                length <= l && inner & mask_v6(length) == bits
            }
            _ => false,
        }
    }

    /// The networks that together hold exactly the addresses of this family outside this one:
    /// as many as the prefix is long.
    pub fn complement(&self) -> Vec<Self> {
        (1..=self.length())
            .map(|l| match *self {
                Self::V4 { bits, .. } => Self::v4(bits ^ (1 << (32 - l)), l),
                Self::V6 { bits, .. } => Self::v6(bits ^ (1 << (128 - l)), l),
            })
            .collect()
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::V4 { bits, length: 32 } => write!(f, "{}", std::net::Ipv4Addr::from(bits)),
            Self::V4 { bits, length } => write!(f, "{}/{length}", std::net::Ipv4Addr::from(bits)),
            Self::V6 { bits, length: 128 } => write!(f, "{}", std::net::Ipv6Addr::from(bits)),
            Self::V6 { bits, length } => write!(f, "{}/{length}", std::net::Ipv6Addr::from(bits)),
        }
    }
}

/// The netmask of an IPv4 prefix of `length` bits (0 to 32).
pub fn mask_v4(length: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0)
}

/// The netmask of an IPv6 prefix of `length` bits (0 to 128).
pub fn mask_v6(length: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0)
}

/// Ports from `first` to `last`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ports {
    /// Lowest port.
    pub first: u16,
    /// Highest port.
    pub last: u16,
}

impl Ports {
    /// Every port. As a constraint it still asks that the packet carries ports.
    pub const ALL: Self = Self { first: 0, last: u16::MAX };

    /// Whether `port` lies in the range.
    pub fn contains(&self, port: u16) -> bool {
        (self.first..=self.last).contains(&port)
    }
}

impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last { write!(f, "{}", self.first) } else { write!(f, "{}-{}", self.first, self.last) }
    }
}

/// IP protocol numbers from `first` to `last`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Protocols {
    /// Lowest protocol number.
    pub first: u8,
    /// Highest protocol number.
    pub last: u8,
}

impl Protocols {
    /// Every protocol.
    pub const ALL: Self = Self { first: 0, last: u8::MAX };

    /// One protocol.
    pub const fn one(number: u8) -> Self {
        Self { first: number, last: number }
    }

    /// Whether `number` lies in the range.
    pub fn contains(&self, number: u8) -> bool {
        (self.first..=self.last).contains(&number)
    }
}

/// One rule. A packet that meets all its constraints gets its action, unless an earlier rule of the
/// list matched already.
///
/// A rule without addresses applies to IPv4 and IPv6; a rule with an address, even `0.0.0.0/0`,
/// only to packets of that family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rule {
    /// What happens to a packet that matches.
    pub action: Action,
    /// Source network; `None` is any address of either family.
    pub src: Option<Prefix>,
    /// Destination network; `None` is any address of either family.
    pub dst: Option<Prefix>,
    /// Source ports; `None` matches packets without ports too.
    pub sport: Option<Ports>,
    /// Destination ports; `None` matches packets without ports too.
    pub dport: Option<Ports>,
    /// IP protocols.
    pub protocols: Protocols,
    /// Line of the rule's text, from 1, for counters and messages; 0 if it has none.
    pub line: u32,
}

impl Rule {
    /// The rule that matches every packet.
    pub const fn any(action: Action) -> Self {
        Self { action, src: None, dst: None, sport: None, dport: None, protocols: Protocols::ALL, line: 0 }
    }

    /// Whether the rule asks that a packet carries ports.
    pub fn needs_ports(&self) -> bool {
        self.sport.is_some() || self.dport.is_some()
    }

    /// Whether the rule matches an IPv4 packet. Compares field by field: the reference that the
    /// classifier is tested against.
    pub fn matches_v4(&self, key: &KeyV4) -> bool {
        let address = |p: Option<Prefix>, a: u32| p.is_none_or(|p| p.contains(&Prefix::v4(a, 32)));
        address(self.src, key.src)
            && address(self.dst, key.dst)
            && self.matches_upper(key.sport, key.dport, key.protocol, key.has_ports)
    }

    /// Whether the rule matches an IPv6 packet; see [`Rule::matches_v4`].
    pub fn matches_v6(&self, key: &KeyV6) -> bool {
        let address = |p: Option<Prefix>, a: u128| p.is_none_or(|p| p.contains(&Prefix::v6(a, 128)));
        address(self.src, key.src)
            && address(self.dst, key.dst)
            && self.matches_upper(key.sport, key.dport, key.protocol, key.has_ports)
    }

    fn matches_upper(&self, sport: u16, dport: u16, protocol: u8, has_ports: bool) -> bool {
        self.protocols.contains(protocol)
            && self.sport.is_none_or(|p| has_ports && p.contains(sport))
            && self.dport.is_none_or(|p| has_ports && p.contains(dport))
    }
}

/// As the parser of Catena's own notation reads it.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.action {
            Action::Permit => "permit",
            Action::Deny => "deny",
        })?;
        match self.protocols {
            Protocols::ALL => f.write_str(" any")?,
            Protocols { first, last } if first == last => match protocol::name(first) {
                Some(name) => write!(f, " {name}")?,
                None => write!(f, " {first}")?,
            },
            Protocols { first, last } => write!(f, " {first}-{last}")?,
        }
        for (word, prefix, ports) in [("from", self.src, self.sport), ("to", self.dst, self.dport)] {
            match prefix {
                Some(prefix) => write!(f, " {word} {prefix}")?,
                None if ports.is_some() => write!(f, " {word} any")?,
                None => {}
            }
            if let Some(ports) = ports {
                write!(f, " port {ports}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_and_its_complement_part_the_address_space() {
        let p = Prefix::v4(0x0a01_0000, 16);
        let parts = p.complement();
        assert_eq!(parts.len(), 16);
        for a in [0x0a01_0000u32, 0x0a01_ffff, 0x0a02_0000, 0, u32::MAX, 0x0a00_ffff] {
            let host = Prefix::v4(a, 32);
            let holders = parts.iter().filter(|q| q.contains(&host)).count();
            assert_eq!(holders, usize::from(!p.contains(&host)));
        }
        assert!(Prefix::v4(7, 0).complement().is_empty());
        assert_eq!(Prefix::v6(1, 128).complement().len(), 128);
    }

    #[test]
    fn families_do_not_mix() {
        assert!(!Prefix::v4(0, 0).contains(&Prefix::v6(0, 128)));
        let mut rule = Rule::any(Action::Permit);
        assert!(rule.matches_v4(&KeyV4::default()) && rule.matches_v6(&KeyV6::default()));
        rule.dst = Some(Prefix::v4(0, 0));
        assert!(rule.matches_v4(&KeyV4::default()) && !rule.matches_v6(&KeyV6::default()));
    }

    #[test]
    fn a_port_constraint_asks_for_ports() {
        let mut rule = Rule::any(Action::Deny);
        rule.dport = Some(Ports::ALL);
        let with = KeyV4 { has_ports: true, ..KeyV4::default() };
        assert!(rule.matches_v4(&with) && !rule.matches_v4(&KeyV4::default()));
    }
}

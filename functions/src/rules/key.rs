//! What a rule looks at in a packet: the 5-tuple, and whether the packet carries ports at all.
//!
//! A later fragment, an ICMP message or a truncated segment has no ports; its key says so with
//! `has_ports = false`, and no rule that asks for a port matches it, whatever the port fields hold.

/// The header fields of an IPv4 packet that rules compare, in host byte order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct KeyV4 {
    /// Source address.
    pub src: u32,
    /// Destination address.
    pub dst: u32,
    /// Source port; 0 if the packet carries none.
    pub sport: u16,
    /// Destination port; 0 if the packet carries none.
    pub dport: u16,
    /// IP protocol number.
    pub protocol: u8,
    /// Whether the packet carries ports that may be read.
    pub has_ports: bool,
}

/// The header fields of an IPv6 packet that rules compare, in host byte order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct KeyV6 {
    /// Source address.
    pub src: u128,
    /// Destination address.
    pub dst: u128,
    /// Source port; 0 if the packet carries none.
    pub sport: u16,
    /// Destination port; 0 if the packet carries none.
    pub dport: u16,
    /// Protocol number of the upper layer (behind the extension headers).
    pub protocol: u8,
    /// Whether the packet carries ports that may be read.
    pub has_ports: bool,
}

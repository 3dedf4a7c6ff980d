//! Assigned numbers (IANA, IEEE): EtherTypes, IP protocols and well-known ports that the wire code needs.

/// EtherTypes (IEEE 802; IANA "IEEE 802 Numbers").
pub mod ethertype {
    /// Values below this are an IEEE 802.3 length, not a type.
    pub const SMALLEST: u16 = 0x0600;
    /// IPv4.
    pub const IPV4: u16 = 0x0800;
    /// ARP.
    pub const ARP: u16 = 0x0806;
    /// Transparent Ethernet bridging: an Ethernet frame inside GRE (RFC 1701).
    pub const BRIDGING: u16 = 0x6558;
    /// IEEE 802.1Q customer tag.
    pub const VLAN: u16 = 0x8100;
    /// IPv6.
    pub const IPV6: u16 = 0x86dd;
    /// IEEE 802.1ad service tag.
    pub const QINQ: u16 = 0x88a8;
    /// Service tags before 802.1ad gave them a number, which switches still send: Linux's `ETH_P_QINQ1` to 3.
    pub const QINQ_OLD: u16 = 0x9100;
    /// The second of them.
    pub const QINQ_OLD_2: u16 = 0x9200;
    /// The third of them.
    pub const QINQ_OLD_3: u16 = 0x9300;
    /// Network Service Header (RFC 8300).
    pub const NSH: u16 = 0x894f;

    /// Whether this type announces a VLAN tag.
    #[inline]
    pub const fn is_vlan(ethertype: u16) -> bool {
        matches!(ethertype, VLAN | QINQ | QINQ_OLD | QINQ_OLD_2 | QINQ_OLD_3)
    }
}

/// IP protocol numbers (IANA "Assigned Internet Protocol Numbers").
pub mod proto {
    /// IPv6 hop-by-hop options.
    pub const HOP_BY_HOP: u8 = 0;
    /// ICMP for IPv4.
    pub const ICMP: u8 = 1;
    /// IPv4 in IP.
    pub const IPV4: u8 = 4;
    /// TCP.
    pub const TCP: u8 = 6;
    /// UDP.
    pub const UDP: u8 = 17;
    /// DCCP.
    pub const DCCP: u8 = 33;
    /// IPv6 in IP.
    pub const IPV6: u8 = 41;
    /// IPv6 routing header.
    pub const ROUTING: u8 = 43;
    /// IPv6 fragment header.
    pub const FRAGMENT: u8 = 44;
    /// GRE.
    pub const GRE: u8 = 47;
    /// Encapsulating security payload.
    pub const ESP: u8 = 50;
    /// Authentication header.
    pub const AH: u8 = 51;
    /// ICMP for IPv6.
    pub const ICMPV6: u8 = 58;
    /// IPv6: nothing follows.
    pub const NO_NEXT_HEADER: u8 = 59;
    /// IPv6 destination options.
    pub const DESTINATION_OPTIONS: u8 = 60;
    /// SCTP.
    pub const SCTP: u8 = 132;
    /// UDP-Lite.
    pub const UDP_LITE: u8 = 136;
}

/// UDP ports of the tunnels that have a view here.
pub mod port {
    /// VXLAN (RFC 7348).
    pub const VXLAN: u16 = 4789;
}

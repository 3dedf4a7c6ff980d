//! Why a packet is malformed: one small value per reason, to be counted where it is dropped.

use std::fmt;

/// Declares every reason once: its name and the words in which it is counted.
macro_rules! reasons {
    ($($name:ident = $reason:literal,)+) => {
        /// A header that cannot be what its length fields say. Each variant is one drop reason.
        #[repr(u8)]
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub enum Malformed {
            $(#[doc = $reason] $name,)+
        }

        impl Malformed {
            /// Every reason, in the order of its number: `ALL[m as usize] == m`, so that an array of
            /// `ALL.len()` counters serves all.
            pub const ALL: &[Malformed] = &[$(Malformed::$name,)+];

            /// Return the reason in words, as it stands in a table of drops.
            pub const fn reason(self) -> &'static str {
                match self {
                    $(Malformed::$name => $reason,)+
                }
            }
        }
    };
}

reasons! {
    EthernetTruncated = "truncated ethernet header",
    VlanTruncated = "truncated VLAN tag",
    VlanDepth = "too many VLAN tags",
    ArpTruncated = "truncated ARP",
    IpVersion = "neither IPv4 nor IPv6",
    Ipv4Truncated = "truncated IPv4 header",
    Ipv4Version = "IPv4 version is not 4",
    Ipv4HeaderLength = "IPv4 header length below 20 or beyond the packet",
    Ipv4TotalShort = "IPv4 total length below its header length",
    Ipv4TotalLong = "IPv4 total length beyond the frame",
    Ipv4Option = "bad IPv4 option length",
    FragmentLength = "fragment before the last not a multiple of 8 bytes",
    FragmentOverrun = "fragment reaches beyond 65535 bytes",
    FragmentFirst = "first fragment without its whole transport header",
    FragmentDeep = "first fragment with its transport header too far in",
    FragmentTiny = "later fragment could overwrite a transport header",
    Ipv6Truncated = "truncated IPv6 header",
    Ipv6Version = "IPv6 version is not 6",
    Ipv6PayloadLong = "IPv6 payload length beyond the frame",
    Ipv6ExtensionTruncated = "truncated IPv6 extension header",
    Ipv6ExtensionCount = "too many IPv6 extension headers",
    Ipv6ExtensionOrder = "IPv6 hop-by-hop options not first, or a second fragment header",
    AuthenticationTruncated = "truncated authentication header",
    TcpTruncated = "truncated TCP header",
    TcpDataOffset = "TCP data offset below 20 or beyond the segment",
    TcpOption = "bad TCP option length",
    UdpTruncated = "truncated UDP header",
    UdpLength = "UDP length below 8 or beyond the packet",
    IcmpTruncated = "truncated ICMP header",
    Icmpv6Truncated = "truncated ICMPv6 header",
    SctpTruncated = "truncated SCTP header",
    DccpTruncated = "truncated DCCP header",
    UdpLiteTruncated = "truncated UDP-Lite header",
    GreTruncated = "truncated GRE header",
    GreVersion = "GRE version is not 0",
    GreRouting = "GRE with source routing",
    VxlanTruncated = "truncated VXLAN header",
    VxlanFlags = "VXLAN without a network identifier",
    NshTruncated = "truncated NSH",
    NshVersion = "NSH version is not 0",
    NshLength = "NSH length does not fit its MD type",
    NshMetadata = "bad NSH metadata length",
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason())
    }
}

impl std::error::Error for Malformed {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_index_the_table_and_reasons_are_distinct() {
        let mut seen = std::collections::HashSet::new();
        for (index, &reason) in Malformed::ALL.iter().enumerate() {
            assert_eq!(reason as usize, index);
            assert!(seen.insert(reason.reason()));
        }
    }
}

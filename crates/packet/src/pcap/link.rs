//! Link types: how the first header of a captured packet is to be read.

use std::fmt;

/// A link-layer type by its number in the registry that pcap and pcapng share
/// (<https://www.tcpdump.org/linktypes.html>). Any number is representable; the constants are those
/// that Catena's ports or its users' captures meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinkType(pub u16);

/// Declares the named types once, for the constants and for [`LinkType::name`].
macro_rules! link_types {
    ($($constant:ident = $number:literal, $name:literal, $doc:literal;)*) => {
        impl LinkType {
            $(#[doc = $doc] pub const $constant: LinkType = LinkType($number);)*

            /// The type's name, or `None` for a number without a constant here.
            pub fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($number => Some($name),)*
                    _ => None,
                }
            }
        }
    };
}

link_types! {
    NULL = 0, "BSD loopback", "BSD loopback: a 4-byte address family in the capturing host's byte order.";
    ETHERNET = 1, "Ethernet", "Ethernet, from the destination address; the FCS is usually absent.";
    TOKEN_RING = 6, "Token Ring", "IEEE 802.5.";
    PPP = 9, "PPP", "PPP, with or without its HDLC-like framing (RFC 1662).";
    FDDI = 10, "FDDI", "FDDI.";
    RAW_BSD = 12, "raw IP (DLT 12)", "An IPv4 or IPv6 header: [`LinkType::RAW`] under the number most systems use in memory.";
    RAW_OPENBSD = 14, "raw IP (DLT 14)", "An IPv4 or IPv6 header: [`LinkType::RAW`] under OpenBSD's number.";
    PPP_HDLC = 50, "PPP in HDLC framing", "PPP that always begins with the address and control bytes, or Cisco's.";
    PPP_ETHER = 51, "PPPoE", "A PPPoE session header and PPP (RFC 2516).";
    RAW = 101, "raw IP", "An IPv4 or IPv6 header; its version field tells which.";
    C_HDLC = 104, "Cisco HDLC", "Cisco PPP with HDLC framing.";
    IEEE80211 = 105, "802.11", "A bare IEEE 802.11 header.";
    FRAME_RELAY = 107, "Frame Relay", "Frame Relay (RFC 2427).";
    LOOP = 108, "OpenBSD loopback", "OpenBSD loopback: a 4-byte address family in network byte order.";
    LINUX_SLL = 113, "Linux cooked", "Linux \"cooked\" capture, first version: a 16-byte pseudo-header.";
    PFLOG = 117, "pflog", "OpenBSD's packet filter log.";
    IEEE80211_PRISM = 119, "802.11 with Prism header", "IEEE 802.11 after a Prism monitor header.";
    IEEE80211_RADIOTAP = 127, "802.11 with radiotap", "IEEE 802.11 after a radiotap header.";
    IEEE80211_AVS = 163, "802.11 with AVS header", "IEEE 802.11 after an AVS header.";
    PPI = 192, "PPI", "Per-Packet Information, which names a further link type.";
    MPLS = 219, "MPLS", "An MPLS label stack.";
    USB_LINUX_MMAPPED = 220, "Linux USB", "USB as Linux's usbmon captures it.";
    IPV4 = 228, "raw IPv4", "An IPv4 header.";
    IPV6 = 229, "raw IPv6", "An IPv6 header.";
    NFLOG = 239, "nflog", "Linux's netfilter log: type-length-value fields, one of them the packet.";
    LINUX_SLL2 = 276, "Linux cooked v2", "Linux \"cooked\" capture, second version: a 20-byte pseudo-header.";
}

impl fmt::Display for LinkType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "link type {}", self.0),
        }
    }
}

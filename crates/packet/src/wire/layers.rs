//! The layer parser: one look at a packet when it enters, shared by every module after.
//!
//! It decides three ways, as a careful router or middlebox would.
//!
//! *Malformed* (dropped and counted, [`Malformed`]): what no honest sender makes, or what two readers could
//! read in two ways.
//! - A header that its frame or its outer length cuts off; a version, header length, total length, data offset or
//!   UDP length that contradicts what is there. Lengths are held against the IP length, not against the
//!   frame, so that Ethernet padding never passes for payload.
//! - More than [`MAX_VLAN_TAGS`] tags, or more than [`ipv6ext::MAX_HEADERS`] extension headers.
//! - IPv6 hop-by-hop options that are not first, a second fragment header (RFC 8200 §4).
//! - Fragments that cannot be reassembled: one before the last not a multiple of 8 bytes, or one that reaches
//!   beyond 65,535 bytes (RFC 791 §3.2, RFC 8200 §4.5).
//! - Fragments that hide a header or could change one that was judged (RFC 1858 §3, RFC 3128). A first fragment
//!   holds its whole header chain, the transport header included, of IPv4 too (RFC 1858 §3.2.1, RFC 7112 §5). A
//!   later one begins beyond the headers: [`fragment_reaches_headers`] has the offsets.
//!
//! So ports that stand in a first fragment are those of the datagram, whoever reassembles it: a packet of TCP, UDP
//! or SCTP that is no later fragment always has [`Layers::PORTS`].
//!
//! *Unknown* (passes, with as many layers as were understood): other EtherTypes and 802.3 frames, [`Net::Other`];
//! other IP protocols, without ports.
//!
//! *Not looked at here*: checksums ([`verify_ipv4_checksum`](super::checksum::verify_ipv4_checksum)), options, address
//! and flag sanity, tunnels (GRE, VXLAN, NSH: their views read on at [`Layers::payload`]).

use super::number::{ethertype, proto};
use super::{Malformed, ethernet, ipv4, ipv6, ipv6ext, tcp, udp};

/// Most VLAN tags that a frame may carry.
pub const MAX_VLAN_TAGS: usize = 4;

/// The network layer.
#[repr(u8)]
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Debug)]
pub enum Net {
    /// Anything else.
    #[default]
    Other = 0,
    /// ARP.
    Arp = 1,
    /// IPv4.
    Ipv4 = 4,
    /// IPv6.
    Ipv6 = 6,
}

/// Where the headers of a packet stand: 8 bytes, made by [`parse`] or [`parse_ip`]. Offsets are in bytes from
/// the start of the frame.
#[repr(C)]
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Layers {
    /// Offset of the network header.
    pub l3: u8,
    /// The network layer.
    pub net: Net,
    /// The upper-layer protocol after extension headers ([`number::proto`](super::number::proto)); 0 without IP.
    pub proto: u8,
    /// [`PORTS`](Self::PORTS) and so on.
    pub flags: u8,
    /// Offset of the upper-layer header; of the data in a fragment that is not the first; equal to `l3` without IP.
    pub l4: u16,
    /// Offset of what follows the upper-layer header; equal to `l4` where that header is unknown or cut off.
    pub payload: u16,
}

impl Layers {
    /// The upper-layer header is whole and begins with a source and a destination port: TCP, UDP, SCTP.
    pub const PORTS: u8 = 1;
    /// A part of a datagram: any fragment, first or later. An atomic IPv6 fragment (RFC 6946) is none.
    pub const FRAGMENT: u8 = 2;
    /// A fragment that is not the first: it holds no upper-layer header.
    pub const LATER: u8 = 4;
    /// At least one VLAN tag stands before the network header.
    pub const VLAN: u8 = 8;
    /// IPv4 options or IPv6 extension headers stand before the upper layer.
    pub const OPTIONS: u8 = 16;
    /// An authentication header stands before the upper layer: a rewritten packet will be refused (RFC 4302).
    pub const AUTHENTICATED: u8 = 32;

    /// Whether all of these flags are set.
    #[inline]
    pub const fn has(&self, flags: u8) -> bool {
        self.flags & flags == flags
    }

    /// Return where the IP packet ends, in bytes from the start of the frame: padding comes after. `None` without IP, or
    /// if these are not this frame's layers.
    #[inline]
    pub fn end(&self, frame: &[u8]) -> Option<usize> {
        let l3 = usize::from(self.l3);
        let length_at = |at: usize| frame.get(l3 + at..)?.first_chunk().map(|&length| u16::from_be_bytes(length));
        let end = match self.net {
            Net::Ipv4 => l3 + usize::from(length_at(2)?),
            Net::Ipv6 => l3 + ipv6::HEADER_LEN + usize::from(length_at(4)?),
            Net::Other | Net::Arp => return None,
        };
        (usize::from(self.payload) <= end && end <= frame.len()).then_some(end)
    }
}

/// Parse an Ethernet frame.
///
/// Cheapest for IPv4 without options and IPv6 without extension headers that carry unfragmented TCP or UDP.
#[inline]
pub fn parse(frame: &[u8]) -> Result<Layers, Malformed> {
    match common(frame) {
        Some(layers) => Ok(layers),
        None => parse_ethernet(frame),
    }
}

/// Parse a packet of a link without a link-layer header: IPv4 or IPv6 by its first four bits.
#[inline]
pub fn parse_ip(packet: &[u8]) -> Result<Layers, Malformed> {
    match packet.first().map(|byte| byte >> 4) {
        Some(4) => parse_ipv4(packet, 0, 0),
        Some(6) => parse_ipv6(packet, 0, 0),
        _ => Err(Malformed::IpVersion),
    }
}

/// Read the common case with as few branches as can be: `None` sends all else, good or bad, down the long way.
///
/// Conditions are joined by `&` and headers chosen by conditional moves, so that a mix of TCP and UDP costs
/// no mispredicted branch.
#[inline(always)]
fn common(frame: &[u8]) -> Option<Layers> {
    // Ethernet, IPv4 and TCP without options; also Ethernet, IPv6 without its last bytes.
    const LEN: usize = ethernet::HEADER_LEN + ipv4::HEADER_LEN + tcp::HEADER_LEN;
    const L3: usize = ethernet::HEADER_LEN;
    let head = frame.first_chunk::<LEN>()?;
    // EtherType, version and header length (IPv4) or version and traffic class (IPv6), then what follows.
    let kind = u32::from_be_bytes([head[12], head[13], head[14], head[15]]);
    if kind & 0xffff_ff00 == 0x0800_4500 {
        const L4: usize = L3 + ipv4::HEADER_LEN;
        let end = L3 + usize::from(u16::from_be_bytes([head[16], head[17]]));
        let unfragmented = u16::from_be_bytes([head[20], head[21]]) & 0x3fff == 0;
        let proto = head[23];
        let length = upper_length(proto, head[L4 + 12], [head[L4 + 4], head[L4 + 5]]);
        let whole = length.fits & (L4 + length.needed <= end) & (end <= frame.len());
        (whole & unfragmented).then_some(Layers {
            l3: L3 as u8,
            net: Net::Ipv4,
            proto,
            flags: Layers::PORTS,
            l4: L4 as u16,
            payload: (L4 + length.header) as u16,
        })
    } else if kind & 0xffff_f000 == 0x86dd_6000 {
        const L4: usize = L3 + ipv6::HEADER_LEN;
        let end = L4 + usize::from(u16::from_be_bytes([head[18], head[19]]));
        let proto = head[20];
        let upper = frame[LEN..].first_chunk::<8>()?;
        let data_offset = *frame.get(L4 + 12).unwrap_or(&0);
        let length = upper_length(proto, data_offset, [upper[4], upper[5]]);
        let whole = length.fits & (L4 + length.needed <= end) & (end <= frame.len());
        whole.then_some(Layers {
            l3: L3 as u8,
            net: Net::Ipv6,
            proto,
            flags: Layers::PORTS,
            l4: L4 as u16,
            payload: (L4 + length.header) as u16,
        })
    } else {
        None
    }
}

/// What TCP or UDP says of its own length, in bytes.
struct UpperLength {
    /// Length of the header.
    header: usize,
    /// Bytes that must be there: TCP's header, UDP's datagram.
    needed: usize,
    /// Whether the protocol is TCP or UDP, and the length at least its header's.
    fits: bool,
}

#[inline(always)]
fn upper_length(proto: u8, data_offset: u8, udp_length: [u8; 2]) -> UpperLength {
    let tcp_header = usize::from(data_offset >> 4) * 4;
    let udp_length = usize::from(u16::from_be_bytes(udp_length));
    let is_tcp = proto == proto::TCP;
    let is_udp = proto == proto::UDP;
    let (header, needed, least) =
        if is_tcp { (tcp_header, tcp_header, tcp::HEADER_LEN) } else { (udp::HEADER_LEN, udp_length, udp::HEADER_LEN) };
    UpperLength { header, needed, fits: (is_tcp | is_udp) & (needed >= least) }
}

/// The long way: every kind of frame, one header after the other.
#[inline(never)]
fn parse_ethernet(frame: &[u8]) -> Result<Layers, Malformed> {
    const TAG_LEN: usize = 4;
    if frame.len() < ethernet::HEADER_LEN {
        return Err(Malformed::EthernetTruncated);
    }
    let mut ethertype = u16::from_be_bytes([frame[12], frame[13]]);
    let mut l3 = ethernet::HEADER_LEN;
    let mut flags = 0;
    while ethertype::is_vlan(ethertype) {
        if l3 == ethernet::HEADER_LEN + MAX_VLAN_TAGS * TAG_LEN {
            return Err(Malformed::VlanDepth);
        }
        let Some(tag) = frame[l3..].first_chunk::<TAG_LEN>() else {
            return Err(Malformed::VlanTruncated);
        };
        ethertype = u16::from_be_bytes([tag[2], tag[3]]);
        l3 += TAG_LEN;
        flags |= Layers::VLAN;
    }
    match ethertype {
        ethertype::IPV4 => parse_ipv4(frame, l3, flags),
        ethertype::IPV6 => parse_ipv6(frame, l3, flags),
        ethertype::ARP => parse_arp(frame, l3, flags),
        _ => Ok(without_ip(Net::Other, l3, flags)),
    }
}

const fn without_ip(net: Net, l3: usize, flags: u8) -> Layers {
    Layers { l3: l3 as u8, net, proto: 0, flags, l4: l3 as u16, payload: l3 as u16 }
}

fn parse_arp(frame: &[u8], l3: usize, flags: u8) -> Result<Layers, Malformed> {
    // RFC 826: 8 bytes, then two hardware and two protocol addresses of the lengths that bytes 4 and 5 give.
    match frame[l3..] {
        [_, _, _, _, hardware, protocol, _, _, ref addresses @ ..]
            if addresses.len() >= 2 * (usize::from(hardware) + usize::from(protocol)) =>
        {
            Ok(without_ip(Net::Arp, l3, flags))
        }
        _ => Err(Malformed::ArpTruncated),
    }
}

fn parse_ipv4(frame: &[u8], l3: usize, mut flags: u8) -> Result<Layers, Malformed> {
    let packet = ipv4::Packet::new_checked(&frame[l3..])?;
    let (header, total) = (packet.header_len(), usize::from(packet.total_len()));
    let end = l3 + total;
    let mut l4 = l3 + header;
    let mut proto = packet.proto();
    if header > ipv4::HEADER_LEN {
        flags |= Layers::OPTIONS;
    }
    let offset = usize::from(packet.fragment_offset());
    if packet.is_fragment() {
        flags |= Layers::FRAGMENT;
        if packet.more_fragments() && !(end - l4).is_multiple_of(8) {
            return Err(Malformed::FragmentLength);
        }
        if total + offset > usize::from(u16::MAX) {
            return Err(Malformed::FragmentOverrun);
        }
        if fragment_reaches_headers(Net::Ipv4, proto, offset) {
            return Err(Malformed::FragmentTiny);
        }
    }
    if offset > 0 {
        flags |= Layers::LATER;
    } else {
        while proto == proto::AH {
            match ipv6ext::authentication_len(&frame[l4..end]) {
                Ok(length) => {
                    flags |= Layers::AUTHENTICATED;
                    proto = frame[l4];
                    l4 += length;
                }
                Err(_) if flags & Layers::FRAGMENT != 0 => return Err(Malformed::FragmentFirst),
                Err(malformed) => return Err(malformed),
            }
        }
    }
    parse_upper(frame, Start { l3, net: Net::Ipv4, proto, flags, fragmented: l3 + header, l4, end })
}

fn parse_ipv6(frame: &[u8], l3: usize, mut flags: u8) -> Result<Layers, Malformed> {
    let packet = ipv6::Packet::new_checked(&frame[l3..])?;
    let chain = packet.extensions()?;
    let l4 = l3 + ipv6::HEADER_LEN + chain.offset;
    let end = l3 + ipv6::HEADER_LEN + usize::from(packet.payload_len());
    if chain.offset > 0 {
        flags |= Layers::OPTIONS;
    }
    if chain.authenticated {
        flags |= Layers::AUTHENTICATED;
    }
    if let Some(fragment) = chain.fragment.filter(|fragment| !fragment.is_atomic()) {
        flags |= Layers::FRAGMENT;
        if fragment.offset > 0 {
            flags |= Layers::LATER;
        }
        if fragment_reaches_headers(Net::Ipv6, chain.proto, usize::from(fragment.offset)) {
            return Err(Malformed::FragmentTiny);
        }
    }
    let fragmented = l3 + ipv6::HEADER_LEN + chain.fragmented;
    parse_upper(frame, Start { l3, net: Net::Ipv6, proto: chain.proto, flags, fragmented, l4, end })
}

/// Most bytes of a fragmented datagram that headers take: those that are fragmented with it, its transport header
/// included. IPv6 sends 1,280 bytes at once (RFC 8200 §5), so that no honest later fragment begins so early.
pub const MAX_FRAGMENTED_HEADERS: usize = 128;

/// Whether a later fragment that begins at `offset`, in bytes, could overwrite a header of the first: no honest
/// sender makes one, as a first fragment holds its headers whole. `proto` is the protocol that the fragment names.
///
/// - TCP below 20 bytes (RFC 1858 §3.2.2: "IF FO=1 and PROTOCOL=TCP then DROP PACKET"), SCTP and DCCP below 12.
///   The ports of UDP, UDP-Lite and ICMP's types stand within the first 8, which a later fragment cannot reach.
/// - IPv6, and an authentication header over IPv4, below [`MAX_FRAGMENTED_HEADERS`]: other headers may stand before
///   the ports, and of IPv6 what a later fragment names is not what counts (RFC 8200 §4.5: "Only the value from the
///   Offset zero fragment packet is used").
pub const fn fragment_reaches_headers(net: Net, proto: u8, offset: usize) -> bool {
    let headers = match (net, proto) {
        (Net::Ipv6, _) | (_, proto::AH) => MAX_FRAGMENTED_HEADERS,
        (_, proto::TCP) => tcp::HEADER_LEN,
        (_, proto::SCTP) => SCTP_LEN,
        (_, proto::DCCP) => DCCP_LEN,
        _ => 0,
    };
    0 < offset && offset < headers
}

/// What is known when the upper layer begins.
struct Start {
    l3: usize,
    net: Net,
    proto: u8,
    flags: u8,
    /// Where what is fragmented begins: behind the fragment header, or IPv4's.
    fragmented: usize,
    l4: usize,
    /// Where the IP payload ends.
    end: usize,
}

fn parse_upper(frame: &[u8], start: Start) -> Result<Layers, Malformed> {
    let Start { l3, net, proto, flags, fragmented, l4, end } = start;
    let mut layers = Layers { l3: l3 as u8, net, proto, flags, l4: l4 as u16, payload: l4 as u16 };
    if flags & Layers::LATER != 0 {
        return Ok(layers);
    }
    let is_first = flags & Layers::FRAGMENT != 0;
    match upper_header(proto, &frame[l4..end], is_first) {
        Ok(header) if is_first && l4 + header > fragmented + MAX_FRAGMENTED_HEADERS => Err(Malformed::FragmentDeep),
        Ok(header) => {
            layers.payload += header as u16;
            if matches!(proto, proto::TCP | proto::UDP | proto::SCTP) {
                layers.flags |= Layers::PORTS;
            }
            Ok(layers)
        }
        // RFC 7112 §5: "the first fragment MUST contain the entire IPv6 Header Chain"; RFC 1858 §3.2.1 of IPv4.
        Err(Bad::Cut(_)) if is_first => Err(Malformed::FragmentFirst),
        Err(Bad::Cut(malformed) | Bad::Wrong(malformed)) => Err(malformed),
    }
}

/// Why an upper-layer header cannot be read.
enum Bad {
    /// It goes on beyond the data.
    Cut(Malformed),
    /// It contradicts itself.
    Wrong(Malformed),
}

/// RFC 9260 §3.1.
const SCTP_LEN: usize = 12;
/// RFC 4340 §5.1: 12 bytes with short sequence numbers, 16 with long ones.
const DCCP_LEN: usize = 12;

/// Return the length of the upper-layer header at the start of `data`, in bytes; 0 for an unknown protocol.
fn upper_header(proto: u8, data: &[u8], fragment: bool) -> Result<usize, Bad> {
    const ICMP_LEN: usize = 8;
    // RFC 4443 §2.1: type, code and checksum. All but the shortest messages have 8 bytes before their body, as ICMP.
    const ICMPV6_LEN: usize = 4;
    let at_least = |length: usize, malformed| match data.len() {
        available if available < length => Err(Bad::Cut(malformed)),
        _ => Ok(length),
    };
    match proto {
        proto::TCP => {
            at_least(tcp::HEADER_LEN, Malformed::TcpTruncated)?;
            let header = tcp::Packet::new_unchecked(data).header_len();
            if header < tcp::HEADER_LEN {
                return Err(Bad::Wrong(Malformed::TcpDataOffset));
            }
            at_least(header, Malformed::TcpDataOffset)
        }
        proto::UDP => {
            at_least(udp::HEADER_LEN, Malformed::UdpTruncated)?;
            let length = usize::from(udp::Packet::new_unchecked(data).length());
            // The first fragment of a datagram holds less than its length says.
            if length < udp::HEADER_LEN || (!fragment && length > data.len()) {
                return Err(Bad::Wrong(Malformed::UdpLength));
            }
            Ok(udp::HEADER_LEN)
        }
        proto::SCTP => at_least(SCTP_LEN, Malformed::SctpTruncated),
        proto::ICMP => at_least(ICMP_LEN, Malformed::IcmpTruncated),
        proto::ICMPV6 => {
            at_least(ICMPV6_LEN, Malformed::Icmpv6Truncated)?;
            Ok(data.len().min(ICMP_LEN))
        }
        _ => rare_header(proto, data),
    }
}

/// [`upper_header`] of protocols that are seldom seen: apart, as TCP and UDP should not wait for them.
#[cold]
#[inline(never)]
fn rare_header(proto: u8, data: &[u8]) -> Result<usize, Bad> {
    match proto {
        proto::DCCP if data.len() < DCCP_LEN => Err(Bad::Cut(Malformed::DccpTruncated)),
        proto::DCCP => Ok(DCCP_LEN),
        proto::UDP_LITE if data.len() < udp::HEADER_LEN => Err(Bad::Cut(Malformed::UdpLiteTruncated)),
        proto::UDP_LITE => Ok(udp::HEADER_LEN),
        _ => Ok(0),
    }
}

#[cfg(test)]
#[path = "layers_tests.rs"]
mod tests;

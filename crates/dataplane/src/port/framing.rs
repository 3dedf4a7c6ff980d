//! Captures of other links than Ethernet: which Ethernet header stands for the link's own.
//!
//! Sources: <https://www.tcpdump.org/linktypes.html> and the pages it leads to; RFC 1661 and 1662 for PPP.

use catena_packet::pcap::LinkType;
use catena_packet::wire::ethernet;
use catena_packet::wire::number::ethertype;

/// An Ethernet header with zero addresses.
pub(super) type Header = [u8; ethernet::HEADER_LEN];

/// Why a record cannot become an Ethernet frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unfit {
    /// Its link type, or the protocol that its link header names, has no counterpart in Ethernet.
    Unknown,
    /// The record ends before its link header does.
    CutOff,
}

/// EtherTypes that only stand in for other links' headers here.
const MPLS: u16 = 0x8847;
const PPPOE_SESSION: u16 = 0x8864;

/// Return the header to put in front of a record's bytes and how many of them it replaces.
///
/// Call it for links other than Ethernet.
pub(super) fn replace(link: LinkType, bytes: &[u8]) -> Result<(Header, usize), Unfit> {
    let (kind, skip) = match link {
        LinkType::RAW | LinkType::RAW_BSD | LinkType::RAW_OPENBSD => (version(bytes)?, 0),
        LinkType::IPV4 => (ethertype::IPV4, 0),
        LinkType::IPV6 => (ethertype::IPV6, 0),
        LinkType::NULL | LinkType::LOOP => (family(bytes)?, 4),
        LinkType::LINUX_SLL => (cooked(bytes, word(bytes, 2)?, word(bytes, 14)?, 16)?, 16),
        LinkType::LINUX_SLL2 => (cooked(bytes, word(bytes, 8)?, word(bytes, 0)?, 20)?, 20),
        LinkType::PPP | LinkType::PPP_HDLC => ppp(bytes)?,
        LinkType::PPP_ETHER => (PPPOE_SESSION, 0),
        LinkType::C_HDLC => (ether_or_unknown(word(bytes, 2)?)?, 4),
        LinkType::MPLS => (MPLS, 0),
        _ => return Err(Unfit::Unknown),
    };
    if bytes.len() < skip {
        return Err(Unfit::CutOff);
    }
    let mut header = Header::default();
    header[12..].copy_from_slice(&kind.to_be_bytes());
    Ok((header, skip))
}

fn word(bytes: &[u8], at: usize) -> Result<u16, Unfit> {
    let word = bytes.get(at..at + 2).ok_or(Unfit::CutOff)?;
    Ok(u16::from_be_bytes([word[0], word[1]]))
}

fn version(bytes: &[u8]) -> Result<u16, Unfit> {
    match bytes.first().ok_or(Unfit::CutOff)? >> 4 {
        4 => Ok(ethertype::IPV4),
        6 => Ok(ethertype::IPV6),
        _ => Err(Unfit::Unknown),
    }
}

/// The address family is in the byte order of the host that captured; all numbers are small, so the
/// smaller reading is right.
fn family(bytes: &[u8]) -> Result<u16, Unfit> {
    let family = *bytes.first_chunk::<4>().ok_or(Unfit::CutOff)?;
    match u32::from_be_bytes(family).min(u32::from_le_bytes(family)) {
        2 => Ok(ethertype::IPV4),
        // AF_INET6 of Linux, NetBSD and OpenBSD, FreeBSD, macOS.
        10 | 24 | 28 | 30 => Ok(ethertype::IPV6),
        _ => Err(Unfit::Unknown),
    }
}

/// Linux's cooked headers carry the device's kind (ARPHRD) and an EtherType, unless the device has none.
fn cooked(bytes: &[u8], device: u16, protocol: u16, header: usize) -> Result<u16, Unfit> {
    /// Devices whose protocol field is something else: Frame Relay, 802.11 with radiotap, Netlink.
    const NO_ETHERTYPE: [u16; 3] = [770, 803, 824];
    /// An 802.2 header follows, as after an Ethernet header that holds a length.
    const LLC: u16 = 4;
    match protocol {
        _ if NO_ETHERTYPE.contains(&device) => Err(Unfit::Unknown),
        LLC => {
            let length = bytes.len().checked_sub(header).ok_or(Unfit::CutOff)?;
            let length = u16::try_from(length).map_err(|_| Unfit::Unknown)?;
            if length < ethertype::SMALLEST { Ok(length) } else { Err(Unfit::Unknown) }
        }
        _ => ether_or_unknown(protocol),
    }
}

fn ether_or_unknown(kind: u16) -> Result<u16, Unfit> {
    if kind >= ethertype::SMALLEST { Ok(kind) } else { Err(Unfit::Unknown) }
}

/// RFC 1662 §3.1: address 0xff and control 0x03 may be left out; RFC 1661 §6.5: a protocol number below
/// 256 may be one byte, told by its lowest bit.
fn ppp(bytes: &[u8]) -> Result<(u16, usize), Unfit> {
    let framed = if bytes.starts_with(&[0xff, 0x03]) { 2 } else { 0 };
    let first = *bytes.get(framed).ok_or(Unfit::CutOff)?;
    let (protocol, skip) =
        if first & 1 == 1 { (u16::from(first), framed + 1) } else { (word(bytes, framed)?, framed + 2) };
    match protocol {
        0x0021 => Ok((ethertype::IPV4, skip)),
        0x0057 => Ok((ethertype::IPV6, skip)),
        0x0281 => Ok((MPLS, skip)),
        _ => Err(Unfit::Unknown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(link: LinkType, bytes: &[u8]) -> Result<(u16, usize), Unfit> {
        replace(link, bytes).map(|(header, skip)| {
            assert_eq!(header[..12], [0; 12]);
            (u16::from_be_bytes([header[12], header[13]]), skip)
        })
    }

    #[test]
    fn each_link_says_what_follows() {
        let mut sll = [0u8; 17];
        sll[14..16].copy_from_slice(&[0x86, 0xdd]);
        let mut sll2 = [0u8; 21];
        sll2[..2].copy_from_slice(&[0x08, 0x06]);
        for (link, bytes, expected) in [
            (LinkType::RAW, &[0x45, 0][..], (0x0800, 0)),
            (LinkType::RAW_BSD, &[0x60, 0], (0x86dd, 0)),
            (LinkType::IPV4, &[], (0x0800, 0)),
            (LinkType::IPV6, &[], (0x86dd, 0)),
            (LinkType::NULL, &[2, 0, 0, 0, 0x45], (0x0800, 4)),
            (LinkType::NULL, &[0, 0, 0, 30, 0x60], (0x86dd, 4)),
            (LinkType::LOOP, &[0, 0, 0, 24, 0x60], (0x86dd, 4)),
            (LinkType::LINUX_SLL, &sll, (0x86dd, 16)),
            (LinkType::LINUX_SLL2, &sll2, (0x0806, 20)),
            (LinkType::PPP, &[0xff, 0x03, 0x00, 0x21, 0x45], (0x0800, 4)),
            (LinkType::PPP, &[0x57, 0x60], (0x86dd, 1)),
            (LinkType::PPP_HDLC, &[0x00, 0x21], (0x0800, 2)),
            (LinkType::PPP_ETHER, &[0x11], (0x8864, 0)),
            (LinkType::C_HDLC, &[0x0f, 0, 0x08, 0x00], (0x0800, 4)),
            (LinkType::MPLS, &[0], (0x8847, 0)),
        ] {
            assert_eq!(kind(link, bytes), Ok(expected), "{link}");
        }
    }

    #[test]
    fn an_llc_frame_keeps_its_length() {
        let mut sll = [0u8; 16 + 35];
        sll[15] = 4;
        assert_eq!(kind(LinkType::LINUX_SLL, &sll), Ok((35, 16)));
        assert_eq!(kind(LinkType::LINUX_SLL, &[&sll[..], &[0; 1600]].concat()), Err(Unfit::Unknown));
    }

    #[test]
    fn what_has_no_counterpart_is_unknown() {
        let mut netlink = [0u8; 16];
        netlink[2..4].copy_from_slice(&824u16.to_be_bytes());
        for (link, bytes) in [
            (LinkType::IEEE80211_RADIOTAP, &[0u8; 60][..]),
            (LinkType::RAW, &[0x35; 20]),
            (LinkType::NULL, &[7, 0, 0, 0]),
            (LinkType::LINUX_SLL, &netlink),
            (LinkType::LINUX_SLL, &[0; 16]),
            (LinkType::PPP, &[0xc0, 0x21]),
            (LinkType::C_HDLC, &[0, 0, 0, 5]),
        ] {
            assert_eq!(kind(link, bytes), Err(Unfit::Unknown), "{link}");
        }
    }

    #[test]
    fn every_cut_is_seen() {
        for link in (0..300).map(LinkType) {
            for len in 0..24 {
                if let Ok((_, skip)) = replace(link, &[0x45; 24][..len]) {
                    assert!(skip <= len, "{link}");
                }
            }
        }
        assert_eq!(kind(LinkType::NULL, &[2, 0, 0]), Err(Unfit::CutOff));
        assert_eq!(kind(LinkType::LINUX_SLL2, &[8, 0, 0, 0, 0, 0, 0, 0, 0, 1]), Err(Unfit::CutOff));
        assert_eq!(kind(LinkType::PPP, &[0xff, 0x03, 0]), Err(Unfit::CutOff));
    }
}

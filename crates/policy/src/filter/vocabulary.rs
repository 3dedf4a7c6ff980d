//! The words of filters: which are protocols, which are no identifiers, what addresses and numbers look like.

use std::net::IpAddr;

use super::expression::{Condition, Expression, Network};

/// Protocols with ports that filters know.
pub(super) const WITH_PORTS: [(&str, u8); 3] = [("tcp", TCP), ("udp", UDP), ("sctp", SCTP)];
pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;
pub(super) const SCTP: u8 = 132;

/// Headers that stand between IP and the upper layer: to ask for one is to ask for what the parser reads past
/// (hop-by-hop options, routing, fragment, authentication, destination options).
pub(super) const IN_BETWEEN: [u8; 5] = [0, 43, 44, 51, 60];

/// Words that move all offsets behind them to another header: then libpcap alone knows what is meant.
pub(super) const REDIRECTING: [&str; 5] = ["mpls", "pppoed", "pppoes", "geneve", "vxlan"];

/// Link layers: what they qualify is about the frame.
const LINKS: [&str; 7] = ["ether", "link", "fddi", "tr", "wlan", "ppp", "slip"];

/// Whether a word's conditions are about the frame itself.
pub(super) fn is_of_frames(word: &str) -> bool {
    LINKS.contains(&word) || matches!(word, "broadcast" | "multicast" | "len" | "less" | "greater" | "llc")
}

/// A number as C writes it: decimal, octal behind a zero, hexadecimal behind `0x`.
pub(super) fn number(word: &str) -> Option<u32> {
    let (digits, base) = match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None if word.len() > 1 && word.starts_with('0') => (&word[1..], 8),
        None => (word, 10),
    };
    // `from_str_radix` takes signs, too.
    if digits.starts_with(['+', '-']) { None } else { u32::from_str_radix(digits, base).ok() }
}

/// Words that may begin a condition as its protocol.
pub(super) fn is_protocol(word: &str) -> bool {
    LINKS.contains(&word)
        || matches!(
            word,
            "ip" | "ip6"
                | "arp"
                | "rarp"
                | "tcp"
                | "udp"
                | "sctp"
                | "icmp"
                | "icmp6"
                | "igmp"
                | "igrp"
                | "pim"
                | "vrrp"
                | "carp"
                | "ah"
                | "esp"
        )
}

/// Words that are no identifiers.
pub(super) fn is_keyword(word: &str) -> bool {
    const REST: [&str; 42] = [
        "src",
        "dst",
        "host",
        "net",
        "mask",
        "port",
        "portrange",
        "proto",
        "protochain",
        "gateway",
        "vlan",
        "inbound",
        "outbound",
        "ifname",
        "on",
        "rnr",
        "rulenum",
        "reason",
        "rset",
        "ruleset",
        "srnr",
        "subrulenum",
        "action",
        "type",
        "subtype",
        "dir",
        "direction",
        "addr1",
        "addr2",
        "addr3",
        "addr4",
        "ra",
        "ta",
        "aarp",
        "atalk",
        "decnet",
        "lat",
        "moprc",
        "mopdl",
        "iso",
        "stp",
        "ipx",
    ];
    is_protocol(word) || is_of_frames(word) || REDIRECTING.contains(&word) || REST.contains(&word)
}

/// A condition on the upper-layer protocol.
pub(super) fn upper(over: Option<Network>, number: u8) -> Option<Expression> {
    (!IN_BETWEEN.contains(&number)).then_some(Expression::Is(Condition::Protocol { over, number }))
}

/// A protocol's word that stands alone, if it is about what the parser finds.
pub(super) fn named_protocol(word: &str) -> Option<Expression> {
    let network = |network| Some(Expression::Is(Condition::Network(network)));
    match word {
        "ip" => network(Network::Ipv4),
        "ip6" => network(Network::Ipv6),
        "arp" => network(Network::Arp),
        "tcp" => upper(None, TCP),
        "udp" => upper(None, UDP),
        "sctp" => upper(None, SCTP),
        "icmp" => upper(Some(Network::Ipv4), 1),
        "igmp" => upper(Some(Network::Ipv4), 2),
        "icmp6" => upper(Some(Network::Ipv6), 58),
        "pim" => upper(None, 103),
        "esp" => upper(None, 50),
        "vrrp" | "carp" => upper(Some(Network::Ipv4), 112),
        _ => None,
    }
}

/// The network that an address names, and the bits of its prefix: all of them for a host.
pub(super) fn network(word: &str, mask: Option<&str>, kind: &str) -> Option<(IpAddr, u8)> {
    let is_v6 = word.contains(':');
    let (address, bits): (IpAddr, u8) = if is_v6 {
        (IpAddr::V6(word.parse().ok()?), 128)
    } else {
        // Fewer than four numbers are the first ones of a network.
        let parts: Vec<&str> = word.split('.').collect();
        let given = u8::try_from(parts.len()).ok().filter(|count| *count == 4 || kind == "net" && *count < 4)?;
        let mut octets = [0; 4];
        for (octet, part) in octets.iter_mut().zip(&parts) {
            *octet = part.parse().ok().filter(|_| part.len() == 1 || !part.starts_with('0'))?;
        }
        (IpAddr::V4(octets.into()), 8 * given)
    };
    let prefix = match mask {
        Some(mask) => mask.parse().ok().filter(|mask| *mask <= if is_v6 { 128 } else { 32 })?,
        None => bits,
    };
    Some((address, prefix))
}

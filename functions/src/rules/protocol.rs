//! Names of IP protocols, as in IANA's *Assigned Internet Protocol Numbers* and `/etc/protocols`.

/// Names that rules may use, with their numbers; the first of a number is the one printed.
pub const NAMES: [(&str, u8); 20] = [
    ("icmp", 1),
    ("igmp", 2),
    ("ipip", 4),
    ("tcp", 6),
    ("udp", 17),
    ("dccp", 33),
    ("ipv6", 41),
    ("gre", 47),
    ("esp", 50),
    ("ah", 51),
    ("icmpv6", 58),
    ("icmp6", 58),
    ("ipv6-icmp", 58),
    ("ospf", 89),
    ("pim", 103),
    ("vrrp", 112),
    ("l2tp", 115),
    ("sctp", 132),
    ("udplite", 136),
    ("ipencap", 4),
];

/// Number of the protocol with this name, in any case.
pub fn number(name: &str) -> Option<u8> {
    NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|&(_, number)| number)
}

/// Usual name of a protocol.
pub fn name(number: u8) -> Option<&'static str> {
    NAMES.iter().find(|(_, known)| *known == number).map(|&(name, _)| name)
}

/// Whether the protocol's packets begin with a source and a destination port of 16 bits each.
pub fn has_ports(number: u8) -> bool {
    matches!(number, 6 | 17 | 33 | 132 | 136)
}

//! The chains that are reduced, and the traffic that they are measured with.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::Ipv4Addr;

use catena_packet::random::Random;

/// A chain with its traffic.
pub struct Case {
    /// Its letter and what it is.
    pub name: &'static str,
    /// The chain file.
    pub text: &'static str,
    /// Whether it is measured with early drops as well.
    pub early: bool,
    /// The traffic, as the generator reads it.
    pub traffic: &'static str,
    /// What there is to take out.
    pub redundant: &'static str,
}

const MANY: &str = "flows=10k,size=64,proto=udp:1+tcp:1,src=100.64.0.0/10,dst=203.0.0.0/16,dport=1-60000";
/// A million flows of 4,096 pairs of hosts.
const PAIRS: &str = "flows=1M,size=64,proto=udp:1+tcp:1,src=100.64.0.0/25,dst=203.0.0.0/27,dport=1-60000";

/// Return the cases.
pub fn all() -> [Case; 7] {
    [
        Case {
            name: "a: company's and department's firewall, 1,000 rules each",
            text: "chain c { in -> ACL(rules = file(\"company\"), default = permit) -> \
                   ACL(rules = file(\"department\"), default = permit) -> out }",
            early: false,
            traffic: MANY,
            redundant: "the second look-up",
        },
        Case {
            name: "b: firewall, Monitor, firewall, 1,000 rules each",
            text: "chain c { in -> ACL(rules = file(\"company\"), default = permit) -> Monitor() -> \
                   ACL(rules = file(\"department\"), default = permit) -> out }",
            early: false,
            traffic: MANY,
            redundant: "the second look-up",
        },
        Case {
            name: "c: the same firewall twice",
            text: "chain c { in -> ACL(rules = file(\"company\")) -> ACL(rules = file(\"company\")) -> out }",
            early: false,
            traffic: MANY,
            redundant: "the second firewall's verdict",
        },
        Case {
            name: "d: firewall of 1,000 layer-3 rules, 1M flows of 4,096 host pairs",
            text: "chain c { in -> ACL(rules = file(\"layer3\"), default = permit) -> out }",
            early: false,
            traffic: PAIRS,
            redundant: "ports and protocol",
        },
        Case {
            name: "e: three routers",
            text: "chain c { in -> IPv4Fwd(routes = \"default 192.0.2.1\") -> \
                   IPv4Fwd(routes = \"default 192.0.2.2\") -> IPv4Fwd(routes = \"default 192.0.2.3\") -> out }",
            early: false,
            traffic: MANY,
            redundant: "the second and third verification of the header checksum",
        },
        Case {
            name: "f: router, firewall that permits TCP only; half is UDP",
            text: "chain c { in -> IPv4Fwd(routes = \"default 192.0.2.1\") -> \
                   ACL(rules = \"permit tcp from any\") -> out }",
            early: true,
            traffic: MANY,
            redundant: "addresses and ports; with early drops routing UDP",
        },
        Case {
            name: "g: firewall of 1,000 rules, NAT, Monitor",
            text: "chain c { in -> ACL(rules = file(\"company\"), default = permit) -> \
                   NAT(pool = 198.18.0.0/20) -> Monitor() -> out }",
            early: false,
            traffic: MANY,
            redundant: "nothing",
        },
    ]
}

/// Return the rule files that chains name.
pub fn files() -> BTreeMap<&'static str, String> {
    BTreeMap::from([("company", rules(1, true)), ("department", rules(2, true)), ("layer3", rules(3, false))])
}

/// A thousand rules: prefixes of many lengths that overlap; with or without protocols and ports. One in ten denies,
/// but rarely much.
fn rules(seed: u64, upper: bool) -> String {
    let mut random = Random::new(seed);
    let mut text = String::new();
    for _ in 0..1000 {
        let deny = random.below(10) == 0;
        let mut prefix = |bits: u32, kept: u32, lengths: [u8; 8]| {
            let length = if deny { 28 } else { lengths[random.below(8) as usize] };
            let mask = u32::MAX << (32 - u32::from(length));
            format!("{}/{length}", Ipv4Addr::from_bits((bits | random.bits() as u32 & kept) & mask))
        };
        let from = prefix(0x6440_0000, 0x003f_ffff, [12, 16, 20, 24, 24, 28, 32, 32]);
        let to = prefix(0xcb00_0000, 0x0000_ffff, [16, 20, 24, 24, 28, 32, 32, 32]);
        let low = 1 + random.below(60_000);
        let (protocol, ports) = match random.below(4) {
            _ if !upper => ("any", String::new()),
            0 => ("any", String::new()),
            1 => ("tcp", format!(" port {low}-{}", low + random.below(5_000))),
            2 => ("udp", format!(" port {low}")),
            _ => ("tcp", format!(" port {low}")),
        };
        let action = if deny { "deny" } else { "permit" };
        _ = writeln!(text, "{action} {protocol} from {from} to {to}{ports}");
    }
    text + if upper { "permit any\n" } else { "" }
}

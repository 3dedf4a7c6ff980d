//! What ACL is measured with: a list of so many five-tuple rules, and packets that meet rules all over it.

use std::fmt::Write;
use std::net::Ipv4Addr;

use catena_packet::random::Random;

use crate::workload::{CLIENTS_BITS, SERVERS_BITS, Setup, Size, Told, Workload};

const FILE: &str = "workload.acl";

/// How ACL is measured.
pub const WORKLOAD: Workload = Workload {
    size: Some(Size {
        unit: "rules",
        told: Told::Argument("rules"),
        usual: 1_000,
        measured: &[100, 1_000, 4_000, 16_000],
    }),
    setup: |rules| Setup {
        call: format!("ACL(rules = file(\"{FILE}\"), default = permit)"),
        file: Some((FILE, list(rules))),
    },
};

/// Return so many rules in the manner of real filters: prefixes of many lengths that overlap, exact ports, ranges
/// and none. All permit: a packet that is dropped would cost those behind nothing.
fn list(rules: u64) -> String {
    let mut random = Random::new(rules);
    let mut prefix = |bits: u32, kept: u32, lengths: [u8; 8]| {
        let length = lengths[random.below(8) as usize];
        let mask = u32::MAX << (32 - u32::from(length));
        format!("{}/{length}", Ipv4Addr::from_bits((bits | random.bits() as u32 & kept) & mask))
    };
    let mut addresses: Vec<(String, String)> = Vec::new();
    for _ in 0..rules {
        let from = prefix(CLIENTS_BITS, 0x003f_ffff, [12, 16, 20, 24, 24, 28, 32, 32]);
        addresses.push((from, prefix(SERVERS_BITS, 0x0000_ffff, [16, 20, 24, 24, 28, 32, 32, 32])));
    }
    let mut text = String::new();
    for (from, to) in addresses {
        let low = 1 + random.below(60_000);
        let (protocol, ports) = match random.below(6) {
            0 | 1 => ("any", String::new()),
            2 => ("tcp", String::new()),
            3 => ("udp", format!(" port {low}-{}", low + random.below(5_000))),
            4 => ("udp", format!(" port {low}")),
            _ => ("tcp", format!(" port {low}")),
        };
        _ = writeln!(text, "permit {protocol} from {from} to {to}{ports}");
    }
    text
}

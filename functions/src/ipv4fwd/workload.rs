//! What IPv4Fwd is measured with: a table of so many routes, half of them to where the packets go.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::net::Ipv4Addr;

use catena_packet::random::Random;

use crate::workload::{SERVERS_BITS, Setup, Size, Told, Workload};

const FILE: &str = "workload.routes";

/// How IPv4Fwd is measured.
pub const WORKLOAD: Workload = Workload {
    size: Some(Size {
        unit: "routes",
        told: Told::Argument("routes"),
        usual: 1_000,
        measured: &[100, 1_000, 10_000, 100_000],
    }),
    setup: |routes| Setup { call: format!("IPv4Fwd(routes = file(\"{FILE}\"))"), file: Some((FILE, table(routes))) },
};

/// Return so many routes, the default one among them.
fn table(routes: u64) -> String {
    let mut random = Random::new(routes);
    let mut text = String::from("0.0.0.0/0 via 192.0.2.1\n");
    let mut known = BTreeSet::new();
    while (known.len() as u64) + 1 < routes {
        let near = known.len() % 2 == 0;
        // Of the servers' network there are few prefixes that are shorter than a host.
        let length: u32 = match near {
            true => [24, 28, 30, 32][random.below(4) as usize],
            false => [16, 20, 22, 24, 24, 24, 24, 32][random.below(8) as usize],
        };
        let bits = random.bits() as u32;
        let address = if near { SERVERS_BITS | (bits & 0xffff) } else { bits } & (u32::MAX << (32 - length));
        if known.insert((address, length)) {
            _ = writeln!(text, "{}/{length} via 192.0.2.{}", Ipv4Addr::from_bits(address), 2 + bits % 200);
        }
    }
    text
}

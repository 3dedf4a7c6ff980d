//! What the functions of Table 3 take of a PISA switch: their tables.
//!
//! Keys are those of the published P4 sources (github.com/USC-NSL/Lemur, src/p4_14_lib); sizes are those that
//! the paper tells (1,024 rules, 12,000 entries), and otherwise those of the sources.

use crate::catalogue::{Match, Table};

/// Entries of the table of prefixes.
pub const ROUTES: u32 = 5000;

/// Bits of addresses, ports and protocol.
const FIVE_TUPLE: u32 = 104;

fn table(name: &str, matching: Match, key_bits: u32, action_bits: u32, entries: u32) -> Table {
    Table { name: name.to_owned(), matching, key_bits, action_bits, entries, entries_per_unit: 0.0, after: Vec::new() }
}

/// The tables of a function; none if it does not run on a switch.
#[must_use]
pub fn of(name: &str) -> Vec<Table> {
    match name {
        // Source and destination address and port.
        "ACL" => vec![Table { entries_per_unit: 1.0, ..table("rules", Match::Ternary, 96, 1, 0) }],
        // A decision a packet, which names the branch.
        "BPF" => vec![table("filter", Match::Ternary, FIVE_TUPLE, 8, 50)],
        // Prefix; new destination address of the frame, and port.
        "IPv4Fwd" => vec![table("prefixes", Match::Prefix, 32, 48 + 9, ROUTES)],
        // The five-tuple's hash picks one of the backends.
        "LB" => vec![table("backends", Match::Exact, 16, 32, 1024)],
        "Tunnel" => vec![table("push", Match::None, 0, 16, 1)],
        "Detunnel" => vec![table("pop", Match::None, 0, 0, 1)],
        "NAT" => nat(),
        _ => Vec::new(),
    }
}

/// Carrier-grade translation: an entry finds a connection by its five-tuple, rewrites the addresses and ports of both
/// directions and the frame's two addresses, and counts packets and bytes each way. That takes more than half a
/// stage's memory, so that each translator has a stage for itself, as it had in the paper: ten of them
/// between a filter and forwarding filled 12 stages, and a conservative estimate had said 14 (Lemur, §5.2).
fn nat() -> Vec<Table> {
    let rewrite = 2 * (32 + 16) + 2 * 48;
    let counters = 2 * (64 + 32);
    vec![Table { entries_per_unit: 1.0, ..table("connections", Match::Exact, FIVE_TUPLE, rewrite + counters, 0) }]
}

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

/// Address translation: a packet's connection is found by its five-tuple, and its address and port of the inner side are
/// rewritten. A connection takes two entries, as in the published source, whose table has an action for each direction: what
/// leaves is found by the inner address, and what comes back by the outer one. Which of them a packet needs is known from the
/// side that it comes from, one bit of the key. Table 4 speaks of "12000 entries"; here these are connections, as they are
/// for the servers' translator, so a switch holds 24,000.
///
/// Two words an entry for key and overhead, two entries a word for the action: 60 of a stage's 80 blocks. Were both
/// directions counted in the 12,000, it would be 30, and a stage would hold two translators: `bench-lemur` has both.
fn nat() -> Vec<Table> {
    let rewrite = 32 + 16;
    vec![Table { entries_per_unit: 2.0, ..table("connections", Match::Exact, FIVE_TUPLE + 1, rewrite, 0) }]
}

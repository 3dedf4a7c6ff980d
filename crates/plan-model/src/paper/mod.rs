//! Functions as Lemur's authors had them: where they run (Table 3), what they cost (Table 4, and the
//! published placer where the table is silent), what they take of a switch. Every figure says its source.
//!
//! Plans of functions that nobody has measured on the machine at hand take their figures from here and say
//! so; the reproduction of the paper's experiments uses nothing else.

mod tables;

use std::collections::BTreeMap;

use crate::catalogue::{Affinity, Catalogue, Fields, Memory, OpenFlowUse, Platform, Size, Traits};
use crate::profile::{Cost, Cycles, Machine, Overheads, Profile, VERSION};

/// Where platforms and replication come from.
pub const TABLE_3: &str = "Yen et al., Meeting SLOs in Cross-Platform NFV (CoNEXT 2020), Table 3";
/// Where measured costs come from.
pub const TABLE_4: &str =
    "Yen et al., Meeting SLOs in Cross-Platform NFV (CoNEXT 2020), Table 4: NIC on the other socket";
/// Where the other costs come from.
pub const PUBLISHED: &str = "figures of Lemur's published placer (github.com/USC-NSL/Lemur, src/module_data.txt)";

/// Cycles per second of the paper's server (§5.1).
pub const CLOCK_HZ: f64 = 1.7e9;
/// Bytes of the packets that the published placer reckons with.
pub const PACKET_BYTES: f64 = 1500.0;

/// Where forwarding by address may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forwarding {
    /// Wherever Table 3 says.
    Anywhere,
    /// On the switch only: "we artificially limit IPv4Fwd as P4-only for the sake of evaluation".
    SwitchOnly,
}

use Platform::{OpenFlow, Pisa, Server, SmartNic};

/// Name, platforms, whether it may be replicated.
const FUNCTIONS: [(&str, &[Platform], bool); 14] = [
    ("Encrypt", &[Server], true),
    ("Decrypt", &[Server], true),
    ("FastEncrypt", &[Server, SmartNic], true),
    ("Dedup", &[Server], true),
    ("Tunnel", &[Server, Pisa, SmartNic, OpenFlow], true),
    ("Detunnel", &[Server, Pisa, SmartNic, OpenFlow], true),
    ("IPv4Fwd", &[Server, Pisa, SmartNic, OpenFlow], true),
    // Not on several cores: "a 3rd core for Limiter which is non-replicable" (§5.3).
    ("Limiter", &[Server], false),
    ("UrlFilter", &[Server], true),
    ("Monitor", &[Server, OpenFlow], true),
    // Not on several cores either: §3.2 ("our current implementation does not do this yet"); the published
    // placer's list of what is not replicated has these two.
    ("NAT", &[Server, Pisa], false),
    ("LB", &[Server, Pisa, SmartNic], true),
    ("BPF", &[Server, Pisa, SmartNic], true),
    ("ACL", &[Server, Pisa, SmartNic, OpenFlow], true),
];

/// Mean and worst cycles of Table 4.
const MEASURED: [(&str, f64, f64); 3] =
    [("Encrypt", 8950.0, 9123.0), ("Dedup", 31188.0, 33185.0), ("NAT", 496.0, 507.0)];

/// Mean and worst cycles of Table 4 for an ACL of 1,024 rules, and of the published placer for a short one.
const ACL: (f64, f64, f64) = (4020.0, 4091.0, 108.0);

/// Cycles of the published placer. Its NAT (227) and its Dedup (50,000) are other ones than Table 4's.
const ASSUMED: [(&str, f64); 7] = [
    ("Tunnel", 561.0),
    ("Detunnel", 565.0),
    ("LB", 564.0),
    ("BPF", 10.0),
    ("UrlFilter", 294.0),
    ("Limiter", 20.0),
    ("Monitor", 18.0),
];

/// The functions of Table 3.
#[must_use]
pub fn catalogue(forwarding: Forwarding) -> Catalogue {
    let functions = FUNCTIONS.iter().map(|&(name, platforms, replicable)| {
        let mut platforms = platforms.to_vec();
        if name == "IPv4Fwd" && forwarding == Forwarding::SwitchOnly {
            platforms.retain(|p| matches!(p, Pisa | OpenFlow));
        }
        // What Lemur replicates it replicates by any split of the traffic, whatever the function remembers.
        let (affinity, memory) =
            if replicable { (Affinity::Any, Memory::None) } else { (Affinity::Single, Memory::Shared) };
        let size = |unit: &str, argument: Option<&str>, usual| {
            Some(Size { unit: unit.to_owned(), argument: argument.map(str::to_owned), usual })
        };
        Traits {
            name: name.to_owned(),
            affinity,
            memory,
            rewrites: match name {
                "NAT" => Fields::SOURCE.and(Fields::SOURCE_PORT),
                "LB" => Fields::DESTINATION.and(Fields::DESTINATION_PORT),
                _ => Fields::NONE,
            },
            tables: if platforms.contains(&Pisa) { tables::of(name) } else { Vec::new() },
            openflow: platforms.contains(&OpenFlow).then_some(match name {
                "ACL" => OpenFlowUse { entries: 0, entries_per_unit: 1.0 },
                "IPv4Fwd" => OpenFlowUse { entries: tables::ROUTES, entries_per_unit: 0.0 },
                _ => OpenFlowUse { entries: 1, entries_per_unit: 0.0 },
            }),
            size: match name {
                "ACL" => size("rules", Some("rules"), 1024.0),
                "NAT" => size("entries", None, 12_000.0),
                _ => None,
            },
            platforms,
            source: Some(TABLE_3.to_owned()),
        }
    });
    Catalogue { functions: functions.collect(), ..Catalogue::default() }
}

/// What the functions cost. IPv4Fwd has no figure for servers anywhere.
#[must_use]
pub fn profile() -> Profile {
    let mut functions = BTreeMap::new();
    let mut add = |name: &str, server: Cycles, smart_nic: Option<Cycles>, source: &str| {
        functions.insert(name.to_owned(), Cost { server, smart_nic, source: Some(source.to_owned()) });
    };
    for (name, mean, worst) in MEASURED {
        add(name, Cycles { worst_factor: worst / mean, ..Cycles::constant(mean) }, None, TABLE_4);
    }
    for (name, cycles) in ASSUMED {
        add(name, Cycles::constant(cycles), None, PUBLISHED);
    }
    let (mean, worst, short) = ACL;
    let line = Cycles {
        unit: "rules".to_owned(),
        base: short,
        per_unit: (mean - short) / 1024.0,
        worst_factor: worst / mean,
        ..Cycles::default()
    };
    add("ACL", line, None, &format!("{TABLE_4}, 1,024 rules; a short one: {PUBLISHED}"));
    // The published placer has 62,994 cycles for decryption and 44,021 for encryption.
    let decrypt =
        Cycles { worst_factor: 9123.0 / 8950.0, ..Cycles::constant((8950.0_f64 * 62_994.0 / 44_021.0).round()) };
    add(
        "Decrypt",
        decrypt,
        None,
        &format!("Encrypt of {TABLE_4}, times decryption over encryption of the {PUBLISHED}"),
    );
    // "More than 10x faster than on the server", with the card "close to the line rate of 40 Gbps" (§5.3): a core
    // of the server does at most a tenth of that. The card's figure is for 60 cores of 800 MHz, together at line rate.
    add(
        "FastEncrypt",
        Cycles::constant((CLOCK_HZ * PACKET_BYTES * 8.0 / 4e9).round()),
        Some(Cycles::constant((60.0 * 0.8e9 * PACKET_BYTES * 8.0 / 40e9_f64).round())),
        "derived from Yen et al., Meeting SLOs in Cross-Platform NFV (CoNEXT 2020), §5.3: ten times on the card what a core \
         does, close to 40 Gbit/s",
    );
    Profile {
        version: VERSION,
        port: None,
        machine: Machine {
            processor: "Intel Xeon Bronze 3106 (Lemur's)".to_owned(),
            clock_hz: CLOCK_HZ,
            cores: 16,
            date: "2020".to_owned(),
        },
        overheads: overheads(),
        functions,
    }
}

/// "Our BESS cycle cost overheads for these are modest at about 220 cycles. The server also incurs about 180
/// cycles to load-balance packets when a subgroup is allocated to multiple cores" (§5.3).
#[must_use]
pub fn overheads() -> Overheads {
    Overheads { visit: 220.0, spread: 180.0, ..Overheads::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_that_runs_on_a_server_has_a_cost_but_forwarding() {
        let profile = profile();
        for function in catalogue(Forwarding::Anywhere).functions {
            let known = profile.functions.contains_key(&function.name);
            assert_eq!(known, function.name != "IPv4Fwd", "{}", function.name);
            assert_eq!(function.tables.is_empty(), !function.runs_on(Pisa), "{}", function.name);
        }
        assert!(profile.functions.values().all(|cost| cost.source.is_some()));
    }

    #[test]
    fn plans_reckon_with_the_worst_case_of_table_4() {
        let profile = profile();
        let worst = |name: &str, size: f64| profile.functions[name].server.worst(size).round();
        assert_eq!(worst("Encrypt", 0.0), 9123.0);
        assert_eq!(worst("Dedup", 0.0), 33185.0);
        assert_eq!(worst("NAT", 12_000.0), 507.0);
        assert_eq!(worst("ACL", 1024.0), 4091.0);
    }

    #[test]
    fn forwarding_is_kept_to_the_switch_for_the_evaluation_only() {
        let runs = |forwarding| catalogue(forwarding).find("IPv4Fwd").map(|f| f.runs_on(Server));
        assert_eq!(runs(Forwarding::SwitchOnly), Some(false));
        assert_eq!(runs(Forwarding::Anywhere), Some(true));
    }
}

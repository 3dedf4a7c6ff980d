//! How much memory a flow takes of each function that remembers flows.
//!
//! What a function keeps of a flow is more than its entry: the bucket that leads to it, a second entry for the way back,
//! an inside host's block of ports. So nothing is added up here. New flows pass through a fresh instance, and the memory
//! that the process has resident then, less what it had before, is divided by the flows that the function counts.
//!
//! ACL is not here: it remembers verdicts of a fixed number of flows. Nor is Native: what a C function keeps is its own
//! choice, in maps like those of the other functions.

use catena_functions::Value;
use catena_records::record::Record;
use catena_state::Share;

use crate::cases::{Step, lb, lb6, monitor, nat_with, with};
use crate::measure::Prepared;

/// Flows are counted from here on: buffers, and the first pages of every table, have been touched then.
const BEFORE: u64 = 100_000;
/// So many are counted. The system gives memory in huge pages of 2 MiB where it can, up to one more than what is used,
/// in each of a function's tables, before and after: half a byte a flow for each table that grows with the flows. Those
/// are two to nine, and do not all err the same way. With 100,000 flows it would be twenty bytes for each.
const FLOWS: u64 = 4_000_000;
/// Room for more than those: a full table would push flows out.
const ROOM: Value = Value::Integer(1 << 23);
/// Entries that a function looks at, at least, when it tidies up.
const SWEPT: u64 = 1024;

/// Each packet of UDP a flow of its own. All come within 50 ms of the packets' time, so that nothing is over by then.
/// A sender has 16 flows.
const UDP: &str = "flows=1k,dist=fixed(1),rate=100Mpps,size=64,proto=udp,src=10.0.0.0/14,dst=203.0.0.0/16";
/// The same over IPv6; all senders are of one /64.
const UDP_V6: &str = "flows=1k,dist=fixed(1),rate=100Mpps,size=64,proto=udp,ipv6=100%";
/// Each packet the first one of its sender.
const SENDERS: &str = "flows=1k,dist=fixed(1),rate=100Mpps,size=64,proto=udp,src=10.0.0.0/8,sport=1024-1024";
/// Each connection of TCP the first one of its sender; nobody answers.
const CONNECTIONS: &str =
    "flows=1k,dist=fixed(1),rate=100Mpps,size=64,proto=tcp,tcp=client,src=10.0.0.0/8,sport=1024-1024";

/// A function, the flows that it meets, and what it calls them.
pub struct Flows {
    /// The letter of all such cases, and what is measured.
    pub name: &'static str,
    traffic: &'static str,
    function: Step,
    /// The gauge that counts them.
    gauge: &'static str,
    /// What the memory is taken by.
    limit: &'static str,
}

/// Return all of them.
pub fn all() -> Vec<Flows> {
    let row = |name, traffic, function, gauge, limit| Flows { name, traffic, function, gauge, limit };
    let pool4 = || vec![Value::Prefix([198, 18, 0, 0].into(), 20)];
    let pool6 = || vec![Value::Prefix(std::net::Ipv6Addr::new(0x2001, 0xdb8, 0xff, 0, 0, 0, 0, 0).into(), 112)];
    let nat = |pool| with(nat_with(pool), "max_mappings", ROOM);
    let with_sessions = with(nat(pool4()), "filtering", Value::Word("address_port".to_owned()));
    let lb_of = |lb| with(lb, "max_connections", ROOM);
    let monitor = || with(monitor(), "max_flows", ROOM);
    let limiter = |per: &str| {
        let rate = Value::BitRate(8000);
        let args = [("rate", rate), ("per", Value::Word(per.to_owned())), ("max_keys", ROOM)];
        ("Limiter", args.map(|(name, value)| (name.to_owned(), value)).into())
    };
    let scans = |timeout: u64| {
        let args = [("max_sources", ROOM), ("max_contacts", ROOM), ("timeout", Value::Duration(timeout))];
        ("PortScan", args.map(|(name, value)| (name.to_owned(), value)).into())
    };
    let one = "an entry of a cache line, and a fifth of a bucket";
    let two = "an entry of two cache lines, and a fifth of a bucket";
    vec![
        row(
            "m: NAPT, a mapping",
            UDP,
            nat(pool4()),
            "mappings",
            "two entries; a host's block of ports for 16 mappings",
        ),
        row(
            "m: NAPT, IPv6, a mapping",
            UDP_V6,
            nat(pool6()),
            "mappings",
            "two entries; a block of ports for 64 mappings",
        ),
        row("m: NAPT, a mapping and a session", UDP, with_sessions, "mappings", "a third entry, that of the session"),
        row("m: LB, a connection", UDP, lb_of(lb()), "connections", "two entries, and their place in line to give way"),
        row(
            "m: LB, IPv6, a connection",
            UDP_V6,
            lb_of(lb6()),
            "connections",
            "the same, with entries of two cache lines",
        ),
        row("m: Monitor, a flow", UDP, monitor(), "flows at the end", one),
        row("m: Monitor, IPv6, a flow", UDP_V6, monitor(), "flows at the end", two),
        row("m: Limiter, a sender", SENDERS, limiter("src"), "keys", one),
        row("m: Limiter, a flow", UDP, limiter("flow"), "keys", one),
        row("m: Limiter, IPv6, a flow", UDP_V6, limiter("flow"), "keys", one),
        row("m: PortScan, an open connection", CONNECTIONS, scans(1_000_000_000), "contacts", one),
        // One that nobody has answered in a microsecond has failed, which its sender is remembered for.
        row("m: PortScan, a sender whose connection failed", CONNECTIONS, scans(1_000), "sources", "two entries"),
    ]
}

/// Measure one of them, once: what is kept of the traffic is the same every time, but for where huge pages begin.
///
/// # Errors
/// What a function or the generator refuses, and when flows were dropped or forgotten.
pub fn measure(flows: &Flows) -> Result<Record, String> {
    let mut prepared =
        Prepared::of((flows.traffic, None), std::slice::from_ref(&flows.function), (Share::WHOLE, None))?;
    let (few, before) = fill(&mut prepared, flows, BEFORE)?;
    let (many, after) = fill(&mut prepared, flows, BEFORE + FLOWS)?;
    prepared.nothing_lost()?;
    Ok(Record {
        bench: "dataplane".to_owned(),
        case: flows.name.to_owned(),
        unit: "bytes/flow".to_owned(),
        value: (after as f64 - before as f64) / (many - few) as f64,
        limit: Some(flows.limit.to_owned()),
        ..Record::default()
    })
}

/// Let flows come until the function knows so many; returns how many it knows, and the resident memory in bytes.
fn fill(prepared: &mut Prepared, flows: &Flows, count: u64) -> Result<(u64, u64), String> {
    let known = |prepared: &Prepared| {
        prepared.gauge(flows.gauge).ok_or_else(|| format!("{}: no gauge is called {}", flows.name, flows.gauge))
    };
    let most = 16 * count;
    while known(prepared)? < count {
        prepared.steps();
        if prepared.packets() > most {
            return Err(format!("{}: {most} packets, but only {} flows", flows.name, known(prepared)?));
        }
    }
    // Two rounds through a table of so many, for what is over by now.
    (0..2 * count / SWEPT).for_each(|_| prepared.tick());
    Ok((known(prepared)?, resident()?))
}

/// Return the resident memory of this process, in bytes. `statm` has it too, but counts in steps of each CPU.
fn resident() -> Result<u64, String> {
    const PATH: &str = "/proc/self/smaps_rollup";
    let text = std::fs::read_to_string(PATH).map_err(|error| format!("{PATH}: {error}"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("Rss:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.map(|kib| kib * 1024).ok_or_else(|| format!("{PATH} does not say how much memory is resident"))
}

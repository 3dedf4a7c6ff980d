//! The cases: what traffic runs through which functions, what bar each is held to, what peers need.

use std::net::Ipv4Addr;

use catena_functions::Value;

use crate::rules;

/// A function with its arguments.
pub type Step = (&'static str, Vec<(String, Value)>);

/// One case.
pub struct Case {
    /// Its letter and what it is.
    pub name: &'static str,
    /// The traffic, as the generator reads it.
    pub traffic: &'static str,
    /// The functions in order.
    pub functions: Vec<Step>,
    /// Most cycles per packet on an idle core.
    pub bar: Option<f64>,
    /// Cycles per packet that peers need, measured on another machine of the same kind.
    pub peers: &'static [(&'static str, f64)],
    /// What limits it now.
    pub limit: &'static str,
    /// Whether a second worker is measured as well, and the least that it must add to what the first one does alone, 0 for anything.
    pub second: Option<f64>,
    /// The server whose answers come in turn with its clients' packets: one of each, in one batch.
    pub answers: Option<Ipv4Addr>,
}

const FLOWS_10K: &str = "flows=10k,size=64,proto=udp:1+tcp:1,dst=203.0.0.0/16,dport=1-60000";
const FLOWS_UDP: &str = "flows=10k,size=64,proto=udp,dst=203.0.0.0/16,dport=1-60000";
/// As many entries as 10,000 flows have that are known both ways.
const FLOWS_20K: &str = "flows=20k,size=64,proto=udp,dst=203.0.0.0/16,dport=1-60000";
const FLOWS_10K_V6: &str = "flows=10k,size=64,proto=udp:1+tcp:1,ipv6=100%,dport=1-60000";
const FLOWS_1M: &str = "flows=1M,size=64,proto=udp:1+tcp:1,dst=203.0.0.0/16,dport=1-60000";
const FLOWS_10M: &str = "flows=10M,size=64,proto=udp:1+tcp:1,dst=203.0.0.0/16,dport=1-60000";
/// Each packet a flow of its own, a million a second of the packets' time: with timeouts of a second, a million are alive. A flow
/// comes again after four, long forgotten, so that all frames can be made beforehand: drawing a flow costs a generator 85 cycles more.
pub const NEW_FLOWS: &str = "flows=4M,rate=1Mpps,size=64,proto=udp,src=10.0.0.0/18,dst=203.0.0.0/16";
/// Names of such cases end so.
pub const EACH_NEW: &str = "each packet a new flow";
/// The one without a function.
pub const NEW_FLOWS_ALONE: &str = "i: source -> sink, each packet a new flow";
/// The same of a packet in twenty, and of every other one.
const FEW_NEW_FLOWS: &str = "flows=10k,dist=fixed(20),rate=1Mpps,size=64,proto=udp,src=10.0.0.0/18,dst=203.0.0.0/16";
const MANY_NEW_FLOWS: &str = "flows=10k,dist=fixed(2),rate=1Mpps,size=64,proto=udp,src=10.0.0.0/18,dst=203.0.0.0/16";
/// Handshakes: a SYN and what follows it.
const NEW_TCP: &str =
    "flows=10k,dist=fixed(2),rate=1Mpps,size=64,proto=tcp,tcp=client,src=10.0.0.0/18,dst=203.0.0.0/16,dport=1-60000";
/// What captures of a border have: sizes, protocols and lengths of flows; TCP with its handshakes and ends.
const MIX: &str = "flows=10k,dist=pareto(1.3,10),rate=1Mpps,size=imix,proto=udp:3+tcp:6+icmp:1,tcp=sessions,\
     src=10.0.0.0/18,dst=203.0.0.0/16,dport=1-60000";
/// So many of them are alive.
pub const LIVE: u64 = 1_000_000;

fn word(word: &str) -> Value {
    Value::Word(word.to_owned())
}

fn args(args: Vec<(&str, Value)>) -> Vec<(String, Value)> {
    args.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn file(name: &str, text: String) -> Value {
    Value::File { path: name.to_owned(), text }
}

fn acl(rules: usize) -> Step {
    ("ACL", args(vec![("rules", file("generated.acl", rules::acl(rules))), ("default", word("permit"))]))
}

fn nat() -> Step {
    nat_with(vec![Value::Prefix([198, 18, 0, 0].into(), 20)])
}

fn nat_of_both() -> Step {
    let inside6 = std::net::Ipv6Addr::new(0x2001, 0xdb8, 0xff, 0, 0, 0, 0, 0);
    nat_with(vec![Value::Prefix([198, 18, 0, 0].into(), 20), Value::Prefix(inside6.into(), 112)])
}

pub fn nat_with(pool: Vec<Value>) -> Step {
    let pool = Value::List(pool);
    ("NAT", args(vec![("pool", pool), ("max_mappings", Value::Integer(1 << 21)), ("filtering", word("independent"))]))
}

/// A function with an argument more, or another value of one.
pub fn with((name, mut args): Step, argument: &str, value: Value) -> Step {
    args.retain(|(name, _)| name != argument);
    args.push((argument.to_owned(), value));
    (name, args)
}

/// A function whose flows of UDP live for a second.
fn short(step: Step, timeout: &str) -> Step {
    with(step, timeout, Value::Duration(1_000_000_000))
}

/// All of them with flows that live for a second.
fn short_chain() -> Vec<Step> {
    vec![acl(1000), short(nat(), "udp_timeout"), short(lb(), "udp"), short(monitor(), "idle_timeout")]
}

pub fn lb() -> Step {
    let backends = (1..=16u8).map(|i| Value::Address([10, 1, 0, i].into())).collect();
    // The service is one of the servers that traffic goes to; other packets pass the balancer by a look-up of
    // their address only, so the service is all of them here: see `vips`.
    (
        "LB",
        args(vec![
            ("vip", vips()),
            ("backends", Value::List(backends)),
            ("method", word("least_connections")),
            ("max_connections", Value::Integer(1 << 21)),
        ]),
    )
}

fn vips() -> Value {
    Value::Prefix([203, 0, 0, 0].into(), 16)
}

pub fn monitor() -> Step {
    ("Monitor", args(vec![("max_flows", Value::Integer(1 << 21))]))
}

/// With a rate that nobody reaches.
fn limiter() -> Step {
    ("Limiter", args(vec![("rate", Value::BitRate(100_000_000_000)), ("per", word("src"))]))
}

/// Which blocks nobody: to it, scanners fail hardly more often than others, so that no source has shown enough.
fn port_scan() -> Step {
    ("PortScan", args(vec![("benign", Value::Percent(0.8)), ("scanner", Value::Percent(0.799_999_999))]))
}

/// Return all cases.
pub fn all() -> Vec<Case> {
    vec![
        Case {
            name: "a: source -> sink",
            traffic: FLOWS_10K,
            functions: vec![],
            bar: Some(20.0),
            peers: &[("BESS", 24.0), ("FastClick", 153.0)],
            limit: "writing the frame and the metadata line; pool and counters once a batch",
            // Not for its own sake: it shows what the second core is worth just now.
            second: Some(0.0),
            answers: None,
        },
        Case {
            name: "b: header check + LPM, 1,000 routes",
            traffic: FLOWS_10K,
            functions: vec![("IPv4Fwd", args(vec![("routes", file("generated.routes", rules::routes(1000)))]))],
            bar: Some(75.0),
            peers: &[("BESS", 91.0), ("FastClick", 212.0)],
            limit: "parsing, checksum, time to live and look-up, about equal parts",
            second: None,
            answers: None,
        },
        Case {
            name: "c: ACL, 1,000 rules",
            traffic: FLOWS_10K,
            functions: vec![acl(1000)],
            bar: Some(100.0),
            peers: &[("BESS", 1298.0), ("FastClick", 24386.0)],
            limit: "reading and hashing the key, one cache line of verdicts from the second-level cache",
            second: None,
            answers: None,
        },
        Case {
            name: "d: NAPT",
            traffic: FLOWS_10K,
            functions: vec![nat()],
            bar: Some(110.0),
            peers: &[("BESS", 118.0), ("FastClick", 632.0)],
            limit: "two cache lines of the mapping from the second-level cache, checksums",
            second: Some(0.9),
            answers: None,
        },
        Case {
            name: "e: ACL -> NAT -> LB -> Monitor",
            traffic: FLOWS_10K,
            functions: vec![acl(1000), nat_of_both(), lb(), monitor()],
            bar: Some(420.0),
            peers: &[("BESS", 2087.0), ("FastClick", 22223.0)],
            limit: "seven cache lines of state a packet, most from the third-level cache",
            second: Some(0.9),
            answers: None,
        },
        Case {
            name: "f: the same over IPv6",
            traffic: FLOWS_10K_V6,
            functions: vec![acl(1000), nat_of_both(), lb6(), monitor()],
            bar: None,
            peers: &[],
            limit: "longer keys: more to hash, to compare and to keep",
            second: None,
            answers: None,
        },
        Case {
            name: "g: NAPT, 1M flows",
            traffic: FLOWS_1M,
            functions: vec![nat()],
            bar: None,
            peers: &[],
            limit: "two cache lines from memory, prefetched within the batch",
            second: None,
            answers: None,
        },
        Case {
            name: "h: ACL, 10,000 rules",
            traffic: FLOWS_10K,
            functions: vec![acl(10_000)],
            bar: Some(150.0),
            peers: &[],
            limit: "as (c): verdicts of known flows; unknown ones search the trees",
            second: None,
            answers: None,
        },
        Case {
            name: "h: ACL, 100,000 rules",
            traffic: FLOWS_10K,
            functions: vec![acl(100_000)],
            bar: Some(250.0),
            peers: &[],
            limit: "as (c): verdicts of known flows; unknown ones search the trees",
            second: None,
            answers: None,
        },
        Case {
            name: NEW_FLOWS_ALONE,
            traffic: NEW_FLOWS,
            functions: vec![],
            bar: None,
            peers: &[],
            limit: "a cache line of a frame",
            second: None,
            answers: None,
        },
        Case {
            name: "i: NAPT, each packet a new flow",
            traffic: NEW_FLOWS,
            functions: vec![short(nat(), "udp_timeout")],
            bar: Some(450.0),
            peers: &[],
            limit: "ten cache lines that are far: an entry made and one taken out, under two keys each, ports, blocks, hosts",
            second: Some(0.6),
            answers: None,
        },
        Case {
            name: "j: LB, each packet a new flow",
            traffic: NEW_FLOWS,
            functions: vec![short(lb(), "udp")],
            bar: Some(350.0),
            peers: &[],
            limit: "an entry made and one taken out, under two keys each",
            second: Some(0.6),
            answers: None,
        },
        Case {
            name: "k: Monitor, each packet a new flow",
            traffic: NEW_FLOWS,
            functions: vec![short(monitor(), "idle_timeout")],
            bar: Some(250.0),
            peers: &[],
            limit: "an entry made, and one taken out",
            second: Some(0.6),
            answers: None,
        },
        Case {
            name: "n: ACL -> NAT -> LB -> Monitor, 5% of packets a new flow",
            traffic: FEW_NEW_FLOWS,
            functions: short_chain(),
            bar: None,
            peers: &[],
            limit: "as (e) and (i) to (k); the generator takes half",
            second: Some(0.7),
            answers: None,
        },
        Case {
            name: "o: ACL -> NAT -> LB -> Monitor, 50% of packets a new flow",
            traffic: MANY_NEW_FLOWS,
            functions: short_chain(),
            bar: None,
            peers: &[],
            limit: "as (i) to (k)",
            second: Some(0.7),
            answers: None,
        },
        Case {
            name: "p: LB, 5% of packets a new flow",
            traffic: FEW_NEW_FLOWS,
            functions: vec![short(lb(), "udp")],
            bar: None,
            peers: &[],
            limit: "as (j); the generator takes half",
            second: Some(0.6),
            answers: None,
        },
        Case {
            name: "q: LB, 50% of packets a new flow",
            traffic: MANY_NEW_FLOWS,
            functions: vec![short(lb(), "udp")],
            bar: None,
            peers: &[],
            limit: "as (j)",
            second: Some(0.6),
            answers: None,
        },
        Case {
            name: "r: LB of one server",
            traffic: FLOWS_20K,
            functions: vec![lb_of_one()],
            bar: None,
            peers: &[],
            limit: "a cache line of state, checksums",
            second: None,
            answers: None,
        },
        Case {
            name: "s: LB of one server, packets and answers in turn",
            traffic: FLOWS_UDP,
            functions: vec![lb_of_one()],
            bar: None,
            peers: &[],
            limit: "as (r), in batches of half the size; an entry for each way",
            second: None,
            answers: Some(SERVER),
        },
        Case {
            name: "t: Limiter of each source, 50% of packets a new flow",
            traffic: MANY_NEW_FLOWS,
            functions: vec![limiter()],
            bar: None,
            peers: &[],
            limit: "a cache line of state; the generator takes half",
            second: Some(0.6),
            answers: None,
        },
        Case {
            name: "u: PortScan, 50% of packets a new flow",
            traffic: NEW_TCP,
            functions: vec![port_scan()],
            bar: None,
            peers: &[],
            limit: "entries of the source and of what it asked for",
            second: Some(0.6),
            answers: None,
        },
        Case {
            name: "v: ACL -> NAT -> LB -> Monitor, a mix of sizes, protocols and sessions",
            traffic: MIX,
            functions: short_chain(),
            bar: None,
            peers: &[],
            limit: "as (n)",
            second: Some(0.7),
            answers: None,
        },
        Case {
            name: "w: NAPT, a mix of sizes, protocols and sessions",
            traffic: MIX,
            functions: vec![short(nat(), "udp_timeout")],
            bar: None,
            peers: &[],
            limit: "as (v)",
            second: Some(0.6),
            answers: None,
        },
        Case {
            name: "x: LB, a mix of sizes, protocols and sessions",
            traffic: MIX,
            functions: vec![short(lb(), "udp")],
            bar: None,
            peers: &[],
            limit: "as (v)",
            second: Some(0.6),
            answers: None,
        },
        Case {
            name: "y: Monitor, a mix of sizes, protocols and sessions",
            traffic: MIX,
            functions: vec![short(monitor(), "idle_timeout")],
            bar: None,
            peers: &[],
            limit: "as (v)",
            second: Some(0.6),
            answers: None,
        },
        Case {
            name: "l: NAPT, 10M flows",
            traffic: FLOWS_10M,
            functions: vec![with(nat(), "max_mappings", Value::Integer(1 << 24))],
            bar: None,
            peers: &[],
            limit: "as (g)",
            second: None,
            answers: None,
        },
    ]
}

/// Who answers.
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);

fn lb_of_one() -> Step {
    let vips = Value::Prefix([203, 0, 0, 0].into(), 16);
    ("LB", args(vec![("vip", vips), ("backends", Value::List(vec![Value::Address(SERVER.into())]))]))
}

pub fn lb6() -> Step {
    let backends = (1..=16u16).map(|i| Value::Address([0x2001, 0xdb8, 0xa, 0, 0, 0, 0, i].into())).collect();
    let vips = Value::Prefix([0x2001, 0xdb8, 2, 0, 0, 0, 0, 0].into(), 64);
    (
        "LB",
        args(vec![
            ("vip", vips),
            ("backends", Value::List(backends)),
            ("method", word("least_connections")),
            ("max_connections", Value::Integer(1 << 21)),
        ]),
    )
}

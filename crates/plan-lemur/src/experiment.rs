//! The experiment design of Lemur, §5.1 and §5.2, as code: the testbed, the chains, the promises.

use catena_policy::{Library, NoFiles};

use catena_plan_model::catalogue::Catalogue;
use catena_plan_model::demand::{self, Options};
use catena_plan_model::paper;
use catena_plan_model::problem::{Chain, Objective, Problem, Replication};
use catena_plan_model::profile::Profile;
use catena_plan_model::rack::{FlowTable, Nic, Rack, Server, SmartNic, Stages, Switch, SwitchKind, Wrap};

/// The factors on the base rates, 0.5 to 4.
pub const DELTAS: [f64; 8] = [0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0];

/// The sets of chains of Figure 2 a to e, as indices: all four, and every three of them.
pub const SETS: [(&str, &[usize]); 5] =
    [("a", &[0, 1, 2, 3]), ("b", &[0, 1, 2]), ("c", &[0, 1, 3]), ("d", &[0, 2, 3]), ("e", &[1, 2, 3])];

/// The chains of Table 2.
///
/// Chain 1 is drawn in the table with arrows from both filters to subchain 8. Here subchain 8 stands once, behind all
/// branches, as in the published placer's input (src/user_level_examples/chain_5.conf); so the four chains have the
/// 34 functions of which §5.3 speaks. The splits are even, as there. The files in examples/lemur are the same chains.
pub const CHAINS: [(&str, &str); 5] = [
    (
        "chain1",
        "BPF -> [ \"tcp\": ACL -> Limiter -> BPF -> [ \"tcp port 80\": UrlFilter, else: ], else: ] \
         -> Detunnel -> Encrypt -> IPv4Fwd",
    ),
    ("chain2", "Encrypt -> LB -> [ NAT, NAT, NAT ] -> IPv4Fwd"),
    ("chain3", "Dedup -> ACL -> Limiter -> LB -> IPv4Fwd"),
    (
        "chain4",
        "Dedup -> ACL -> Monitor -> Tunnel -> BPF \
         -> [ LB -> Limiter -> ACL, LB -> Limiter -> ACL, LB -> Limiter -> ACL ] -> IPv4Fwd",
    ),
    ("chain5", "ACL -> UrlFilter -> FastEncrypt -> IPv4Fwd"),
];

/// What the chain of eleven translators is promised in §5.2, bits per second.
pub const ELEVEN_NATS_BPS: f64 = 44.9e9;

/// Cores of a server that carry no function: the demultiplexer has one (§4.2), and the published placer keeps two
/// (RESERVE_CORE in src/nf_placement.py). With two, 29 of the 40 sets of §5.2 can be planned at all, which
/// is the number that the paper tells, and one server of 8 cores is too little where §5.3 says so.
pub const STEERING_CORES: u32 = 2;

/// "In all experiments, we set t_max to be 100 Gbps."
pub const T_MAX_BPS: f64 = 100e9;

/// A switch of Tofino's size: 12 stages, of which the framework takes two (§5.3).
#[must_use]
pub fn pisa() -> SwitchKind {
    SwitchKind::Pisa(Stages { stages: 12, sram_blocks: 80, tcam_blocks: 24, tables: 16, framework_stages: 2 })
}

/// An OpenFlow switch with the functions of Table 3 in the order of usual hardware: tags first, rules,
/// then routes.
#[must_use]
pub fn openflow() -> SwitchKind {
    let table = |name: &str, functions: &[&str], entries| FlowTable {
        name: name.to_owned(),
        functions: functions.iter().map(|f| (*f).to_owned()).collect(),
        entries,
    };
    SwitchKind::OpenFlow {
        tables: vec![
            table("vlan", &["Detunnel", "Tunnel"], 4096),
            table("acl", &["ACL", "Monitor"], 2048),
            table("routes", &["IPv4Fwd"], 16_384),
        ],
    }
}

/// The testbed of §5.1: `servers` servers of two sockets with `cores_per_socket` cores of 1.7 GHz and a card of
/// 40 Gbit/s, on a switch of 32 ports of 100 Gbit/s, or one with OpenFlow that has six ports of 40 Gbit/s. The files in
/// examples/racks are the same racks.
///
/// The vendor forbids to tell latencies; what they are here is assumed. Of each server's cores,
/// [`STEERING_CORES`] steer packets.
#[must_use]
pub fn testbed(servers: u32, sockets: u32, kind: SwitchKind) -> Rack {
    let server = |id: u32| Server {
        name: format!("server{}", id + 1),
        sockets,
        cores_per_socket: 8,
        steering_cores: STEERING_CORES,
        shared: false,
        clock_hz: paper::CLOCK_HZ,
        nics: vec![Nic { name: "xl710".to_owned(), socket: 0, bps: 40e9, address: None }],
        smart_nics: Vec::new(),
    };
    let (ports, port_bps) = if matches!(kind, SwitchKind::OpenFlow { .. }) { (6, 40e9) } else { (32, 100e9) };
    Rack {
        name: "lemur".to_owned(),
        servers: (0..servers).map(server).collect(),
        switch: Some(Switch {
            name: "tor".to_owned(),
            ports,
            port_bps,
            capacity_bps: f64::from(ports) * port_bps,
            pass_ns: 500.0,
            bounce_ns: 1_500.0,
            tunnels: Wrap::usual(&kind),
            address: None,
            kind,
        }),
        packet_bytes: paper::PACKET_BYTES,
    }
}

/// The card of §5.3: one link of 40 Gbit/s, 60 cores of 800 MHz.
#[must_use]
pub fn smart_nic() -> SmartNic {
    SmartNic { name: "agilio".to_owned(), socket: 0, bps: 40e9, cores: 60, clock_hz: 0.8e9, address: None }
}

/// The chains of `files` (name and text of each) on `rack`, with the paper's figures and its rules of replication.
///
/// # Errors
/// What is wrong with a file, or what of it cannot be planned, in words.
pub fn problem(files: &[(&str, &str)], rack: &Rack) -> Result<Problem, String> {
    with(files, rack, &paper::catalogue(paper::Forwarding::SwitchOnly), &paper::profile())
}

/// The same with another catalogue and profile.
///
/// # Errors
/// As [`problem`].
pub fn with(files: &[(&str, &str)], rack: &Rack, catalogue: &Catalogue, profile: &Profile) -> Result<Problem, String> {
    let options = Options { replication: Replication::Paper, objective: Objective::Marginal };
    let mut all: Option<Problem> = None;
    for (name, text) in files {
        let loaded = catena_policy::load(name, text, &Library::default(), &NoFiles);
        let Some(graph) = loaded.graph else {
            return Err(loaded.diagnostics.iter().map(|d| format!("{d:?}")).collect::<Vec<_>>().join("; "));
        };
        let one = demand::problem(&graph, rack, catalogue, profile, options)
            .map_err(|unknown| unknown.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))?;
        match &mut all {
            None => all = Some(one),
            Some(all) => all.chains.extend(one.chains),
        }
    }
    all.ok_or_else(|| "no chain".to_owned())
}

/// "Its base rate [is] the rate it would achieve if only one core were allocated to the slowest software NF in
/// the chain": of the function alone, all of the chain's packets through it, bits per second; infinite without one.
///
/// Neither branches nor the framework's overhead count. So the published placer's own input has it (1.1 and 0.3
/// Gbit/s for the chains with Encrypt and Dedup, half the base rates by Table 4), and so does the 44.9
/// Gbit/s of §5.2 (half of 1.7 GHz over the 227 cycles of the published NAT).
#[must_use]
pub fn base_rate(chain: &Chain, clock_hz: f64) -> f64 {
    let slowest = chain.nodes.iter().filter_map(|n| n.server).fold(0.0, f64::max);
    clock_hz / slowest * chain.packet_bits()
}

/// The chains of `set` alone, each promised `delta` times its base rate, and 100 Gbit/s at most.
#[must_use]
pub fn promised(problem: &Problem, set: &[usize], delta: f64) -> Problem {
    let clock_hz = problem.servers.iter().map(|s| s.clock_hz).fold(0.0, f64::max);
    let chains = set.iter().filter_map(|id| problem.chains.get(*id)).map(|chain| Chain {
        t_min_bps: delta * base_rate(chain, clock_hz),
        t_max_bps: T_MAX_BPS,
        d_max_ns: f64::INFINITY,
        ..chain.clone()
    });
    Problem { chains: chains.collect(), ..problem.clone() }
}

/// The same problem with all profiled costs less by `part` (§5.2: "reduced the profiled costs by a fraction,
/// ranging from 1% to 10%").
#[must_use]
pub fn underestimated(problem: &Problem, part: f64) -> Problem {
    problem.costing(1.0 - part)
}

//! The exact planner against exhaustive search, and on the papers' chains.

use super::instances::instance;
use super::{Settings, exhaustive, plan};
use crate::estimate::Layout;
use crate::placement::{Link, Outcome, Placement, Site};
use crate::problem::{Chain, Edge, Node, Objective, Problem, Replication, Server, Switch};
use crate::profile::Overheads;
use crate::rack::{Stages, SwitchKind};
use crate::switch::{Feasible, Overflow, Use, Verdict};

/// Relative excess that rounding may cause.
const EXCESS: f64 = 1e-9;

/// Check `placement` by the definitions alone.
fn obeys(problem: &Problem, switch: &dyn Feasible, placement: &Placement) {
    let within = |what: &str, used: f64, there: f64| {
        assert!(used <= there * (1.0 + EXCESS), "{what}: {used} of {there}\n{placement:#?}\n{problem:#?}");
    };
    let on: Vec<Vec<bool>> = placement.sites.iter().map(|c| c.iter().map(|s| *s == Site::Switch).collect()).collect();
    assert!(switch.verdict(problem, &on).fits());
    let mut nics: Vec<Vec<f64>> = problem.servers.iter().map(|s| vec![0.0; s.nics_bps.len()]).collect();
    let mut cores = vec![0.0; problem.servers.len()];
    let mut links = vec![0.0; problem.smart_nics.len()];
    let mut cycles = vec![0.0; problem.smart_nics.len()];
    for (id, chain) in problem.chains.iter().enumerate() {
        let rate = placement.rates_bps[id];
        within("promise", chain.t_min_bps, rate);
        within("limit", rate, chain.limit_bps());
        let layout = Layout::of(problem, chain, &placement.sites[id]);
        within("latency", layout.latency_ns, chain.d_max_ns);
        let own: Vec<_> = placement.subgroups.iter().filter(|g| g.chain == id).collect();
        assert_eq!(own.len(), layout.groups.len());
        for group in &layout.groups {
            let given = own.iter().find(|g| g.nodes == group.nodes).unwrap();
            let server = &problem.servers[group.server];
            assert_eq!(given.server, group.server);
            assert!(given.cores > 0.0 && (group.replicable || given.cores <= 1.0));
            assert!(server.shared || (given.cores >= 1.0 && given.cores.fract() == 0.0));
            cores[group.server] += given.cores;
            within("core", rate, group.packets(given.cores, server.clock_hz) * chain.packet_bits());
            match (given.link, group.smart_nic) {
                (Link::Nic(nic), None) => nics[group.server][nic] += rate * group.visits,
                (Link::SmartNic(nic), Some(own)) => assert_eq!(nic, own),
                other => panic!("{other:?}"),
            }
        }
        for stay in &layout.stays {
            if let Some(nic) = stay.smart_nic {
                links[nic] += rate * stay.visits;
            }
        }
        for &(nic, each) in &layout.smart_nic_cycles {
            cycles[nic] += rate / chain.packet_bits() * each;
        }
    }
    for (id, server) in problem.servers.iter().enumerate() {
        within("cores", cores[id], f64::from(server.cores));
        nics[id].iter().zip(&server.nics_bps).for_each(|(used, there)| within("card", *used, *there));
    }
    for (id, nic) in problem.smart_nics.iter().enumerate() {
        within("SmartNIC link", links[id], nic.bps);
        within("SmartNIC", cycles[id], nic.cycles_hz);
    }
}

/// The reference's way to write a value: one number, or each chain's relative marginal rate, ascending.
fn value(problem: &Problem, placement: &Placement, marginal_bps: f64) -> Vec<f64> {
    if problem.objective != Objective::Fair {
        return vec![marginal_bps / 1e9];
    }
    let relative = |(c, r): (&Chain, &f64)| (r - c.t_min_bps) / c.weight / 1e9;
    let mut values: Vec<f64> = problem.chains.iter().zip(&placement.rates_bps).map(relative).collect();
    values.sort_by(f64::total_cmp);
    values
}

/// Random instances, as many as `CATENA_EXACT_INSTANCES` says.
fn instances() -> u64 {
    std::env::var("CATENA_EXACT_INSTANCES").ok().and_then(|n| n.parse().ok()).unwrap_or(400)
}

#[test]
fn finds_what_exhaustive_search_finds() {
    let (mut placed, mut infeasible) = (0, 0);
    for seed in 0..instances() {
        let (problem, switch) = instance(seed);
        let t0 = std::time::Instant::now();
        let reference = exhaustive::best(&problem, &switch);
        let t1 = std::time::Instant::now();
        let answer = plan(&problem, &switch, None, &Settings::default());
        let t2 = std::time::Instant::now();
        if (t2 - t0).as_millis() > 200 {
            eprintln!("seed {seed} exhaustive {:?} exact {:?} {:?}", t1 - t0, t2 - t1, answer.effort);
        }
        match (answer.outcome, reference) {
            (Outcome::Placed { placement, marginal_bps, bound_bps }, Some(reference)) => {
                placed += 1;
                obeys(&problem, &switch, &placement);
                assert_eq!(bound_bps, Some(marginal_bps), "seed {seed}");
                let found = value(&problem, &placement, marginal_bps);
                let same = found.iter().zip(&reference).all(|(f, r)| (f - r).abs() <= 1e-6 * (1.0 + r.abs()));
                assert!(same, "seed {seed}: {found:?}, exhaustive search {reference:?}\n{problem:#?}\n{switch:#?}");
            }
            (Outcome::Infeasible { proven: true, why }, None) => {
                infeasible += 1;
                assert!(!why.is_empty());
            }
            (outcome, reference) => {
                panic!("seed {seed}: {outcome:?}, exhaustive search {reference:?}\n{problem:#?}\n{switch:#?}")
            }
        }
    }
    assert!(placed * 5 > instances() && infeasible * 10 > instances(), "{placed} placed, {infeasible} infeasible");
}

/// A function of the papers' experiment: cycles on a server, whether on the switch, whether replicable.
fn function(name: &str) -> Node {
    // Lemur, Table 4 (worst case, other socket) for Encrypt, Dedup, ACL and NAT; the others are of the size
    // that such functions have. Table 3: who runs where.
    let (server, switch, replicable) = match name {
        "Encrypt" => (Some(9_123.0), false, true),
        "Dedup" => (Some(33_185.0), false, true),
        "UrlFilter" => (Some(2_600.0), false, true),
        "Limiter" => (Some(310.0), false, false),
        "Monitor" => (Some(480.0), false, false),
        "ACL" => (Some(4_091.0), true, true),
        "NAT" => (Some(507.0), true, false),
        "LB" => (Some(350.0), true, true),
        "BPF" => (Some(420.0), true, true),
        "Tunnel" | "Detunnel" => (Some(180.0), true, true),
        "IPv4Fwd" => (None, true, true),
        other => panic!("{other}"),
    };
    Node {
        name: String::new(),
        function: name.into(),
        share: 1.0,
        entry: 0.0,
        server,
        smart_nic: None,
        pisa: switch.then(Vec::new),
        openflow: None,
        replicable,
    }
}

/// A chain of functions in a row, then branches, then functions in a row again.
fn chain(name: &str, before: &[&str], branches: &[&[&str]], after: &[&str]) -> Chain {
    let mut chain = Chain {
        name: name.into(),
        t_min_bps: 0.0,
        t_max_bps: 100e9,
        ingress_bps: 100e9,
        d_max_ns: f64::INFINITY,
        weight: 1.0,
        packet_bytes: 1_500.0,
        nodes: Vec::new(),
        edges: Vec::new(),
    };
    let row = |chain: &mut Chain, functions: &[&str], ends: &[usize], share: f64| {
        let mut ends: Vec<(usize, f64)> = ends.iter().map(|&end| (end, share / ends.len().max(1) as f64)).collect();
        for name in functions {
            let id = chain.nodes.len();
            chain.nodes.push(Node {
                name: format!("{name}{id}"),
                share,
                entry: if id == 0 { 1.0 } else { 0.0 },
                ..function(name)
            });
            chain.edges.extend(ends.iter().map(|&(from, share)| Edge { from, to: id, share }));
            ends = vec![(id, share)];
        }
        ends.iter().map(|(end, _)| *end).collect::<Vec<usize>>()
    };
    let mut ends = row(&mut chain, before, &[], 1.0);
    if !branches.is_empty() {
        let share = 1.0 / branches.len() as f64;
        ends = branches.iter().flat_map(|branch| row(&mut chain, branch, &ends, share)).collect();
    }
    row(&mut chain, after, &ends, 1.0);
    chain
}

/// Lemur, Table 2, chains 1 to 4, with `delta` times the base rate promised (§5.1).
fn four_chains(delta: f64, cores: &[u32]) -> Problem {
    let sub8: &[&str] = &["Detunnel", "Encrypt", "IPv4Fwd"];
    let sub6: &[&str] = &["LB", "Limiter", "ACL"];
    let mut chains = vec![
        chain(
            "chain1",
            &["BPF", "ACL", "Limiter", "BPF"],
            &[sub8, &["UrlFilter", "Detunnel", "Encrypt", "IPv4Fwd"], sub8],
            &[],
        ),
        chain("chain2", &["Encrypt", "LB"], &[&["NAT"], &["NAT"], &["NAT"]], &["IPv4Fwd"]),
        chain("chain3", &["Dedup", "ACL", "Limiter", "LB", "IPv4Fwd"], &[], &[]),
        chain("chain4", &["Dedup", "ACL", "Monitor", "Tunnel", "BPF"], &[sub6, sub6, sub6], &["IPv4Fwd"]),
    ];
    for chain in &mut chains {
        let software = chain.nodes.iter().filter(|n| n.pisa.is_none()).filter_map(|n| n.server);
        chain.t_min_bps = delta * 1.7e9 / software.fold(0.0, f64::max) * chain.packet_bits();
    }
    let server = |(id, &cores): (usize, &u32)| Server {
        name: format!("server{id}"),
        cores,
        shared: false,
        clock_hz: 1.7e9,
        nics_bps: vec![40e9],
    };
    Problem {
        chains,
        servers: cores.iter().enumerate().map(server).collect(),
        smart_nics: Vec::new(),
        switch: Some(Switch {
            name: "tor".into(),
            kind: SwitchKind::Pisa(Stages {
                stages: 12,
                sram_blocks: 80,
                tcam_blocks: 24,
                tables: 16,
                framework_stages: 2,
            }),
        }),
        overheads: Overheads { visit: 220.0, spread: 180.0, queue: 0.0, classify: 0.0 },
        bounce_ns: 2_000.0,
        switch_ns: 500.0,
        replication: Replication::Paper,
        objective: Objective::Marginal,
    }
}

/// A switch that holds so many functions.
struct Holds(usize);

impl Feasible for Holds {
    fn verdict(&self, _: &Problem, on_switch: &[Vec<bool>]) -> Verdict {
        let used = Use { used: on_switch.iter().flatten().filter(|on| **on).count() as u64, available: self.0 as u64 };
        let overflows = if used.used > used.available { vec![Overflow::Stages(used)] } else { Vec::new() };
        Verdict { stages: used, overflows, proven: true, ..Verdict::default() }
    }
}

#[test]
fn proves_the_four_chains() {
    for cores in [&[15][..], &[7, 7]] {
        for holds in [100, 16, 10] {
            for delta in [0.5, 1.0, 1.5, 2.0] {
                let problem = four_chains(delta, cores);
                let t = std::time::Instant::now();
                let answer = plan(&problem, &Holds(holds), None, &Settings::default());
                let took = t.elapsed();
                let m = answer.outcome.marginal_bps().map(|m| m / 1e9);
                eprintln!(
                    "cores {cores:?} holds {holds} delta {delta}: {took:?} {m:?} {:?} {}",
                    answer.effort,
                    if let Outcome::Infeasible { why, .. } = &answer.outcome { why } else { "" }
                );
                if let Outcome::Placed { placement, .. } = &answer.outcome {
                    obeys(&problem, &Holds(holds), placement);
                }
            }
        }
    }
}

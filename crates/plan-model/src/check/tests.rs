//! Hand-made problems, one violation each.

use super::*;
use crate::catalogue::{Match, Table};
use crate::placement::Subgroup;
use crate::problem::{Chain, Edge, Node, Objective, Replication, Server, SmartNic, Switch};
use crate::profile::{FULL_BATCH, Overheads};
use crate::rack::{Stages, SwitchKind};
use crate::switch::{self, Use};

/// A linear chain whose functions cost so many cycles on servers, a tenth on SmartNICs. All can be on the
/// switch. Packets of 1,250 bytes: 10 Gbit/s are a million a second.
pub fn line(cycles: &[f64]) -> Chain {
    let table = Table {
        name: "t".into(),
        matching: Match::Exact,
        key_bits: 32,
        action_bits: 8,
        entries: 10,
        entries_per_unit: 0.0,
        after: Vec::new(),
    };
    let node = |(i, &cycles): (usize, &f64)| Node {
        name: format!("n{i}"),
        function: "F".into(),
        share: 1.0,
        entry: if i == 0 { 1.0 } else { 0.0 },
        server: Some(cycles),
        per_batch: 0.0,
        batch: FULL_BATCH,
        smart_nic: Some(cycles / 10.0),
        pisa: Some(vec![table.clone()]),
        openflow: None,
        guarded: false,
        return_only: false,
        rewrites: false,
        returns: Default::default(),
        replicable: true,
    };
    Chain {
        name: "line".into(),
        t_min_bps: 1e9,
        t_max_bps: 2e10,
        ingress_bps: 1e11,
        d_max_ns: f64::INFINITY,
        weight: 1.0,
        packet_bytes: 1250.0,
        nodes: cycles.iter().enumerate().map(node).collect(),
        edges: (1..cycles.len()).map(|to| Edge { from: to - 1, to, share: 1.0 }).collect(),
    }
}

/// What a card carries of packets of 10,000 bits with 8 bytes of NSH each, where it carries 10 Gbit/s of them without.
const CARD: f64 = 1.0064e10;

/// Two servers of four cores of 1 GHz, the second shared, each with a card of 10 Gbit/s and a SmartNIC of 20
/// Gbit/s; a switch of three stages.
pub fn problem() -> Problem {
    let server =
        |name: &str, shared| Server { name: name.into(), cores: 4, shared, clock_hz: 1e9, nics_bps: vec![CARD] };
    let card = |name: &str, server| SmartNic { name: name.into(), server, bps: 2e10, cycles_hz: 5e8, clock_hz: 1e8 };
    let stages = Stages { stages: 3, sram_blocks: 10, tcam_blocks: 4, tables: 4, framework_stages: 2 };
    Problem {
        chains: vec![line(&[400.0, 600.0])],
        servers: vec![server("left", false), server("right", true)],
        smart_nics: vec![card("a", 0), card("b", 1)],
        switch: Some(Switch::new("tor", SwitchKind::Pisa(stages), 3.2e12)),
        overheads: Overheads { visit: 200.0, spread: 100.0, ..Overheads::default() },
        bounce_ns: 3_000.0,
        switch_ns: 500.0,
        replication: Replication::Paper,
        relations: Vec::new(),
        unseen: Vec::new(),
        objective: Objective::Marginal,
    }
}

/// Both functions on a server, with two cores.
fn placed(server: ServerId) -> Placement {
    let group = Subgroup { chain: 0, nodes: vec![0, 1], server, cores: 2.0, link: Link::Nic(0) };
    Placement { sites: vec![vec![Site::Server(server); 2]], subgroups: vec![group], rates_bps: vec![1e10] }
}

fn judge(problem: &Problem, placement: &Placement) -> Result<Report, Vec<Violation>> {
    check(problem, placement, &*switch::for_problem(problem))
}

/// The one violation there must be.
fn only(problem: &Problem, placement: &Placement) -> Violation {
    let violations = judge(problem, placement).unwrap_err();
    assert_eq!(violations.len(), 1, "{violations:?}");
    assert!(!violations[0].to_string().is_empty());
    violations[0].clone()
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn what_no_node_sees_loads_cards_only_where_no_switch_forwards_it() {
    let mut problem = problem();
    problem.chains.push(Chain { nodes: Vec::new(), edges: Vec::new(), ..line(&[1.0]) });
    let mut placement = placed(0);
    placement.sites.push(Vec::new());
    // The links of the rack carry 10, 20, 10 and 20 Gbit/s, and the first is full.
    problem.chains[1].t_max_bps = 1e11;
    problem.chains[1].ingress_bps = 1e11;
    placement.rates_bps.push(6e10);
    let used = |report: Report| report.links.iter().map(|(_, _, bps)| bps.used).collect::<Vec<_>>();
    assert_eq!(used(judge(&problem, &placement).unwrap()), [CARD, 0.0, 0.0, 0.0]);
    problem.switch = None;
    problem.servers.iter_mut().for_each(|server| server.nics_bps = vec![1e10]);
    problem.chains[0].nodes.iter_mut().for_each(|node| node.pisa = None);
    let Violation::Bandwidth { bps, .. } = only(&problem, &placement) else { panic!("another violation") };
    assert_eq!(bps, Amount { used: 3e10, available: 2e10 });
    placement.rates_bps[1] = 3.5e10;
    assert_eq!(used(judge(&problem, &placement).unwrap()), [1e10, 2e10, 1e10, 0.5e10]);
}

#[test]
fn a_good_placement_is_reported_with_what_it_leaves() {
    let report = judge(&problem(), &placed(0)).unwrap();
    // A million packets of 400 + 600 + 200 + 100 cycles on two cores of 1 GHz.
    assert_eq!(report.subgroups, [Amount { used: 1.3e9, available: 2e9 }]);
    assert_eq!(report.cores, [Amount { used: 2.0, available: 4.0 }, Amount { used: 0.0, available: 4.0 }]);
    assert_eq!(report.links[0], (0, Link::Nic(0), Amount { used: CARD, available: CARD }));
    assert_eq!(report.links[1], (0, Link::SmartNic(0), Amount { used: 0.0, available: 2e10 }));
    assert_eq!(report.links.len(), 4);
    assert_eq!(report.marginal_bps, 9e9);
    let chain = &report.chains[0];
    assert_eq!(chain.latency.used, 3_000.0 + 200.0 + 1_000.0);
    assert_eq!((&chain.path[..], chain.visits), (&[0, 1][..], 1.0));
    assert_eq!(chain.limit.slack(), 1e10);
}

#[test]
fn lengths() {
    let mut few = placed(0);
    few.rates_bps.clear();
    assert_eq!(only(&problem(), &few), Violation::Length { of: "rates".into(), found: 0, expected: 1 });
    let mut few = placed(0);
    few.sites[0].pop();
    let of = "sites of chain `line`".to_owned();
    assert_eq!(only(&problem(), &few), Violation::Length { of, found: 1, expected: 2 });
    let mut many = placed(0);
    many.sites.push(Vec::new());
    assert!(matches!(only(&problem(), &many), Violation::Length { found: 2, expected: 1, .. }));
}

#[test]
fn sites() {
    for site in [Site::Server(2), Site::SmartNic(2)] {
        let mut wrong = placed(0);
        wrong.sites[0][1] = site;
        let expected = Violation::Site { chain: "line".into(), node: "n1".into(), site };
        assert_eq!(only(&problem(), &wrong), expected, "there is none");
    }
    let mut unable = problem();
    unable.chains[0].nodes[1].server = None;
    assert!(matches!(only(&unable, &placed(0)), Violation::Site { site: Site::Server(0), .. }));
    let mut none = problem();
    none.switch = None;
    let mut on = placed(0);
    on.sites[0] = vec![Site::Switch; 2];
    on.subgroups.clear();
    let violations = judge(&none, &on).unwrap_err();
    assert!(violations.iter().all(|v| matches!(v, Violation::Site { site: Site::Switch, .. })));
    assert_eq!(violations.len(), 2);
}

#[test]
fn indices() {
    let changes: [fn(&mut Subgroup); 6] = [
        |s| s.chain = 1,
        |s| s.nodes = vec![0, 2],
        |s| s.server = 2,
        |s| s.link = Link::Nic(1),
        |s| s.link = Link::SmartNic(1),
        |s| s.link = Link::SmartNic(2),
    ];
    for change in changes {
        let mut wrong = placed(0);
        change(&mut wrong.subgroups[0]);
        assert!(matches!(only(&problem(), &wrong), Violation::Index { .. }));
    }
}

#[test]
fn subgroups_are_those_that_sites_make() {
    let mut missing = placed(0);
    missing.subgroups.clear();
    let nodes = names(&["n0", "n1"]);
    let expected = Violation::Subgroup { chain: "line".into(), nodes: nodes.clone(), found: 0 };
    assert_eq!(only(&problem(), &missing), expected);
    let mut split = placed(0);
    split.subgroups[0].nodes = vec![0];
    let violations = judge(&problem(), &split).unwrap_err();
    assert_eq!(violations[0], expected);
    assert_eq!(violations[1], Violation::NoSubgroup { chain: "line".into(), nodes: names(&["n0"]) });
    let mut twice = placed(0);
    twice.subgroups.push(twice.subgroups[0].clone());
    let violations = judge(&problem(), &twice).unwrap_err();
    assert_eq!(violations[0], Violation::Subgroup { chain: "line".into(), nodes, found: 2 });
    let mut elsewhere = placed(0);
    elsewhere.subgroups[0].server = 1;
    assert!(matches!(judge(&problem(), &elsewhere).unwrap_err()[0], Violation::NoSubgroup { .. }));
}

#[test]
fn cores_are_whole_unless_shared() {
    for cores in [0.0, 0.5, 1.5, -1.0, f64::NAN, f64::INFINITY] {
        let mut part = placed(0);
        part.subgroups[0].cores = cores;
        part.rates_bps[0] = 1e9;
        let violations = judge(&problem(), &part).unwrap_err();
        assert!(matches!(violations[0], Violation::CoreCount { .. }), "{cores}: {violations:?}");
    }
    let mut shared = placed(1);
    shared.subgroups[0].cores = 1.5;
    assert!(judge(&problem(), &shared).is_ok());
}

#[test]
fn what_may_not_be_replicated_has_one_core() {
    let mut state = problem();
    state.chains[0].nodes[1].replicable = false;
    let expected = Violation::Replicated { chain: "line".into(), nodes: names(&["n0", "n1"]), cores: 2.0 };
    assert_eq!(only(&state, &placed(0)), expected);
    let mut branch = problem();
    branch.chains[0] = line(&[100.0, 100.0, 100.0]);
    branch.chains[0].edges = vec![Edge { from: 0, to: 1, share: 0.5 }, Edge { from: 0, to: 2, share: 0.5 }];
    let mut all = placed(0);
    all.sites[0] = vec![Site::Server(0); 3];
    all.subgroups[0].nodes = vec![0, 1, 2];
    assert!(matches!(only(&branch, &all), Violation::Replicated { .. }));
    branch.replication = Replication::ByState;
    assert!(judge(&branch, &all).is_ok());
}

#[test]
fn a_subgroup_needs_cycles_and_a_server_has_cores() {
    let mut one = placed(0);
    one.subgroups[0].cores = 1.0;
    let cycles = Amount { used: 1.2e9, available: 1e9 };
    let expected = Violation::Cycles { chain: "line".into(), nodes: names(&["n0", "n1"]), cores: 1.0, cycles };
    assert_eq!(only(&problem(), &one), expected, "with one core no spreading");
    let mut five = placed(0);
    five.subgroups[0].cores = 5.0;
    let cores = Amount { used: 5.0, available: 4.0 };
    assert_eq!(only(&problem(), &five), Violation::Cores { server: "left".into(), cores });
}

#[test]
fn links_carry_every_visit() {
    let mut fast = placed(0);
    fast.rates_bps[0] = 1.1e10;
    let bps = Amount { used: 1.1e6 * 10_064.0, available: CARD };
    let expected = Violation::Bandwidth { server: "left".into(), card: "network card 0".into(), bps };
    assert_eq!(only(&problem(), &fast), expected);
    // By the SmartNIC's link it goes, and a packet that comes back counts twice.
    fast.subgroups[0].link = Link::SmartNic(0);
    assert!(judge(&problem(), &fast).is_ok());
    let mut bounce = problem();
    bounce.chains[0] = line(&[100.0; 3]);
    let group = |node| Subgroup { chain: 0, nodes: vec![node], server: 0, cores: 1.0, link: Link::Nic(0) };
    let twice = Placement {
        sites: vec![vec![Site::Server(0), Site::Switch, Site::Server(0)]],
        subgroups: vec![group(0), group(2)],
        rates_bps: vec![6e9],
    };
    let bps = Amount { used: 1.2e6 * 10_064.0, available: CARD };
    let card = "network card 0".to_owned();
    assert_eq!(only(&bounce, &twice), Violation::Bandwidth { server: "left".into(), card, bps });
}

#[test]
fn functions_on_a_smart_nic() {
    let mut mixed = placed(0);
    mixed.sites[0][0] = Site::SmartNic(0);
    mixed.subgroups[0].nodes = vec![1];
    let nodes = names(&["n1"]);
    let expected = Violation::Link { chain: "line".into(), nodes, link: Link::Nic(0), card: "a".into() };
    assert_eq!(only(&problem(), &mixed), expected);
    mixed.subgroups[0].link = Link::SmartNic(0);
    let report = judge(&problem(), &mixed).unwrap();
    assert_eq!(report.links[1].2.used, CARD, "once for the whole stay");
    assert_eq!(report.smart_nics[0], Amount { used: 4e7, available: 5e8 });
    // 40 cycles at 0.1 GHz and 600 at 1 GHz.
    assert_eq!(report.chains[0].latency.used, 3_000.0 + 200.0 + 400.0 + 600.0);
    let mut slow = problem();
    slow.smart_nics[0].cycles_hz = 3e7;
    let cycles = Amount { used: 4e7, available: 3e7 };
    assert_eq!(only(&slow, &mixed), Violation::SmartNicCycles { card: "a".into(), cycles });
}

#[test]
fn rates_keep_their_promises() {
    let mut slow = placed(0);
    slow.rates_bps[0] = 0.9e9;
    let expected = Violation::TooSlow { chain: "line".into(), rate_bps: 0.9e9, t_min_bps: 1e9 };
    assert_eq!(only(&problem(), &slow), expected);
    let mut limited = problem();
    limited.chains[0].t_max_bps = 9e9;
    let rate = Amount { used: 1e10, available: 9e9 };
    assert_eq!(only(&limited, &placed(0)), Violation::TooFast { chain: "line".into(), rate });
    limited.chains[0].t_max_bps = f64::INFINITY;
    limited.chains[0].ingress_bps = 8e9;
    let rate = Amount { used: 1e10, available: 8e9 };
    assert_eq!(only(&limited, &placed(0)), Violation::TooFast { chain: "line".into(), rate });
    let mut none = placed(0);
    none.rates_bps[0] = f64::NAN;
    assert!(judge(&problem(), &none).is_err());
}

#[test]
fn paths_keep_their_latency() {
    let mut late = problem();
    late.chains[0] = line(&[400.0, 10.0, 600.0]);
    late.chains[0].d_max_ns = 7_000.0;
    let group = |node| Subgroup { chain: 0, nodes: vec![node], server: node / 2, cores: 1.0, link: Link::Nic(0) };
    let sites = vec![vec![Site::Server(0), Site::Switch, Site::Server(1)]];
    let twice = Placement { sites, subgroups: vec![group(0), group(2)], rates_bps: vec![5e9] };
    // Two stays of 3,200 ns, 1,000 ns of work, and a pass of 500 ns.
    let latency = Amount { used: 7_900.0, available: 7_000.0 };
    let path = names(&["n0", "n1", "n2"]);
    assert_eq!(only(&late, &twice), Violation::Latency { chain: "line".into(), path, latency });
    late.chains[0].d_max_ns = 7_900.0;
    assert!(judge(&late, &twice).is_ok());
}

#[test]
fn the_switch_holds_what_is_on_it() {
    let mut long = problem();
    long.chains[0] = line(&[1.0; 4]);
    let mut on = Placement { sites: vec![vec![Site::Switch; 4]], subgroups: Vec::new(), rates_bps: vec![1e10] };
    let Violation::Switch { verdict } = only(&long, &on) else { unreachable!("no switch") };
    assert_eq!(verdict.stages, Use { used: 4, available: 3 });
    long.chains[0].nodes.pop();
    long.chains[0].edges.pop();
    on.sites[0].pop();
    let report = judge(&long, &on).unwrap();
    assert_eq!(report.switch.stages, Use { used: 3, available: 3 });
    assert_eq!(report.stages[2].holds, [(0, 2)]);
    assert_eq!(report.chains[0].latency.used, 500.0);
}

#[test]
fn all_violations_are_told() {
    let mut bad = placed(0);
    bad.subgroups[0].cores = 5.0;
    bad.rates_bps[0] = 5e10;
    let violations = judge(&problem(), &bad).unwrap_err();
    assert_eq!(violations.len(), 4, "cycles, cores, link, rate: {violations:?}");
}

#[test]
fn what_the_switch_forwards() {
    let mut narrow = problem();
    narrow.switch.as_mut().unwrap().capacity_bps = 2e10;
    // A packet passes it on its way in and on its way out.
    assert_eq!(judge(&narrow, &placed(0)).unwrap().forwarded, Amount { used: 2e10, available: 2e10 });
    narrow.switch.as_mut().unwrap().capacity_bps = 1.9e10;
    let bps = Amount { used: 2e10, available: 1.9e10 };
    assert_eq!(only(&narrow, &placed(0)), Violation::Forwarding { switch: "tor".into(), bps });
}

#[test]
fn servers_that_nothing_joins() {
    let apart = Placement {
        sites: vec![vec![Site::Server(0), Site::Server(1)]],
        subgroups: vec![
            Subgroup { chain: 0, nodes: vec![0], server: 0, cores: 1.0, link: Link::Nic(0) },
            Subgroup { chain: 0, nodes: vec![1], server: 1, cores: 1.0, link: Link::Nic(0) },
        ],
        rates_bps: vec![1e9],
    };
    judge(&problem(), &apart).unwrap();
    let alone = Problem { switch: None, ..problem() };
    let servers = names(&["left", "right"]);
    assert_eq!(only(&alone, &apart), Violation::Apart { chain: "line".into(), servers });
}

//! The estimate, by which planners compute, agrees with the checker on random chains and sites.

use proptest::prelude::*;

use super::facts::facts;
use super::tests::{line, problem};
use super::*;
use crate::estimate::{Group, Layout, link};
use crate::placement::Subgroup;
use crate::problem::{Chain, Edge, Replication};
use crate::switch::{Feasible, Verdict};

/// A switch that holds everything.
struct Anything;

impl Feasible for Anything {
    fn verdict(&self, _: &Problem, _: &[Vec<bool>]) -> Verdict {
        Verdict { proven: true, ..Verdict::default() }
    }
}

/// A chain whose edges share what reaches each node; where no edge comes in, packets enter.
fn chain(nodes: &[(f64, u8, f64, bool)]) -> Chain {
    let mut chain = line(&nodes.iter().map(|node| node.0).collect::<Vec<_>>());
    let linked = |from: usize, to: usize| from < to && nodes[to].1 >> from & 1 == 1;
    let sources = (0..nodes.len()).filter(|&to| !(0..to).any(|from| linked(from, to))).count();
    chain.edges.clear();
    for node in 0..nodes.len() {
        let into: f64 = chain.edges.iter().filter(|edge| edge.to == node).map(|edge| edge.share).sum();
        let source = !(0..node).any(|from| linked(from, node));
        chain.nodes[node].entry = if source { 1.0 / sources as f64 } else { 0.0 };
        chain.nodes[node].share = chain.nodes[node].entry + into;
        chain.nodes[node].replicable = nodes[node].3;
        let out: Vec<usize> = (0..nodes.len()).filter(|&to| linked(node, to)).collect();
        // Some packets end here.
        let share = chain.nodes[node].share * nodes[node].2 / out.len().max(1) as f64;
        chain.edges.extend(out.into_iter().map(|to| Edge { from: node, to, share }));
    }
    chain.t_min_bps = 0.0;
    chain.t_max_bps = f64::INFINITY;
    chain.ingress_bps = f64::INFINITY;
    chain
}

/// A chain of up to eight nodes on random sites of two servers, three SmartNICs and a switch.
fn placed_chains() -> impl Strategy<Value = (Problem, Vec<Site>)> {
    let sites =
        [Site::Switch, Site::Server(0), Site::Server(1), Site::SmartNic(0), Site::SmartNic(1), Site::SmartNic(2)];
    let site = prop_oneof![1 => Just(sites[0]), 2 => Just(sites[1]), 2 => Just(sites[2]), 1 => Just(sites[3]),
        1 => Just(sites[4]), 1 => Just(sites[5])];
    // Few edges, and many: the links of a node are the bits of a byte.
    let links = prop_oneof![any::<u8>(), (any::<u8>(), any::<u8>()).prop_map(|(a, b)| a & b)];
    let node = ((10.0..5_000.0, links, 0.1..1.0, any::<bool>()), site);
    (prop::collection::vec(node, 1..=8), any::<bool>()).prop_map(|(nodes, paper)| {
        let (nodes, sites): (Vec<_>, Vec<_>) = nodes.into_iter().unzip();
        let mut problem = problem();
        let second = problem.smart_nics[0].clone();
        problem.smart_nics.push(second);
        problem.replication = if paper { Replication::Paper } else { Replication::ByState };
        problem.chains = vec![chain(&nodes)];
        (problem, sites)
    })
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
}

/// The card of the stay that a group is in.
fn card(group: &Group, stays: &[facts::StayFacts]) -> Option<usize> {
    stays.iter().find(|stay| stay.nodes.contains(&group.nodes[0])).and_then(|stay| stay.card)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn layouts_are_what_the_definitions_say((problem, sites) in placed_chains()) {
        let chain = &problem.chains[0];
        let (layout, facts) = (Layout::of(&problem, chain, &sites), facts(&problem, chain, &sites));
        prop_assert_eq!(layout.groups.len(), facts.subgroups.len());
        for (group, fact) in layout.groups.iter().zip(&facts.subgroups) {
            prop_assert_eq!((&group.nodes, group.server), (&fact.nodes, fact.server));
            prop_assert_eq!(group.replicable, fact.replicable);
            prop_assert_eq!(group.smart_nic, card(group, &facts.stays));
            prop_assert!(close(group.visits, fact.visits));
            prop_assert!(close(group.cost, fact.cost_alone));
            prop_assert!(close(group.cost + group.spread, fact.cost_spread));
        }
        prop_assert_eq!(layout.stays.len(), facts.stays.len());
        for (stay, fact) in layout.stays.iter().zip(&facts.stays) {
            prop_assert_eq!((&stay.nodes, stay.server, stay.smart_nic), (&fact.nodes, fact.server, fact.card));
            prop_assert!(close(stay.visits, fact.visits));
        }
        prop_assert!(close(layout.latency_ns, facts.latency_ns), "{} {}", layout.latency_ns, facts.latency_ns);
    }

    #[test]
    fn the_rate_that_the_estimate_allows_is_the_most(((problem, sites), cores) in (placed_chains(), 1_u32..4)) {
        let mut problem = problem;
        problem.servers.iter_mut().for_each(|server| server.cores = 99);
        let layout = Layout::of(&problem, &problem.chains[0], &sites);
        let bits = problem.chains[0].packet_bits();
        let mut rate = f64::INFINITY;
        let mut loads = [[0.0; 4]; 2];
        let mut placement = Placement { sites: vec![sites], ..Placement::default() };
        for group in &layout.groups {
            let cores = if group.replicable { f64::from(cores) } else { 1.0 };
            rate = rate.min(group.packets(cores, problem.servers[group.server].clock_hz) * bits);
            let (nodes, server, link) = (group.nodes.clone(), group.server, link(group, 0));
            placement.subgroups.push(Subgroup { chain: 0, nodes, server, cores, link });
        }
        for stay in &layout.stays {
            loads[stay.server][stay.smart_nic.map_or(3, |nic| nic)] += stay.visits * layout.on_link;
        }
        for (server, loads) in loads.iter().enumerate() {
            for (nic, load) in loads.iter().enumerate() {
                let bps = problem.smart_nics.get(nic).map_or(problem.servers[server].nics_bps[0], |nic| nic.bps);
                rate = rate.min(bps / load);
            }
        }
        for &(nic, cycles) in &layout.smart_nic_cycles {
            rate = rate.min(problem.smart_nics[nic].cycles_hz / cycles * bits);
        }
        placement.rates_bps = vec![if rate.is_finite() { rate } else { 1e9 }];
        let report = check(&problem, &placement, &Anything);
        prop_assert!(report.is_ok(), "{report:?}");
        if rate.is_finite() {
            placement.rates_bps[0] *= 1.001;
            prop_assert!(check(&problem, &placement, &Anything).is_err());
        }
    }
}

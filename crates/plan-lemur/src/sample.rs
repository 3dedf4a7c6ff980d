//! Small random problems for the tests.

use proptest::prelude::*;

use super::experiment;
use catena_plan_model::catalogue::{Match, Table};
use catena_plan_model::paper;
use catena_plan_model::problem::{Chain, Edge, Node, Objective, Problem, Replication, Server, SmartNic, Switch};
use catena_plan_model::profile::FULL_BATCH;
use catena_plan_model::switch::{Feasible, Overflow, Use, Verdict, members};

/// A switch that holds so many functions, whichever they are.
pub struct Holds(pub usize);

impl Feasible for Holds {
    fn verdict(&self, _: &Problem, on_switch: &[Vec<bool>]) -> Verdict {
        let used = Use { used: members(on_switch).len() as u64, available: self.0 as u64 };
        let overflows = if used.used > used.available { vec![Overflow::Stages(used)] } else { Vec::new() };
        Verdict { stages: used, overflows, proven: true, ..Verdict::default() }
    }
}

/// A node that costs `server` cycles and may be on the switch or not; both is both.
pub fn node(name: &str, server: Option<f64>, pisa: bool, replicable: bool) -> Node {
    let table = Table {
        name: "t".into(),
        matching: Match::None,
        key_bits: 0,
        action_bits: 0,
        entries: 1,
        entries_per_unit: 0.0,
        after: Vec::new(),
    };
    Node {
        name: name.into(),
        function: name.into(),
        share: 1.0,
        entry: 0.0,
        server,
        per_batch: 0.0,
        batch: FULL_BATCH,
        smart_nic: None,
        pisa: pisa.then(|| vec![table]),
        openflow: None,
        guarded: false,
        return_only: false,
        rewrites: false,
        returns: Default::default(),
        replicable,
    }
}

/// A chain of `nodes` with these edges, each node's packets divided evenly.
pub fn chain(name: &str, mut nodes: Vec<Node>, edges: &[(usize, usize)]) -> Chain {
    nodes.iter_mut().for_each(|n| n.share = 0.0);
    nodes[0].entry = 1.0;
    nodes[0].share = 1.0;
    let mut all = Vec::new();
    for from in 0..nodes.len() {
        let next: Vec<usize> = edges.iter().filter(|e| e.0 == from).map(|e| e.1).collect();
        for &to in &next {
            let share = nodes[from].share / next.len() as f64;
            nodes[to].share += share;
            all.push(Edge { from, to, share });
        }
    }
    Chain {
        name: name.into(),
        t_min_bps: 0.0,
        t_max_bps: 100e9,
        ingress_bps: 100e9,
        d_max_ns: f64::INFINITY,
        weight: 1.0,
        packet_bytes: 1500.0,
        nodes,
        edges: all,
    }
}

/// Chains of at most `most` nodes; every node but the first has one or two before it.
pub fn chains(most: usize) -> impl Strategy<Value = Chain> {
    let cost = prop_oneof![10.0..1000.0, 1000.0..40_000.0];
    let node = (cost, 0..4, any::<bool>(), prop_oneof![Just(None), (500.0..5000.0).prop_map(Some)]);
    let promise = (0.0..1.0_f64, 1.0..3.0_f64, prop_oneof![3 => Just(f64::INFINITY), 1 => 10_000.0..60_000.0]);
    let nodes = prop::collection::vec(node, 1..=most);
    let edges =
        prop::collection::vec((any::<u8>(), prop_oneof![2 => Just(None), 1 => any::<u8>().prop_map(Some)]), most);
    (nodes, edges, promise).prop_map(|(nodes, before, (t_min, weight, d_max))| {
        let made = nodes.iter().enumerate().map(|(id, (cycles, kind, replicable, smart))| Node {
            // Three of four run on servers, two of four on the switch.
            smart_nic: *smart,
            ..self::node(&format!("n{id}"), (*kind != 0).then_some(*cycles), *kind < 2, *replicable)
        });
        let made: Vec<Node> = made.collect();
        let mut edges = Vec::new();
        for (to, (first, second)) in before.iter().enumerate().take(nodes.len()).skip(1) {
            let from = to - 1 - *first as usize % to.min(2);
            edges.push((from, to));
            if let Some(other) = second.map(|s| s as usize % to).filter(|other| *other != from) {
                edges.push((other, to));
            }
        }
        let slowest = made.iter().filter_map(|n| n.server).fold(1000.0, f64::max);
        Chain {
            t_min_bps: (t_min * 2.0 * 1e9 / slowest * 12_000.0).min(20e9),
            weight,
            d_max_ns: d_max,
            ..chain("c", made, &edges)
        }
    })
}

/// Bits on a link for each bit of a packet, which says there where in its chain it is.
pub const ON_LINK: f64 = 1_508.0 / 1_500.0;

/// A server of 1 GHz.
pub fn server(id: usize, cores: u32, nics_bps: Vec<f64>) -> Server {
    Server { name: format!("s{id}"), cores, shared: false, clock_hz: 1e9, nics_bps }
}

/// These chains on these devices and a switch of Tofino's size, with Lemur's overheads.
pub fn problem(
    chains: Vec<Chain>,
    servers: Vec<Server>,
    smart_nics: Vec<SmartNic>,
    replication: Replication,
) -> Problem {
    Problem {
        chains,
        servers,
        smart_nics,
        switch: Some(Switch::new("tor", experiment::pisa(), 3.2e12)),
        overheads: paper::overheads(),
        bounce_ns: 4000.0,
        switch_ns: 500.0,
        replication,
        relations: Vec::new(),
        unseen: Vec::new(),
        objective: Objective::Marginal,
    }
}

/// Problems of at most `most_chains` chains of at most `most_nodes` nodes, and how much the switch holds.
pub fn problems(most_chains: usize, most_nodes: usize) -> impl Strategy<Value = (Problem, usize)> {
    let server = (1..5_u32, prop::collection::vec(2e9..40e9, 1..3), prop_oneof![4 => Just(false), 1 => Just(true)]);
    let servers = prop_oneof![3 => prop::collection::vec(server.clone(), 1), 1 => prop::collection::vec(server, 2)];
    let smart = prop_oneof![3 => Just(None), 1 => (5e9..40e9, 1e9..20e9).prop_map(Some)];
    let chains = prop::collection::vec(chains(most_nodes), 1..=most_chains);
    (chains, servers, smart, any::<bool>(), 0..6_usize).prop_map(|(chains, servers, smart, by_state, holds)| {
        let servers: Vec<Server> = servers
            .into_iter()
            .enumerate()
            .map(|(id, (cores, nics_bps, shared))| Server { shared, ..self::server(id, cores, nics_bps) })
            .collect();
        let smart_nics =
            smart.map(|(bps, cycles_hz)| SmartNic { name: "nic".into(), server: 0, bps, cycles_hz, clock_hz: 0.5e9 });
        let replication = if by_state { Replication::ByState } else { Replication::Paper };
        let problem = problem(chains, servers, smart_nics.into_iter().collect(), replication);
        (problem, holds)
    })
}

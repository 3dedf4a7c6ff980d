//! Small random problems, the same for the same seed, and a switch for them.

use catena_plan_model::catalogue::Table;
use catena_plan_model::problem::{
    Chain, Edge, Node, NodeId, Objective, Problem, Replication, Server, SmartNic, Switch,
};
use catena_plan_model::profile::{FULL_BATCH, Overheads};
use catena_plan_model::rack::{Stages, SwitchKind};
use catena_plan_model::random::Random;
use catena_plan_model::switch::{Feasible, Overflow, Use, Verdict};

fn one_of<T: Copy>(random: &mut Random, of: &[T]) -> T {
    of[random.below(of.len())]
}

fn chance(random: &mut Random, percent: usize) -> bool {
    random.below(100) < percent
}

/// A switch that holds functions up to a weight, and not certain pairs of them.
#[derive(Clone, Debug)]
pub struct Scales {
    pub weights: Vec<u32>,
    pub most: u32,
    pub apart: Vec<(usize, usize)>,
}

impl Feasible for Scales {
    fn verdict(&self, problem: &Problem, on_switch: &[Vec<bool>]) -> Verdict {
        let mut count = vec![0; self.weights.len()];
        for (chain, on) in problem.chains.iter().zip(on_switch) {
            for (node, _) in chain.nodes.iter().zip(on).filter(|(_, on)| **on) {
                count[node.function[1..].parse::<usize>().expect("what the test made is well formed")] += 1;
            }
        }
        let weight: u32 = count.iter().zip(&self.weights).map(|(n, w)| n * w).sum();
        let apart = self.apart.iter().any(|&(a, b)| if a == b { count[a] > 1 } else { count[a] > 0 && count[b] > 0 });
        let used = Use { used: weight.into(), available: self.most.into() };
        let overflows = if weight > self.most || apart { vec![Overflow::Stages(used)] } else { Vec::new() };
        Verdict { stages: used, overflows, proven: true, ..Verdict::default() }
    }
}

/// A kind of function.
struct Kind {
    server: Option<f64>,
    smart_nic: Option<f64>,
    switch: bool,
    replicable: bool,
}

fn kind(random: &mut Random) -> Kind {
    let server = chance(random, 90).then(|| one_of(random, &[300.0, 1_000.0, 3_300.0, 9_000.0, 33_000.0]));
    let smart_nic = chance(random, 30).then(|| one_of(random, &[200.0, 2_000.0]));
    let switch = chance(random, 60) || (server.is_none() && smart_nic.is_none());
    Kind { server, smart_nic, switch, replicable: chance(random, 70) }
}

/// Edges of a chain with so many nodes: a line, a branch that joins again, or one that does not.
fn shape(random: &mut Random, nodes: usize) -> Vec<(NodeId, NodeId)> {
    match (nodes, random.below(3)) {
        (3, 1) => vec![(0, 1), (0, 2)],
        (4, 1) => vec![(0, 1), (0, 2), (1, 3), (2, 3)],
        (4, 2) => vec![(0, 1), (0, 2), (2, 3)],
        _ => (1..nodes).map(|n| (n - 1, n)).collect(),
    }
}

fn chain(random: &mut Random, kinds: &[Kind], name: usize, most_nodes: usize) -> Chain {
    let count = 1 + random.below(most_nodes);
    let edges = shape(random, count);
    let mut share = vec![0.0; count];
    share[0] = 1.0;
    let mut shared = Vec::new();
    for &(from, to) in &edges {
        let part = share[from] / edges.iter().filter(|e| e.0 == from).count() as f64;
        share[to] += part;
        shared.push(Edge { from, to, share: part });
    }
    // Branches get the same function now and then, so that they can be swapped.
    let twins = chance(random, 60);
    let mut functions: Vec<usize> = (0..count).map(|_| random.below(kinds.len())).collect();
    if twins && count > 2 {
        functions[2] = functions[1];
    }
    let nodes = functions.iter().enumerate().map(|(id, &function)| Node {
        name: format!("n{id}"),
        function: format!("f{function}"),
        share: share[id],
        entry: if id == 0 { 1.0 } else { 0.0 },
        server: kinds[function].server,
        per_batch: 0.0,
        batch: FULL_BATCH,
        smart_nic: kinds[function].smart_nic,
        pisa: kinds[function].switch.then(Vec::<Table>::new),
        openflow: None,
        guarded: false,
        return_only: false,
        rewrites: false,
        returns: Default::default(),
        replicable: kinds[function].replicable,
    });
    let t_min_bps = one_of(random, &[0.0, 0.2e9, 1e9, 3e9]);
    Chain {
        name: format!("c{name}"),
        t_min_bps,
        t_max_bps: one_of(random, &[f64::INFINITY, 4e9, t_min_bps.max(1e9)]),
        ingress_bps: one_of(random, &[10e9, 40e9]),
        d_max_ns: one_of(random, &[f64::INFINITY, f64::INFINITY, 20e3, 8e3]),
        weight: one_of(random, &[1.0, 1.0, 2.0, 0.5]),
        packet_bytes: one_of(random, &[500.0, 1_500.0]),
        nodes: nodes.collect(),
        edges: shared,
    }
}

/// The problem of `seed` with its switch.
pub fn instance(seed: u64) -> (Problem, Scales) {
    let random = &mut Random::new(seed + 1);
    let kinds: Vec<Kind> = (0..4).map(|_| kind(random)).collect();
    let servers = 1 + random.below(2);
    let equal = chance(random, 50);
    let mut rack: Vec<Server> = Vec::new();
    for id in 0..servers {
        let like = rack.first().filter(|_| equal).cloned();
        let other = Server {
            name: String::new(),
            cores: 1 + random.below(4) as u32,
            shared: chance(random, 25),
            clock_hz: one_of(random, &[1.7e9, 2.4e9]),
            nics_bps: if chance(random, 20) { vec![5e9, 5e9] } else { vec![one_of(random, &[4e9, 10e9])] },
        };
        rack.push(Server { name: format!("s{id}"), ..like.unwrap_or(other) });
    }
    let smart_nic = || SmartNic { name: "card".into(), server: 0, bps: 8e9, cycles_hz: 4e9, clock_hz: 1e9 };
    let smart_nics = if chance(random, 30) { vec![smart_nic()] } else { Vec::new() };
    // An exhaustive search grows with the sites of all nodes multiplied: few nodes where there are many sites.
    let (chains, most_nodes) = match (servers, smart_nics.len()) {
        (1, 0) => one_of(random, &[(3, 3), (2, 4), (1, 4)]),
        (1, _) | (_, 0) => one_of(random, &[(3, 2), (2, 3), (1, 4)]),
        _ => one_of(random, &[(2, 2), (1, 4), (3, 1)]),
    };
    let chains = (0..chains).map(|id| chain(random, &kinds, id, most_nodes)).collect();
    let stages = Stages { stages: 12, sram_blocks: 80, tcam_blocks: 24, tables: 16, framework_stages: 2 };
    let problem = Problem {
        chains,
        servers: rack,
        smart_nics,
        switch: Some(Switch::new("tor", SwitchKind::Pisa(stages), 3.2e12)),
        overheads: Overheads { visit: 220.0, spread: one_of(random, &[0.0, 180.0, 5_000.0]), ..Overheads::default() },
        bounce_ns: 2_000.0,
        switch_ns: 500.0,
        replication: one_of(random, &[Replication::Paper, Replication::ByState]),
        relations: Vec::new(),
        unseen: Vec::new(),
        objective: one_of(random, &[Objective::Marginal, Objective::Marginal, Objective::Weighted, Objective::Fair]),
    };
    let scales = Scales {
        weights: (0..4).map(|_| 1 + random.below(3) as u32).collect(),
        most: random.below(8) as u32,
        apart: (0..random.below(2)).map(|_| (random.below(4), random.below(4))).collect(),
    };
    (problem, scales)
}

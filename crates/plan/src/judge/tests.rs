//! The judge accepts what planners emit, on random racks and policies.

use std::collections::BTreeMap;

use crate::deployment::Before;
use crate::explain::Case;
use crate::plan::Plan;
use catena_plan_lemur::exact::{self, Settings};
use catena_plan_lemur::{Strategy, baselines, experiment, place};
use catena_plan_model::catalogue::{Match, Table};
use catena_plan_model::demand::relations::usable_bps;
use catena_plan_model::paper;
use catena_plan_model::placement::Outcome;
use catena_plan_model::problem::{Chain, Edge, Node, Objective, Problem, Replication, Server, SmartNic, Switch};
use catena_plan_model::profile::FULL_BATCH;
use catena_plan_model::rack::{self, Rack, SwitchKind, Wrap};
use catena_plan_model::random::Random;
use catena_plan_model::relation::{Member, Relation, Traffic};
use catena_plan_model::switch::for_problem;

/// A function that some devices of the rack can run.
fn node(random: &mut Random, n: usize, switch: bool, card: bool) -> Node {
    let table = Table {
        name: "t".into(),
        matching: Match::Exact,
        key_bits: 32,
        action_bits: 16,
        entries: 1 + random.below(60_000) as u32,
        entries_per_unit: 0.0,
        after: Vec::new(),
    };
    let on_switch = switch && random.below(2) == 0;
    let costs = [20.0, 300.0, 3_000.0, 20_000.0];
    let cycles = costs[random.below(4)] * (1.0 + random.unit());
    Node {
        name: format!("n{n}"),
        function: ["ACL", "Monitor", "NAT"][random.below(3)].to_owned(),
        share: 0.0,
        entry: 0.0,
        server: (!on_switch || random.below(3) > 0).then_some(cycles),
        per_batch: 0.0,
        batch: FULL_BATCH,
        smart_nic: (card && random.below(3) == 0).then_some(cycles / 2.0),
        pisa: on_switch.then(|| vec![table]),
        openflow: None,
        guarded: false,
        return_only: false,
        rewrites: false,
        returns: Default::default(),
        replicable: random.below(3) > 0,
    }
}

/// A chain in which every function but the first has one or two before it.
fn chain(random: &mut Random, name: String, switch: bool, card: bool) -> Chain {
    let mut nodes: Vec<Node> = (0..1 + random.below(5)).map(|n| node(random, n, switch, card)).collect();
    let mut pairs = Vec::new();
    for to in 1..nodes.len() {
        pairs.push((random.below(to), to));
        let other = random.below(to);
        if random.below(4) == 0 && !pairs.contains(&(other, to)) {
            pairs.push((other, to));
        }
    }
    (nodes[0].entry, nodes[0].share) = (1.0, 1.0);
    let mut edges = Vec::new();
    for from in 0..nodes.len() {
        let next: Vec<usize> = pairs.iter().filter(|pair| pair.0 == from).map(|pair| pair.1).collect();
        for &to in &next {
            let share = nodes[from].share / next.len() as f64;
            nodes[to].share += share;
            edges.push(Edge { from, to, share });
        }
    }
    let slowest = nodes.iter().filter_map(|node| node.server).fold(1_000.0, f64::max);
    let t_min_bps = if random.below(2) == 0 { 0.0 } else { random.unit() * 1e13 / slowest };
    Chain {
        name,
        t_min_bps,
        t_max_bps: if random.below(3) == 0 { t_min_bps + 1e8 + random.unit() * 5e9 } else { f64::INFINITY },
        ingress_bps: 40e9,
        d_max_ns: if random.below(5) == 0 { 40_000.0 } else { f64::INFINITY },
        weight: 1.0 + random.below(3) as f64,
        packet_bytes: 1_000.0,
        nodes,
        edges,
    }
}

/// Chains and the rack that they run on: one to three servers with or without SmartNICs, a switch that can be programmed, one
/// that only forwards, or none.
pub(super) fn drawn(seed: u64) -> (Problem, Rack) {
    let mut random = Random::new(seed);
    let kind = match random.below(3) {
        0 => None,
        1 => Some(SwitchKind::Plain { entries: 2048 }),
        _ => Some(experiment::pisa()),
    };
    let (mut servers, mut smart_nics, mut boxes) = (Vec::new(), Vec::new(), Vec::new());
    for id in 0..1 + random.below(3) {
        let (name, shared, clock_hz) = (format!("s{id}"), random.below(2) == 0, 1e9 + random.unit() * 2e9);
        let steering_cores = random.below(2) as u32;
        let (sockets, each) = (1 + random.below(2) as u32, 2 + random.below(3) as u32);
        let nics_bps: Vec<f64> = (0..1 + random.below(2)).map(|_| 2e9 + random.unit() * 38e9).collect();
        let nic = |(n, bps): (usize, &f64)| rack::Nic {
            name: format!("eth{n}"),
            socket: n as u32 % sockets,
            bps: *bps,
            address: None,
        };
        let nics: Vec<rack::Nic> = nics_bps.iter().enumerate().map(nic).collect();
        let card =
            rack::SmartNic { name: "smart".into(), socket: 0, bps: 20e9, cores: 8, clock_hz: 8e8, address: None };
        let cards = if random.below(3) == 0 { vec![card] } else { Vec::new() };
        // Sometimes the SmartNIC is the only way in.
        let (nics_bps, nics) =
            if cards.is_empty() || random.below(2) == 0 { (nics_bps, nics) } else { (Vec::new(), Vec::new()) };
        for card in &cards {
            let (name, cycles_hz) = (format!("{name}.{}", card.name), f64::from(card.cores) * card.clock_hz);
            smart_nics.push(SmartNic { name, server: id, bps: card.bps, cycles_hz, clock_hz: card.clock_hz });
        }
        let cores = sockets * each - steering_cores;
        servers.push(Server { name: name.clone(), cores, shared, clock_hz, nics_bps });
        boxes.push(rack::Server {
            name,
            sockets,
            cores_per_socket: each,
            steering_cores,
            shared,
            clock_hz,
            nics,
            smart_nics: cards,
        });
    }
    let programmed = matches!(kind, Some(SwitchKind::Pisa(_)));
    let count = 1 + random.below(3);
    let chains: Vec<Chain> =
        (0..count).map(|c| chain(&mut random, format!("c{c}"), programmed, !smart_nics.is_empty())).collect();
    let capacity_bps = 1e9 + random.unit() * 200e9;
    let relations = if count > 1 { relations(&mut random, &chains, &servers) } else { Vec::new() };
    let switch = kind.clone().map(|kind| Switch::new("tor", kind, capacity_bps));
    let rack = Rack {
        name: "drawn".into(),
        servers: boxes,
        switch: kind.map(|kind| rack::Switch {
            name: "tor".into(),
            ports: 32,
            port_bps: 40e9,
            capacity_bps,
            pass_ns: 500.0,
            bounce_ns: 4_000.0,
            tunnels: Wrap::usual(&kind),
            address: None,
            kind,
        }),
        packet_bytes: 1_000.0,
    };
    let problem = Problem {
        chains,
        servers,
        smart_nics,
        bounce_ns: if switch.is_some() { 4_000.0 } else { 0.0 },
        switch_ns: if switch.is_some() { 500.0 } else { 0.0 },
        switch,
        overheads: paper::overheads(),
        replication: [Replication::ByState, Replication::Paper][random.below(2)],
        relations,
        unseen: Vec::new(),
        objective: [Objective::Marginal, Objective::Weighted, Objective::Fair][random.below(3)],
    };
    (problem, rack)
}

/// Sometimes a ratio of the first two chains, sometimes a priority.
fn relations(random: &mut Random, chains: &[Chain], servers: &[Server]) -> Vec<Relation> {
    let weights = [1.0, 1.0 + random.below(4) as f64];
    // Of the first chain all, or a class of this name that is one of several.
    let ratio = |class: Option<u32>, word: &str, factor: &dyn Fn(&Chain) -> f64| {
        let member = |chain: usize| Member {
            chain,
            class: class.filter(|_| chain == 0),
            factor: factor(&chains[chain]) / weights[chain],
            from_bps: if word == "share" { chains[chain].t_min_bps } else { 0.0 },
            cap_bps: if word == "share" { usable_bps(&chains[chain], servers) } else { chains[chain].limit_bps() },
        };
        let text = format!("{word} c0 : c1 = {} : {}", weights[0], weights[1]);
        vec![Relation::Ratio { text, members: vec![member(0), member(1)] }]
    };
    let cycles = |c: &Chain| c.nodes.iter().map(|n| n.share * n.server.unwrap_or(0.0)).sum::<f64>() / 1e4;
    match random.below(8) {
        0 => ratio(None, "throughput", &|_| 1.0),
        1 if chains[..2].iter().all(|chain| cycles(chain) > 0.0) => ratio(None, "cpu", &cycles),
        2 => ratio(None, "share", &|_| 1.0),
        3 => vec![Relation::Priority { text: "priority c0 > c1".into(), order: [0, 1].map(Traffic::of).into() }],
        4 => ratio(Some(7), "throughput", &|_| 1.0),
        _ => Vec::new(),
    }
}

pub(super) fn explained(problem: &Problem, rack: &Rack, outcome: &Outcome) -> Plan {
    let sources = BTreeMap::from([("ACL".to_owned(), "Table 4".to_owned())]);
    let case = Case { problem, rack, switch: &*for_problem(problem), sources: &sources, strategy: "any", runs: None };
    Plan::of(&case, outcome).deployed(Before::Nothing(7), None)
}

/// How many racks and policies are drawn, and the first one's seed.
fn seeds() -> std::ops::Range<u64> {
    let given = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let first = given("CATENA_PLAN_FIRST_SEED").unwrap_or(0);
    first..first + given("CATENA_PLAN_SEEDS").unwrap_or(30)
}

#[test]
fn what_planners_emit_is_so_and_survives_a_file() {
    let (mut kept, mut related, mut by_e2, mut all) = (0, 0, 0, 0);
    for seed in seeds() {
        let (problem, rack) = drawn(seed);
        let switch = for_problem(&problem);
        let lemur =
            [Strategy::Lemur, Strategy::Greedy, Strategy::SwPreferred, Strategy::NoProfiling, Strategy::NoCores];
        let mut outcomes: Vec<Outcome> = lemur.iter().map(|s| place(&problem, *s, &*switch)).collect();
        let settings = Settings { time: std::time::Duration::from_secs(2), ..Settings::default() };
        outcomes.push(exact::plan(&problem, &*switch, outcomes[0].placement(), &settings).outcome);
        if let Ok(sites) = catena_plan_e2::sites::sites(&problem, &*switch) {
            outcomes.push(baselines::given(&problem, &*switch, sites));
            if outcomes.last().is_some_and(|outcome| outcome.placement().is_some()) {
                by_e2 += 1;
            }
        }
        for (n, outcome) in outcomes.iter().enumerate() {
            let plan = explained(&problem, &rack, outcome);
            plan.judge(&*switch).unwrap_or_else(|faults| panic!("seed {seed}, planner {n}: {faults:#?}"));
            let text = serde_json::to_string(&plan).expect("JSON");
            let read = Plan::from_json(&text).unwrap_or_else(|why| panic!("seed {seed}, planner {n}: {why}"));
            assert_eq!(read.placement.is_some(), plan.placement.is_some());
            if plan.is_kept() {
                kept += 1;
                related += problem.relations.len().min(1);
            }
            all += 1;
        }
    }
    let found =
        format!("{kept} of {all} plans keep the promises, {related} of them with relations, {by_e2} of them E2's");
    assert!(kept * 3 > all && related > 0 && by_e2 > 0, "{found}");
}

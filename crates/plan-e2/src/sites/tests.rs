//! Where E2 puts the functions of small chains.

use super::*;
use catena_plan_model::problem::{Chain, Edge, Objective, Replication, Server, Switch};
use catena_plan_model::profile::{FULL_BATCH, Overheads};
use catena_plan_model::rack::{FlowTable, SwitchKind};
use catena_plan_model::switch::{Plain, for_problem};

/// 125 bytes a packet: a core of 1 GHz carries a Gbit/s of 1,000 cycles.
fn node(name: &str, cycles: f64, openflow: Option<u32>) -> Node {
    Node {
        name: name.into(),
        function: name.into(),
        share: 1.0,
        entry: 0.0,
        server: Some(cycles),
        per_batch: 0.0,
        batch: FULL_BATCH,
        smart_nic: None,
        pisa: None,
        openflow,
        guarded: false,
        return_only: false,
        rewrites: false,
        returns: Default::default(),
        replicable: true,
    }
}

fn line(name: &str, t_min_bps: f64, mut nodes: Vec<Node>) -> Chain {
    nodes[0].entry = 1.0;
    let edges = (1..nodes.len()).map(|to| Edge { from: to - 1, to, share: 1.0 }).collect();
    Chain {
        name: name.into(),
        t_min_bps,
        t_max_bps: f64::INFINITY,
        ingress_bps: f64::INFINITY,
        d_max_ns: f64::INFINITY,
        weight: 1.0,
        packet_bytes: 125.0,
        nodes,
        edges,
    }
}

fn rack(chains: Vec<Chain>, servers: usize, cores: u32) -> Problem {
    let server =
        |id: usize| Server { name: format!("nf{id}"), cores, shared: false, clock_hz: 1e9, nics_bps: vec![40e9] };
    Problem {
        chains,
        servers: (0..servers).map(server).collect(),
        smart_nics: vec![],
        switch: Some(Switch::new("tor", SwitchKind::Plain { entries: 100 }, 480e9)),
        overheads: Overheads::default(),
        bounce_ns: 0.0,
        switch_ns: 0.0,
        replication: Replication::ByState,
        relations: vec![],
        unseen: vec![],
        objective: Objective::Marginal,
    }
}

fn servers(problem: &Problem) -> Vec<Vec<usize>> {
    let of = |site: &Site| if let Site::Server(server) = site { *server } else { panic!("{site:?}") };
    sites(problem, &Plain).unwrap().iter().map(|chain| chain.iter().map(of).collect()).collect()
}

#[test]
fn chains_stay_together_where_the_cores_of_a_server_suffice() {
    // Two chains of 2 + 1 + 1 cores on two servers of four.
    let chain =
        |name: &str| line(name, 2e9, vec![node("a", 1000.0, None), node("b", 500.0, None), node("c", 10.0, None)]);
    let together = servers(&rack(vec![chain("x"), chain("y")], 2, 4));
    assert_eq!(together, [[0, 0, 0], [1, 1, 1]]);
}

#[test]
fn a_function_stays_whole_and_the_least_traffic_crosses() {
    // Of 3 + 1 + 3 cores on two servers of four, the middle is with one of its neighbours.
    let nodes = vec![node("a", 1500.0, None), node("b", 100.0, None), node("c", 1500.0, None)];
    let found = servers(&rack(vec![line("x", 2e9, nodes.clone())], 2, 4));
    assert_ne!(found[0][0], found[0][2]);
    assert!(found[0][1] == found[0][0] || found[0][1] == found[0][2]);
    // One of five cores fits no server of four, in parts neither.
    let wide = vec![node("a", 2500.0, None), node("b", 100.0, None)];
    let refused = sites(&rack(vec![line("x", 2e9, wide)], 2, 4), &Plain).unwrap_err();
    assert_eq!(refused.to_string(), "functions need 6 cores, one of them 5 of one server, and there are 8");
}

#[test]
fn where_cores_are_fewer_than_functions_these_share_them() {
    let nodes = (0..5).map(|id| node(&id.to_string(), 100.0, None)).collect();
    assert_eq!(servers(&rack(vec![line("x", 1e9, nodes)], 1, 2)), [[0; 5]]);
    // Nothing is promised: they belong together all the same.
    let nodes = || (0..2).map(|id| node(&id.to_string(), 100.0, None)).collect();
    let together = servers(&rack(vec![line("x", 0.0, nodes()), line("y", 0.0, nodes())], 2, 2));
    assert_eq!(together, [[0, 0], [1, 1]]);
}

#[test]
fn what_may_have_one_core_holds_nobody_else_to_it() {
    // Two cores of work, and a little that may have one core: together on a server they would all have one.
    let mut nodes = vec![node("a", 1000.0, None), node("b", 10.0, None), node("c", 500.0, None)];
    nodes[1].replicable = false;
    let chain = |t_min| line("x", t_min, nodes.clone());
    assert_eq!(servers(&rack(vec![chain(0.5e9)], 2, 4)), [[0, 0, 0]]);
    // `a` goes, or `c`: that is one way over links, where it would be two for `b`.
    let found = servers(&rack(vec![chain(0.9e9)], 2, 4));
    assert_ne!(found[0][0], found[0][1]);
    assert_eq!(found[0][1], found[0][2]);
    // `b` and either of them are too slow for more.
    let found = servers(&rack(vec![chain(2e9)], 3, 4));
    assert!(found[0][1] != found[0][0] && found[0][1] != found[0][2]);
}

#[test]
fn what_is_next_to_a_port_goes_to_the_switch() {
    let nodes = vec![node("a", 100.0, Some(10)), node("b", 100.0, None), node("c", 100.0, Some(10))];
    let mut problem = rack(vec![line("x", 1e9, nodes)], 1, 4);
    let table = |name: &str| FlowTable { name: name.into(), functions: vec![name.into()], entries: 10 };
    let kind = SwitchKind::OpenFlow { tables: ["a", "b", "c"].map(table).to_vec() };
    problem.switch = Some(Switch::new("tor", kind, 480e9));
    let holds = for_problem(&problem);
    assert_eq!(sites(&problem, &*holds).unwrap(), [[Site::Switch, Site::Server(0), Site::Switch]]);
    problem.chains[0].nodes[1].openflow = Some(10);
    assert_eq!(sites(&problem, &*holds).unwrap(), [[Site::Switch; 3]]);
    // `unparsed = drop` is done on a server.
    problem.chains[0].nodes[0].openflow = None;
    assert_eq!(sites(&problem, &*holds).unwrap(), [[Site::Server(0), Site::Switch, Site::Switch]]);
}

#[test]
fn what_runs_nowhere_is_said() {
    let mut nodes = vec![node("a", 100.0, None), node("b", 100.0, None)];
    nodes[1].server = None;
    let said = sites(&rack(vec![line("x", 1e9, nodes)], 1, 4), &Plain).unwrap_err().to_string();
    assert_eq!(said, "E2 has servers and a switch, and x.b (b) cannot run there");
}

#[test]
fn what_runs_on_the_switch_alone_is_there_and_its_neighbours_may_follow() {
    let mut nodes = vec![node("a", 100.0, None), node("b", 100.0, Some(10)), node("c", 100.0, Some(10))];
    nodes[1].server = None;
    let mut problem = rack(vec![line("x", 1e9, nodes)], 1, 1);
    let table = |name: &str| FlowTable { name: name.into(), functions: vec![name.into()], entries: 10 };
    let kind = SwitchKind::OpenFlow { tables: ["b", "c"].map(table).to_vec() };
    problem.switch = Some(Switch::new("tor", kind, 480e9));
    let holds = for_problem(&problem);
    assert_eq!(sites(&problem, &*holds).unwrap(), [[Site::Server(0), Site::Switch, Site::Switch]]);
}

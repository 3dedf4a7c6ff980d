//! Plans tell what their placements mean: no core is given twice, loads are those of the definitions, reasons
//! are there, and whole plans survive being written and read.

use std::collections::BTreeMap;

use super::Case;
use super::draw::draw;
use crate::plan::{Bound, CoreLimit, Device, Plan, Verdict, ranges};
use catena_plan_lemur::{Strategy, experiment, place};
use catena_plan_model::placement::{Link, Outcome, Placement, Site, Subgroup};
use catena_plan_model::problem::{Chain, Node, Problem};
use catena_plan_model::rack::Rack;
use catena_plan_model::switch::for_problem;

const CHAINS: [(&str, &str); 4] = [
    ("chain1", include_str!("../../../../examples/lemur/chain1.catena")),
    ("chain2", include_str!("../../../../examples/lemur/chain2.catena")),
    ("chain3", include_str!("../../../../examples/lemur/chain3.catena")),
    ("chain4", include_str!("../../../../examples/lemur/chain4.catena")),
];

fn planned(problem: &Problem, rack: &Rack, outcome: &Outcome) -> Plan {
    let sources = BTreeMap::from([("Dedup".to_owned(), "Table 4".to_owned()), ("Unused".to_owned(), "?".to_owned())]);
    let switch = for_problem(problem);
    Plan::of(&Case { problem, rack, switch: &*switch, sources: &sources, strategy: "lemur", runs: None }, outcome)
}

fn testbed(servers: u32, sockets: u32) -> (Problem, Rack) {
    let rack = experiment::testbed(servers, sockets, experiment::pisa());
    let problem = experiment::problem(&CHAINS, &rack).unwrap_or_else(|wrong| panic!("{wrong}"));
    (experiment::promised(&problem, &[0, 1, 2, 3], 0.5), rack)
}

fn lemur(servers: u32, sockets: u32, steering: u32) -> Plan {
    let (mut problem, mut rack) = testbed(servers, sockets);
    rack.servers.iter_mut().for_each(|server| server.steering_cores = steering);
    problem.servers.iter_mut().for_each(|server| server.cores -= steering);
    let outcome = place(&problem, Strategy::Lemur, &*for_problem(&problem));
    planned(&problem, &rack, &outcome)
}

#[test]
fn every_core_is_given_once() {
    for plan in [lemur(1, 2, 0), lemur(1, 2, 1), lemur(2, 1, 1)] {
        assert!(plan.is_kept(), "{:?}", plan.verdict);
        for server in &plan.servers {
            let mut cores: Vec<u32> = server.subgroups.iter().flat_map(|group| group.on.clone()).collect();
            cores.extend(&server.steering);
            let all = cores.len();
            cores.sort_unstable();
            cores.dedup();
            assert_eq!(cores.len(), all, "{}: a core twice", server.name);
            assert!(cores.iter().all(|core| *core < server.cores + server.steering.len() as u32));
            for group in &server.subgroups {
                assert_eq!(group.on.len() as f64, group.cores);
                assert!(group.load <= 1.0 + 1e-6, "{group:?}");
            }
            let working: f64 = server.workers.iter().flat_map(|w| &w.parts).map(|part| part.share).sum();
            assert!((working - server.cores_used).abs() < 1e-9);
            assert!(server.cores_used <= f64::from(server.cores));
        }
    }
}

#[test]
fn nothing_carries_more_than_it_can_and_someone_is_at_the_limit() {
    let plan = lemur(1, 2, 0);
    assert!(plan.links.iter().all(|link| link.used_bps <= link.bps * (1.0 + 1e-6)), "{:?}", plan.links);
    assert!(plan.links.iter().any(|link| link.used_bps > 0.0));
    for chain in &plan.chains {
        assert!(chain.slack_bps >= -1.0, "{}: its promise is kept", chain.name);
        assert!(!chain.functions.is_empty() && chain.functions.iter().all(|f| !f.why.to_string().is_empty()));
        let on_server = |f: &crate::plan::FunctionPlan| f.device == Device::Server;
        assert!(chain.functions.iter().all(|f| on_server(f) != f.cores.is_empty()), "{}", chain.name);
    }
    assert!(plan.chains.iter().any(|chain| !chain.bounds.is_empty()), "all chains could carry more");
    let (used, all) = plan.switch.as_ref().and_then(|switch| switch.stages).expect("stages");
    assert!(used > 0 && used <= all);
}

#[test]
fn a_function_that_may_have_one_core_only_is_named() {
    let (problem, rack) = testbed(1, 2);
    // All of chain 3 alone on the server: Dedup is slow, and Limiter beside it keeps both to one core.
    let alone = experiment::promised(&problem, &[2], 0.1);
    let outcome = place(&alone, Strategy::NoCores, &*for_problem(&alone));
    let plan = planned(&alone, &rack, &outcome);
    let limits: Vec<&Bound> = plan.chains[0].bounds.iter().collect();
    let [Bound::Cores { limit, .. }] = limits[..] else { panic!("{limits:?}") };
    assert!(
        matches!(limit, CoreLimit::Single(name) if name.contains("Limiter")) || *limit == CoreLimit::Spare,
        "{limit:?}"
    );
}

#[test]
fn only_figures_in_use_are_marked() {
    let plan = lemur(1, 2, 0);
    let marked: Vec<&str> = plan.borrowed.iter().map(|b| b.function.as_str()).collect();
    assert_eq!(marked, ["Dedup"]);
    for function in plan.chains.iter().flat_map(|chain| &chain.functions) {
        assert_eq!(function.borrowed, function.function == "Dedup", "{}", function.name);
    }
}

#[test]
fn plans_are_written_and_read_without_loss() {
    let plan = lemur(1, 2, 1);
    let text = serde_json::to_string(&plan).expect("JSON");
    assert!(!text.contains("null"), "no infinities: what has no limit is absent");
    assert_eq!(Plan::from_json(&text), Ok(plan));
}

#[test]
fn a_plan_that_is_none_says_why() {
    let (problem, rack) = testbed(1, 2);
    let outcome = Outcome::Infeasible { proven: true, why: "no room".to_owned() };
    let plan = planned(&problem, &rack, &outcome);
    assert!(plan.chains.is_empty() && plan.placement.is_none() && !plan.is_kept());
    assert!(matches!(&plan.verdict, Verdict::Broken { proven: true, why, .. } if why == "no room"));
    assert!(draw(&plan).contains("no room"));
}

#[test]
fn the_drawing_has_every_chain_server_and_function() {
    let plan = lemur(2, 1, 1);
    let svg = draw(&plan);
    for chain in &plan.chains {
        assert!(svg.contains(&format!(">{}</text>", chain.name)), "{}", chain.name);
        assert!(chain.functions.iter().all(|f| svg.contains(&format!("<title>{} (", f.name))));
    }
    assert!(plan.servers.iter().all(|server| svg.contains(&format!(">{}</text>", server.name))));
    assert_eq!(svg.matches("<svg").count(), 1);
    assert!(!svg.contains("NaN") && !svg.contains("inf\""), "every number is one");
}

#[test]
fn runs_of_numbers_are_put_together() {
    assert_eq!(ranges(&[]), "");
    assert_eq!(ranges(&[1, 2, 4, 5, 6, 9]), "1, 2, 4-6, 9");
}

#[test]
fn cores_have_trees_that_hold_chains_to_what_they_may_have() {
    use catena_plan_alpine::tree::SchedulerTree;
    let (mut problem, rack) = testbed(1, 2);
    problem.chains[1].t_max_bps = 2e9;
    let outcome = place(&problem, Strategy::Lemur, &*for_problem(&problem));
    let plan = planned(&problem, &rack, &outcome);
    let mut limited = 0.0;
    for worker in &plan.servers[0].workers {
        let tree = worker.tree.as_ref().expect("there are no tasks");
        assert_eq!(tree.tasks(), (0..worker.parts.len()).collect::<Vec<_>>());
        if let SchedulerTree::Limit { rate, .. } = tree {
            limited += *rate as f64;
        }
    }
    // Chain 2 enters its server once, by one subgroup.
    assert!((limited - 2e9).abs() <= 16.0, "{limited} bits a second");
}

/// A server of two cores that chains share, and a function of each chain that takes so much of a core and may have one only.
fn singles(parts: &[f64]) -> Plan {
    let (_, mut rack) = testbed(1, 1);
    rack.switch = None;
    rack.servers.iter_mut().for_each(|server| {
        (server.shared, server.cores_per_socket, server.steering_cores) = (true, 2, 0);
    });
    let (mut problem, _) = testbed(1, 1);
    problem.switch = None;
    problem.servers.iter_mut().for_each(|server| (server.shared, server.cores) = (true, 2));
    let mut chain = problem.chains[0].clone();
    chain.nodes.truncate(1);
    chain.nodes[0] = Node { share: 1.0, entry: 1.0, server: Some(1e3), replicable: false, ..chain.nodes[0].clone() };
    (chain.edges, chain.t_min_bps, chain.d_max_ns) = (Vec::new(), 0.0, f64::INFINITY);
    problem.chains = (0..parts.len()).map(|n| Chain { name: format!("c{n}"), ..chain.clone() }).collect();
    let group = |(chain, cores)| Subgroup { chain, nodes: vec![0], server: 0, cores, link: Link::Nic(0) };
    let placement = Placement {
        sites: vec![vec![Site::Server(0)]; parts.len()],
        subgroups: parts.iter().copied().enumerate().map(group).collect(),
        rates_bps: vec![1e6; parts.len()],
    };
    planned(&problem, &rack, &Outcome::Placed { placement, marginal_bps: 0.0, bound_bps: None })
}

#[test]
fn a_function_that_may_have_one_core_only_has_one() {
    let plan = singles(&[0.5, 0.4, 0.4, 0.3, 0.2, 0.2]);
    assert!(plan.is_kept(), "{:?}", plan.verdict);
    for group in &plan.servers[0].subgroups {
        assert!(!group.replicable && group.on.len() == 1, "{group:?}");
    }
}

#[test]
fn what_fits_on_no_core_whole_is_no_plan() {
    let plan = singles(&[0.6, 0.6, 0.6]);
    assert!(plan.placement.is_none() && plan.chains.is_empty());
    let Verdict::Broken { proven: false, why, .. } = &plan.verdict else { panic!("{:?}", plan.verdict) };
    assert!(why.contains("one core only") && why.contains("c2."), "{why}");
}

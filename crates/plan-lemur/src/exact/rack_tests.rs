//! What joins the servers: the switch and its capacity, nothing at all, a server's SmartNIC as its only card.

use super::instances::instance;
use super::{Settings, exhaustive, plan};
use catena_plan_model::check::check;
use catena_plan_model::placement::{Link, Outcome};
use catena_plan_model::problem::{Objective, Problem, Replication, SmartNic};
use catena_plan_model::switch::{Feasible, for_problem};

use crate::sample;

/// The best value by the planner, which the checker finds no fault with, is that of exhaustive search. Return it.
fn agreed(problem: &Problem, switch: &dyn Feasible, seed: u64) -> Option<f64> {
    let reference = exhaustive::best(problem, switch);
    match (plan(problem, switch, None, &Settings::default()).outcome, reference) {
        (Outcome::Placed { placement, marginal_bps, bound_bps }, Some(reference)) => {
            check(problem, &placement, switch).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong:?}"));
            assert_eq!(bound_bps, Some(marginal_bps), "seed {seed}");
            assert!((marginal_bps / 1e9 - reference[0]).abs() <= 1e-6 * (1.0 + reference[0]), "seed {seed}");
            Some(marginal_bps)
        }
        (Outcome::Infeasible { proven: true, .. }, None) => None,
        (outcome, reference) => panic!("seed {seed}: {outcome:?}, exhaustive search {reference:?}"),
    }
}

#[test]
fn no_plan_forwards_more_than_the_switch_can() {
    let mut less = 0;
    for seed in 0..150 {
        let (mut problem, switch) = instance(seed);
        problem.objective = Objective::Marginal;
        let wide = agreed(&problem, &switch, seed);
        problem.switch.as_mut().unwrap().capacity_bps = 4e9 + (seed % 4) as f64 * 4e9;
        let narrow = agreed(&problem, &switch, seed);
        assert!(narrow <= wide, "seed {seed}");
        if narrow < wide {
            less += 1;
        }
    }
    assert!(less > 30, "{less}");
}

#[test]
fn no_chain_spans_servers_that_nothing_joins() {
    let mut less = 0;
    for seed in 0..400 {
        let (mut problem, switch) = instance(seed);
        problem.objective = Objective::Marginal;
        let joined = agreed(&problem, &switch, seed);
        problem.chains.iter_mut().flat_map(|chain| &mut chain.nodes).for_each(|node| node.pisa = None);
        problem.switch = None;
        if problem.servers.len() == 2 {
            let apart = agreed(&problem, &switch, seed);
            if apart < joined {
                less += 1;
            }
        }
    }
    assert!(less > 20, "{less}");
}

#[test]
fn without_a_switch_cards_carry_what_no_function_sees() {
    let mut less = 0;
    for seed in 0..400 {
        let (mut problem, switch) = instance(seed);
        problem.objective = Objective::Marginal;
        problem.chains.iter_mut().flat_map(|chain| &mut chain.nodes).for_each(|node| node.pisa = None);
        problem.switch = None;
        // One chain has no functions, half of the next one's packets go around them.
        let whole = &mut problem.chains[0];
        (whole.nodes, whole.edges) = (Vec::new(), Vec::new());
        for chain in problem.chains.iter_mut().skip(1).take(1) {
            chain.nodes.iter_mut().for_each(|node| (node.share, node.entry) = (node.share / 2.0, node.entry / 2.0));
            chain.edges.iter_mut().for_each(|edge| edge.share /= 2.0);
        }
        let narrow = agreed(&problem, &switch, seed);
        problem.servers.iter_mut().flat_map(|server| &mut server.nics_bps).for_each(|bps| *bps *= 10.0);
        if narrow < agreed(&problem, &switch, seed) {
            less += 1;
        }
    }
    assert!(less > 80, "{less}");
}

#[test]
fn a_server_whose_only_card_is_a_smart_nic_is_reached_by_its_link() {
    let chain = sample::chain("x", vec![sample::node("a", Some(1_000.0), false, true)], &[]);
    let card = SmartNic { name: "card".into(), server: 0, bps: 8e9, cycles_hz: 1e9, clock_hz: 1e9 };
    let problem = sample::problem(vec![chain], vec![sample::server(0, 2, vec![])], vec![card], Replication::ByState);
    let switch = for_problem(&problem);
    let outcome = plan(&problem, &*switch, None, &Settings::default()).outcome;
    let placement = outcome.placement().expect("the card is a way in");
    check(&problem, placement, &*switch).unwrap();
    assert_eq!(placement.subgroups[0].link, Link::SmartNic(0));
    assert!((outcome.marginal_bps().unwrap() / (8e9 / sample::ON_LINK) - 1.0).abs() < 1e-9);
}

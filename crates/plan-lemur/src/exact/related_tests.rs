//! Plans keep what the file says of chains together: ratios, and who comes first.

use super::instances::instance;
use super::{Settings, exhaustive, plan};
use crate::{brute, sample};
use catena_plan_model::check::check;
use catena_plan_model::demand::relations::usable_bps;
use catena_plan_model::placement::Outcome;
use catena_plan_model::problem::{Objective, Problem, Replication};
use catena_plan_model::relation::{Member, Relation, Traffic, by_level};
use catena_plan_model::switch::for_problem;

fn ratio(problem: &Problem, weights: [f64; 2], share: bool) -> Relation {
    let member = |(chain, weight): (usize, f64)| {
        let about = &problem.chains[chain];
        let (from_bps, cap_bps) =
            if share { (about.t_min_bps, usable_bps(about, &problem.servers)) } else { (0.0, about.limit_bps()) };
        // Of rates, or of packets.
        let each = if share { 1.0 } else { problem.chains[0].packet_bits() / about.packet_bits() };
        Member { chain, class: None, factor: each / weight, from_bps, cap_bps }
    };
    let word = if share { "share" } else { "throughput" };
    let text = format!("{word} a : b = {} : {}", weights[0], weights[1]);
    Relation::Ratio { text, members: weights.into_iter().enumerate().map(member).collect() }
}

#[test]
fn the_best_plan_in_a_ratio_is_what_brute_force_finds() {
    let (mut placed, mut less) = (0, 0);
    for seed in 0..250 {
        let (mut problem, switch) = instance(seed);
        problem.objective = Objective::Marginal;
        if problem.chains.len() < 2 {
            continue;
        }
        let free = plan(&problem, &switch, None, &Settings::default()).outcome.marginal_bps();
        problem.relations = vec![ratio(&problem, [3.0, 1.0 + (seed % 3) as f64], seed % 2 == 0)];
        let (reference, _) = brute::plan(&problem, &switch, &mut |_| true);
        match plan(&problem, &switch, None, &Settings::default()).outcome {
            Outcome::Placed { placement, marginal_bps, bound_bps } => {
                check(&problem, &placement, &switch).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong:?}"));
                assert_eq!(bound_bps, Some(marginal_bps));
                let reference = reference.marginal_bps().unwrap_or_else(|| panic!("seed {seed}: {marginal_bps}"));
                assert!(
                    (marginal_bps - reference).abs() <= 1e-5 * (1e9 + reference),
                    "seed {seed}: {marginal_bps} {reference}"
                );
                placed += 1;
                if free.is_some_and(|free| marginal_bps < free * 0.999) {
                    less += 1;
                }
            }
            Outcome::Infeasible { .. } => assert_eq!(reference.marginal_bps(), None, "seed {seed}"),
        }
    }
    assert!(placed > 40 && less > 20, "{placed} {less}");
}

#[test]
fn a_class_in_a_ratio_takes_no_more_than_its_chain_has() {
    let (mut placed, mut less) = (0, 0);
    for seed in 0..250 {
        let (mut problem, switch) = instance(seed);
        if problem.chains.len() < 2 {
            continue;
        }
        problem.objective = [Objective::Marginal, Objective::Weighted][seed as usize % 2];
        (problem.chains[0].t_max_bps, problem.chains[0].ingress_bps) = (f64::INFINITY, f64::INFINITY);
        problem.chains[1].t_min_bps = 0.0;
        let free = plan(&problem, &switch, None, &Settings::default()).outcome.marginal_bps();
        let mut related = ratio(&problem, [3.0, 1.0 + (seed % 3) as f64], false);
        let Relation::Ratio { members, .. } = &mut related else { unreachable!() };
        members[0].class = Some(5);
        problem.relations = vec![related];
        let reference = exhaustive::best(&problem, &switch);
        match (plan(&problem, &switch, None, &Settings::default()).outcome, reference) {
            (Outcome::Placed { placement, marginal_bps, bound_bps }, Some(reference)) => {
                check(&problem, &placement, &switch).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong:?}"));
                assert_eq!(bound_bps, Some(marginal_bps), "seed {seed}");
                let same = (marginal_bps / 1e9 - reference[0]).abs() <= 1e-5 * (1.0 + reference[0]);
                assert!(same, "seed {seed}: {marginal_bps}, exhaustive search {reference:?}");
                placed += 1;
                if free.is_some_and(|free| marginal_bps < free * 0.999) {
                    less += 1;
                }
            }
            (Outcome::Infeasible { .. }, None) => {}
            (outcome, reference) => panic!("seed {seed}: {outcome:?}, exhaustive search {reference:?}"),
        }
    }
    assert!(placed > 40 && less > 10, "{placed} {less}");
}

#[test]
fn who_comes_first_has_what_exhaustive_search_gives_it() {
    let (mut placed, mut fair) = (0, 0);
    for seed in 0..250 {
        let (mut problem, switch) = instance(seed);
        if problem.chains.len() < 2 {
            continue;
        }
        problem.objective = [Objective::Marginal, Objective::Weighted, Objective::Fair][seed as usize % 3];
        let order = if seed % 2 == 0 { [0, 1] } else { [1, 0] }.map(Traffic::of).into();
        problem.relations = vec![Relation::Priority { text: "priority a > b".into(), order }];
        let reference = exhaustive::best(&problem, &switch);
        match (plan(&problem, &switch, None, &Settings::default()).outcome, reference) {
            (Outcome::Placed { placement, marginal_bps, bound_bps }, Some(reference)) => {
                check(&problem, &placement, &switch).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong:?}"));
                let found = by_level(&problem, &placement.rates_bps);
                let same = found.iter().zip(&reference).all(|(f, r)| (f / 1e9 - r).abs() <= 1e-5 * (1.0 + r.abs()));
                assert!(same, "seed {seed}: {found:?}, exhaustive search {reference:?}");
                placed += 1;
                if problem.objective == Objective::Fair {
                    assert_eq!(bound_bps, None, "seed {seed}: a plan with a larger least rate may be there");
                    fair += 1;
                } else {
                    assert_eq!(bound_bps, Some(marginal_bps), "seed {seed}");
                }
            }
            (Outcome::Infeasible { .. }, None) => {}
            (outcome, reference) => panic!("seed {seed}: {outcome:?}, exhaustive search {reference:?}"),
        }
    }
    assert!(placed > 40 && fair > 10, "{placed} {fair}");
}

/// Two chains on one server with two cores: the second does more with a cycle.
fn two() -> Problem {
    let chain = |name: &str, cycles| sample::chain(name, vec![sample::node("n", Some(cycles), false, true)], &[]);
    let chains = vec![chain("slow", 9_000.0), chain("quick", 900.0)];
    let mut problem = sample::problem(chains, vec![sample::server(0, 2, vec![100e9])], vec![], Replication::ByState);
    problem.servers[0].shared = true;
    problem
}

fn rates(problem: &Problem) -> Vec<f64> {
    let switch = for_problem(problem);
    let outcome = plan(problem, &*switch, None, &Settings::default()).outcome;
    let placement = outcome.placement().expect("nothing is promised");
    check(problem, placement, &*switch).unwrap();
    placement.rates_bps.clone()
}

#[test]
fn who_comes_first_gets_all_it_can() {
    let mut problem = two();
    let free = rates(&problem);
    assert!(free[0] < 1e3 && free[1] > 10e9, "{free:?}");
    problem.relations =
        vec![Relation::Priority { text: "priority slow > quick".into(), order: [0, 1].map(Traffic::of).into() }];
    let first = rates(&problem);
    assert!(first[0] > 2e9 && first[1] < 1e6, "{first:?}");
    problem.chains[0].t_max_bps = 1e9;
    let limited = rates(&problem);
    assert!((limited[0] - 1e9).abs() < 1e3 && limited[1] > 5e9, "{limited:?}");
}

#[test]
fn a_fair_division_beside_a_ratio_is_fair_to_all() {
    // Two chains are at their limits, which is the least; of the others one does ten times as much with a cycle.
    let mut problem = two();
    for (name, cycles) in [("a", 900.0), ("b", 900.0)] {
        let mut chain = sample::chain(name, vec![sample::node("n", Some(cycles), false, true)], &[]);
        (chain.t_min_bps, chain.t_max_bps) = (0.0, 1e8);
        problem.chains.insert(0, chain);
    }
    problem.objective = Objective::Fair;
    problem.relations = vec![ratio(&problem, [1.0, 1.0], false)];
    let found = rates(&problem);
    assert!((found[0] - 1e8).abs() < 1e3 && (found[1] - 1e8).abs() < 1e3, "{found:?}");
    assert!((found[2] - found[3]).abs() < 1e4 && found[2] > 1e9, "{found:?}");
}

#[test]
fn a_chain_that_nothing_leaves_gets_what_others_leave() {
    let mut problem = two();
    problem.relations = vec![Relation::Last(vec![1])];
    assert!(rates(&problem)[0] > 2e9);
}

#[test]
fn a_ratio_that_no_promise_can_be_kept_with_is_named() {
    let mut problem = two();
    problem.chains.iter_mut().for_each(|chain| chain.t_min_bps = 1e9);
    problem.relations = vec![ratio(&problem, [1.0, 9.0], false)];
    problem.chains[0].t_min_bps = 1.9e9;
    let switch = for_problem(&problem);
    let answer = plan(&problem, &*switch, None, &Settings::default());
    let Outcome::Infeasible { proven: true, why } = answer.outcome else { panic!("{:?}", answer.outcome) };
    assert!(why.contains("not together with throughput"), "{why}");
}

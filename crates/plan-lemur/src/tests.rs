//! What strategies return keeps all limits, and the heuristic is as good as exhaustive search, or nearly.

use proptest::prelude::*;

use super::cores::{Allocation, finish};
use super::ladder::whole;
use super::pattern::{on_switch, sites};
use super::sample::{Holds, problems};
use super::{Strategy as Way, experiment, place};
use catena_plan_model::check::check;
use catena_plan_model::estimate::Layout;
use catena_plan_model::placement::{Outcome, Site};
use catena_plan_model::problem::{Objective, Problem};
use catena_plan_model::rack::{self, Rack, SwitchKind};
use catena_plan_model::switch::{self, Feasible};

/// All patterns with all cores.
fn exhaustive(problem: &Problem, switch: &dyn Feasible) -> Option<Allocation> {
    let choices: Vec<Vec<Site>> =
        problem.chains.iter().flat_map(|c| &c.nodes).map(|node| sites(problem, node)).collect();
    let mut best: Option<Allocation> = None;
    let mut digits = vec![0; choices.len()];
    if choices.iter().any(Vec::is_empty) {
        return None;
    }
    loop {
        let mut flat = digits.iter().zip(&choices).map(|(d, c)| c[*d]);
        let pattern: Vec<Vec<Site>> =
            problem.chains.iter().map(|c| flat.by_ref().take(c.nodes.len()).collect()).collect();
        if switch.verdict(problem, &on_switch(&pattern)).fits() {
            with_all_cores(problem, &pattern, &mut best);
        }
        let Some(digit) = (0..digits.len()).find(|&d| digits[d] + 1 < choices[d].len()) else { return best };
        digits[digit] += 1;
        digits[..digit].fill(0);
    }
}

fn with_all_cores(problem: &Problem, pattern: &[Vec<Site>], best: &mut Option<Allocation>) {
    let layouts: Vec<Layout> = problem.chains.iter().zip(pattern).map(|(c, s)| Layout::of(problem, c, s)).collect();
    let late = problem.chains.iter().zip(&layouts).any(|(c, l)| l.latency_ns > c.d_max_ns);
    let groups: Vec<(usize, bool, bool)> =
        layouts.iter().flat_map(|l| &l.groups).map(|g| (g.server, whole(problem, g), g.replicable)).collect();
    let mut cores: Vec<u32> = groups.iter().map(|g| u32::from(g.1)).collect();
    let refs: Vec<&Layout> = layouts.iter().collect();
    if late {
        return;
    }
    loop {
        let used = |s: usize| groups.iter().zip(&cores).filter(|(g, _)| g.0 == s).map(|(_, k)| k).sum::<u32>();
        if (0..problem.servers.len()).all(|s| used(s) <= problem.servers[s].cores) {
            let mut flat = cores.iter().copied();
            let by_chain = layouts.iter().map(|l| flat.by_ref().take(l.groups.len()).collect()).collect();
            let made = finish(problem, &refs, by_chain, 0.0);
            if made.score.feasible() && best.as_ref().is_none_or(|b| made.score.better(&b.score)) {
                *best = Some(made);
            }
        }
        let more = |g: usize| groups[g].1 && groups[g].2 && cores[g] < problem.servers[groups[g].0].cores;
        let Some(next) = (0..groups.len()).find(|&g| more(g)) else { return };
        cores[next] += 1;
        for g in 0..next {
            cores[g] = u32::from(groups[g].1);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn placements_keep_all_limits((problem, holds) in problems(3, 6), objective in 0..3) {
        let objective = [Objective::Marginal, Objective::Weighted, Objective::Fair][objective as usize];
        let problem = Problem { objective, ..problem };
        for way in Way::PLACED_HERE {
            if let Outcome::Placed { placement, .. } = place(&problem, way, &Holds(holds)) {
                let checked = check(&problem, &placement, &Holds(holds));
                prop_assert!(checked.is_ok(), "{:?}: {:?}", way, checked);
            }
        }
    }

    #[test]
    fn no_strategy_beats_exhaustive_search((problem, holds) in problems(2, 3)) {
        let best = exhaustive(&problem, &Holds(holds));
        for way in Way::PLACED_HERE {
            if let Outcome::Placed { marginal_bps, .. } = place(&problem, way, &Holds(holds)) {
                let most = best.as_ref().map(|b| b.score.value);
                prop_assert!(most.is_some_and(|most| marginal_bps <= most * (1.0 + 1e-6) + 1.0), "{way:?} {most:?}");
            }
        }
    }
}

/// How often the heuristic misses what exhaustive search finds: with CATENA_LEMUR_FAR set, and `--nocapture`.
#[test]
fn the_heuristic_rarely_misses_what_exhaustive_search_places() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut feasible, mut missed, mut worse, mut worst) = (0, 0, 0, 1.0_f64);
    let count = if std::env::var_os("CATENA_LEMUR_FAR").is_some() { 3000 } else { 30 };
    for _ in 0..count {
        let (problem, holds) = problems(3, 3).new_tree(&mut runner).expect("a problem").current();
        let Some(best) = exhaustive(&problem, &Holds(holds)) else { continue };
        feasible += 1;
        match place(&problem, Way::Lemur, &Holds(holds)) {
            Outcome::Placed { marginal_bps, .. } if marginal_bps < best.score.value * (1.0 - 1e-6) => {
                worse += 1;
                worst = worst.min(marginal_bps / best.score.value);
            }
            Outcome::Placed { .. } => {}
            Outcome::Infeasible { why, .. } => {
                missed += 1;
                println!("missed: {why}: {} servers, {} cards", problem.servers.len(), problem.smart_nics.len());
            }
        }
    }
    assert!(missed * 10 <= feasible, "{missed} of {feasible} missed");
    println!("{feasible} feasible: {missed} missed, {worse} worse (down to {worst:.3})");
}

/// The four chains on the testbed.
fn four_chains() -> Problem {
    experiment::problem(&experiment::CHAINS[..4], &experiment::testbed(1, 2, experiment::pisa())).expect("known")
}

/// The racks that users plan on and the experiments' are one testbed.
#[test]
fn the_example_racks_are_the_testbeds() {
    let nameless = |mut rack: Rack| {
        for server in &mut rack.servers {
            server.name.clear();
            server.nics.iter_mut().for_each(|nic| nic.name.clear());
        }
        if let Some(switch) = &mut rack.switch {
            switch.name.clear();
            // Another name of IPv4Fwd.
            if let SwitchKind::OpenFlow { tables } = &mut switch.kind {
                tables.iter_mut().for_each(|table| table.functions.retain(|name| name != "Forward"));
            }
        }
        (rack.servers, rack.switch, rack.packet_bytes)
    };
    const FUNCTIONS: [&str; 6] = ["Detunnel", "Tunnel", "ACL", "Monitor", "IPv4Fwd", "Forward"];
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/racks");
    let smart = |mut rack: Rack| {
        rack.servers[0].smart_nics.push(experiment::smart_nic());
        rack
    };
    let racks = [
        ("lemur", experiment::testbed(1, 2, experiment::pisa())),
        ("lemur-smartnic", smart(experiment::testbed(1, 2, experiment::pisa()))),
        ("lemur-openflow", experiment::testbed(1, 2, experiment::openflow())),
        ("lemur-two-servers", experiment::testbed(2, 1, experiment::pisa())),
    ];
    for (name, testbed) in racks {
        let text = std::fs::read_to_string(format!("{folder}/{name}.toml")).expect("an example");
        let rack = rack::parse(&text, &FUNCTIONS).rack.expect("it is sound");
        assert_eq!(nameless(rack), nameless(testbed), "{name}");
    }
}

#[test]
fn the_four_chains_have_34_functions() {
    assert_eq!(four_chains().chains.iter().map(|c| c.nodes.len()).sum::<usize>(), 34);
}

/// Half the base rates is what the published placer takes for guarantees: 1.1 Gbit/s for the chains that
/// encrypt and 0.3 for the others.
#[test]
fn base_rates_are_those_of_the_published_placer() {
    let problem = experiment::promised(&four_chains(), &[0, 1, 2, 3], 0.5);
    let tenths: Vec<f64> = problem.chains.iter().map(|c| (c.t_min_bps / 1e8).round()).collect();
    assert_eq!(tenths, [11.0, 11.0, 3.0, 3.0]);
}

/// Lemur, §5.2 and §5.3, the four-chain set: all find a solution at 0.5, at 1.5 Lemur alone, and without
/// cores for replicas nothing above 0.5 is feasible. Everything passes the checker.
#[test]
fn the_four_chain_experiment_comes_out_as_in_the_paper() {
    let all = four_chains();
    for (delta, feasible) in [(0.5, [true; 8]), (1.5, [true, true, false, false, false, false, false, false])] {
        let problem = experiment::promised(&all, &[0, 1, 2, 3], delta);
        let switch = switch::for_problem(&problem);
        let mut most = f64::INFINITY;
        for (way, feasible) in Way::PLACED_HERE.into_iter().zip(feasible) {
            let outcome = place(&problem, way, switch.as_ref());
            assert_eq!(outcome.placement().is_some(), feasible, "{} at {delta}: {outcome:?}", way.name());
            if let Outcome::Placed { placement, marginal_bps, .. } = outcome {
                assert!(check(&problem, &placement, switch.as_ref()).is_ok());
                most = if way == Way::Lemur { marginal_bps } else { most };
                assert!(marginal_bps <= most * (1.0 + 1e-9), "{} beats Lemur at {delta}", way.name());
            }
        }
    }
}

/// "Lemur's heuristic is able to find an SLO-satisfied solution for all 29 sets, matching the brute-force placement",
/// and others "only do 17-76% of the time" (Lemur, §5.2): the least is 5 of 29 here, too.
#[test]
fn the_heuristic_plans_29_sets() {
    let all = four_chains();
    let planned = |way: Way| {
        let sets = experiment::SETS.iter().flat_map(|(_, set)| experiment::DELTAS.map(|delta| (set, delta)));
        sets.filter(|(set, delta)| {
            let problem = experiment::promised(&all, set, *delta);
            place(&problem, way, switch::for_problem(&problem).as_ref()).placement().is_some()
        })
        .count()
    };
    assert_eq!(planned(Way::Lemur), 29);
    assert_eq!(planned(Way::SwPreferred), 5);
    assert_eq!(planned(Way::MinBounce), 5);
}

/// Lemur, §5.3, "adding latency constraints": chains 1 and 4 within 45 and within 25 us, the latter without
/// more bounces. All branches of chain 4 have to be joined before its latency falls.
#[test]
fn tight_latencies_are_kept_without_more_bounces() {
    let mut stays = Vec::new();
    for d_max_us in [45.0, 25.0] {
        let mut problem = experiment::promised(&four_chains(), &[0, 3], 0.5);
        problem.chains.iter_mut().for_each(|chain| chain.d_max_ns = d_max_us * 1e3);
        let switch = switch::for_problem(&problem);
        let outcome = place(&problem, Way::Lemur, switch.as_ref());
        let placement = outcome.placement().expect("a placement");
        assert!(check(&problem, placement, switch.as_ref()).is_ok());
        let chains = problem.chains.iter().zip(&placement.sites);
        stays.push(chains.map(|(c, s)| Layout::of(&problem, c, s).stays.len()).sum::<usize>());
    }
    assert!(stays[1] <= stays[0], "{stays:?}");
}

/// Lemur, §5.2, the extreme configuration: ten of eleven translators on the switch, one on the server, where
/// software alone and hardware alone fail.
#[test]
fn ten_of_eleven_translators_fit_the_switch() {
    let nats = ["NAT"; 11].join(", ");
    let text = format!("BPF -> [ {nats} ] -> IPv4Fwd");
    let rack = experiment::testbed(1, 2, experiment::pisa());
    let mut problem = experiment::problem(&[("nats", &text)], &rack).expect("known");
    problem.chains[0].t_min_bps = experiment::ELEVEN_NATS_BPS;
    problem.chains[0].t_max_bps = experiment::T_MAX_BPS;
    let switch = switch::for_problem(&problem);
    for way in [Way::HwPreferred, Way::SwPreferred, Way::MinBounce, Way::Greedy] {
        assert!(place(&problem, way, switch.as_ref()).placement().is_none(), "{}", way.name());
    }
    let outcome = place(&problem, Way::Lemur, switch.as_ref());
    let placement = outcome.placement().expect("a placement");
    assert!(check(&problem, placement, switch.as_ref()).is_ok());
    let on_switch = problem.chains[0].nodes.iter().zip(&placement.sites[0]);
    assert_eq!(on_switch.filter(|(n, s)| n.function == "NAT" && **s == Site::Switch).count(), 10);
}

/// The heuristic keeps every promise of the experiment design that can be kept; the exact planner proves the rest
/// impossible.
#[test]
fn nothing_is_infeasible_that_the_exact_planner_places() {
    let all = four_chains();
    for (figure, set) in experiment::SETS {
        for delta in experiment::DELTAS {
            let problem = experiment::promised(&all, set, delta);
            let switch = switch::for_problem(&problem);
            let ours = place(&problem, Way::Lemur, switch.as_ref());
            let exact = place(&problem, Way::Exact, switch.as_ref());
            assert_eq!(ours.placement().is_some(), exact.placement().is_some(), "{figure} at {delta}");
            println!("{figure} {delta}: {:?} {:?}", ours.marginal_bps(), exact.marginal_bps());
        }
    }
}

#[test]
fn a_search_without_time_ends_with_what_it_has() {
    use super::place_until;
    use super::sample::{chain, node, problem, server};
    use std::time::{Duration, Instant};
    // Every other function can be on the switch: there are very many ways to join the rest.
    let nodes = (0..400).map(|n| node(&format!("n{n}"), Some(10.0), n % 2 == 0, true)).collect();
    let edges: Vec<(usize, usize)> = (1..400).map(|n| (n - 1, n)).collect();
    let mut chain = chain("c", nodes, &edges);
    (chain.t_min_bps, chain.d_max_ns) = (0.0, f64::INFINITY);
    let problem = problem(vec![chain], vec![server(0, 256, vec![4e10])], Vec::new(), Default::default());
    let switch = Holds(200);
    for strategy in [Way::Lemur, Way::NoProfiling] {
        let started = Instant::now();
        let outcome = place_until(&problem, strategy, &switch, Some(started));
        assert!(outcome.placement().is_some(), "{outcome:?}");
        assert!(started.elapsed() < Duration::from_secs(5), "{strategy:?} took {:?}", started.elapsed());
    }
    let started = Instant::now();
    let outcome = crate::keep::keep_until(&problem, &switch, &crate::keep::Runs::default(), Some(started));
    assert!(outcome.placement().is_some() && started.elapsed() < Duration::from_secs(5), "{outcome:?}");
}

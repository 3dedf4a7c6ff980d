//! What strategies return keeps all limits, and the heuristic is as good as exhaustive search, or nearly.

use proptest::prelude::*;

use super::cores::{Allocation, finish};
use super::ladder::whole;
use super::pattern::{on_switch, sites};
use super::sample::{Holds, problems};
use super::{Strategy as Way, experiment, place};
use crate::estimate::Layout;
use crate::placement::{Link, Outcome, Placement, Site};
use crate::problem::{Objective, Problem};
use crate::switch::Feasible;

/// What is wrong with a placement, by the definitions of `problem.rs`.
fn wrong(problem: &Problem, placement: &Placement, switch: &dyn Feasible) -> Option<String> {
    let room = 1.0 + 1e-6;
    if !switch.verdict(problem, &on_switch(&placement.sites)).fits() {
        return Some("switch".into());
    }
    let mut cores = vec![0.0; problem.servers.len()];
    let mut links: std::collections::BTreeMap<(usize, Link), f64> = Default::default();
    let mut smart = vec![0.0; problem.smart_nics.len()];
    for (id, chain) in problem.chains.iter().enumerate() {
        let rate = placement.rates_bps[id];
        if rate * room < chain.t_min_bps || rate > chain.limit_bps() * room {
            return Some(format!("rate {rate} of {id}"));
        }
        let layout = Layout::of(problem, chain, &placement.sites[id]);
        for (node, site) in chain.nodes.iter().zip(&placement.sites[id]) {
            if !sites(problem, node).contains(site) {
                return Some(format!("{} on {site:?}", node.name));
            }
        }
        if layout.latency_ns > chain.d_max_ns * room {
            return Some("latency".into());
        }
        let mine: Vec<_> = placement.subgroups.iter().filter(|s| s.chain == id).collect();
        if mine.len() != layout.groups.len() {
            return Some("subgroups".into());
        }
        for group in &layout.groups {
            let Some(given) = mine.iter().find(|s| s.nodes == group.nodes) else { return Some("nodes".into()) };
            let server = &problem.servers[group.server];
            let k = given.cores;
            if given.server != group.server || k <= 0.0 || (!server.shared && k.fract() != 0.0) {
                return Some(format!("cores {k}"));
            }
            if k > 1.0 && !group.replicable {
                return Some("replicated".into());
            }
            if rate > group.packets(k, server.clock_hz) * chain.packet_bits() * room && rate > 1e-3 {
                return Some(format!("group {group:?} with {k} cores carries less than {rate}"));
            }
            cores[group.server] += k;
            match group.smart_nic {
                Some(nic) if given.link == Link::SmartNic(nic) => {}
                Some(_) => return Some("link".into()),
                None => *links.entry((group.server, given.link)).or_default() += rate * group.visits,
            }
        }
        for stay in &layout.stays {
            if let Some(nic) = stay.smart_nic {
                *links.entry((stay.server, Link::SmartNic(nic))).or_default() += rate * stay.visits;
            }
        }
        for (nic, cycles) in &layout.smart_nic_cycles {
            smart[*nic] += rate / chain.packet_bits() * cycles;
        }
    }
    let core = |(server, used): (&crate::problem::Server, &f64)| *used > f64::from(server.cores) * room;
    if problem.servers.iter().zip(&cores).any(core) {
        return Some(format!("cores {cores:?}"));
    }
    for ((server, link), load) in links {
        let capacity = match link {
            Link::Nic(nic) => problem.servers[server].nics_bps[nic],
            Link::SmartNic(nic) => problem.smart_nics[nic].bps,
        };
        if load > capacity * room {
            return Some(format!("link {link:?}: {load}"));
        }
    }
    problem.smart_nics.iter().zip(&smart).any(|(nic, used)| *used > nic.cycles_hz * room).then(|| "card".into())
}

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
    while !late {
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
                prop_assert_eq!(wrong(&problem, &placement, &Holds(holds)), None, "{:?}", way);
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

/// How often the heuristic misses what exhaustive search finds: `cargo test -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn how_far_from_exhaustive_search() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut feasible, mut missed, mut worse, mut worst) = (0, 0, 0, 1.0_f64);
    for _ in 0..3000 {
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
    println!("{feasible} feasible: {missed} missed, {worse} worse (down to {worst:.3})");
}

/// The chains of Table 2; chain 1 as the published placer has it, with one subchain 8 behind all branches.
pub const CHAINS: [(&str, &str); 4] = [
    (
        "chain1",
        "BPF -> [ \"udp\": ACL -> Limiter -> BPF -> [ \"tcp\": UrlFilter, else: ], else: ] -> Detunnel -> Encrypt -> IPv4Fwd",
    ),
    ("chain2", "Encrypt -> LB -> [ NAT, NAT, NAT ] -> IPv4Fwd"),
    ("chain3", "Dedup -> ACL -> Limiter -> LB -> IPv4Fwd"),
    (
        "chain4",
        "Dedup -> ACL -> Monitor -> Tunnel -> BPF -> [ LB -> Limiter -> ACL, LB -> Limiter -> ACL, LB -> Limiter -> ACL ] \
         -> IPv4Fwd",
    ),
];

#[test]
fn the_four_chains_have_34_functions() {
    let problem = experiment::problem(&CHAINS, &experiment::testbed(1, 2, experiment::pisa())).expect("known");
    assert_eq!(problem.chains.iter().map(|c| c.nodes.len()).sum::<usize>(), 34);
}

#[test]
#[ignore = "a table to look at"]
fn figure_2() {
    let problem = experiment::problem(&CHAINS, &experiment::testbed(1, 2, experiment::pisa())).expect("known");
    for overheads in [true, false] {
        let mut problem = problem.clone();
        if !overheads {
            problem.overheads = crate::profile::Overheads::default();
        }
        let mut found = [0; 7];
        for (figure, set) in experiment::SETS {
            for delta in experiment::DELTAS {
                let problem = experiment::promised(&problem, set, delta);
                let t_min: f64 = problem.chains.iter().map(|c| c.t_min_bps).sum();
                print!("{figure} {delta} {:6.2}:", t_min / 1e9);
                for (id, way) in Way::PLACED_HERE.into_iter().enumerate() {
                    let start = std::time::Instant::now();
                    let outcome = place(&problem, way, &Holds(100));
                    let time = start.elapsed().as_secs_f64() * 1e3;
                    if let Some(m) = outcome.marginal_bps() {
                        found[id] += 1;
                        print!(" {:7.2}", (m + t_min) / 1e9);
                    } else {
                        print!("       -");
                    }
                    if id == 0 {
                        print!(" ({time:.1} ms)");
                        if let Outcome::Infeasible { why, .. } = &outcome {
                            print!(" {why}");
                        }
                    }
                }
                println!();
            }
        }
        println!("{found:?}");
    }
}

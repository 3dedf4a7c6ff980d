//! The exact planner against exhaustive search, and on the papers' chains.

use super::instances::instance;
use super::{Settings, exhaustive, plan};
use crate::estimate::Layout;
use crate::placement::{Link, Outcome, Placement, Site};
use crate::problem::{Objective, Problem};
use crate::switch::Feasible;

/// Relative excess that rounding may cause.
const EXCESS: f64 = 1e-9;

/// Check `placement` by the definitions alone.
fn obeys(problem: &Problem, switch: &dyn Feasible, placement: &Placement) {
    let within = |what: &str, used: f64, there: f64| {
        assert!(used <= there * (1.0 + EXCESS), "{what}: {used} of {there}\n{placement:#?}\n{problem:#?}");
    };
    let on: Vec<Vec<bool>> = placement.sites.iter().map(|c| c.iter().map(|s| *s == Site::Switch).collect()).collect();
    assert!(switch.verdict(problem, &on).fits());
    let mut nics: Vec<Vec<f64>> = problem.servers.iter().map(|s| vec![0.0; s.nics_bps.len()]).collect();
    let mut cores = vec![0.0; problem.servers.len()];
    let mut links = vec![0.0; problem.smart_nics.len()];
    let mut cycles = vec![0.0; problem.smart_nics.len()];
    for (id, chain) in problem.chains.iter().enumerate() {
        let rate = placement.rates_bps[id];
        within("promise", chain.t_min_bps, rate);
        within("limit", rate, chain.limit_bps());
        let layout = Layout::of(problem, chain, &placement.sites[id]);
        within("latency", layout.latency_ns, chain.d_max_ns);
        let own: Vec<_> = placement.subgroups.iter().filter(|g| g.chain == id).collect();
        assert_eq!(own.len(), layout.groups.len());
        for group in &layout.groups {
            let given = own.iter().find(|g| g.nodes == group.nodes).unwrap();
            let server = &problem.servers[group.server];
            assert_eq!(given.server, group.server);
            assert!(given.cores > 0.0 && (group.replicable || given.cores <= 1.0));
            assert!(server.shared || (given.cores >= 1.0 && given.cores.fract() == 0.0));
            cores[group.server] += given.cores;
            within("core", rate, group.packets(given.cores, server.clock_hz) * chain.packet_bits());
            match (given.link, group.smart_nic) {
                (Link::Nic(nic), None) => nics[group.server][nic] += rate * group.visits,
                (Link::SmartNic(nic), Some(own)) => assert_eq!(nic, own),
                other => panic!("{other:?}"),
            }
        }
        for stay in &layout.stays {
            if let Some(nic) = stay.smart_nic {
                links[nic] += rate * stay.visits;
            }
        }
        for &(nic, each) in &layout.smart_nic_cycles {
            cycles[nic] += rate / chain.packet_bits() * each;
        }
    }
    for (id, server) in problem.servers.iter().enumerate() {
        within("cores", cores[id], f64::from(server.cores));
        nics[id].iter().zip(&server.nics_bps).for_each(|(used, there)| within("card", *used, *there));
    }
    for (id, nic) in problem.smart_nics.iter().enumerate() {
        within("SmartNIC link", links[id], nic.bps);
        within("SmartNIC", cycles[id], nic.cycles_hz);
    }
}

/// The reference's way to write a value: one number, or each chain's relative marginal rate, ascending.
fn value(problem: &Problem, placement: &Placement, marginal_bps: f64) -> Vec<f64> {
    if problem.objective != Objective::Fair {
        return vec![marginal_bps / 1e9];
    }
    let relative = |(c, r): (&crate::problem::Chain, &f64)| (r - c.t_min_bps) / c.weight / 1e9;
    let mut values: Vec<f64> = problem.chains.iter().zip(&placement.rates_bps).map(relative).collect();
    values.sort_by(f64::total_cmp);
    values
}

/// Random instances, as many as `CATENA_EXACT_INSTANCES` says.
fn instances() -> u64 {
    std::env::var("CATENA_EXACT_INSTANCES").ok().and_then(|n| n.parse().ok()).unwrap_or(400)
}

#[test]
fn finds_what_exhaustive_search_finds() {
    let (mut placed, mut infeasible) = (0, 0);
    for seed in 0..instances() {
        let (problem, switch) = instance(seed);
        let t0 = std::time::Instant::now();
        let reference = exhaustive::best(&problem, &switch);
        let t1 = std::time::Instant::now();
        let answer = plan(&problem, &switch, None, &Settings::default());
        let t2 = std::time::Instant::now();
        if (t2 - t0).as_millis() > 200 {
            eprintln!("seed {seed} exhaustive {:?} exact {:?} {:?}", t1 - t0, t2 - t1, answer.effort);
        }
        match (answer.outcome, reference) {
            (Outcome::Placed { placement, marginal_bps, bound_bps }, Some(reference)) => {
                placed += 1;
                obeys(&problem, &switch, &placement);
                assert_eq!(bound_bps, Some(marginal_bps), "seed {seed}");
                let found = value(&problem, &placement, marginal_bps);
                let same = found.iter().zip(&reference).all(|(f, r)| (f - r).abs() <= 1e-6 * (1.0 + r.abs()));
                assert!(same, "seed {seed}: {found:?}, exhaustive search {reference:?}\n{problem:#?}\n{switch:#?}");
            }
            (Outcome::Infeasible { proven: true, why }, None) => {
                infeasible += 1;
                assert!(!why.is_empty());
            }
            (outcome, reference) => {
                panic!("seed {seed}: {outcome:?}, exhaustive search {reference:?}\n{problem:#?}\n{switch:#?}")
            }
        }
    }
    assert!(placed * 5 > instances() && infeasible * 10 > instances(), "{placed} placed, {infeasible} infeasible");
}

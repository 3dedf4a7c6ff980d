//! What is said to help does, when it is applied to the problem and planned.

use super::instances::instance;
use super::relax::obstacles;
use super::remedy::Kind;
use super::{Settings, plan};
use catena_plan_model::check::check;
use catena_plan_model::placement::Outcome;
use catena_plan_model::problem::Problem;
use catena_plan_model::rack::MAX_CORES;
use catena_plan_model::switch::{Feasible, for_problem};

/// Whether the exact planner keeps all promises.
fn kept(problem: &Problem, switch: &dyn Feasible) -> bool {
    match plan(problem, switch, None, &Settings::default()).outcome {
        Outcome::Placed { placement, .. } => check(problem, &placement, switch).is_ok(),
        Outcome::Infeasible { .. } => false,
    }
}

#[test]
fn what_is_said_to_help_helps_alone() {
    let mut tried = [0; Kind::ALL.len()];
    let mut failed = Vec::new();
    let (mut conflicts, mut open) = (0, 0);
    for seed in 0..600 {
        let (mut problem, scales) = instance(seed);
        // Now and then the switch is what is narrow, or what holds functions is its stages.
        if seed % 5 == 0 {
            problem.switch.as_mut().expect("there is one").capacity_bps = 5e9;
        }
        if seed % 5 == 1 {
            problem.servers.iter_mut().flat_map(|server| &mut server.nics_bps).for_each(|bps| *bps = 0.777e9);
        }
        let Outcome::Infeasible { .. } = plan(&problem, &scales, None, &Settings::default()).outcome else { continue };
        let found = obstacles(&problem, &scales, &Settings::default());
        for (kind, tried) in Kind::ALL.into_iter().zip(&mut tried) {
            let Some(changed) = found.applied(kind, &problem) else { continue };
            let packer = for_problem(&changed);
            let switch: &dyn Feasible = if kind == Kind::Stages { &*packer } else { &scales };
            *tried += 1;
            if !kept(&changed, switch) {
                failed.push((seed, kind));
            }
        }
        if found.conflict.len() > 1 && found.minimal {
            conflicts += 1;
            for left_out in &found.conflict {
                let mut rest = problem.clone();
                let keep = |id: &usize| found.conflict.contains(id) && id != left_out;
                rest.chains = (0..problem.chains.len()).filter(keep).map(|id| problem.chains[id].clone()).collect();
                assert!(kept(&rest, &scales), "seed {seed}: {:?} without {left_out}", found.conflict);
            }
        }
        if !found.complete {
            open += 1;
        }
    }
    assert!(failed.is_empty(), "{tried:?} tried; {failed:?} do not do; {conflicts} conflicts, {open} open");
    assert!(tried[0] > 10 && tried[1] > 5 && tried[3] > 5 && conflicts > 5, "{tried:?} {conflicts} {open}");
}

#[test]
fn remedies_are_within_what_a_rack_may_have() {
    let (mut cores, mut links) = (0, 0);
    for seed in 0..300 {
        let (mut problem, scales) = instance(seed);
        match seed % 2 {
            0 => problem.servers.iter_mut().for_each(|server| server.clock_hz = 1e5),
            _ => problem.servers.iter_mut().flat_map(|server| &mut server.nics_bps).for_each(|bps| *bps = 1e3),
        }
        let found = obstacles(&problem, &scales, &Settings::default());
        for &(server, more) in found.cores.iter().flatten() {
            assert!(problem.servers[server].cores + more <= MAX_CORES, "seed {seed}: {more} more cores");
            cores += 1;
        }
        for &(_, _, more) in found.links.iter().flatten() {
            assert!(more <= 1.1e12, "seed {seed}: {more} bits per second more");
            links += 1;
        }
    }
    // Links of a kilobit per second are helped by faster ones, however many times that is.
    assert!(links > 20, "{cores} {links}");
}

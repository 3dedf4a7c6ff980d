//! The strategies as functions from problem to outcome: Lemur's heuristic, what Lemur, §5.1, compares it with, and the
//! ablations of §5.3. All of them keep every limit; they differ in what they look for. Those that search end at `until`, where
//! there is such a time, with the best that they have.

use std::time::Instant;

use super::bounce::{Side, fewest_bounces};
use super::cores::{Allocation, Policy};
use super::evaluator::Evaluator;
use super::exact::rates::objective_bps;
use super::heuristic;
use super::pattern::{Class, Pattern, preferring};
use super::servers::spread;
use super::why;
use catena_plan_model::placement::{Outcome, Placement, Site};
use catena_plan_model::problem::Problem;
use catena_plan_model::switch::Feasible;

/// The heuristic of §3.2, with the moves of [`super::improve`].
#[must_use]
pub fn lemur(problem: &Problem, switch: &dyn Feasible, until: Option<Instant>) -> Outcome {
    let mut evaluator = Evaluator::new(problem, switch, Policy::Best).until(until);
    let found = heuristic::place(&mut evaluator, true);
    outcome(&mut evaluator, found)
}

/// The heuristic of §3.2 as it is published: stages, coalescing, cores, and no moves.
#[must_use]
pub fn plain(problem: &Problem, switch: &dyn Feasible, until: Option<Instant>) -> Outcome {
    let mut evaluator = Evaluator::new(problem, switch, Policy::Best).until(until);
    let found = heuristic::place(&mut evaluator, false);
    outcome(&mut evaluator, found)
}

/// As much as possible on the switch, then on SmartNICs; spare cores evenly.
#[must_use]
pub fn hardware_preferred(problem: &Problem, switch: &dyn Feasible, until: Option<Instant>) -> Outcome {
    let pattern = preferring(problem, &[Class::Switch, Class::SmartNic, Class::Server]);
    fixed(problem, (switch, until), Policy::Even, pattern.into_iter().collect())
}

/// As much as possible on servers; spare cores evenly.
#[must_use]
pub fn software_preferred(problem: &Problem, switch: &dyn Feasible, until: Option<Instant>) -> Outcome {
    let pattern = preferring(problem, &[Class::Server, Class::SmartNic, Class::Switch]);
    fixed(problem, (switch, until), Policy::Even, pattern.into_iter().collect())
}

/// The fewest bounces; of patterns with equally few, that with most on the switch or that with least,
/// whichever is better. Spare cores evenly.
#[must_use]
pub fn minimum_bounce(problem: &Problem, switch: &dyn Feasible, until: Option<Instant>) -> Outcome {
    let patterns = [true, false].into_iter().filter_map(|most| {
        let off = preferring(problem, &[Class::Server, Class::SmartNic, Class::Switch])?;
        let chains = problem.chains.iter().zip(off).map(|(chain, off)| {
            let side = |(node, off): (&catena_plan_model::problem::Node, &Site)| match (problem.switch_runs(node), off)
            {
                (true, Site::Switch) => Side::Switch,
                (true, _) => Side::Either,
                (false, _) => Side::Off,
            };
            let sides: Vec<Side> = chain.nodes.iter().zip(&off).map(side).collect();
            let on = fewest_bounces(chain, &sides, most);
            on.into_iter().zip(off).map(|(on, off)| if on { Site::Switch } else { off }).collect()
        });
        Some(chains.collect::<Pattern>())
    });
    fixed(problem, (switch, until), Policy::Even, patterns.collect())
}

/// As much as possible on the switch; promises first, then the chains in their order.
#[must_use]
pub fn greedy(problem: &Problem, switch: &dyn Feasible, until: Option<Instant>) -> Outcome {
    let pattern = preferring(problem, &[Class::Switch, Class::SmartNic, Class::Server]);
    fixed(problem, (switch, until), Policy::ByIndex, pattern.into_iter().collect())
}

/// The heuristic with one core for each subgroup.
#[must_use]
pub fn without_cores(problem: &Problem, switch: &dyn Feasible, until: Option<Instant>) -> Outcome {
    let mut evaluator = Evaluator::new(problem, switch, Policy::One).until(until);
    let found = heuristic::place(&mut evaluator, true);
    outcome(&mut evaluator, found)
}

/// The heuristic, which believes that every function costs what they cost on average; what comes of
/// its placement is judged by the real costs.
#[must_use]
pub fn without_profiling(problem: &Problem, switch: &dyn Feasible, until: Option<Instant>) -> Outcome {
    let mean = |costs: Vec<f64>| costs.iter().sum::<f64>() / costs.len().max(1) as f64;
    let nodes = || problem.chains.iter().flat_map(|c| &c.nodes);
    let server = mean(nodes().filter_map(|n| n.server).collect());
    let smart_nic = mean(nodes().filter_map(|n| n.smart_nic).collect());
    let mut believed = problem.clone();
    for node in believed.chains.iter_mut().flat_map(|c| &mut c.nodes) {
        node.server = node.server.map(|_| server);
        node.smart_nic = node.smart_nic.map(|_| smart_nic);
    }
    let mut evaluator = Evaluator::new(&believed, switch, Policy::Best).until(until);
    let found = heuristic::place(&mut evaluator, true).map(|(pattern, allocation)| {
        let placement = evaluator.placement(&pattern, &allocation);
        (pattern, judge(problem, switch, &placement))
    });
    outcome(&mut Evaluator::new(problem, switch, Policy::Best), found)
}

/// What a placement is worth in a problem, with its sites and cores and the best rates for them.
#[must_use]
pub fn judge(problem: &Problem, switch: &dyn Feasible, placement: &Placement) -> Allocation {
    Evaluator::new(problem, switch, Policy::Best).judge(placement)
}

/// Sites that somebody else chose, with the cores that carry most there (§3.2, step 3).
#[must_use]
pub fn given(problem: &Problem, switch: &dyn Feasible, sites: Pattern) -> Outcome {
    let mut evaluator = Evaluator::new(problem, switch, Policy::Best);
    let found = evaluator.fits(&sites).then(|| (evaluator.allocate(&sites), sites));
    outcome(&mut evaluator, found.map(|(allocation, sites)| (sites, allocation)))
}

/// The best of given patterns, each on the servers in each way. A pattern that the switch does not hold is none.
fn fixed(
    problem: &Problem,
    (switch, until): (&dyn Feasible, Option<Instant>),
    policy: Policy,
    patterns: Vec<Pattern>,
) -> Outcome {
    let mut evaluator = Evaluator::new(problem, switch, policy).until(until);
    let mut best: Option<(Pattern, Allocation)> = None;
    for pattern in patterns {
        if !evaluator.fits(&pattern) {
            continue;
        }
        for pattern in spread(&mut evaluator, &pattern) {
            if best.is_some() && evaluator.is_over() {
                break;
            }
            let allocation = evaluator.allocate(&pattern);
            if best.as_ref().is_none_or(|(_, other)| allocation.score.better(&other.score)) {
                best = Some((pattern, allocation));
            }
        }
    }
    outcome(&mut evaluator, best)
}

fn outcome(evaluator: &mut Evaluator<'_>, found: Option<(Pattern, Allocation)>) -> Outcome {
    match found {
        None => Outcome::Infeasible { proven: false, why: why::NO_PATTERN.to_owned() },
        Some((pattern, allocation)) if allocation.score.feasible() => Outcome::Placed {
            placement: evaluator.placement(&pattern, &allocation),
            // The heuristics maximise the sum; what that is worth is told in the objective's own measure.
            marginal_bps: objective_bps(evaluator.problem, &allocation.rates),
            bound_bps: None,
        },
        Some((pattern, allocation)) => {
            Outcome::Infeasible { proven: false, why: why::short(evaluator, &pattern, &allocation) }
        }
    }
}

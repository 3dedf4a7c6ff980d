//! Lemur's heuristic (Lemur, §3.2): stages, coalescing, cores; then moves.
//!
//! On the paper's experiment design it finds a placement wherever the exact planner proves that there is one, and
//! none worse. On small random problems (at most three chains of three functions, with SmartNICs, shared cores,
//! latency promises and several servers) it misses one placement of 1,478 that exhaustive search finds, and is worse in
//! eight; the test `the_heuristic_rarely_misses_what_exhaustive_search_places` counts. The smallest of each kind are
//! in `counterexamples`.

use super::coalesce::{Rule, coalesce};
use super::cores::Allocation;
use super::evaluator::Evaluator;
use super::improve::improve;
use super::pattern::Pattern;
use super::servers::spread;
use super::stages::baseline;
use catena_plan_model::placement::Site;

/// The placement found, whether it keeps all promises or not; None: the switch cannot hold what must be
/// on it. Without `moves` it ends where the paper's heuristic ends.
pub fn place(evaluator: &mut Evaluator<'_>, moves: bool) -> Option<(Pattern, Allocation)> {
    let ways: &[bool] = if evaluator.problem.smart_nics.is_empty() { &[false] } else { &[true, false] };
    let mut best: Option<(Pattern, Allocation)> = None;
    for &smart in ways {
        if best.is_some() && evaluator.is_over() {
            break;
        }
        let Some(start) = baseline(evaluator, smart) else { continue };
        let mut stops: Vec<Vec<Vec<Site>>> = Vec::with_capacity(start.len());
        let mut placements = vec![start.clone(), start.clone(), start.clone()];
        for (chain, sites) in start.iter().enumerate() {
            let mut of_chain: Vec<Vec<Site>> = Vec::new();
            for (placement, rule) in placements.iter_mut().skip(1).zip([Rule::Aggressive, Rule::Conservative]) {
                let way = coalesce(evaluator, chain, sites, rule);
                if let Some(last) = way.last() {
                    placement[chain].clone_from(last);
                }
                of_chain.extend(way);
            }
            of_chain.dedup();
            stops.push(of_chain);
        }
        let mut first: Option<(Pattern, Allocation)> = None;
        for placement in placements {
            if first.is_some() && evaluator.is_over() {
                break;
            }
            for pattern in spread(evaluator, &placement) {
                let allocation = evaluator.allocate(&pattern);
                if first.as_ref().is_none_or(|(_, other)| allocation.score.better(&other.score)) {
                    first = Some((pattern, allocation));
                }
            }
        }
        let Some((pattern, allocation)) = first else { continue };
        let (pattern, allocation) = match moves {
            true => improve(evaluator, pattern, allocation, &stops),
            false => (pattern, allocation),
        };
        if best.as_ref().is_none_or(|(_, other)| allocation.score.better(&other.score)) {
            best = Some((pattern, allocation));
        }
    }
    best
}

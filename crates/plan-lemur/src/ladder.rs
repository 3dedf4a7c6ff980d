//! What a chain carries with more and more cores: its ladder.
//!
//! A chain is as fast as its slowest subgroup, so that one core more may gain nothing until another
//! subgroup has one more, too. A step of the ladder is the fewest cores with which the chain gets faster than
//! on the step below. Allocations that are worth considering are one step of each chain's ladder.

use super::rates::ROUNDING;
use catena_plan_model::estimate::{Group, Layout};
use catena_plan_model::problem::{Chain, Problem, ServerId};

/// Cores for a chain's subgroups, and what they make of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Bits per second of the chain that its cores carry.
    pub cap_bps: f64,
    /// Cores of each group; 0 where the server's cores are shared.
    pub cores: Vec<u32>,
    /// The same by server, of those that the chain is on, in the order of its groups: the same ones on each step.
    pub used: Vec<(ServerId, u32)>,
}

/// Bits per second of `chain` that `group` carries with `cores` cores.
#[must_use]
pub fn carries(problem: &Problem, chain: &Chain, group: &Group, cores: u32) -> f64 {
    group.packets(f64::from(cores), problem.servers[group.server].clock_hz) * chain.packet_bits()
}

/// The fewest cores with which `group` carries `bps` of `chain`; None if it must have one core and that is
/// not enough, or none are. They may be more than the server has.
#[must_use]
pub fn cores_for(problem: &Problem, chain: &Chain, group: &Group, bps: f64) -> Option<u32> {
    let enough = |cores: u32| carries(problem, chain, group, cores) >= bps * (1.0 - ROUNDING);
    if enough(1) {
        return Some(1);
    }
    if !group.replicable {
        return None;
    }
    let each = carries(problem, chain, group, 2) / 2.0;
    let cores = (bps / each - ROUNDING).ceil().max(2.0);
    // Nobody has a million cores; a cost without bound ends here.
    if cores < 1e6 { (2..).skip(cores as usize - 2).take(2).find(|k| enough(*k)) } else { None }
}

/// Whether the group has whole cores for itself.
#[must_use]
pub fn whole(problem: &Problem, group: &Group) -> bool {
    !problem.servers[group.server].shared
}

/// The ladder of a chain, from the step that keeps `t_min` to the first that reaches `ceiling_bps` or
/// needs more cores than there are; and by how much the promise is missed where more cores do not help.
#[must_use]
pub fn ladder(problem: &Problem, chain: &Chain, layout: &Layout, ceiling_bps: f64) -> (Vec<Step>, f64) {
    let mut shortage = 0.0;
    let mut cores: Vec<u32> = Vec::with_capacity(layout.groups.len());
    for group in &layout.groups {
        if !whole(problem, group) {
            cores.push(0);
            continue;
        }
        let need = cores_for(problem, chain, group, chain.t_min_bps);
        if need.is_none() {
            shortage += 1.0 - carries(problem, chain, group, 1) / chain.t_min_bps.max(f64::MIN_POSITIVE);
        }
        cores.push(need.unwrap_or(1));
    }
    let mut steps = vec![step(problem, chain, layout, cores)];
    while let Some(last) = steps.last() {
        let Some(higher) = climb(problem, chain, layout, last, ceiling_bps) else { break };
        steps.push(higher);
    }
    (steps, shortage)
}

fn step(problem: &Problem, chain: &Chain, layout: &Layout, cores: Vec<u32>) -> Step {
    let mut used: Vec<(ServerId, u32)> = Vec::new();
    let mut cap_bps = chain.limit_bps();
    for (group, k) in layout.groups.iter().zip(&cores) {
        if *k > 0 {
            match used.iter_mut().find(|(server, _)| *server == group.server) {
                Some((_, sum)) => *sum += k,
                None => used.push((group.server, *k)),
            }
            cap_bps = cap_bps.min(carries(problem, chain, group, *k));
        }
    }
    Step { cap_bps, cores, used }
}

/// The next step: all that is as slow as the slowest gets faster.
fn climb(problem: &Problem, chain: &Chain, layout: &Layout, last: &Step, ceiling_bps: f64) -> Option<Step> {
    if last.cap_bps >= ceiling_bps * (1.0 - ROUNDING) {
        return None;
    }
    let beyond = last.cap_bps * (1.0 + 4.0 * ROUNDING);
    let mut cores = last.cores.clone();
    for (group, k) in layout.groups.iter().zip(&mut cores) {
        if *k > 0 && carries(problem, chain, group, *k) < beyond {
            *k = cores_for(problem, chain, group, beyond).filter(|more| *more > *k)?;
        }
    }
    let higher = step(problem, chain, layout, cores);
    let fits = higher.used.iter().all(|(server, used)| *used <= problem.servers[*server].cores);
    (fits && higher.cap_bps > last.cap_bps).then_some(higher)
}

//! Step 1 of Lemur, §3.2: as much as possible on the switch, then away from it, cheapest first, until it
//! fits.

use super::evaluator::Evaluator;
use super::pattern::{Class, Pattern, preferring};
use catena_plan_model::placement::Site;
use catena_plan_model::problem::{ChainId, NodeId, Problem};

/// Where a node goes that the switch has no room for.
fn away(problem: &Problem, chain: ChainId, node: NodeId, smart: bool) -> Option<Site> {
    let node = &problem.chains[chain].nodes[node];
    let smart_nic = (smart && node.smart_nic.is_some() && !problem.smart_nics.is_empty()).then_some(Site::SmartNic(0));
    smart_nic.or((node.server.is_some() && !problem.servers.is_empty()).then_some(Site::Server(0)))
}

/// The baseline: of what the switch can run, the most expensive, as far as it has room. `smart` says whether
/// SmartNICs take what they can of the rest. None: what runs on the switch alone does not fit, or there is
/// a function that nothing runs.
///
/// "It iteratively moves the lowest cycle cost NF away from the switch until it finds a placement that
/// respects the stage's constraints." A function's cost is that of the chain's packets that reach it. What was
/// moved comes back, most expensive first, where it turns out that its going made no room.
pub fn baseline(evaluator: &mut Evaluator<'_>, smart: bool) -> Option<Pattern> {
    let problem = evaluator.problem;
    let order: &[Class] =
        if smart { &[Class::Switch, Class::SmartNic, Class::Server] } else { &[Class::Switch, Class::Server] };
    let all = [Class::Switch, Class::Server, Class::SmartNic];
    let mut pattern = preferring(problem, order).or_else(|| preferring(problem, &all))?;
    if evaluator.fits(&pattern) {
        return Some(pattern);
    }
    let mut movable: Vec<(f64, ChainId, NodeId, Site)> = Vec::new();
    for (chain, sites) in pattern.iter().enumerate() {
        for (node, site) in sites.iter().enumerate().filter(|(_, site)| **site == Site::Switch) {
            let n = &problem.chains[chain].nodes[node];
            let cycles = n.share * n.server.or(n.smart_nic).unwrap_or(f64::INFINITY);
            debug_assert!(*site == Site::Switch && problem.switch_runs(n));
            if let Some(other) = away(problem, chain, node, smart) {
                movable.push((cycles, chain, node, other));
            }
        }
    }
    movable.sort_by(|a, b| a.0.total_cmp(&b.0).then((a.1, a.2).cmp(&(b.1, b.2))));
    let mut moved = Vec::new();
    for (_, chain, node, other) in movable {
        pattern[chain][node] = other;
        moved.push((chain, node, other));
        if evaluator.fits(&pattern) {
            break;
        }
    }
    if !evaluator.fits(&pattern) {
        return None;
    }
    // The last one moved made the room: it alone cannot come back.
    moved.pop();
    for (chain, node, other) in moved.into_iter().rev() {
        pattern[chain][node] = Site::Switch;
        if !evaluator.fits(&pattern) {
            pattern[chain][node] = other;
        }
    }
    Some(pattern)
}

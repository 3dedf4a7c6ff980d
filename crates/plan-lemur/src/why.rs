//! What is in the way of a pattern's promises, in words.

use super::cores::Allocation;
use super::evaluator::Evaluator;
use super::ladder::{carries, cores_for, whole};
use super::pattern::Pattern;
use super::rates::ROUNDING;
use catena_plan_model::figures::{gbit, us};
use catena_plan_model::problem::{Chain, NodeId};

/// Why there is not even a pattern.
pub const NO_PATTERN: &str =
    "the switch cannot hold what this strategy puts on it, or there is a function that no device runs";

/// So many functions are all named.
const FEW: usize = 4;

fn names(chain: &Chain, nodes: &[NodeId]) -> String {
    let name = |node: &NodeId| chain.nodes[*node].name.as_str();
    match nodes {
        [first, .., last] if nodes.len() > FEW => {
            format!("{} … {} ({} functions)", name(first), name(last), nodes.len())
        }
        _ => nodes.iter().map(name).collect::<Vec<_>>().join(" -> "),
    }
}

/// The first promises that the pattern misses, most telling first: a single subgroup, a path, the cores, and
/// what is shared.
pub fn short(evaluator: &mut Evaluator<'_>, pattern: &Pattern, allocation: &Allocation) -> String {
    let problem = evaluator.problem;
    let mut need = vec![0_u32; problem.servers.len()];
    for (id, chain) in problem.chains.iter().enumerate() {
        let layout = evaluator.layout(id, &pattern[id]);
        for group in layout.groups.iter().filter(|g| whole(problem, g)) {
            match cores_for(problem, chain, group, chain.t_min_bps) {
                Some(cores) => need[group.server] += cores,
                None => {
                    return format!(
                        "{}: {} carries {} Gbit/s on the one core it may have; promised are {}",
                        chain.name,
                        names(chain, &group.nodes),
                        gbit(carries(problem, chain, group, 1)),
                        gbit(chain.t_min_bps)
                    );
                }
            }
        }
        if layout.latency_ns > chain.d_max_ns * (1.0 + ROUNDING) {
            return format!(
                "{}: the longest path takes {} us; promised are {}",
                chain.name,
                us(layout.latency_ns),
                us(chain.d_max_ns)
            );
        }
    }
    for (server, need) in problem.servers.iter().zip(&need) {
        if *need > server.cores {
            return format!("{} has {} cores; placed like this, the promises need {need}", server.name, server.cores);
        }
    }
    let program = &allocation.program;
    for (id, chain) in problem.chains.iter().enumerate() {
        if program.upper[id] < program.lower[id] * (1.0 - ROUNDING) {
            return format!(
                "{}: its cores carry {} Gbit/s; promised are {}",
                chain.name,
                gbit(program.upper[id]),
                gbit(program.lower[id])
            );
        }
    }
    "the promises together need more than a link, a SmartNIC or shared cores have".to_owned()
}

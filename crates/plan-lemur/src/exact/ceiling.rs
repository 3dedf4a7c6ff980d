//! What no plan can exceed, whatever runs where: a bound that needs no search, for when one did not come to its end.
//!
//! A function that only servers run takes its cycles from their cores wherever it is. So all chains together have the
//! cycles of all cores; and a function that may have one core only has that core's.

use super::patterns::sites;
use super::rates::objective_bps;
use catena_plan_model::placement::Site;
use catena_plan_model::problem::{Chain, Node, Objective, Problem};

/// The objective's value that no plan exceeds, bits per second, at least 0.
#[must_use]
pub fn of(problem: &Problem) -> f64 {
    let mut rates: Vec<f64> = problem.chains.iter().map(|chain| most(problem, chain).max(chain.t_min_bps)).collect();
    if problem.objective == Objective::Fair {
        return objective_bps(problem, &rates).max(0.0);
    }
    let weight = |chain: &Chain| if problem.objective == Objective::Weighted { chain.weight } else { 1.0 };
    let each: Vec<f64> = problem.chains.iter().map(|chain| cycles_per_bit(problem, chain)).collect();
    let promised: f64 = problem.chains.iter().zip(&each).map(|(chain, cycles)| chain.t_min_bps * cycles).sum();
    let all: f64 = problem.servers.iter().map(|s| f64::from(s.cores) * s.clock_hz).sum();
    let mut left = (all - promised).max(0.0);
    // What is worth most for its cycles gets them first.
    let worth = |id: usize| weight(&problem.chains[id]) / each[id];
    let mut order: Vec<usize> = (0..rates.len()).collect();
    order.sort_by(|&a, &b| worth(b).total_cmp(&worth(a)));
    for id in order.into_iter().filter(|&id| each[id] > 0.0) {
        let least = problem.chains[id].t_min_bps;
        let more = (rates[id] - least).min(left / each[id]);
        left -= more * each[id];
        rates[id] = least + more;
    }
    objective_bps(problem, &rates).max(0.0)
}

/// Whether only servers run it.
fn on_servers_only(problem: &Problem, node: &Node) -> bool {
    sites(problem, node).iter().all(|site| matches!(site, Site::Server(_)))
}

/// Cycles of servers that a bit of the chain takes at least.
fn cycles_per_bit(problem: &Problem, chain: &Chain) -> f64 {
    let bound = chain.nodes.iter().filter(|node| on_servers_only(problem, node));
    bound.map(|node| node.share * node.server.unwrap_or(0.0)).sum::<f64>() / chain.packet_bits()
}

/// The most that a chain may carry, or what a function of it can that must stay on one core; bits per second.
fn most(problem: &Problem, chain: &Chain) -> f64 {
    let clock = problem.servers.iter().map(|s| s.clock_hz).fold(0.0, f64::max);
    let single = chain.nodes.iter().filter(|node| !node.replicable && on_servers_only(problem, node));
    let cycles = single.map(|node| node.share * node.server.unwrap_or(0.0)).fold(0.0, f64::max);
    let alone = if cycles > 0.0 { clock / cycles * chain.packet_bits() } else { f64::INFINITY };
    chain.limit_bps().min(alone)
}

#[cfg(test)]
mod tests {
    use super::super::instances::instance;
    use super::super::{Settings, plan};
    use super::*;

    #[test]
    fn no_plan_exceeds_it() {
        let (mut placed, mut near) = (0, 0);
        for seed in 2_000..2_300 {
            let (problem, switch) = instance(seed);
            let Some(best) = plan(&problem, &switch, None, &Settings::default()).outcome.marginal_bps() else {
                continue;
            };
            let ceiling = of(&problem);
            assert!(best <= ceiling * (1.0 + 1e-6) + 1.0, "seed {seed}: {best} {ceiling}");
            placed += 1;
            if ceiling <= 2.0 * best {
                near += 1;
            }
        }
        assert!(placed > 50 && near > 5, "{placed} {near}");
    }
}

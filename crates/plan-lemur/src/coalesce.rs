//! Step 2 of Lemur, §3.2: subgroups of a chain are joined by taking what lies between them off the switch,
//! which frees cores.

use std::rc::Rc;

use super::bridges::bridges;
use super::evaluator::Evaluator;
use super::ladder::{carries, cores_for, whole};
use super::rates::ROUNDING;
use catena_plan_model::estimate::{Group, Layout};
use catena_plan_model::placement::Site;
use catena_plan_model::problem::{ChainId, NodeId, Problem};

/// Which joins are made beside the strict ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// "As long as the SLO is not violated": the joined subgroup keeps `t_min` with no more cores than its
    /// parts need for it.
    Aggressive,
    /// "Only if the chain's throughput does not decrease", with a core less than the parts had.
    Conservative,
}

/// What a join does, if the rules allow it.
struct Join {
    /// Cores that `t_min` does not need any more.
    freed: i64,
    /// What the joined subgroup carries with the cores it needs for `t_min`.
    rate: f64,
    sites: Vec<Site>,
}

/// A chain from the baseline through all joins that `rule` allows, one after the other, the one first that
/// frees most cores: its sites at each stop, the baseline's first. It ends early where the time is over.
pub fn coalesce(evaluator: &mut Evaluator<'_>, chain: ChainId, baseline: &[Site], rule: Rule) -> Vec<Vec<Site>> {
    let mut stops = vec![baseline.to_vec()];
    while let Some(sites) = stops.last() {
        let layout = evaluator.layout(chain, sites);
        let mut best: Option<Join> = None;
        let order = evaluator.order(chain);
        for (server, bridge) in bridges(&evaluator.problem.chains[chain], &order, sites, &layout) {
            if evaluator.is_over() {
                break;
            }
            let mut joined = sites.clone();
            bridge.iter().for_each(|n| joined[*n] = server);
            let after = evaluator.layout(chain, &joined);
            if let Some(join) = judge(evaluator.problem, chain, &layout, &after, bridge[0], rule, joined) {
                let better = |b: &Join| join.freed > b.freed || (join.freed == b.freed && join.rate > b.rate);
                if best.as_ref().is_none_or(better) {
                    best = Some(join);
                }
            }
        }
        let Some(join) = best else { break };
        stops.push(join.sites);
    }
    stops
}

/// Whether the rules allow the join of `before` to `after`, in which `node` is part of the joined subgroup.
fn judge(
    problem: &Problem,
    chain: ChainId,
    before: &Rc<Layout>,
    after: &Rc<Layout>,
    node: NodeId,
    rule: Rule,
    sites: Vec<Site>,
) -> Option<Join> {
    let chain = &problem.chains[chain];
    let joined = after.groups.iter().find(|g| g.nodes.contains(&node))?;
    let parts: Vec<&Group> = before.groups.iter().filter(|g| joined.nodes.contains(&g.nodes[0])).collect();
    // A promise of latency that holds must go on holding; one that does not must not get further away. It need
    // not come nearer: of parallel branches that bounce one is joined at a time, and the last one counts.
    if after.latency_ns > chain.d_max_ns && after.latency_ns > before.latency_ns * (1.0 + ROUNDING) {
        return None;
    }
    let late = before.latency_ns > chain.d_max_ns;
    let limit = chain.limit_bps();
    let rate = |group: &Group, cores: u32| {
        let cores = if group.replicable { cores } else { 1 };
        carries(problem, chain, group, cores.max(1)).min(limit)
    };
    let slowest = |rates: &mut dyn Iterator<Item = f64>| rates.fold(limit, f64::min);
    let count = parts.len() as u32;
    let strict = rate(joined, count) > slowest(&mut parts.iter().map(|g| rate(g, 1))) * (1.0 + ROUNDING);
    let need = |group: &Group| {
        let cores = cores_for(problem, chain, group, chain.t_min_bps)?;
        (!whole(problem, group) || cores <= problem.servers[group.server].cores).then_some(cores)
    };
    let needs: Option<u32> = parts.iter().map(|g| need(g)).sum();
    let joined_need = need(joined);
    let kept = match (joined_need, needs) {
        (Some(one), Some(all)) => one <= all,
        (Some(_), None) => true,
        (None, _) => false,
    };
    let allowed = match rule {
        Rule::Aggressive => kept,
        Rule::Conservative => {
            let had = needs.unwrap_or(count);
            let others = || {
                let apart = |g: &&Group| !joined.nodes.contains(&g.nodes[0]);
                before.groups.iter().filter(apart).map(|g| rate(g, need(g).unwrap_or(1)))
            };
            let then = slowest(&mut others().chain(parts.iter().map(|g| rate(g, need(g).unwrap_or(1)))));
            let now = slowest(&mut others().chain([rate(joined, had.saturating_sub(1))]));
            now >= then * (1.0 - ROUNDING)
        }
    };
    (strict || allowed || late).then(|| Join {
        freed: i64::from(needs.unwrap_or(count)) - i64::from(joined_need.unwrap_or(count)),
        rate: rate(joined, joined_need.unwrap_or(1)),
        sites,
    })
}

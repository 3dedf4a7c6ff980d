//! Step 2 of Lemur, §3.2: subgroups of a chain are joined by taking what lies between them off the switch,
//! which frees cores.

use std::rc::Rc;

use super::evaluator::Evaluator;
use super::ladder::{carries, cores_for, whole};
use super::pattern::reach;
use super::rates::ROUNDING;
use catena_plan_model::estimate::{Group, Layout};
use catena_plan_model::placement::Site;
use catena_plan_model::problem::{Chain, ChainId, NodeId, Problem};

/// Which joins are made beside the strict ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// "As long as the SLO is not violated": the joined subgroup keeps `t_min` with no more cores than its
    /// parts need for it.
    Aggressive,
    /// "Only if the chain's throughput does not decrease", with a core less than the parts had.
    Conservative,
}

/// Sets of nodes that join two subgroups of a chain when they move to the server: for each two subgroups of one
/// server the shortest way between them, and all ways from the one to the other together; for each one all ways
/// to all others, or from them.
#[must_use]
pub fn bridges(chain: &Chain, sites: &[Site], layout: &Layout) -> Vec<(Site, Vec<NodeId>)> {
    let mut found: Vec<(Site, Vec<NodeId>)> = Vec::new();
    let free = |node: NodeId| !matches!(sites[node], Site::Server(_)) && chain.nodes[node].server.is_some();
    let mut add = |server, mut nodes: Vec<NodeId>| {
        nodes.sort_unstable();
        if !nodes.is_empty() && !found.iter().any(|(_, known)| *known == nodes) {
            found.push((Site::Server(server), nodes));
        }
    };
    for (id, from) in layout.groups.iter().enumerate() {
        let reached = reach(chain, &from.nodes, |n| free(n) || layout.groups.iter().any(|g| g.nodes.contains(&n)));
        for to in layout.groups.iter().skip(id + 1).filter(|to| to.server == from.server) {
            if let Some((end, _)) = reached.iter().find(|(n, _)| to.nodes.contains(n)) {
                let mut way = Vec::new();
                let mut here = *end;
                while let Some(&(_, Some(before))) = reached.iter().find(|(n, _)| *n == here) {
                    here = before;
                    if free(here) {
                        way.push(here);
                    }
                }
                add(from.server, way);
            }
            for (a, b) in [(from, to), (to, from)] {
                if let Some(ways) = between(chain, sites, &a.nodes, &b.nodes) {
                    add(from.server, ways);
                }
            }
        }
        // Of parallel branches one join alone may make the others' packets later: all at once.
        let others = layout.groups.iter().filter(|g| g.server == from.server && g.nodes != from.nodes);
        let others: Vec<NodeId> = others.flat_map(|g| g.nodes.iter().copied()).collect();
        let ways = [between(chain, sites, &from.nodes, &others), between(chain, sites, &others, &from.nodes)];
        ways.into_iter().flatten().for_each(|ways| add(from.server, ways));
    }
    found
}

/// What lies on the ways from `a` to `b` and is not on a server; None if some of it cannot be.
fn between(chain: &Chain, sites: &[Site], a: &[NodeId], b: &[NodeId]) -> Option<Vec<NodeId>> {
    let after = directed(chain, a, |e| (e.0, e.1));
    let before = directed(chain, b, |e| (e.1, e.0));
    let off = |n: &NodeId| !matches!(sites[*n], Site::Server(_));
    let nodes: Vec<NodeId> = after.into_iter().filter(|n| before.contains(n)).filter(off).collect();
    nodes.iter().all(|n| chain.nodes[*n].server.is_some()).then_some(nodes)
}

/// The nodes that edges lead to from `start`; `turn` gives an edge's direction.
fn directed(chain: &Chain, start: &[NodeId], turn: impl Fn((NodeId, NodeId)) -> (NodeId, NodeId)) -> Vec<NodeId> {
    let mut nodes = start.to_vec();
    let mut next = 0;
    while let Some(&here) = nodes.get(next) {
        next += 1;
        for edge in &chain.edges {
            let (from, to) = turn((edge.from, edge.to));
            if from == here && !nodes.contains(&to) {
                nodes.push(to);
            }
        }
    }
    nodes.split_off(start.len())
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
/// frees most cores: its sites at each stop, the baseline's first.
pub fn coalesce(evaluator: &mut Evaluator<'_>, chain: ChainId, baseline: &[Site], rule: Rule) -> Vec<Vec<Site>> {
    let mut stops = vec![baseline.to_vec()];
    while let Some(sites) = stops.last() {
        let layout = evaluator.layout(chain, sites);
        let mut best: Option<Join> = None;
        for (server, bridge) in bridges(&evaluator.problem.chains[chain], sites, &layout) {
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

//! Beyond the paper: a placement that leaves what runs where it is.
//!
//! A plan that is made anew may move everything for a little more throughput; whoever runs it has live flows. Here sites
//! and cores of what runs are given. New functions go where there is room. Cores are taken from others only where there is
//! none, one at a time, of those that can spare most, and given back where a chain may not fill them; functions move only if promises cannot be kept otherwise, and then of as few
//! chains as it takes, those first that carry least.

use std::collections::BTreeMap;
use std::time::Instant;

use super::cores::{Allocation, Policy, finish};
use super::evaluator::Evaluator;
use super::heuristic;
use super::ladder::{cores_for, whole};
use super::pattern::{Pattern, sites};
use catena_plan_model::estimate::{Group, Layout};
use catena_plan_model::placement::{Outcome, Site};
use catena_plan_model::problem::{ChainId, NodeId, Problem, ServerId};
use catena_plan_model::switch::Feasible;

/// What runs, in the numbers of the problem that is planned now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Runs {
    /// Where each node runs, by chain and node; None: it does not, or its device is no more.
    pub sites: Vec<Vec<Option<Site>>>,
    /// Cores of the subgroups that run, by chain and nodes.
    pub cores: BTreeMap<(ChainId, Vec<NodeId>), u32>,
    /// Bits per second that each chain carries: moving it costs as much.
    pub rates_bps: Vec<f64>,
    /// Bits per second that each chain might carry when that was planned; what is missing is not known.
    pub limits_bps: Vec<f64>,
}

/// Moves tried at most, and what they cost, in nodes whose chains are laid out.
const MOST_NODES: usize = 2_000_000;

/// Place the chains of `problem` so that what runs stays where it is, as far as that keeps all promises.
#[must_use]
pub fn keep(problem: &Problem, switch: &dyn Feasible, runs: &Runs) -> Outcome {
    keep_until(problem, switch, runs, None)
}

/// The same, which ends at `until`, where there is such a time, with the best that it has.
#[must_use]
pub fn keep_until(problem: &Problem, switch: &dyn Feasible, runs: &Runs, until: Option<Instant>) -> Outcome {
    // Where what runs cannot stay, the other half of the time is for planning anew.
    let now = Instant::now();
    let half = until.map(|until| now + until.saturating_duration_since(now) / 2);
    let mut evaluator = Evaluator::new(problem, switch, Policy::Best).until(half);
    let nodes: usize = problem.chains.iter().map(|chain| chain.nodes.len()).sum();
    let mut search = Search { evaluator: &mut evaluator, runs, left: MOST_NODES / nodes.max(1) };
    let found = search.settled().and_then(|(pattern, allocation)| search.freed(pattern, allocation));
    search.evaluator.set_until(until);
    let placed = found.or_else(|| {
        let (pattern, allocation) = heuristic::place(search.evaluator, true)?;
        (allocation.score.feasible() && search.evaluator.fits(&pattern)).then_some((pattern, allocation))
    });
    match placed {
        Some((pattern, allocation)) => {
            let placement = evaluator.placement(&pattern, &allocation);
            let marginal_bps = super::exact::rates::objective_bps(problem, &placement.rates_bps);
            Outcome::Placed { placement, marginal_bps, bound_bps: None }
        }
        None => super::baselines::lemur(problem, switch, until),
    }
}

struct Search<'a, 'p> {
    evaluator: &'a mut Evaluator<'p>,
    runs: &'a Runs,
    left: usize,
}

impl Search<'_, '_> {
    /// What runs on its sites, and the rest where it does best; None: something can run nowhere.
    fn settled(&mut self) -> Option<(Pattern, Allocation)> {
        let problem = self.evaluator.problem;
        let stays =
            |chain: usize, node: usize, site: &Site| sites(problem, &problem.chains[chain].nodes[node]).contains(site);
        let known = |chain: usize, node: usize| {
            let site = self.runs.sites.get(chain).and_then(|sites| sites.get(node).copied().flatten());
            site.filter(|site| stays(chain, node, site))
        };
        let mut open = Vec::new();
        let mut pattern: Pattern = Vec::new();
        for (chain, about) in problem.chains.iter().enumerate() {
            let settled: Vec<Option<Site>> = (0..about.nodes.len()).map(|node| known(chain, node)).collect();
            if settled.iter().any(Option::is_none) {
                open.push((chain, settled.clone()));
            }
            let first = |node: usize| sites(problem, &about.nodes[node]).first().copied();
            let sites: Option<Vec<Site>> = settled.iter().enumerate().map(|(n, site)| site.or(first(n))).collect();
            pattern.push(sites?);
        }
        // Those that are promised most first: they find most room.
        open.sort_by(|a, b| {
            problem.chains[b.0].t_min_bps.total_cmp(&problem.chains[a.0].t_min_bps).then(a.0.cmp(&b.0))
        });
        let mut now = self.allocate(&pattern);
        for (chain, settled) in open {
            let mut best: Option<(Vec<Site>, Allocation)> = None;
            for other in self.ways(chain, &settled) {
                if best.is_some() && self.evaluator.is_over() {
                    break;
                }
                let before = std::mem::replace(&mut pattern[chain], other);
                let allocation = self.allocate(&pattern);
                let better = best.as_ref().is_none_or(|(_, known)| allocation.score.better(&known.score));
                if better && self.evaluator.fits(&pattern) {
                    best = Some((pattern[chain].clone(), allocation));
                }
                pattern[chain] = before;
            }
            if let Some((sites, allocation)) = best {
                (pattern[chain], now) = (sites, allocation);
            }
        }
        Some((pattern, now))
    }

    /// Ways to run the nodes of a chain that have no site: each kind of device for all, and for what cannot run there the next.
    fn ways(&self, chain: ChainId, settled: &[Option<Site>]) -> Vec<Vec<Site>> {
        let problem = self.evaluator.problem;
        let nodes = &problem.chains[chain].nodes;
        let all: Vec<Site> = std::iter::once(Site::Switch)
            .chain((0..problem.smart_nics.len()).map(Site::SmartNic))
            .chain((0..problem.servers.len()).map(Site::Server))
            .collect();
        let servers: Vec<Site> = (0..problem.servers.len()).map(Site::Server).collect();
        let mut ways: Vec<Vec<Site>> = Vec::new();
        for &wanted in &all {
            let alone = [wanted];
            // What cannot run on a switch or card runs on a server: on each of them, for it has to be one.
            for &beside in if matches!(wanted, Site::Server(_)) { &alone[..] } else { &servers[..] } {
                let way: Option<Vec<Site>> = nodes
                    .iter()
                    .zip(settled)
                    .map(|(node, settled)| {
                        let able = sites(problem, node);
                        let first = [*settled, Some(wanted), Some(beside)];
                        first.into_iter().flatten().find(|site| able.contains(site)).or(able.first().copied())
                    })
                    .collect();
                ways.extend(way.filter(|way| !ways.contains(way)));
            }
        }
        ways
    }

    /// The same with functions of as few chains as possible elsewhere, until all promises are kept; None: that is not found.
    fn freed(&mut self, mut pattern: Pattern, mut now: Allocation) -> Option<(Pattern, Allocation)> {
        let problem = self.evaluator.problem;
        let rate = |chain: &ChainId| self.runs.rates_bps.get(*chain).copied().unwrap_or(0.0);
        let mut order: Vec<ChainId> = (0..problem.chains.len()).collect();
        order.sort_by(|a, b| rate(a).total_cmp(&rate(b)).then(a.cmp(b)));
        loop {
            if now.score.feasible() && self.evaluator.fits(&pattern) {
                return Some((pattern, now));
            }
            let mut best: Option<(ChainId, Vec<Site>, Allocation)> = None;
            'tries: for &chain in &order {
                for other in self.moves(chain, &pattern[chain]) {
                    self.left = self.left.checked_sub(1).filter(|_| !self.evaluator.is_over())?;
                    let before = std::mem::replace(&mut pattern[chain], other);
                    let allocation = self.allocate(&pattern);
                    let known = best.as_ref().map_or(&now, |(_, _, known)| known);
                    let less = allocation.score.shortage < known.score.shortage * (1.0 - 1e-9);
                    if less && self.evaluator.fits(&pattern) {
                        let done = allocation.score.feasible();
                        best = Some((chain, pattern[chain].clone(), allocation));
                        if done {
                            pattern[chain] = before;
                            break 'tries;
                        }
                    }
                    pattern[chain] = before;
                }
            }
            let (chain, sites, allocation) = best?;
            (pattern[chain], now) = (sites, allocation);
        }
    }

    /// Other sites for a chain: each of its subgroups, and all on servers together, on each server.
    fn moves(&mut self, chain: ChainId, now: &[Site]) -> Vec<Vec<Site>> {
        let problem = self.evaluator.problem;
        let layout = self.evaluator.layout(chain, now);
        let on_servers = (0..now.len()).filter(|node| matches!(now[*node], Site::Server(_)));
        let mut sets: Vec<Vec<NodeId>> = vec![on_servers.collect()];
        sets.extend(layout.groups.iter().map(|group| group.nodes.clone()));
        let mut moves: Vec<Vec<Site>> = Vec::new();
        for set in sets {
            for site in std::iter::once(Site::Switch).chain((0..problem.servers.len()).map(Site::Server)) {
                let mut other = now.to_vec();
                for &node in &set {
                    if sites(problem, &problem.chains[chain].nodes[node]).contains(&site) {
                        other[node] = site;
                    }
                }
                if other != now && !moves.contains(&other) {
                    moves.push(other);
                }
            }
        }
        moves
    }

    /// Cores as they run, more where a promise needs them, and less where a server has not so many.
    fn allocate(&mut self, pattern: &Pattern) -> Allocation {
        let problem = self.evaluator.problem;
        let layouts: Vec<_> =
            pattern.iter().enumerate().map(|(chain, sites)| self.evaluator.layout(chain, sites)).collect();
        let layouts: Vec<&Layout> = layouts.iter().map(|layout| &**layout).collect();
        let mut missed = 0.0;
        let mut groups: Vec<Cores> = Vec::new();
        for (id, (chain, layout)) in problem.chains.iter().zip(&layouts).enumerate() {
            missed += (layout.latency_ns / chain.d_max_ns - 1.0 - super::rates::ROUNDING).max(0.0);
            missed += if layout.joined { 0.0 } else { 1.0 };
            for group in &layout.groups {
                let need = if whole(problem, group) {
                    let need = cores_for(problem, chain, group, chain.t_min_bps);
                    if need.is_none() {
                        let one = super::ladder::carries(problem, chain, group, 1);
                        missed += 1.0 - one / chain.t_min_bps.max(f64::MIN_POSITIVE);
                    }
                    need.unwrap_or(1)
                } else {
                    0
                };
                let ran = self.ran(id, group, &pattern[id]).filter(|_| need > 0);
                let most = if group.replicable { u32::MAX } else { 1 };
                // Cores that its chain may not fill any more are given back: not those that it never did, for flows are not alike.
                let less = self.runs.limits_bps.get(id).is_none_or(|limit| chain.limit_bps() < *limit);
                let useful = if less { cores_for(problem, chain, group, chain.limit_bps()) } else { None };
                let useful = useful.unwrap_or(most);
                let cores = ran.unwrap_or(need).min(useful).max(need).min(most);
                groups.push(Cores { server: group.server, need, cores });
            }
        }
        spare(problem, &mut groups);
        let mut all = groups.iter().map(|group| group.cores);
        let cores = layouts.iter().map(|layout| all.by_ref().take(layout.groups.len()).collect()).collect();
        finish(problem, &layouts, cores, missed)
    }

    /// The cores of a group that runs as it is.
    fn ran(&self, chain: ChainId, group: &Group, sites: &[Site]) -> Option<u32> {
        let runs = self.runs.sites.get(chain)?;
        let same = group.nodes.iter().all(|&node| runs.get(node).copied().flatten() == sites.get(node).copied());
        self.runs.cores.get(&(chain, group.nodes.clone())).copied().filter(|_| same)
    }
}

/// A subgroup's cores.
struct Cores {
    server: ServerId,
    /// What its promise needs.
    need: u32,
    cores: u32,
}

/// Take cores, one at a time, from who has most beyond its need, where a server has not so many.
fn spare(problem: &Problem, groups: &mut [Cores]) {
    let mut used = vec![0_u64; problem.servers.len()];
    groups.iter().for_each(|group| used[group.server] += group.cores as u64);
    for (server, used) in used.iter().enumerate() {
        let mut over = used.saturating_sub(u64::from(problem.servers[server].cores));
        while over > 0 {
            let own = groups.iter_mut().filter(|group| group.server == server && group.cores > group.need.max(1));
            let Some(most) = own.max_by_key(|group| group.cores - group.need) else { break };
            most.cores -= 1;
            over -= 1;
        }
    }
}

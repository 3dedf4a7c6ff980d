//! Which server each subgroup goes to, and which SmartNIC what runs on SmartNICs, when there are several.
//!
//! Lemur's paper places on several servers (§5.3) and does not say how. Here: what is heaviest goes
//! first, to where most is free, or to the first where it fits; and as a third way whole chains go together.

use std::rc::Rc;

use super::evaluator::Evaluator;
use super::ladder::cores_for;
use super::pattern::Pattern;
use catena_plan_model::placement::Site;
use catena_plan_model::problem::{ChainId, NodeId, Problem, ServerId};

/// Something that goes to one server, with the cores that it needs on each.
struct Load {
    chain: ChainId,
    nodes: Vec<NodeId>,
    cores: Vec<f64>,
    /// The server of a SmartNIC next to it: the stay would be one.
    near: Option<ServerId>,
}

/// The pattern with its subgroups spread over the servers, in each way; itself if there is no choice.
pub fn spread(evaluator: &mut Evaluator<'_>, pattern: &Pattern) -> Vec<Pattern> {
    let problem = evaluator.problem;
    let mut pattern = pattern.clone();
    if problem.smart_nics.len() > 1 {
        over_smart_nics(problem, &mut pattern);
    }
    if problem.servers.len() < 2 {
        return vec![pattern];
    }
    let mut loads = Vec::new();
    for (chain, sites) in pattern.iter().enumerate() {
        let layout = evaluator.layout(chain, sites);
        let edges = &problem.chains[chain].edges;
        for group in &Rc::clone(&layout).groups {
            let mut there = group.clone();
            let cores = |server: usize| {
                there.server = server;
                cores_for(problem, &problem.chains[chain], &there, problem.chains[chain].t_min_bps)
                    .map_or(f64::INFINITY, f64::from)
            };
            let beside = edges.iter().flat_map(|e| [(e.from, e.to), (e.to, e.from)]);
            let near = beside.filter(|(a, _)| group.nodes.contains(a)).find_map(|(_, b)| match sites[b] {
                Site::SmartNic(nic) => Some(problem.smart_nics[nic].server),
                _ => None,
            });
            let cores = (0..problem.servers.len()).map(cores).collect();
            loads.push(Load { chain, nodes: group.nodes.clone(), cores, near });
        }
    }
    let least = |load: &Load| load.cores.iter().copied().fold(f64::INFINITY, f64::min);
    loads.sort_by(|a, b| least(b).total_cmp(&least(a)));
    let together = whole_chains(&loads);
    [(&loads, true), (&loads, false), (&together, true)]
        .into_iter()
        .map(|(loads, emptiest)| place(problem, &pattern, loads, emptiest))
        .collect()
}

fn whole_chains(loads: &[Load]) -> Vec<Load> {
    let mut chains: Vec<Load> = Vec::new();
    for load in loads {
        match chains.iter_mut().find(|c| c.chain == load.chain) {
            Some(chain) => {
                chain.nodes.extend(&load.nodes);
                chain.cores.iter_mut().zip(&load.cores).for_each(|(sum, more)| *sum += more);
                chain.near = chain.near.or(load.near);
            }
            None => chains.push(Load {
                chain: load.chain,
                nodes: load.nodes.clone(),
                cores: load.cores.clone(),
                near: load.near,
            }),
        }
    }
    chains.sort_by(|a, b| b.cores.iter().sum::<f64>().total_cmp(&a.cores.iter().sum()));
    chains
}

fn place(problem: &Problem, pattern: &Pattern, loads: &[Load], emptiest: bool) -> Pattern {
    let mut pattern = pattern.clone();
    let mut free: Vec<f64> = problem.servers.iter().map(|s| f64::from(s.cores)).collect();
    for load in loads {
        let left = |server: usize| free[server] - load.cores[server];
        let most_left = (0..free.len()).max_by(|&a, &b| left(a).total_cmp(&left(b)).then(b.cmp(&a)));
        let first = (0..free.len()).find(|&s| left(s) >= 0.0).filter(|_| !emptiest);
        let near = load.near.filter(|&s| left(s) >= 0.0);
        let Some(server) = near.or(first).or(most_left) else { continue };
        if load.cores[server].is_finite() {
            free[server] -= load.cores[server];
        }
        load.nodes.iter().for_each(|n| pattern[load.chain][*n] = Site::Server(server));
    }
    pattern
}

/// What runs on SmartNICs, chain by chain, to where it leaves most of the processor's time.
fn over_smart_nics(problem: &Problem, pattern: &mut Pattern) {
    let mut full = vec![0.0_f64; problem.smart_nics.len()];
    for (chain, sites) in problem.chains.iter().zip(pattern.iter_mut()) {
        let on = |site: &Site| matches!(site, Site::SmartNic(_));
        let cycles: f64 = chain
            .nodes
            .iter()
            .zip(sites.iter())
            .filter(|(_, site)| on(site))
            .map(|(n, _)| n.share * n.smart_nic.unwrap_or(0.0))
            .sum();
        let load = cycles * chain.t_min_bps.max(1.0) / chain.packet_bits();
        let after = |nic: usize| (full[nic] + load) / problem.smart_nics[nic].cycles_hz.max(f64::MIN_POSITIVE);
        let Some(nic) = (0..full.len()).min_by(|&a, &b| after(a).total_cmp(&after(b))) else { return };
        full[nic] += load;
        sites.iter_mut().filter(|s| on(s)).for_each(|s| *s = Site::SmartNic(nic));
    }
}

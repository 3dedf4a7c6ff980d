//! What runs, as planners of another problem see it: by names, for chains and devices may have come and gone.

use std::collections::BTreeMap;

use catena_plan_lemur::keep::Runs;
use catena_plan_model::placement::Site;
use catena_plan_model::problem::Problem;

use crate::plan::Plan;

impl Plan {
    /// Where the functions and devices of `problem` run by this plan.
    #[must_use]
    pub fn runs(&self, problem: &Problem) -> Runs {
        let mut runs = Runs {
            sites: problem.chains.iter().map(|chain| vec![None; chain.nodes.len()]).collect(),
            cores: BTreeMap::new(),
            rates_bps: vec![0.0; problem.chains.len()],
            limits_bps: vec![f64::INFINITY; problem.chains.len()],
        };
        let Some(placement) = &self.placement else { return runs };
        let old = &self.problem;
        let server = |id: usize| {
            let name = &old.servers.get(id)?.name;
            problem.servers.iter().position(|server| server.name == *name)
        };
        let site = |site: Site| match site {
            Site::Switch => problem.switch.as_ref().map(|_| Site::Switch),
            Site::Server(id) => server(id).map(Site::Server),
            Site::SmartNic(id) => {
                let name = &old.smart_nics.get(id)?.name;
                problem.smart_nics.iter().position(|card| card.name == *name).map(Site::SmartNic)
            }
        };
        // Chains and nodes, from old numbers to new ones.
        let mut nodes: Vec<(Option<usize>, Vec<Option<usize>>)> = Vec::new();
        for (id, chain) in old.chains.iter().enumerate() {
            let now = problem.chains.iter().position(|other| other.name == chain.name);
            let same = |node: &catena_plan_model::problem::Node| {
                let of = &problem.chains.get(now?)?.nodes;
                of.iter().position(|other| other.name == node.name && other.function == node.function)
            };
            let map: Vec<Option<usize>> = chain.nodes.iter().map(same).collect();
            if let Some(now) = now {
                runs.limits_bps[now] = chain.limit_bps();
                runs.rates_bps[now] = placement.rates_bps.get(id).copied().unwrap_or(0.0);
                for (node, to) in map.iter().enumerate() {
                    let ran = placement.sites.get(id).and_then(|sites| sites.get(node));
                    if let (Some(to), Some(ran)) = (to, ran) {
                        runs.sites[now][*to] = site(*ran);
                    }
                }
            }
            nodes.push((now, map));
        }
        for group in &placement.subgroups {
            let Some((Some(chain), map)) = nodes.get(group.chain) else { continue };
            let own: Option<Vec<usize>> = group.nodes.iter().map(|node| map.get(*node).copied().flatten()).collect();
            if let Some(mut own) = own.filter(|_| server(group.server).is_some() && group.cores.fract() == 0.0) {
                own.sort_unstable();
                runs.cores.insert((*chain, own), group.cores as u32);
            }
        }
        runs
    }
}

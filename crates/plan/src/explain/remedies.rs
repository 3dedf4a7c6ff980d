//! What would help when promises cannot be kept, by names.

use crate::plan::Remedies;
use catena_plan_lemur::exact::relax::Obstacles;
use catena_plan_model::placement::Link;
use catena_plan_model::problem::{Chain, ChainId, Problem, ServerId};

/// What is in the way of `problem`, by the names of its rack and chains.
#[must_use]
pub fn remedies(problem: &Problem, obstacles: &Obstacles) -> Remedies {
    let chain = |id: &ChainId| problem.chains.get(*id).map_or_else(String::new, |c| c.name.clone());
    let server = |id: ServerId| problem.servers.get(id).map_or("?", |s| &s.name).to_owned();
    let smart_nic = |id: usize| problem.smart_nics.get(id).map_or("?", |n| &n.name).to_owned();
    let link = |id: ServerId, link: Link| match link {
        Link::Nic(nic) => match problem.servers.get(id).map_or(0, |s| s.nics_bps.len()) {
            1 => format!("the network card of {}", server(id)),
            _ => format!("network card {} of {}", nic + 1, server(id)),
        },
        Link::SmartNic(nic) => smart_nic(nic),
    };
    Remedies {
        conflict: obstacles.conflict.iter().map(chain).collect(),
        minimal: obstacles.minimal,
        relations: obstacles.relations.clone(),
        cores: obstacles.cores.iter().flatten().map(|(id, cores)| (server(*id), *cores)).collect(),
        links: obstacles.links.iter().flatten().map(|(id, l, bps)| (link(*id, *l), *bps)).collect(),
        smart_nics: obstacles.smart_nics.iter().flatten().map(|(id, hz)| (smart_nic(*id), *hz)).collect(),
        forwarding: obstacles.forwarding,
        stages: obstacles.stages,
        entries: obstacles.entries,
        unheld: obstacles.unheld,
        late: obstacles.late.iter().map(|(id, ns)| (chain(id), *ns)).collect(),
        choked: obstacles
            .choked
            .iter()
            .map(|id| (chain(id), problem.chains.get(*id).map_or(0.0, Chain::limit_bps)))
            .collect(),
        complete: obstacles.complete,
    }
}

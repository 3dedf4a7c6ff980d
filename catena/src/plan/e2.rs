//! `--strategy e2`: instances on servers, as E2 places them; and what that is worth beside other strategies.

use std::collections::BTreeMap;
use std::fmt;

use catena_plan::e2::deploy::{Deployment, Inputs, deploy};
use catena_plan::e2::merge::{Demand, PNodeId, Sharing};
use catena_plan::e2::offload::Site;
use catena_plan::rack::Rack;
use catena_planner::Case;

use serde::Serialize;

use super::table::gbit;
use crate::Failure;
use crate::table::Table;

/// What E2's placement is worth, by its own reckoning: each instance has a core of its own, and neither bringing
/// packets in and out nor delays count.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Worth {
    /// It carries this.
    Placed {
        /// Bits per second of all chains, if their rates grow in the ratio of the promises.
        rate_bps: f64,
        /// Of these, beyond the promises; below 0 if they are broken.
        marginal_bps: f64,
        /// Cores that instances take.
        cores: usize,
        /// Functions of chains on the switch.
        on_switch: usize,
        /// What is full first.
        full: &'static str,
    },
    /// E2 cannot place these chains on this rack.
    NotApplicable {
        /// Why.
        why: String,
    },
}

/// What E2's placement is worth. It is asked only what it can answer: chains of which something is known to come in,
/// on servers.
pub fn worth(case: &Case) -> Worth {
    let chains = &case.problem.chains;
    let nodes = chains.iter().flat_map(|chain| chain.nodes.iter().map(move |node| (chain, node)));
    let homeless: Vec<String> = nodes
        .filter(|(_, node)| node.server.is_none())
        .map(|(chain, node)| format!("{}.{} ({})", chain.name, node.name, node.function))
        .collect();
    if let [first, more @ ..] = &homeless[..] {
        let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
        let why = format!("it sizes every function for cores of servers, and {first}{more} cannot run there");
        return Worth::NotApplicable { why };
    }
    if chains.iter().all(|chain| chain.t_min_bps <= 0.0) {
        let why = "it takes what is promised for what comes in, and nothing is promised".to_owned();
        return Worth::NotApplicable { why };
    }
    match decide(case) {
        Ok(decided) => decided.worth(case),
        Err(Failure(why)) => Worth::NotApplicable { why },
    }
}

/// What E2 decides, as text.
pub struct Text<'a> {
    rack: &'a Rack,
    /// Functions with `unparsed = drop` in front of them.
    guarded: Vec<&'a str>,
    deployment: Deployment,
}

/// Let E2 decide. What enters each chain is taken to be what it was promised.
///
/// # Errors
/// When a function is unknown, or its instances do not fit the rack.
pub fn decide(case: &Case) -> Result<Text<'_>, Failure> {
    let known = &case.inputs.known;
    let promise = |chain: &catena_policy::Chain| chain.promise.t_min_bps as f64;
    let two_way = |chain: &catena_policy::Chain| {
        chain.edges.iter().any(|edge| edge.direction == catena_policy::Direction::Return)
    };
    let demand =
        |chain| Demand { forward_bps: promise(chain), return_bps: if two_way(chain) { promise(chain) } else { 0.0 } };
    let demands: Vec<Demand> = case.inputs.graph.chains.iter().map(demand).collect();
    let library = catena_compile::library::signatures();
    let inputs = Inputs {
        policy: &case.inputs.graph,
        demands: &demands,
        sharing: Sharing::Named,
        catalogue: &known.catalogue,
        profile: &known.profile,
        library: &library,
        rack: &case.inputs.rack,
    };
    // The switch is asked about the chains' own nodes: those that a merged one stands for.
    let merged = catena_plan::e2::merge::merge(&case.inputs.graph, &demands, Sharing::Named);
    let mut room = |nodes: &[PNodeId]| {
        let mut set: Vec<Vec<bool>> = case.problem.chains.iter().map(|c| vec![false; c.nodes.len()]).collect();
        for (chain, node) in nodes.iter().filter_map(|&n| merged.nodes.get(n)).flat_map(|n| &n.members) {
            if let Some(on) = set.get_mut(*chain as usize).and_then(|chain| chain.get_mut(*node as usize)) {
                *on = true;
            }
        }
        case.holds(&set)
    };
    let nodes = case.problem.chains.iter().flat_map(|chain| &chain.nodes);
    let guarded = nodes.filter(|node| node.guarded).map(|node| node.name.as_str()).collect();
    Ok(Text { rack: &case.inputs.rack, guarded, deployment: deploy(&inputs, &mut room)? })
}

impl Text<'_> {
    /// What E2 decided, as JSON.
    ///
    /// # Errors
    /// None that can be foreseen.
    pub fn json(&self) -> Result<String, Failure> {
        Ok(serde_json::to_string_pretty(&self.deployment)?)
    }

    fn worth(&self, case: &Case) -> Worth {
        let deployment = &self.deployment;
        let headroom = deployment.headroom(self.rack);
        let grown = |chain: &catena_plan::problem::Chain| (chain.t_min_bps * headroom.factor()).min(chain.limit_bps());
        let rate_bps: f64 = case.problem.chains.iter().map(grown).sum();
        let promised: f64 = case.problem.chains.iter().map(|chain| chain.t_min_bps).sum();
        let on_switch = deployment.offload.nodes.iter().filter_map(|&node| deployment.policy.nodes.get(node));
        let sites = deployment.offload.sites(&deployment.graph, &deployment.places);
        Worth::Placed {
            rate_bps,
            marginal_bps: rate_bps - promised,
            cores: sites.iter().filter(|site| **site != Site::Switch).count(),
            on_switch: on_switch.map(|node| node.members.len()).sum(),
            full: if headroom.cores <= headroom.links { "core" } else { "server's links" },
        }
    }

    /// Where the instances of a node are: `switch`, or servers with how many each.
    fn places(&self, sites: &[Site], node: PNodeId) -> String {
        let mut counts: BTreeMap<Site, usize> = BTreeMap::new();
        for (site, _) in sites.iter().zip(&self.deployment.graph.instances).filter(|(_, i)| i.node == node) {
            *counts.entry(*site).or_default() += 1;
        }
        let name = |site: &Site| match site {
            Site::Switch => self.rack.switch.as_ref().map_or("switch", |s| &s.name).to_owned(),
            Site::Server(id) => self.rack.servers.get(*id).map_or("?", |s| &s.name).to_owned(),
        };
        let places = counts.iter().map(|(site, count)| match (site, count) {
            (Site::Switch, _) | (_, 1) => name(site),
            _ => format!("{count} on {}", name(site)),
        });
        places.collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let deployment = &self.deployment;
        let sites = deployment.offload.sites(&deployment.graph, &deployment.places);
        let cores = sites.iter().filter(|site| **site != Site::Switch).count();
        writeln!(
            f,
            "E2 places {} instances, each on a core of its own, on the rack `{}`: {cores} cores; {} Gbit/s go between servers.\n",
            deployment.graph.instances.len(),
            self.rack.name,
            gbit(deployment.cross_bps as f64)
        )?;
        let mut table = Table::new(
            &["function", "kind", "Gbit/s in", "one carries", "instances", "where"],
            &[false, false, true, true, true, false],
        );
        for (node, (about, size)) in deployment.policy.nodes.iter().zip(&deployment.sizes).enumerate() {
            let short = if size.carries() { "" } else { " (too few: it cannot be divided)" };
            table.row([
                about.name.clone(),
                about.function.clone(),
                gbit(size.load_bps),
                gbit(size.capacity_bps),
                size.instances.to_string(),
                self.places(&sites, node) + short,
            ]);
        }
        write!(f, "{table}")?;
        let (tunnels, entries) = (deployment.wiring.tunnels.len(), deployment.wiring.switch_entries);
        writeln!(
            f,
            "\n{tunnels} tunnels join them; the switch needs {entries} flow entries for what enters by its ports."
        )?;
        match &self.guarded[..] {
            [] => Ok(()),
            names => writeln!(f, "`unparsed = drop` is done on a server, in front of {}.", names.join(", ")),
        }
    }
}

//! From a placement to a [`Plan`]: core numbers, loads, what bound each chain, why each function is where it is.

mod bounds;
mod cores;
pub mod draw;
mod loads;
mod remedies;
#[cfg(test)]
mod tests;
mod trees;
mod why;

use std::collections::BTreeMap;

pub use remedies::remedies;

use crate::plan::{
    Borrowed, ChainPlan, Device, Digests, FunctionPlan, Plan, ServerPlan, SubgroupPlan, SwitchPlan, VERSION, Verdict,
    WorkerPart, WorkerPlan,
};
use crate::schedule::not_whole;
use catena_plan_model::estimate::Layout;
use catena_plan_model::placement::{Link, Outcome, Placement, Site};
use catena_plan_model::problem::{ChainId, Problem};
use catena_plan_model::rack::{Rack, SwitchKind};
use catena_plan_model::switch::{Feasible, Use};
use loads::Loads;

/// What a plan is explained with.
pub struct Case<'a> {
    /// What had to be decided.
    pub problem: &'a Problem,
    /// The rack that the problem was made of.
    pub rack: &'a Rack,
    /// What says what the switch holds.
    pub switch: &'a dyn Feasible,
    /// Where figures that were not measured come from, by function.
    pub sources: &'a BTreeMap<String, String>,
    /// Who decided.
    pub strategy: &'a str,
    /// What runs: it keeps its cores, as far as that can be.
    pub runs: Option<&'a Plan>,
}

impl Plan {
    /// The plan that `outcome` means.
    #[must_use]
    pub fn of(case: &Case<'_>, outcome: &Outcome) -> Plan {
        let empty = Placement::default();
        let broken;
        let (view, outcome) = match View::of(case, outcome.placement().unwrap_or(&empty)) {
            Ok(view) => (view, outcome),
            // Cores are enough, and none of them has room for something that may have one only: that is no plan.
            Err(why) => {
                broken = Outcome::Infeasible { proven: false, why };
                (View::bare(case, &empty), &broken)
            }
        };
        let placement = outcome.placement();
        let verdict = match outcome {
            Outcome::Placed { marginal_bps, bound_bps, .. } => {
                // Nothing is proven of what the model does not have.
                let bound_bps = bound_bps.filter(|_| case.problem.unseen.is_empty());
                Verdict::Kept { marginal_bps: *marginal_bps, bound_bps }
            }
            Outcome::Infeasible { proven, why } => {
                Verdict::Broken { proven: *proven, why: why.clone(), remedies: None }
            }
        };
        let servers = view.servers();
        let digests = Some(Digests::of(case.problem, &verdict, &servers));
        let mut plan = Plan {
            version: VERSION,
            what_if: Vec::new(),
            rack: case.rack.name.clone(),
            strategy: case.strategy.to_owned(),
            objective: case.problem.objective,
            replication: case.problem.replication,
            packet_bytes: case.rack.packet_bytes,
            verdict,
            chains: view.chains(&servers),
            links: view.links(),
            smart_nics: view.smart_nics(),
            switch: view.switch(),
            borrowed: view.borrowed(),
            unseen: case.problem.unseen.clone(),
            policy: None,
            held: None,
            left_out: Vec::new(),
            made_of: None,
            digests,
            deployment: None,
            delta: None,
            placement: placement.cloned(),
            problem: case.problem.clone(),
            servers,
        };
        plan.seal();
        plan
    }
}

/// A placement with everything that follows from it.
struct View<'a> {
    case: &'a Case<'a>,
    problem: &'a Problem,
    placement: &'a Placement,
    /// By chain; empty without a placement.
    layouts: Vec<Layout>,
    /// Of links.
    loads: Loads,
    /// By subgroup of the placement.
    numbers: Vec<Vec<cores::Part>>,
}

impl<'a> View<'a> {
    fn of(case: &'a Case<'a>, placement: &'a Placement) -> Result<View<'a>, String> {
        let mut view = View::bare(case, placement);
        view.numbers = cores::numbers(&view)?;
        Ok(view)
    }

    /// The same without numbers of cores.
    fn bare(case: &'a Case<'a>, placement: &'a Placement) -> View<'a> {
        let problem = case.problem;
        let chains = problem.chains.iter().zip(&placement.sites);
        let layouts: Vec<Layout> = chains.map(|(chain, sites)| Layout::of(problem, chain, sites)).collect();
        let loads = Loads::of(problem, placement, &layouts);
        View { case, problem, placement, layouts, loads, numbers: Vec::new() }
    }

    /// Whether a subgroup of the placement may have several cores.
    fn is_replicable(&self, subgroup: usize) -> bool {
        let Some(placed) = self.placement.subgroups.get(subgroup) else { return false };
        let groups = self.layouts.get(placed.chain).map_or(&[][..], |layout| &layout.groups);
        groups.iter().any(|group| group.nodes == placed.nodes && group.replicable)
    }

    /// Whether every core runs all chains for its part of the flows.
    fn is_whole(&self) -> bool {
        not_whole(self.problem, self.placement, |subgroup| self.is_replicable(subgroup)).is_none()
    }

    /// Bits per second that chain `id` carries.
    fn rate(&self, id: ChainId) -> f64 {
        self.placement.rates_bps.get(id).copied().unwrap_or(0.0)
    }

    fn node_name(&self, chain: ChainId, node: usize) -> String {
        self.problem.chains.get(chain).and_then(|c| c.nodes.get(node)).map_or("?", |n| &n.name).to_owned()
    }

    fn server_name(&self, server: usize) -> String {
        self.problem.servers.get(server).map_or("?", |s| &s.name).to_owned()
    }

    /// The server and its card.
    fn link_name(&self, server: usize, link: Link) -> String {
        match link {
            Link::SmartNic(nic) => self.problem.smart_nics.get(nic).map_or("?", |n| &n.name).to_owned(),
            Link::Nic(nic) => {
                let card = self.case.rack.servers.get(server).and_then(|s| s.nics.get(nic));
                format!("{}.{}", self.server_name(server), card.map_or("?", |c| &c.name))
            }
        }
    }

    fn chains(&self, servers: &[ServerPlan]) -> Vec<ChainPlan> {
        let finite = |x: f64| x.is_finite().then_some(x);
        let batches = self.problem.in_full_batches();
        let mut plans = Vec::new();
        for (id, (chain, layout)) in self.problem.chains.iter().zip(&self.layouts).enumerate() {
            let rate = self.rate(id);
            plans.push(ChainPlan {
                name: chain.name.clone(),
                t_min_bps: chain.t_min_bps,
                t_max_bps: finite(chain.t_max_bps),
                d_max_ns: finite(chain.d_max_ns),
                rate_bps: rate,
                slack_bps: rate - chain.t_min_bps,
                latency_ns: layout.latency_ns,
                batch_ns: Layout::of(&batches, &batches.chains[id], &self.placement.sites[id]).latency_ns,
                queue_ns: None,
                bounces: layout.stays.iter().map(|stay| stay.visits).sum(),
                bounds: self.bounds(id),
                functions: (0..chain.nodes.len()).filter_map(|node| self.function(id, node, servers)).collect(),
                edges: chain.edges.clone(),
            });
        }
        plans
    }

    fn function(&self, id: ChainId, node: usize, servers: &[ServerPlan]) -> Option<FunctionPlan> {
        let about = self.problem.chains.get(id)?.nodes.get(node)?;
        let site = *self.placement.sites.get(id)?.get(node)?;
        let (device, on, cycles) = match site {
            Site::Switch => {
                let switch = self.problem.switch.as_ref();
                let device = switch.map_or(Device::PlainSwitch, |s| Device::of(&s.kind));
                (device, switch.map_or("switch", |s| &s.name).to_owned(), None)
            }
            Site::Server(server) => (Device::Server, self.server_name(server), about.server),
            Site::SmartNic(nic) => {
                let name = self.problem.smart_nics.get(nic).map_or("?", |n| &n.name);
                (Device::SmartNic, name.to_owned(), about.smart_nic)
            }
        };
        let chain = &self.problem.chains.get(id)?.name;
        let subgroups = servers.iter().find(|s| s.name == on).map_or(&[][..], |s| &s.subgroups);
        let subgroup = subgroups.iter().position(|g| g.chain == *chain && g.functions.contains(&about.name));
        let cores = subgroup.and_then(|g| subgroups.get(g)).map_or_else(Vec::new, |g| g.on.clone());
        Some(FunctionPlan {
            name: about.name.clone(),
            function: about.function.clone(),
            device,
            on,
            share: about.share,
            cycles,
            subgroup: subgroup.filter(|_| device == Device::Server),
            cores,
            why: self.why(id, node)?,
            borrowed: self.case.sources.contains_key(&about.function),
        })
    }

    fn servers(&self) -> Vec<ServerPlan> {
        let mut plans = Vec::new();
        for (id, (about, rack)) in self.problem.servers.iter().zip(&self.case.rack.servers).enumerate() {
            let mut subgroups = Vec::new();
            let mut workers: BTreeMap<u32, Vec<WorkerPart>> = BTreeMap::new();
            let mut used = 0.0;
            for (subgroup, parts) in self.placement.subgroups.iter().zip(&self.numbers) {
                if subgroup.server != id {
                    continue;
                }
                used += subgroup.cores;
                for part in parts {
                    let here = WorkerPart { subgroup: subgroups.len(), share: part.share };
                    workers.entry(part.core).or_default().push(here);
                }
                subgroups.extend(self.subgroup(subgroup, parts.iter().map(|part| part.core).collect()));
            }
            plans.push(ServerPlan {
                name: about.name.clone(),
                clock_hz: about.clock_hz,
                cores: about.cores,
                cores_per_socket: rack.cores_per_socket,
                cores_used: used,
                steering: cores::steering(rack),
                workers: workers
                    .into_iter()
                    .map(|(core, parts)| WorkerPlan {
                        core,
                        socket: core / rack.cores_per_socket.max(1),
                        tree: Some(self.tree(&parts, &subgroups)),
                        parts,
                    })
                    .collect(),
                subgroups,
                tasks: None,
            });
        }
        plans
    }

    fn subgroup(&self, subgroup: &catena_plan_model::placement::Subgroup, on: Vec<u32>) -> Option<SubgroupPlan> {
        let chain = self.problem.chains.get(subgroup.chain)?;
        let group = self.layouts.get(subgroup.chain)?.groups.iter().find(|g| g.nodes == subgroup.nodes)?;
        let clock_hz = self.problem.servers.get(subgroup.server)?.clock_hz;
        let capacity_bps = group.packets(subgroup.cores, clock_hz) * chain.packet_bits();
        Some(SubgroupPlan {
            chain: chain.name.clone(),
            functions: subgroup.nodes.iter().map(|&node| self.node_name(subgroup.chain, node)).collect(),
            cores: subgroup.cores,
            on,
            link: self.link_name(subgroup.server, subgroup.link),
            cycles: if subgroup.cores > 1.0 { group.cost + group.spread } else { group.cost },
            capacity_bps,
            load: if capacity_bps > 0.0 { self.rate(subgroup.chain) / capacity_bps } else { 0.0 },
            replicable: group.replicable,
        })
    }

    fn switch(&self) -> Option<SwitchPlan> {
        let switch = self.case.rack.switch.as_ref()?;
        let verdict = self.case.switch.verdict(self.problem, &self.on_switch());
        let there = |used: Use| (used.available > 0).then_some((used.used, used.available));
        let (kind, runs) = match &switch.kind {
            SwitchKind::Plain { .. } => ("forwards only".to_owned(), false),
            SwitchKind::Pisa(stages) => (format!("programmable, {} stages", stages.stages), true),
            SwitchKind::OpenFlow { tables } => (format!("OpenFlow, {} tables", tables.len()), true),
        };
        Some(SwitchPlan {
            name: switch.name.clone(),
            kind,
            stages: there(verdict.stages).filter(|_| runs),
            sram: there(verdict.sram),
            tcam: there(verdict.tcam),
            entries: there(verdict.entries),
        })
    }

    /// Which nodes are on the switch, by chain and node.
    fn on_switch(&self) -> Vec<Vec<bool>> {
        let sites = self.placement.sites.iter();
        sites.map(|sites| sites.iter().map(|site| *site == Site::Switch).collect()).collect()
    }

    /// The functions of the chains whose figures were not measured.
    fn borrowed(&self) -> Vec<Borrowed> {
        let named = |function: &String| {
            self.problem.chains.iter().flat_map(|chain| &chain.nodes).any(|node| node.function == *function)
        };
        let sources = self.case.sources.iter().filter(|(function, _)| named(function));
        sources.map(|(f, s)| Borrowed { function: f.clone(), source: s.clone() }).collect()
    }
}

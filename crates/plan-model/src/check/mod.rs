//! The independent checker: whether a placement is one, and how much it leaves unused.
//!
//! It is written from the definitions in [`crate::problem`] alone, and shares nothing with
//! [`crate::estimate`] and the planners: what both got wrong in the same way is all it can miss.

mod facts;
mod given;
mod relations;
mod violation;

use crate::placement::{Link, Placement, Site};
use crate::problem::{ChainId, NodeId, Problem, ServerId};
use crate::switch::{Feasible, Stage, Verdict};
use facts::{Facts, facts};

pub use violation::Violation;

/// Figures may exceed what they are held against by this part of it: solvers compute with tolerances.
pub const TOLERANCE: f64 = 1e-6;
/// So many bits per second of a chain are nothing: beside hundreds of gigabits they are less than solvers round away.
pub const NOTHING_BPS: f64 = 1e3;

/// How much of something is used, and how much there is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Amount {
    /// Used.
    pub used: f64,
    /// There.
    pub available: f64,
}

impl Amount {
    /// What is left.
    #[must_use]
    pub fn slack(self) -> f64 {
        self.available - self.used
    }

    /// Whether no more is used than is there; never, if either is not a number.
    #[must_use]
    pub fn holds(self) -> bool {
        self.used <= self.available + TOLERANCE * self.available.abs()
    }
}

/// What a placement that keeps all promises uses.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// By chain.
    pub chains: Vec<ChainReport>,
    /// Cycles per second of each subgroup and of its cores, in the placement's order.
    pub subgroups: Vec<Amount>,
    /// Cycles per packet of the chain that each subgroup takes with one core, and with several, in the placement's order.
    pub cycles: Vec<[f64; 2]>,
    /// Whether each subgroup may have several cores, in the placement's order.
    pub replicable: Vec<bool>,
    /// Cores of each server.
    pub cores: Vec<Amount>,
    /// Bits per second each way of each network card, by server: ordinary ones first, then SmartNICs.
    pub links: Vec<(ServerId, Link, Amount)>,
    /// Cycles per second of each SmartNIC.
    pub smart_nics: Vec<Amount>,
    /// Bits per second that the switch forwards.
    pub forwarded: Amount,
    /// What the switch says.
    pub switch: Verdict,
    /// What its stages or tables hold.
    pub stages: Vec<Stage>,
    /// The sum of the chains' rates above their guarantees, bits per second.
    pub marginal_bps: f64,
}

/// A chain's promises and what becomes of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChainReport {
    /// Its rate, bits per second.
    pub rate_bps: f64,
    /// Rate above the guarantee, bits per second.
    pub marginal_bps: f64,
    /// Its rate and what is allowed or can enter, bits per second.
    pub limit: Amount,
    /// The longest path's nanoseconds, and those allowed.
    pub latency: Amount,
    /// The longest path.
    pub path: Vec<NodeId>,
    /// Nanoseconds of the longest path where packets wait for full batches.
    pub batch_ns: f64,
    /// Visits to servers, per packet of the chain.
    pub visits: f64,
}

/// Check `placement` against the definitions in [`crate::problem`]; `feasible` speaks for the switch.
///
/// # Errors
///
/// All violations that were found; if the placement does not even have the problem's shape, those of its
/// shape alone.
pub fn check(problem: &Problem, placement: &Placement, feasible: &dyn Feasible) -> Result<Report, Vec<Violation>> {
    let mut wrong = given::wrong(problem);
    wrong.extend(shape(problem, placement));
    if !wrong.is_empty() {
        return Err(wrong);
    }
    let mut check = Check { problem, placement, report: Report::default(), violations: Vec::new() };
    let chains = problem.chains.iter().zip(&placement.sites);
    let facts: Vec<Facts> = chains.map(|(chain, sites)| facts(problem, chain, sites)).collect();
    check.subgroups(&facts);
    check.cores();
    check.links(&facts);
    check.forwarding(&facts);
    check.smart_nics();
    check.promises(&facts);
    check.violations.extend(relations::broken(problem, &placement.rates_bps));
    check.switch(feasible);
    if check.violations.is_empty() { Ok(check.report) } else { Err(check.violations) }
}

/// What follows from a chain's sites alone, as the check finds it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Apart {
    /// Visits to servers, per packet of the chain.
    pub visits: f64,
    /// The longest path's nanoseconds.
    pub latency_ns: f64,
    /// Subgroups.
    pub subgroups: usize,
}

/// What would follow if a chain's nodes were at `sites`, of which each must exist and its node be able to run there.
#[must_use]
pub fn at_sites(problem: &Problem, chain: ChainId, sites: &[Site]) -> Apart {
    let facts = facts(problem, &problem.chains[chain], sites);
    let visits = facts.stays.iter().map(|stay| stay.visits).sum();
    Apart { visits, latency_ns: facts.latency_ns, subgroups: facts.subgroups.len() }
}

/// What must be right before anything can be computed: lengths and indices, and that nodes can run where
/// they are.
fn shape(problem: &Problem, placement: &Placement) -> Vec<Violation> {
    let mut wrong = Vec::new();
    let mut length = |of: String, found: usize, expected: usize| {
        if found != expected {
            wrong.push(Violation::Length { of, found, expected });
        }
    };
    length("chains with sites".into(), placement.sites.len(), problem.chains.len());
    length("rates".into(), placement.rates_bps.len(), problem.chains.len());
    for (chain, sites) in problem.chains.iter().zip(&placement.sites) {
        length(format!("sites of chain `{}`", chain.name), sites.len(), chain.nodes.len());
    }
    for (chain, sites) in problem.chains.iter().zip(&placement.sites) {
        for (node, site) in chain.nodes.iter().zip(sites) {
            let can = match *site {
                // Whether the switch can run it at all, the switch's verdict tells.
                Site::Switch => problem.switch.is_some(),
                Site::Server(server) => server < problem.servers.len() && node.server.is_some(),
                Site::SmartNic(nic) => nic < problem.smart_nics.len() && node.smart_nic.is_some(),
            };
            if !can {
                wrong.push(Violation::Site { chain: chain.name.clone(), node: node.name.clone(), site: *site });
            }
        }
    }
    for subgroup in &placement.subgroups {
        let there = match subgroup.link {
            Link::Nic(nic) => problem.servers.get(subgroup.server).is_some_and(|s| nic < s.nics_bps.len()),
            Link::SmartNic(nic) => problem.smart_nics.get(nic).is_some_and(|card| card.server == subgroup.server),
        };
        let chain = problem.chains.get(subgroup.chain);
        if chain.is_none_or(|chain| subgroup.nodes.iter().any(|&node| node >= chain.nodes.len())) || !there {
            wrong.push(Violation::Index { subgroup: subgroup.clone() });
        }
    }
    wrong
}

/// Packets that no node sees fill links in their order; the last one takes what has no room.
fn fill(links: &mut [(ServerId, Link, Amount)], mut bps: f64) {
    let last = links.len().saturating_sub(1);
    for (id, (_, _, amount)) in links.iter_mut().enumerate() {
        let part = if id == last { bps } else { bps.min(amount.slack().max(0.0)) };
        amount.used += part;
        bps -= part;
    }
}

struct Check<'a> {
    problem: &'a Problem,
    placement: &'a Placement,
    report: Report,
    violations: Vec<Violation>,
}

impl Check<'_> {
    /// Packets of a chain in a second.
    fn packets(&self, chain: ChainId) -> f64 {
        self.placement.rates_bps[chain] / (self.problem.chains[chain].packet_bytes * 8.0)
    }

    fn chain_name(&self, chain: ChainId) -> String {
        self.problem.chains[chain].name.clone()
    }

    fn node_names(&self, chain: ChainId, nodes: &[NodeId]) -> Vec<String> {
        nodes.iter().map(|&node| self.problem.chains[chain].nodes[node].name.clone()).collect()
    }

    fn server_name(&self, server: ServerId) -> String {
        self.problem.servers[server].name.clone()
    }

    /// The subgroups are those that the sites make; each has cores as it may, and enough of them.
    fn subgroups(&mut self, facts: &[Facts]) {
        for (chain, facts) in facts.iter().enumerate() {
            for group in &facts.subgroups {
                let same = |s: &&crate::placement::Subgroup| s.chain == chain && s.nodes == group.nodes;
                let found = self.placement.subgroups.iter().filter(same).count();
                if found != 1 {
                    let (chain, nodes) = (self.chain_name(chain), self.node_names(chain, &group.nodes));
                    self.violations.push(Violation::Subgroup { chain, nodes, found });
                }
            }
        }
        for subgroup in &self.placement.subgroups {
            let (chain, cores) = (subgroup.chain, subgroup.cores);
            let (name, nodes) = (self.chain_name(chain), self.node_names(chain, &subgroup.nodes));
            let group =
                facts[chain].subgroups.iter().find(|g| g.nodes == subgroup.nodes && g.server == subgroup.server);
            let Some(group) = group else {
                self.violations.push(Violation::NoSubgroup { chain: name, nodes });
                self.report.subgroups.push(Amount::default());
                self.report.cycles.push([0.0; 2]);
                self.report.replicable.push(false);
                continue;
            };
            let server = &self.problem.servers[group.server];
            let whole = cores.fract() == 0.0 && cores >= 1.0;
            if !(cores.is_finite() && cores > 0.0 && (server.shared || whole)) {
                self.violations.push(Violation::CoreCount { chain: name.clone(), nodes: nodes.clone(), cores });
            }
            let several = cores > 1.0 + TOLERANCE;
            if several && !group.replicable {
                self.violations.push(Violation::Replicated { chain: name.clone(), nodes: nodes.clone(), cores });
            }
            let cost = if several { group.cost_spread } else { group.cost_alone };
            let cycles = Amount { used: self.packets(chain) * cost, available: cores * server.clock_hz };
            if !cycles.holds() {
                self.violations.push(Violation::Cycles { chain: name, nodes, cores, cycles });
            }
            self.report.subgroups.push(cycles);
            self.report.cycles.push([group.cost_alone, group.cost_spread]);
            self.report.replicable.push(group.replicable);
        }
    }

    /// No server gives more cores than it has.
    fn cores(&mut self) {
        for (id, server) in self.problem.servers.iter().enumerate() {
            let mine = self.placement.subgroups.iter().filter(|s| s.server == id);
            let cores = Amount { used: mine.map(|s| s.cores).sum(), available: f64::from(server.cores) };
            if !cores.holds() {
                self.violations.push(Violation::Cores { server: self.server_name(id), cores });
            }
            self.report.cores.push(cores);
        }
    }

    /// Subgroups beside a SmartNIC's functions use its link, and no link carries more than it can.
    fn links(&mut self, facts: &[Facts]) {
        let mut links: Vec<(ServerId, Link, Amount)> = Vec::new();
        for (id, server) in self.problem.servers.iter().enumerate() {
            let ordinary = server.nics_bps.iter().enumerate().map(|(nic, &bps)| (Link::Nic(nic), bps));
            let cards = self.problem.smart_nics.iter().enumerate().filter(|(_, card)| card.server == id);
            let all = ordinary.chain(cards.map(|(nic, card)| (Link::SmartNic(nic), card.bps)));
            links.extend(all.map(|(link, available)| (id, link, Amount { used: 0.0, available })));
        }
        let mut load = |server: ServerId, link: Link, bps: f64| {
            let found = links.iter_mut().find(|(s, l, _)| (*s, *l) == (server, link));
            found.into_iter().for_each(|(_, _, amount)| amount.used += bps);
        };
        for (chain, facts) in facts.iter().enumerate() {
            // Each packet has its tunnel's header on the way to a card and back.
            let header = self.problem.switch.as_ref().map_or(0.0, |switch| 8.0 * switch.header_bytes());
            let bits = 8.0 * self.problem.chains[chain].packet_bytes;
            let rate = self.placement.rates_bps[chain] / bits * (bits + header);
            for stay in &facts.stays {
                if let Some(card) = stay.card {
                    load(stay.server, Link::SmartNic(card), rate * stay.visits);
                }
                for subgroup in self.placement.subgroups.iter().filter(|s| s.chain == chain) {
                    if !subgroup.nodes.iter().any(|node| stay.nodes.contains(node)) {
                        continue;
                    }
                    match stay.card {
                        None => load(stay.server, subgroup.link, rate * stay.visits),
                        Some(card) if subgroup.link == Link::SmartNic(card) => {}
                        Some(card) => self.violations.push(Violation::Link {
                            chain: self.problem.chains[chain].name.clone(),
                            nodes: self.node_names(chain, &subgroup.nodes),
                            link: subgroup.link,
                            card: self.problem.smart_nics[card].name.clone(),
                        }),
                    }
                }
            }
        }
        if self.problem.switch.is_none() {
            let direct = facts.iter().zip(&self.placement.rates_bps).map(|(facts, rate)| rate * facts.direct).sum();
            fill(&mut links, direct);
        }
        for &(server, link, bps) in links.iter().filter(|(_, _, bps)| !bps.holds()) {
            let card = match link {
                Link::Nic(nic) => format!("network card {nic}"),
                Link::SmartNic(nic) => format!("SmartNIC `{}`", self.problem.smart_nics[nic].name),
            };
            self.violations.push(Violation::Bandwidth { server: self.server_name(server), card, bps });
        }
        self.report.links = links;
    }

    /// What goes from server to server goes through a switch, which forwards no more than it can.
    fn forwarding(&mut self, facts: &[Facts]) {
        if let Some(switch) = &self.problem.switch {
            let passes = |facts: &Facts| facts.stays.iter().fold(1.0, |passes, stay| passes + stay.visits);
            let rates = self.placement.rates_bps.iter().zip(facts);
            let used = rates.map(|(rate, facts)| rate * passes(facts)).sum();
            let bps = Amount { used, available: switch.capacity_bps };
            if !bps.holds() {
                self.violations.push(Violation::Forwarding { switch: switch.name.clone(), bps });
            }
            self.report.forwarded = bps;
            return;
        }
        for (chain, facts) in facts.iter().enumerate() {
            let mut servers: Vec<ServerId> = facts.stays.iter().map(|stay| stay.server).collect();
            servers.sort_unstable();
            servers.dedup();
            if servers.len() > 1 {
                let servers = servers.into_iter().map(|server| self.server_name(server)).collect();
                self.violations.push(Violation::Apart { chain: self.chain_name(chain), servers });
            }
        }
    }

    /// No SmartNIC computes more than it can.
    fn smart_nics(&mut self) {
        for (id, card) in self.problem.smart_nics.iter().enumerate() {
            let mut used = 0.0;
            for (chain, sites) in self.placement.sites.iter().enumerate() {
                for (node, _) in
                    self.problem.chains[chain].nodes.iter().zip(sites).filter(|(_, s)| **s == Site::SmartNic(id))
                {
                    used += self.packets(chain) * node.share * node.smart_nic.unwrap_or(f64::NAN);
                }
            }
            let cycles = Amount { used, available: card.cycles_hz };
            if !cycles.holds() {
                self.violations.push(Violation::SmartNicCycles { card: card.name.clone(), cycles });
            }
            self.report.smart_nics.push(cycles);
        }
    }

    /// Rates are within promises, and no path takes too long.
    fn promises(&mut self, facts: &[Facts]) {
        for ((id, chain), facts) in self.problem.chains.iter().enumerate().zip(facts) {
            let (rate, name) = (self.placement.rates_bps[id], &chain.name);
            let least = Amount { used: chain.t_min_bps, available: rate };
            // An infinite upper end allows all rates.
            let most = if chain.t_max_bps < chain.ingress_bps { chain.t_max_bps } else { chain.ingress_bps };
            let limit = Amount { used: rate, available: most };
            let latency = Amount { used: facts.latency_ns, available: chain.d_max_ns };
            if !least.holds() {
                self.violations.push(Violation::TooSlow {
                    chain: name.clone(),
                    rate_bps: rate,
                    t_min_bps: chain.t_min_bps,
                });
            }
            if !limit.holds() || !rate.is_finite() {
                self.violations.push(Violation::TooFast { chain: name.clone(), rate: limit });
            }
            if !latency.holds() {
                let path = self.node_names(id, &facts.path);
                self.violations.push(Violation::Latency { chain: name.clone(), path, latency });
            }
            let marginal_bps = rate - chain.t_min_bps;
            self.report.marginal_bps += marginal_bps;
            let visits = facts.stays.iter().map(|stay| stay.visits).sum();
            let (path, batch_ns) = (facts.path.clone(), facts.batch_ns);
            self.report.chains.push(ChainReport {
                rate_bps: rate,
                marginal_bps,
                limit,
                latency,
                path,
                batch_ns,
                visits,
            });
        }
    }

    /// The switch holds what is placed on it.
    fn switch(&mut self, feasible: &dyn Feasible) {
        let on = |sites: &Vec<Site>| sites.iter().map(|site| *site == Site::Switch).collect();
        let on_switch: Vec<Vec<bool>> = self.placement.sites.iter().map(on).collect();
        let verdict = feasible.verdict(self.problem, &on_switch);
        if !verdict.fits() {
            self.violations.push(Violation::Switch { verdict: verdict.clone() });
        }
        self.report.stages = feasible.layout(self.problem, &on_switch);
        self.report.switch = verdict;
    }
}

#[cfg(test)]
mod agreement;
#[cfg(test)]
mod tests;

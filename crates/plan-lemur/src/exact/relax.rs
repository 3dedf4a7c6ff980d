//! Why nothing can be placed, and what would have to be added (the cheapest extra core, link or stage).
//!
//! Each question is the planner's own program with one kind of resource unlimited and the shortage of it
//! minimised, or with chains left out.

use std::cell::Cell;
use std::time::Instant;

use super::master::{Goal, Master};
use super::options::Options;
use super::patterns::sites;
use super::resources::{ROUNDING, Resource, Resources, UNIT};
use super::{End, Search, Settings};
use catena_plan_model::estimate::all_links;
use catena_plan_model::figures::{gbit, us};
use catena_plan_model::placement::Link;
use catena_plan_model::problem::{Chain, ChainId, NodeId, Problem, ServerId};
use catena_plan_model::rack::{MAX_CORES, SwitchKind};
use catena_plan_model::switch::Feasible;

/// More stages than this are not asked for.
const MOST_STAGES: u32 = 64;
/// What stands for links without limit, bits per second: what there is may be so slow that no multiple of it says anything.
const FAST_LINK: f64 = 1e12;
/// The same for a core of a card, cycles per second.
const FAST_CORE: f64 = 1e10;
/// The same for all that a switch forwards, bits per second.
const FAST_SWITCH: f64 = 1e15;

/// What is in the way of keeping all promises. Each remedy would do alone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Obstacles {
    /// Functions that can run nowhere in the rack.
    pub homeless: Vec<(ChainId, NodeId)>,
    /// Chains too slow wherever their functions run, with the least nanoseconds that a packet can take.
    pub late: Vec<(ChainId, f64)>,
    /// Chains whose promise is more than may enter them.
    pub choked: Vec<ChainId>,
    /// Relations without which all promises could be kept.
    pub relations: Vec<String>,
    /// Chains whose promises cannot all be kept.
    pub conflict: Vec<ChainId>,
    /// Cores more, by server, that would do: the fewest in total.
    pub cores: Option<Vec<(ServerId, u32)>>,
    /// Bits per second more, by link, that would do: the least in total.
    pub links: Option<Vec<(ServerId, Link, f64)>>,
    /// Cycles per second more, by SmartNIC, that would do: the fewest in total.
    pub smart_nics: Option<Vec<(usize, f64)>>,
    /// Bits per second more that the switch would have to forward.
    pub forwarding: Option<f64>,
    /// Stages more of the switch that would do, as far as the built-in packer can tell.
    pub stages: Option<u32>,
    /// Entries of each flow table of the switch that would do: the fewest, and no fewer than any has.
    pub entries: Option<u32>,
    /// Whether the functions find no place even if nothing is promised.
    pub unheld: bool,
    /// Whether each set of all of these but one was planned.
    pub minimal: bool,
    /// Whether the time allowed was enough for all of this, and everything that was found does when it is tried.
    pub complete: bool,
}

/// What is in the way of `problem`, which cannot be placed.
#[must_use]
pub fn obstacles(problem: &Problem, switch: &dyn Feasible, settings: &Settings) -> Obstacles {
    let asker = Asker { switch, settings, deadline: Instant::now() + settings.time, cut: Cell::new(false) };
    let mut found = Obstacles { homeless: homeless(problem), ..Obstacles::default() };
    found.complete = true;
    let choked = |(_, chain): &(ChainId, &Chain)| chain.limit_bps() < chain.t_min_bps * (1.0 - ROUNDING);
    found.choked = problem.chains.iter().enumerate().filter(choked).map(|(id, _)| id).collect();
    if !found.homeless.is_empty() || !found.choked.is_empty() {
        return found;
    }
    // Nobody asks for more than what is promised: that leaves few choices.
    let whole = problem;
    let mut problem = problem.clone();
    let ratios: Vec<ChainId> = problem.relations.iter().flat_map(|r| r.members()).map(|m| m.chain).collect();
    let free = |(id, _): &(usize, &mut Chain)| !ratios.contains(id);
    problem.chains.iter_mut().enumerate().filter(free).for_each(|(_, chain)| chain.t_max_bps = chain.t_min_bps);
    let problem = &problem;
    let resources = Resources::of(problem);
    let search = Search::new(problem, &resources, switch, settings, asker.deadline);
    if search.cut {
        found.complete = false;
        return found;
    }
    found.late = late(problem, &search.options);
    if !found.late.is_empty() {
        return found;
    }
    found.conflict = asker.conflict(&search);
    found.relations = asker.relations(problem);
    found.cores = asker.cores(problem);
    found.links = asker.links(problem);
    found.smart_nics = asker.smart_nics(problem);
    found.forwarding = asker.forwarding(problem);
    found.stages = asker.stages(problem);
    found.entries = asker.entries(problem);
    found.unheld = asker.unheld(problem);
    found.complete = Instant::now() < asker.deadline && !asker.cut.get() && search.complete;
    found.verify(whole, switch, settings, asker.deadline);
    found
}

fn homeless(problem: &Problem) -> Vec<(ChainId, NodeId)> {
    let mut found = Vec::new();
    for (id, chain) in problem.chains.iter().enumerate() {
        let nowhere = chain.nodes.iter().enumerate().filter(|(_, node)| sites(problem, node).is_empty());
        found.extend(nowhere.map(|(node, _)| (id, node)));
    }
    found
}

fn late(problem: &Problem, options: &[Options]) -> Vec<(ChainId, f64)> {
    let late = problem.chains.iter().zip(options).enumerate().filter(|(_, (_, o))| o.patterns > 0 && o.in_time == 0);
    late.map(|(id, (_, o))| (id, o.least_ns)).collect()
}

struct Asker<'a> {
    switch: &'a dyn Feasible,
    settings: &'a Settings,
    deadline: Instant,
    /// Whether a question was given up because it has too many patterns for the time.
    cut: Cell<bool>,
}

impl Asker<'_> {
    /// Leave out one chain after the other as long as the rest cannot be placed.
    fn conflict(&self, search: &Search<'_>) -> Vec<ChainId> {
        let mut chains: Vec<ChainId> = (0..search.problem.chains.len()).collect();
        let mut master = Master::new(search.problem, search.resources, &search.options);
        let mut next = 0;
        // The other half of the time is for what would help.
        let now = Instant::now();
        let until = now + self.deadline.saturating_duration_since(now) / 2;
        while next < chains.len() {
            if Instant::now() >= until {
                self.cut.set(true);
                break;
            }
            let mut rest = chains.clone();
            rest.remove(next);
            master.only(&rest);
            match search.fitting(&mut master, &Goal::Any, &mut search.effort()) {
                End::Infeasible { proven: true } if search.complete => chains = rest,
                End::Best { .. } => next += 1,
                // Nobody knows whether the rest can be kept.
                _ => {
                    self.cut.set(true);
                    next += 1;
                }
            }
        }
        chains
    }

    /// The ratios, if promises can be kept without any.
    fn relations(&self, problem: &Problem) -> Vec<String> {
        let ratios: Vec<String> =
            problem.relations.iter().filter(|r| !r.members().is_empty()).map(|r| r.text().to_owned()).collect();
        if ratios.is_empty() {
            return ratios;
        }
        let free = Problem { relations: Vec::new(), ..problem.clone() };
        let resources = Resources::of(&free);
        let search = Search::new(&free, &resources, self.switch, self.settings, self.deadline);
        let mut master = Master::new(&free, &resources, &search.options);
        match search.fitting(&mut master, &Goal::Any, &mut search.effort()) {
            End::Best { .. } => ratios,
            _ => Vec::new(),
        }
    }

    fn cores(&self, problem: &Problem) -> Option<Vec<(ServerId, u32)>> {
        let mut wide = problem.clone();
        wide.servers.iter_mut().for_each(|s| s.cores = s.cores.max(MAX_CORES));
        let missing = self.shortage(problem, &wide, |r| matches!(r, Resource::Cores(_)))?;
        let cores = missing.into_iter().filter_map(|(resource, amount)| match resource {
            Resource::Cores(server) => Some((server, amount.round() as u32)),
            _ => None,
        });
        let cores: Vec<(ServerId, u32)> = cores.collect();
        // What no rack may have is no remedy.
        let may = |&(id, more): &(ServerId, u32)| problem.servers[id].cores.saturating_add(more) <= MAX_CORES;
        cores.iter().all(may).then_some(cores)
    }

    fn links(&self, problem: &Problem) -> Option<Vec<(ServerId, Link, f64)>> {
        let mut wide = problem.clone();
        wide.servers.iter_mut().flat_map(|s| &mut s.nics_bps).for_each(|bps| *bps = bps.max(FAST_LINK));
        wide.smart_nics.iter_mut().for_each(|nic| nic.bps = nic.bps.max(FAST_LINK));
        let missing = self
            .shortage(problem, &wide, |r| matches!(r, Resource::Nic(..) | Resource::SmartLink(_) | Resource::Cards))?;
        let first = all_links(problem).first().map(|(server, link, _)| (*server, *link));
        let links = missing.into_iter().filter_map(|(resource, amount)| match resource {
            Resource::Nic(server, nic) => Some((server, Link::Nic(nic), amount * UNIT)),
            Resource::SmartLink(nic) => Some((problem.smart_nics[nic].server, Link::SmartNic(nic), amount * UNIT)),
            // Any of them would do.
            Resource::Cards => first.map(|(server, link)| (server, link, amount * UNIT)),
            _ => None,
        });
        let links: Vec<(ServerId, Link, f64)> = links.collect();
        let may = |(server, link, more): &(ServerId, Link, f64)| {
            let there = all_links(problem).into_iter().find(|(id, known, _)| (id, known) == (server, link));
            there.is_none_or(|(_, _, bps)| bps + more <= bps.max(FAST_LINK) * (1.0 + ROUNDING))
        };
        links.iter().all(may).then_some(links)
    }

    fn smart_nics(&self, problem: &Problem) -> Option<Vec<(usize, f64)>> {
        if problem.smart_nics.is_empty() {
            return None;
        }
        let mut wide = problem.clone();
        wide.smart_nics.iter_mut().for_each(|nic| nic.cycles_hz *= (FAST_CORE / nic.clock_hz).max(1.0));
        let missing = self.shortage(problem, &wide, |r| matches!(r, Resource::SmartCycles(_)))?;
        let cycles = missing.into_iter().filter_map(|(resource, amount)| match resource {
            Resource::SmartCycles(nic) => Some((nic, amount * UNIT)),
            _ => None,
        });
        let cycles: Vec<(usize, f64)> = cycles.collect();
        let may = |&(nic, more): &(usize, f64)| {
            let (there, most) = (problem.smart_nics[nic].cycles_hz, wide.smart_nics[nic].cycles_hz);
            there + more <= most * (1.0 + ROUNDING)
        };
        cycles.iter().all(may).then_some(cycles)
    }

    fn forwarding(&self, problem: &Problem) -> Option<f64> {
        let mut wide = problem.clone();
        wide.switch.as_mut().map(|switch| switch.capacity_bps = switch.capacity_bps.max(FAST_SWITCH))?;
        let missing = self.shortage(problem, &wide, |r| matches!(r, Resource::Switch))?;
        missing.into_iter().map(|(_, amount)| amount * UNIT).reduce(|a, b| a + b)
    }

    /// The least that must be added to resources for which `may` holds; None: that does not help. The chains'
    /// choices are those of `wide`, where such resources do not run out.
    fn shortage(
        &self,
        problem: &Problem,
        wide: &Problem,
        may: impl Fn(Resource) -> bool,
    ) -> Option<Vec<(Resource, f64)>> {
        let there = Resources::of(problem);
        let wide_resources = Resources::of(wide);
        let mut search = Search::new(wide, &wide_resources, self.switch, self.settings, self.deadline);
        if search.cut {
            self.cut.set(true);
            return None;
        }
        search.resources = &there;
        let which: Vec<usize> = (0..there.len()).filter(|&r| may(there.kind(r))).collect();
        let mut master = Master::new(wide, &there, &search.options);
        let goal = Goal::Shortage(which.clone());
        let found = match search.fitting(&mut master, &goal, &mut search.effort()) {
            End::Best { found, .. } => found,
            End::Infeasible { proven: true } if search.complete => return None,
            _ => {
                self.cut.set(true);
                return None;
            }
        };
        let missing = which.into_iter().map(|r| (there.kind(r), found.missing[r]));
        Some(missing.filter(|(_, amount)| *amount > 1e-7).collect())
    }

    /// Whether all functions find a place with another switch.
    fn fits(&self, problem: &Problem) -> bool {
        let resources = Resources::of(problem);
        let packer = catena_plan_model::switch::for_problem(problem);
        let search = Search::new(problem, &resources, packer.as_ref(), self.settings, self.deadline);
        if search.cut {
            self.cut.set(true);
            return false;
        }
        let mut master = Master::new(problem, &resources, &search.options);
        matches!(search.fitting(&mut master, &Goal::Any, &mut search.effort()), End::Best { .. })
    }

    fn entries(&self, problem: &Problem) -> Option<u32> {
        let Some(SwitchKind::OpenFlow { tables }) = problem.switch.as_ref().map(|switch| &switch.kind) else {
            return None;
        };
        let largest = tables.iter().map(|table| table.entries).max()?;
        let nodes = problem.chains.iter().flat_map(|chain| &chain.nodes);
        let all = nodes.filter_map(|node| node.openflow).fold(0, u32::saturating_add).max(largest);
        let fits = |entries: u32| with_entries(problem, entries).is_some_and(|problem| self.fits(&problem));
        if self.fits(problem) || !fits(all) {
            return None;
        }
        // What fits in some entries fits in more.
        let (mut too_few, mut enough) = (largest.saturating_sub(1), all);
        while enough - too_few > 1 {
            let middle = too_few + (enough - too_few) / 2;
            if fits(middle) { enough = middle } else { too_few = middle }
        }
        Some(enough)
    }

    /// Whether no placement is one even if nothing is promised: then less of a promise does not help.
    fn unheld(&self, problem: &Problem) -> bool {
        let mut bare = problem.clone();
        for chain in &mut bare.chains {
            (chain.t_min_bps, chain.t_max_bps, chain.d_max_ns) = (0.0, 0.0, f64::INFINITY);
        }
        let resources = Resources::of(&bare);
        let search = Search::new(&bare, &resources, self.switch, self.settings, self.deadline);
        let mut master = Master::new(&bare, &resources, &search.options);
        let end = search.fitting(&mut master, &Goal::Any, &mut search.effort());
        search.complete && !search.cut && matches!(end, End::Infeasible { proven: true })
    }

    fn stages(&self, problem: &Problem) -> Option<u32> {
        let fits = |extra: u32| {
            let mut taller = problem.clone();
            match taller.switch.as_mut().map(|s| &mut s.kind) {
                Some(SwitchKind::Pisa(stages)) => stages.stages = stages.stages.saturating_add(extra),
                _ => return false,
            }
            self.fits(&taller)
        };
        // Another judge than the packer may have found that nothing fits: then stages are not the question.
        if fits(0) || !fits(MOST_STAGES) {
            return None;
        }
        // What fits in some stages fits in more.
        let (mut too_few, mut enough) = (0, MOST_STAGES);
        while enough - too_few > 1 {
            let middle = too_few + (enough - too_few) / 2;
            if fits(middle) { enough = middle } else { too_few = middle }
        }
        Some(enough)
    }
}

/// `problem` with flow tables of so many entries; None: its switch has none.
pub(super) fn with_entries(problem: &Problem, entries: u32) -> Option<Problem> {
    let mut changed = problem.clone();
    match changed.switch.as_mut().map(|switch| &mut switch.kind) {
        Some(SwitchKind::OpenFlow { tables }) => tables.iter_mut().for_each(|table| table.entries = entries),
        _ => return None,
    }
    Some(changed)
}

impl Obstacles {
    /// For people, in a line.
    #[must_use]
    pub fn describe(&self, problem: &Problem) -> String {
        let name = |chain: ChainId| problem.chains[chain].name.clone();
        let mut said = Vec::new();
        for &(chain, node) in &self.homeless {
            said.push(format!(
                "{} of {} can run nowhere in this rack",
                problem.chains[chain].nodes[node].name,
                name(chain)
            ));
        }
        for &chain in &self.choked {
            let Chain { t_min_bps, .. } = problem.chains[chain];
            let (promised, most) = (t_min_bps / UNIT, problem.chains[chain].limit_bps() / UNIT);
            said.push(format!(
                "{} promises {} Gbit/s, but at most {} enter it",
                name(chain),
                gbit(promised * UNIT),
                gbit(most * UNIT)
            ));
        }
        for &(chain, ns) in &self.late {
            let (wanted, least) = (us(problem.chains[chain].d_max_ns), us(ns));
            said.push(format!("{} takes at least {least} us, {wanted} us are promised", name(chain)));
        }
        if !said.is_empty() {
            return said.join("; ");
        }
        if !self.relations.is_empty() {
            said.push(format!("the promises can be kept, but not together with {}", self.relations.join(", ")));
        }
        let names: Vec<String> = self.conflict.iter().map(|&chain| name(chain)).collect();
        said.push(match names.as_slice() {
            [] => "the promises cannot all be kept".to_owned(),
            [one] if self.minimal => format!("the promise of {one} cannot be kept even alone"),
            _ => format!("the promises of {} cannot be kept together", names.join(", ")),
        });
        let server = |id: ServerId| &problem.servers[id].name;
        for &(id, cores) in self.cores.iter().flatten() {
            said.push(format!("{cores} more core{} of {} would do", if cores == 1 { "" } else { "s" }, server(id)));
        }
        for &(id, link, bps) in self.links.iter().flatten() {
            let card = match link {
                Link::Nic(nic) => format!("network card {nic} of {}", server(id)),
                Link::SmartNic(nic) => problem.smart_nics[nic].name.clone(),
            };
            said.push(format!("{} Gbit/s more on {card} would do", gbit(bps)));
        }
        for &(nic, hz) in self.smart_nics.iter().flatten() {
            said.push(format!("{:.2} GHz more on {} would do", hz / 1e9, problem.smart_nics[nic].name));
        }
        if let Some(bps) = self.forwarding {
            said.push(format!("{} Gbit/s more through the switch would do", gbit(bps)));
        }
        if let Some(stages) = self.stages {
            said.push(format!("{stages} more stage{} would do", if stages == 1 { "" } else { "s" }));
        }
        if let Some(entries) = self.entries {
            said.push(format!("flow tables of {entries} entries each would do"));
        }
        said.join("; ")
    }
}

//! What would help, tried: a remedy is shown only if the problem that has it was planned.
//!
//! Questions in [`relax`](super::relax) are asked of programs that allow more than there is, and amounts are told with few
//! digits. Here the amounts are rounded up to those digits, given to the problem, and the result is planned and checked.

use std::time::Instant;

use super::master::{Goal, Master};
use super::relax::{Obstacles, with_entries};
use super::resources::Resources;
use super::{End, Search, Settings};
use catena_plan_model::check::check;
use catena_plan_model::placement::Link;
use catena_plan_model::problem::{Chain, ChainId, Problem};
use catena_plan_model::rack::SwitchKind;
use catena_plan_model::relation::{Member, Relation};
use catena_plan_model::switch::{Feasible, for_problem};

/// Amounts of bits and cycles per second are told in multiples of this.
const STEP: f64 = 1e7;
/// By how much of itself an amount that is not enough grows before it is tried again, and how often.
const MORE: [f64; 3] = [0.0, 0.001, 0.02];

/// An amount as it is told: no less than it is.
fn told(amount: f64) -> f64 {
    // What solvers miss by is not worth a step.
    (amount / STEP - 1e-6).ceil().max(1.0) * STEP
}

/// Something that can be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Cores of servers.
    Cores,
    /// Bits per second of links.
    Links,
    /// Cycles per second of SmartNICs.
    SmartNics,
    /// Bits per second of the switch.
    Forwarding,
    /// Stages of the switch.
    Stages,
    /// Entries of the switch's flow tables.
    Entries,
    /// Relations are taken away.
    Relations,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 7] =
        [Kind::Cores, Kind::Links, Kind::SmartNics, Kind::Forwarding, Kind::Stages, Kind::Entries, Kind::Relations];

    /// What it is, in words.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Kind::Cores => "more cores that do",
            Kind::Links => "faster links that do",
            Kind::SmartNics => "faster SmartNICs that do",
            Kind::Forwarding => "a faster switch that does",
            Kind::Stages => "more stages that do",
            Kind::Entries => "larger flow tables that do",
            Kind::Relations => "relations that are in the way",
        }
    }
}

impl Obstacles {
    /// `problem` with a remedy; None: there is no remedy of this kind.
    #[must_use]
    pub fn applied(&self, kind: Kind, problem: &Problem) -> Option<Problem> {
        let mut changed = problem.clone();
        match kind {
            Kind::Cores => {
                for &(server, cores) in self.cores.as_ref()? {
                    let server = changed.servers.get_mut(server)?;
                    server.cores = server.cores.saturating_add(cores);
                }
            }
            Kind::Links => {
                for &(server, link, bps) in self.links.as_ref()? {
                    match link {
                        Link::Nic(nic) => *changed.servers.get_mut(server)?.nics_bps.get_mut(nic)? += bps,
                        Link::SmartNic(nic) => changed.smart_nics.get_mut(nic)?.bps += bps,
                    }
                }
            }
            Kind::SmartNics => {
                for &(nic, hz) in self.smart_nics.as_ref()? {
                    changed.smart_nics.get_mut(nic)?.cycles_hz += hz;
                }
            }
            Kind::Forwarding => changed.switch.as_mut()?.capacity_bps += self.forwarding?,
            Kind::Stages => match changed.switch.as_mut().map(|switch| &mut switch.kind) {
                Some(SwitchKind::Pisa(stages)) => stages.stages = stages.stages.saturating_add(self.stages?),
                _ => return None,
            },
            Kind::Entries => return with_entries(problem, self.entries?),
            Kind::Relations if self.relations.is_empty() => return None,
            Kind::Relations => changed.relations.retain(|relation| !matches!(relation, Relation::Ratio { .. })),
        }
        Some(changed)
    }

    /// Give amounts as they are told, `more` of themselves larger.
    fn round(&mut self, more: f64) {
        let up = |amount: &mut f64| *amount = told(*amount * (1.0 + more));
        self.links.iter_mut().flatten().for_each(|(_, _, bps)| up(bps));
        self.smart_nics.iter_mut().flatten().for_each(|(_, hz)| up(hz));
        self.forwarding.iter_mut().for_each(up);
    }

    /// Keep the remedies with which `problem` is planned; what was found and does not do is an open question.
    pub(super) fn verify(&mut self, problem: &Problem, switch: &dyn Feasible, settings: &Settings, deadline: Instant) {
        let (found, settled) = (self.clone(), self.complete);
        for kind in Kind::ALL {
            let mut tried = MORE.into_iter().map(|more| {
                let mut with = found.clone();
                with.round(more);
                with
            });
            if found.applied(kind, problem).is_none() {
                continue;
            }
            let does = |with: &Obstacles| {
                with.applied(kind, problem).is_some_and(|changed| {
                    let taller = matches!(kind, Kind::Stages | Kind::Entries).then(|| for_problem(&changed));
                    keeps(&changed, taller.as_deref().unwrap_or(switch), settings, deadline)
                })
            };
            let with = tried.find(does);
            self.complete &= with.is_some();
            match kind {
                Kind::Cores => self.cores = with.and_then(|with| with.cores),
                Kind::Links => self.links = with.and_then(|with| with.links),
                Kind::SmartNics => self.smart_nics = with.and_then(|with| with.smart_nics),
                Kind::Forwarding => self.forwarding = with.and_then(|with| with.forwarding),
                Kind::Stages => self.stages = with.and_then(|with| with.stages),
                Kind::Entries => self.entries = with.and_then(|with| with.entries),
                Kind::Relations => self.relations = with.map_or_else(Vec::new, |with| with.relations),
            }
        }
        let rest = |without: ChainId| only(problem, self.conflict.iter().copied().filter(|chain| *chain != without));
        // Of a single one the search has shown that it cannot be kept alone, unless time was over.
        self.minimal = match self.conflict.len() {
            1 => settled,
            _ => self
                .conflict
                .iter()
                .all(|&chain| Instant::now() < deadline && keeps(&rest(chain), switch, settings, deadline)),
        };
    }
}

/// `problem` with these chains alone.
fn only(problem: &Problem, chains: impl Iterator<Item = ChainId>) -> Problem {
    let chains: Vec<ChainId> = chains.collect();
    let place = |chain: ChainId| chains.iter().position(|one| *one == chain);
    let mut changed = problem.clone();
    changed.chains = chains.iter().map(|chain| problem.chains[*chain].clone()).collect();
    changed.relations = problem.relations.iter().filter_map(|relation| only_these(relation, &place)).collect();
    changed
}

/// A relation among the chains that have a place; a ratio in which one is left is none.
fn only_these(relation: &Relation, place: &impl Fn(ChainId) -> Option<usize>) -> Option<Relation> {
    match relation {
        // Who comes first breaks no promise.
        Relation::Priority { .. } | Relation::Last(_) => None,
        Relation::Ratio { text, members } => {
            let (head, weights) = text.rsplit_once('=')?;
            let weights = weights.split(':').collect::<Vec<_>>();
            let kept: Vec<(usize, &str)> = members
                .iter()
                .zip(weights)
                .filter_map(|(member, weight)| Some((place(member.chain)?, weight.trim())))
                .collect();
            let members = members.iter().filter_map(|member| Some(Member { chain: place(member.chain)?, ..*member }));
            let weights: Vec<&str> = kept.iter().map(|(_, weight)| *weight).collect();
            let text = format!("{head}= {}", weights.join(" : "));
            (kept.len() > 1).then(|| Relation::Ratio { text, members: members.collect() })
        }
    }
}

/// Whether a plan is found that keeps all promises, and the check finds no fault with it.
pub(super) fn keeps(problem: &Problem, switch: &dyn Feasible, settings: &Settings, deadline: Instant) -> bool {
    // Nobody asks for more than what is promised, but for what ratios may need.
    let ratios: Vec<ChainId> = problem.relations.iter().flat_map(|r| r.members()).map(|m| m.chain).collect();
    let mut least = problem.clone();
    let free = |(id, _): &(usize, &mut Chain)| !ratios.contains(id);
    least.chains.iter_mut().enumerate().filter(free).for_each(|(_, chain)| chain.t_max_bps = chain.t_min_bps);
    let resources = Resources::of(&least);
    let search = Search::new(&least, &resources, switch, settings, deadline);
    let mut master = Master::new(&least, &resources, &search.options);
    let End::Best { found, .. } = search.fitting(&mut master, &Goal::Any, &mut search.effort()) else { return false };
    check(problem, &search.settled(&found).placement(), switch).is_ok()
}

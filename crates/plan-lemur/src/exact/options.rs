//! What a chain may choose from: a pattern, cards for its subgroups and cores for them, as far as no other
//! choice is better in everything.
//!
//! For a pattern the least cores that carry a rate are known for each subgroup by itself, so that all
//! sensible core allocations (Lemur, §3.2, "Searching through Core Allocations") lie on one staircase: the
//! slowest subgroup gets the next core, until it may have none or the chain needs no more.

use std::collections::BTreeMap;
use std::time::Instant;

use super::super::links::{card, cards};
use super::patterns::{Symmetry, enumerate};
use super::resources::{NO_LIMIT, ROUNDING, Resource, Resources, UNIT};
use catena_plan_model::estimate::{Group, Layout};
use catena_plan_model::placement::Site;
use catena_plan_model::problem::{Chain, Problem};

/// So many choices are compared in no time.
const MANY: usize = 1000;

/// A way to run a chain.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// Where its nodes run.
    pub sites: Vec<Site>,
    /// The card of each subgroup, of those that its server has for it, by the layout's order; 0 for one that is beside
    /// what runs on a SmartNIC.
    pub nics: Vec<usize>,
    /// The most it carries, in [`UNIT`]s.
    pub cap: f64,
    /// What it takes of each resource whatever its rate.
    pub fixed: Vec<f64>,
    /// What it takes of each resource for each [`UNIT`] of rate.
    pub per_rate: Vec<f64>,
}

impl Choice {
    /// Whether `other` is never the better choice.
    fn covers(&self, other: &Choice) -> bool {
        let no_more = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| *a <= *b + b.abs() * ROUNDING);
        let subset = || {
            let both = self.sites.iter().zip(&other.sites);
            both.into_iter().all(|(a, b)| *a != Site::Switch || *b == Site::Switch)
        };
        self.cap >= other.cap * (1.0 - ROUNDING)
            && no_more(&self.fixed, &other.fixed)
            && no_more(&self.per_rate, &other.per_rate)
            && subset()
    }

    /// Which nodes are on the switch.
    #[must_use]
    pub fn on_switch(&self) -> Vec<bool> {
        self.sites.iter().map(|site| *site == Site::Switch).collect()
    }
}

/// The choices of a chain.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// None is better than another one in everything.
    pub choices: Vec<Choice>,
    /// How many patterns were looked at.
    pub patterns: usize,
    /// The least nanoseconds that a packet takes in any pattern.
    pub least_ns: f64,
    /// How many patterns keep the latency promise.
    pub in_time: usize,
    /// Whether time ran out before all patterns were looked at, or all choices compared.
    pub cut: bool,
}

impl Options {
    /// Those of `chain`, with `resources` to choose from, as far as they are found until `deadline`.
    #[must_use]
    pub fn of(
        problem: &Problem,
        resources: &Resources,
        chain: &Chain,
        symmetry: &Symmetry,
        deadline: Instant,
    ) -> Options {
        let mut options = Options { least_ns: f64::INFINITY, ..Options::default() };
        let mut by_switch: BTreeMap<Vec<bool>, Vec<Choice>> = BTreeMap::new();
        let all = enumerate(problem, chain, symmetry, |sites| {
            options.patterns += 1;
            let layout = Layout::of(problem, chain, sites);
            options.least_ns = options.least_ns.min(layout.latency_ns);
            if layout.joined && layout.latency_ns <= chain.d_max_ns * (1.0 + ROUNDING) {
                options.in_time += 1;
                let pattern = Pattern { problem, resources, chain, layout: &layout };
                let same = by_switch.entry(sites.iter().map(|s| *s == Site::Switch).collect()).or_default();
                pattern.segments(&mut |segment| pattern.staircase(sites, &segment, &mut |choice| keep(same, choice)));
            }
            Instant::now() < deadline
        });
        options.cut = !all;
        // Fewer nodes on the switch first: what covers comes before what it covers.
        let mut sets: Vec<Vec<Choice>> = by_switch.into_values().collect();
        sets.sort_by_key(|set| set.first().map_or(0, |c| c.sites.iter().filter(|s| **s == Site::Switch).count()));
        for choice in sets.into_iter().flatten() {
            // The choices of a search that was cut are few enough to be compared all the same, or the rest is left out.
            if options.choices.len() > MANY && Instant::now() >= deadline {
                options.cut = true;
                break;
            }
            if !options.choices.iter().any(|kept| kept.covers(&choice)) {
                options.choices.push(choice);
            }
        }
        options
    }
}

fn keep(kept: &mut Vec<Choice>, choice: Choice) {
    if !kept.iter().any(|k| k.covers(&choice)) {
        kept.retain(|k| !choice.covers(k));
        kept.push(choice);
    }
}

/// The most `chain` may carry, in [`UNIT`]s.
#[must_use]
pub fn limit(chain: &Chain) -> f64 {
    (chain.limit_bps() / UNIT).min(NO_LIMIT)
}

/// [`UNIT`]s of rate that `cores` cores of `group` carry.
fn carried(problem: &Problem, chain: &Chain, group: &Group, cores: f64) -> f64 {
    group.packets(cores, problem.servers[group.server].clock_hz) * chain.packet_bits() / UNIT
}

/// The least whole number of cores with which `group` carries `rate` [`UNIT`]s; None: no number does.
#[must_use]
pub fn cores_for(problem: &Problem, chain: &Chain, group: &Group, rate: f64) -> Option<u32> {
    let enough = |cores: u32| carried(problem, chain, group, f64::from(cores)) >= rate * (1.0 - ROUNDING);
    if enough(1) {
        return Some(1);
    }
    if !group.replicable {
        return None;
    }
    // A second core brings the cost of spreading with it and may be worth nothing.
    let each = carried(problem, chain, group, 2.0) / 2.0;
    let guess = (rate / each).ceil();
    if guess.is_nan() || guess >= f64::from(u32::MAX) {
        return None;
    }
    let guess = (guess as u32).max(2);
    Some(if guess > 2 && enough(guess - 1) { guess - 1 } else { guess })
}

/// The part of a core, or the cores, that `group` needs on a server with shared cores for `rate`; None: it
/// may not have that many.
#[must_use]
pub fn share_for(problem: &Problem, chain: &Chain, group: &Group, rate: f64) -> Option<f64> {
    let one = carried(problem, chain, group, 1.0);
    if rate <= one * (1.0 + ROUNDING) {
        return Some((rate / one).min(1.0));
    }
    // As many cores carry `rate` in a straight line from 1 on.
    group.replicable.then(|| rate / (carried(problem, chain, group, 2.0) / 2.0))
}

/// A pattern of a chain, laid out.
pub struct Pattern<'a> {
    /// The problem.
    pub problem: &'a Problem,
    /// What there is.
    pub resources: &'a Resources,
    /// The chain.
    pub chain: &'a Chain,
    /// What its sites mean.
    pub layout: &'a Layout,
}

/// Rates of a pattern between which everything but whole cores is used in proportion to the rate.
#[derive(Clone, Debug, PartialEq)]
pub struct Segment {
    /// The ordinary card of each subgroup.
    pub nics: Vec<usize>,
    /// What a [`UNIT`] of rate takes of each resource.
    pub per_rate: Vec<f64>,
    /// The most that can be carried, whole cores aside.
    pub top: f64,
}

impl Pattern<'_> {
    /// The segments, for all choices of cards that differ in what links carry.
    pub fn segments(&self, emit: &mut impl FnMut(Segment)) {
        let mut seen: Vec<Vec<f64>> = Vec::new();
        let mut nics = vec![0; self.layout.groups.len()];
        let many = |group: &Group| match group.smart_nic {
            Some(_) => 1,
            None => cards(self.problem, group.server).len(),
        };
        let counts: Vec<usize> = self.layout.groups.iter().map(many).collect();
        if counts.contains(&0) {
            return;
        }
        loop {
            let links = self.links(&nics);
            // Which of two subgroups with the same visits uses which card is all the same.
            if !seen.contains(&links) {
                self.with_links(&nics, &links, emit);
                seen.push(links);
            }
            let Some(turn) = (0..nics.len()).rev().find(|&n| nics[n] + 1 < counts[n]) else { return };
            nics[turn] += 1;
            nics[turn + 1..].fill(0);
        }
    }

    /// What links and SmartNICs carry for each [`UNIT`] of rate.
    fn links(&self, nics: &[usize]) -> Vec<f64> {
        let mut load = vec![0.0; self.resources.len()];
        for (group, &nic) in self.layout.groups.iter().zip(nics) {
            if group.smart_nic.is_none() {
                let link = card(self.problem, group.server, nic);
                load[self.resources.index(Resource::link(group.server, link))] += group.visits * self.layout.on_link;
            }
        }
        for stay in &self.layout.stays {
            if let Some(nic) = stay.smart_nic {
                load[self.resources.index(Resource::SmartLink(nic))] += stay.visits * self.layout.on_link;
            }
        }
        if self.problem.switch.is_some() {
            load[self.resources.index(Resource::Switch)] += self.layout.passes;
        }
        if let Some(resource) = self.resources.direct() {
            let stays: f64 = self.layout.stays.iter().map(|stay| stay.visits).sum();
            // The only link has its stays already.
            let stays = if resource == Resource::Cards { stays } else { 0.0 };
            load[self.resources.index(resource)] += self.layout.direct + stays;
        }
        for &(nic, cycles) in &self.layout.smart_nic_cycles {
            load[self.resources.index(Resource::SmartCycles(nic))] += cycles / self.chain.packet_bits();
        }
        load
    }

    fn with_links(&self, nics: &[usize], links: &[f64], emit: &mut impl FnMut(Segment)) {
        let low = self.low();
        let mut top = limit(self.chain);
        for (load, capacity) in links.iter().zip(&self.resources.capacity) {
            if *load > 0.0 {
                top = top.min(capacity / load);
            }
        }
        // On shared cores a subgroup's work grows in a straight line up to one core; beyond, if it may
        // go there, spreading adds to it. Each such corner divides the rates.
        let mut corners = Vec::new();
        for group in &self.layout.groups {
            let one = self.carried(group, 1.0);
            if !group.replicable {
                top = top.min(one);
            } else if self.shared(group) && group.spread > 0.0 {
                corners.push(one);
            }
        }
        corners.retain(|&corner| corner < top && corner >= low * (1.0 - ROUNDING));
        corners.push(top);
        corners.sort_by(f64::total_cmp);
        corners.dedup();
        for corner in corners {
            let per_rate = self.with_shared_cores(links, corner);
            let server_tops = (0..self.problem.servers.len()).filter(|&server| per_rate[server] > 0.0);
            let top = server_tops.map(|s| self.resources.capacity[s] / per_rate[s]).fold(corner, f64::min);
            if top >= low * (1.0 - ROUNDING) {
                emit(Segment { nics: nics.to_vec(), per_rate, top: top.max(low) });
            }
        }
    }

    /// `links` and what each subgroup on shared cores takes of them at rates up to `top`.
    fn with_shared_cores(&self, links: &[f64], top: f64) -> Vec<f64> {
        let mut per_rate = links.to_vec();
        for group in self.layout.groups.iter().filter(|g| self.shared(g)) {
            let spread = top > self.carried(group, 1.0) * (1.0 + ROUNDING);
            let cost = if spread { group.cost + group.spread } else { group.cost };
            let clock = self.problem.servers[group.server].clock_hz;
            per_rate[group.server] += cost * UNIT / (self.chain.packet_bits() * clock);
        }
        per_rate
    }

    /// The promised rate, in [`UNIT`]s.
    fn low(&self) -> f64 {
        self.chain.t_min_bps / UNIT
    }

    fn shared(&self, group: &Group) -> bool {
        self.problem.servers[group.server].shared
    }

    /// [`UNIT`]s of rate that `cores` cores of `group` carry.
    #[must_use]
    pub fn carried(&self, group: &Group, cores: f64) -> f64 {
        carried(self.problem, self.chain, group, cores)
    }

    /// The subgroups with whole cores, by the layout's order.
    pub fn dedicated(&self) -> impl Iterator<Item = &Group> {
        self.layout.groups.iter().filter(|g| !self.shared(g))
    }

    /// The choices of a segment: more and more whole cores, as long as they make the chain faster.
    fn staircase(&self, sites: &[Site], segment: &Segment, emit: &mut impl FnMut(Choice)) {
        let mut rate = self.low();
        loop {
            let mut fixed = vec![0.0; self.resources.len()];
            let mut cap = segment.top;
            for group in self.dedicated() {
                let Some(cores) = cores_for(self.problem, self.chain, group, rate) else { return };
                fixed[group.server] += f64::from(cores);
                cap = cap.min(self.carried(group, f64::from(cores)));
            }
            if (0..self.problem.servers.len()).any(|s| fixed[s] > self.resources.capacity[s]) {
                return;
            }
            let cap = cap.max(rate);
            let (nics, per_rate) = (segment.nics.clone(), segment.per_rate.clone());
            emit(Choice { sites: sites.to_vec(), nics, cap, fixed, per_rate });
            if cap >= segment.top * (1.0 - ROUNDING) {
                return;
            }
            rate = cap * (1.0 + 4.0 * ROUNDING);
        }
    }
}

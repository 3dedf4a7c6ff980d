//! Brute force, as Lemur's §3.2 ("Brute-force Placement") describes it: all placement patterns of all chains
//! together, for each all core allocations, for each of those the best rates by a linear program; then the
//! switch is asked about the patterns in the order of their value until one fits.
//!
//! It is here to be compared with, not to be used: Lemur's authors report 14,901 s for four chains (§5.3).

use super::exact::options::{Choice, Pattern, Segment};
use super::exact::patterns::{Symmetry, enumerate};
use super::exact::rates::{Settled, objective_bps};
use super::exact::resources::Resources;
use crate::estimate::Layout;
use crate::placement::{Outcome, Placement, Site};
use crate::problem::{Chain, Problem, ServerId};
use crate::switch::Feasible;

/// How far brute force is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Patterns of all chains together that were looked at.
    pub patterns: u64,
    /// How many there are.
    pub of: u64,
    /// Core allocations for which rates were computed.
    pub allocations: u64,
    /// Patterns about which the switch was asked.
    pub asked: u64,
}

/// Plan `problem` by brute force. `go_on` is asked after each pattern, and before each question to the switch;
/// when it says no, the answer is what was found so far, without proof. With a fair objective patterns are
/// ranked by the least marginal rate alone.
pub fn plan(problem: &Problem, switch: &dyn Feasible, go_on: &mut dyn FnMut(&Progress) -> bool) -> (Outcome, Progress) {
    let resources = Resources::of(problem);
    let variants: Vec<Vec<Variant>> = problem.chains.iter().map(|chain| variants(problem, &resources, chain)).collect();
    let of = variants.iter().fold(1_u64, |product, v| product.saturating_mul(v.len() as u64));
    let mut progress = Progress { of, ..Progress::default() };
    let search = Search { problem, resources: &resources, variants: &variants };
    let mut ranked: Vec<(f64, u64)> = Vec::new();
    let mut complete = true;
    while progress.patterns < of {
        if let Some((value, _)) = search.best(progress.patterns, &mut progress.allocations) {
            ranked.push((value, progress.patterns));
        }
        progress.patterns += 1;
        if !go_on(&progress) {
            complete = progress.patterns == of;
            break;
        }
    }
    // Of equal ones the first.
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    for (_, pattern) in ranked {
        let on_switch = search.on_switch(pattern);
        progress.asked += 1;
        let anything = on_switch.iter().flatten().any(|on| *on);
        if !anything || switch.verdict(problem, &on_switch).fits() {
            let Some((_, choices)) = search.best(pattern, &mut 0) else { continue };
            let placement = search.placement(&choices);
            let marginal_bps = objective_bps(problem, &placement.rates_bps);
            let bound_bps = complete.then_some(marginal_bps);
            return (Outcome::Placed { placement, marginal_bps, bound_bps }, progress);
        }
        if !go_on(&progress) {
            complete = false;
            break;
        }
    }
    let why = if complete { "no pattern keeps all promises and fits the switch" } else { "stopped before the end" };
    (Outcome::Infeasible { proven: complete, why: why.into() }, progress)
}

/// A pattern of a chain with cards for its subgroups.
struct Variant {
    sites: Vec<Site>,
    layout: Layout,
    segment: Segment,
}

fn variants(problem: &Problem, resources: &Resources, chain: &Chain) -> Vec<Variant> {
    let mut found = Vec::new();
    enumerate(problem, chain, &Symmetry::default(), |sites| {
        let layout = Layout::of(problem, chain, sites);
        if layout.latency_ns > chain.d_max_ns {
            return;
        }
        let pattern = Pattern { problem, resources, chain, layout: &layout };
        pattern.segments(&mut |segment| {
            found.push(Variant { sites: sites.to_vec(), layout: layout.clone(), segment });
        });
    });
    found
}

/// Chain and place among its dedicated subgroups, server, and what each number of cores carries.
struct Group {
    chain: usize,
    server: ServerId,
    carried: Vec<f64>,
}

struct Search<'a> {
    problem: &'a Problem,
    resources: &'a Resources,
    variants: &'a [Vec<Variant>],
}

impl Search<'_> {
    /// The variants that make pattern number `index`: its digits, one a chain.
    fn at(&self, mut index: u64) -> Vec<&Variant> {
        let mut found = Vec::new();
        for variants in self.variants {
            let count = variants.len() as u64;
            found.push(&variants[(index % count) as usize]);
            index /= count;
        }
        found
    }

    fn on_switch(&self, index: u64) -> Vec<Vec<bool>> {
        self.at(index).iter().map(|v| v.sites.iter().map(|s| *s == Site::Switch).collect()).collect()
    }

    fn placement(&self, choices: &[Choice]) -> Placement {
        let choices = choices.iter().collect();
        Settled { problem: self.problem, resources: self.resources, choices }.placement()
    }

    /// The best value of pattern number `index` over all core allocations, and the choices that have it.
    fn best(&self, index: u64, allocations: &mut u64) -> Option<(f64, Vec<Choice>)> {
        let variants = self.at(index);
        let mut groups = Vec::new();
        let mut choices = Vec::new();
        for (id, (variant, chain)) in variants.iter().zip(&self.problem.chains).enumerate() {
            let pattern = Pattern { problem: self.problem, resources: self.resources, chain, layout: &variant.layout };
            for group in pattern.dedicated() {
                let most = if group.replicable { self.problem.servers[group.server].cores } else { 1 };
                let carried = (1..=most).map(|cores| pattern.carried(group, f64::from(cores))).collect();
                groups.push(Group { chain: id, server: group.server, carried });
            }
            choices.push(Choice {
                sites: variant.sites.clone(),
                nics: variant.segment.nics.clone(),
                cap: variant.segment.top,
                fixed: vec![0.0; self.resources.len()],
                per_rate: variant.segment.per_rate.clone(),
            });
        }
        let mut left: Vec<usize> = self.problem.servers.iter().map(|s| s.cores as usize).collect();
        for group in &groups {
            left[group.server] = left[group.server].checked_sub(1)?;
        }
        let mut best = None;
        self.allocate(&groups, &mut vec![1; groups.len()], 0, &mut left, &mut |cores, left| {
            // Where a spare core would help a subgroup, there is a better allocation.
            let helps = |(group, &cores): (&Group, &usize)| {
                let more = group.carried.iter().skip(cores).take(left[group.server]);
                more.into_iter().any(|carried| *carried > group.carried[cores - 1])
            };
            if groups.iter().zip(cores).any(helps) {
                return;
            }
            let mut choices = choices.clone();
            for (group, &cores) in groups.iter().zip(cores) {
                let choice = &mut choices[group.chain];
                choice.cap = choice.cap.min(group.carried[cores - 1]);
                choice.fixed[group.server] += cores as f64;
            }
            let settled =
                Settled { problem: self.problem, resources: self.resources, choices: choices.iter().collect() };
            if settled.keeps_promises() {
                *allocations += 1;
                let value = objective_bps(self.problem, &settled.rates_bps());
                if best.as_ref().is_none_or(|(most, _)| value > *most) {
                    best = Some((value, choices));
                }
            }
        });
        best
    }

    /// All ways to give spare cores to the subgroups from `next` on.
    fn allocate(
        &self,
        groups: &[Group],
        cores: &mut Vec<usize>,
        next: usize,
        left: &mut Vec<usize>,
        visit: &mut dyn FnMut(&[usize], &[usize]),
    ) {
        let Some(group) = groups.get(next) else { return visit(cores, left) };
        let spare = left[group.server];
        for extra in 0..group.carried.len().min(spare + 1) {
            cores[next] = 1 + extra;
            left[group.server] = spare - extra;
            self.allocate(groups, cores, next + 1, left, visit);
        }
        cores[next] = 1;
        left[group.server] = spare;
    }
}

#[cfg(test)]
mod tests {
    use super::super::exact::instances::instance;
    use super::super::exact::{self, Settings};
    use super::*;
    use crate::check::check;
    use crate::problem::Objective;

    #[test]
    fn finds_what_the_exact_planner_finds() {
        let mut placed = 0;
        for seed in 1_000..1_150 {
            let (mut problem, switch) = instance(seed);
            if problem.objective == Objective::Fair {
                problem.objective = Objective::Marginal;
            }
            let exact = exact::plan(&problem, &switch, None, &Settings::default()).outcome;
            let (brute, progress) = plan(&problem, &switch, &mut |_| true);
            assert_eq!(progress.patterns, progress.of);
            match (brute, exact.marginal_bps()) {
                (Outcome::Placed { placement, marginal_bps, bound_bps }, Some(best)) => {
                    placed += 1;
                    assert!(check(&problem, &placement, &switch).is_ok(), "seed {seed}");
                    assert!((marginal_bps - best).abs() <= 1e-6 * (1e9 + best), "seed {seed}: {marginal_bps} {best}");
                    assert_eq!(bound_bps, Some(marginal_bps));
                }
                (Outcome::Infeasible { proven: true, .. }, None) => {}
                (brute, best) => panic!("seed {seed}: {brute:?} {best:?}"),
            }
        }
        assert!(placed > 30, "{placed}");
    }

    #[test]
    fn stops_when_told_and_proves_nothing_then() {
        let (problem, switch) = instance(1_003);
        let (outcome, progress) = plan(&problem, &switch, &mut |progress| progress.patterns < 1);
        assert_eq!(progress.patterns, 1);
        assert!(progress.of > 1);
        match outcome {
            Outcome::Placed { bound_bps, .. } => assert_eq!(bound_bps, None),
            Outcome::Infeasible { proven, .. } => assert!(!proven),
        }
    }
}

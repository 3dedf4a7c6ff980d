//! Brute force, as Lemur's §3.2 ("Brute-force Placement") describes it: all placement patterns of all chains
//! together, for each all core allocations, for each of those the best rates by a linear program; then the
//! switch is asked about the patterns in the order of their value until one fits.
//!
//! It is here to be compared with, not to be used: Lemur's authors report 14,901 s for four chains (§5.3).

use super::exact::ceiling;
use super::exact::options::{Choice, Pattern, Segment};
use super::exact::patterns::{Symmetry, enumerate};
use super::exact::rates::{Settled, objective_bps};
use super::exact::resources::Resources;
use catena_plan_model::estimate::Layout;
use catena_plan_model::placement::{Outcome, Placement, Site};
use catena_plan_model::problem::{Chain, Objective, Problem, ServerId};
use catena_plan_model::relation::by_level;
use catena_plan_model::switch::Feasible;

/// How far brute force is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Patterns of all chains together that were looked at.
    pub patterns: u64,
    /// How many there are; 0 while they are being counted.
    pub of: u64,
    /// Core allocations for which rates were computed.
    pub allocations: u64,
    /// Patterns about which the switch was asked.
    pub asked: u64,
}

/// Patterns that the switch is still asked about when the search was stopped: those found until then may fit.
const LAST_QUESTIONS: u64 = 100;

/// Plan `problem` by brute force. `go_on` is asked at every pattern of a chain, every core allocation and every question
/// to the switch; when it says no, the answer is the best of what was found so far, without proof, with what no plan
/// exceeds as its bound. With a fair objective patterns are ranked by the least marginal rate alone.
pub fn plan(problem: &Problem, switch: &dyn Feasible, go_on: &mut dyn FnMut(&Progress) -> bool) -> (Outcome, Progress) {
    let resources = Resources::of(problem);
    let mut progress = Progress::default();
    // It ranks by one sum: with priorities the best one may be another.
    let mut complete = by_level(problem, &vec![0.0; problem.chains.len()]).len() < 2;
    let mut variants: Vec<Vec<Variant>> = Vec::new();
    for chain in &problem.chains {
        let (found, all) = self::variants(problem, &resources, chain, &mut || go_on(&progress));
        variants.push(found);
        complete &= all;
    }
    progress.of = variants.iter().fold(1_u64, |product, v| product.saturating_mul(v.len() as u64));
    let search = Search { problem, resources: &resources, variants: &variants };
    let mut ranked: Vec<(f64, u64, Vec<usize>)> = Vec::new();
    while progress.patterns < progress.of {
        let pattern = progress.patterns;
        let (best, all) = search.best(pattern, &mut progress, go_on);
        ranked.extend(best.map(|(value, cores)| (value, pattern, cores)));
        complete &= all;
        progress.patterns += 1;
        if !go_on(&progress) {
            complete &= progress.patterns == progress.of;
            break;
        }
    }
    // Of equal ones the first.
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    for (_, pattern, cores) in ranked {
        let on_switch = search.on_switch(pattern);
        progress.asked += 1;
        let anything = on_switch.iter().flatten().any(|on| *on);
        if !anything || switch.verdict(problem, &on_switch).fits() {
            let placement = search.placement(&search.choices(pattern, &cores));
            let marginal_bps = objective_bps(problem, &placement.rates_bps);
            let bound_bps = if complete { marginal_bps } else { ceiling::of(problem).max(marginal_bps) };
            let bound_bps = Some(bound_bps).filter(|_| ranks_all(problem));
            return (Outcome::Placed { placement, marginal_bps, bound_bps }, progress);
        }
        if !go_on(&progress) && progress.asked >= LAST_QUESTIONS {
            complete = false;
            break;
        }
    }
    let why = match complete {
        true => "no pattern keeps all promises and fits the switch",
        false => "no placement was found in the time allowed",
    };
    (Outcome::Infeasible { proven: complete, why: why.into() }, progress)
}

/// Whether the one number that patterns are ranked by says which of two plans is better: not where several chains are to have
/// fair parts, or some come first.
fn ranks_all(problem: &Problem) -> bool {
    let alone = problem.chains.len() < 2;
    alone || problem.objective != Objective::Fair && by_level(problem, &vec![0.0; problem.chains.len()]).len() < 2
}

/// A pattern of a chain with cards for its subgroups.
struct Variant {
    sites: Vec<Site>,
    layout: Layout,
    segment: Segment,
}

/// The variants of a chain, and whether these are all.
fn variants(
    problem: &Problem,
    resources: &Resources,
    chain: &Chain,
    go_on: &mut dyn FnMut() -> bool,
) -> (Vec<Variant>, bool) {
    let mut found = Vec::new();
    let all = enumerate(problem, chain, &Symmetry::default(), |sites| {
        let layout = Layout::of(problem, chain, sites);
        if layout.joined && layout.latency_ns <= chain.d_max_ns {
            let pattern = Pattern { problem, resources, chain, layout: &layout };
            pattern.segments(&mut |segment| {
                found.push(Variant { sites: sites.to_vec(), layout: layout.clone(), segment });
            });
        }
        go_on()
    });
    (found, all)
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

    /// The subgroups with whole cores of pattern number `index`.
    fn groups(&self, index: u64) -> Vec<Group> {
        let mut groups = Vec::new();
        for (id, (variant, chain)) in self.at(index).iter().zip(&self.problem.chains).enumerate() {
            let pattern = Pattern { problem: self.problem, resources: self.resources, chain, layout: &variant.layout };
            for group in pattern.dedicated() {
                let most = if group.replicable { self.problem.servers[group.server].cores } else { 1 };
                let carried = (1..=most).map(|cores| pattern.carried(group, f64::from(cores))).collect();
                groups.push(Group { chain: id, server: group.server, carried });
            }
        }
        groups
    }

    /// What the chains choose with pattern number `index` and so many cores for each of its subgroups.
    fn choices(&self, index: u64, cores: &[usize]) -> Vec<Choice> {
        let choice = |variant: &&Variant| Choice {
            sites: variant.sites.clone(),
            nics: variant.segment.nics.clone(),
            cap: variant.segment.top,
            fixed: vec![0.0; self.resources.len()],
            per_rate: variant.segment.per_rate.clone(),
        };
        let mut choices: Vec<Choice> = self.at(index).iter().map(choice).collect();
        for (group, &cores) in self.groups(index).iter().zip(cores) {
            let choice = &mut choices[group.chain];
            choice.cap = choice.cap.min(group.carried[cores - 1]);
            choice.fixed[group.server] += cores as f64;
        }
        choices
    }

    /// The best value of pattern number `index` over all core allocations, with the cores that have it; and whether
    /// all were tried.
    fn best(
        &self,
        index: u64,
        progress: &mut Progress,
        go_on: &mut dyn FnMut(&Progress) -> bool,
    ) -> (Option<(f64, Vec<usize>)>, bool) {
        let groups = self.groups(index);
        let mut left: Vec<usize> = self.problem.servers.iter().map(|s| s.cores as usize).collect();
        for group in &groups {
            let Some(less) = left[group.server].checked_sub(1) else { return (None, true) };
            left[group.server] = less;
        }
        let mut best: Option<(f64, Vec<usize>)> = None;
        let all = self.allocate(&groups, &mut vec![1; groups.len()], 0, &mut left, &mut |cores, left| {
            // Where a spare core would help a subgroup, there is a better allocation.
            let helps = |(group, &cores): (&Group, &usize)| {
                let more = group.carried.iter().skip(cores).take(left[group.server]);
                more.into_iter().any(|carried| *carried > group.carried[cores - 1])
            };
            if groups.iter().zip(cores).any(helps) {
                return go_on(progress);
            }
            let choices = self.choices(index, cores);
            let settled =
                Settled { problem: self.problem, resources: self.resources, choices: choices.iter().collect() };
            if settled.keeps_promises() {
                progress.allocations += 1;
                let value = objective_bps(self.problem, &settled.rates_bps());
                if best.as_ref().is_none_or(|(most, _)| value > *most) {
                    best = Some((value, cores.to_vec()));
                }
            }
            go_on(progress)
        });
        (best, all)
    }

    /// All ways to give spare cores to the subgroups from `next` on, as long as `visit` wants more; whether it had all.
    fn allocate(
        &self,
        groups: &[Group],
        cores: &mut Vec<usize>,
        next: usize,
        left: &mut Vec<usize>,
        visit: &mut dyn FnMut(&[usize], &[usize]) -> bool,
    ) -> bool {
        let Some(group) = groups.get(next) else { return visit(cores, left) };
        let spare = left[group.server];
        let mut go_on = true;
        for extra in 0..group.carried.len().min(spare + 1) {
            cores[next] = 1 + extra;
            left[group.server] = spare - extra;
            go_on = self.allocate(groups, cores, next + 1, left, visit);
            if !go_on {
                break;
            }
        }
        cores[next] = 1;
        left[group.server] = spare;
        go_on
    }
}

#[cfg(test)]
mod tests {
    use super::super::exact::instances::instance;
    use super::super::exact::{self, Settings};
    use super::*;
    use catena_plan_model::check::check;

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
    fn what_one_number_does_not_rank_is_not_proven() {
        let mut checked = 0;
        for seed in 1_000..1_100 {
            let (mut problem, switch) = instance(seed);
            problem.objective = Objective::Fair;
            let (outcome, progress) = plan(&problem, &switch, &mut |_| true);
            if let Outcome::Placed { bound_bps, .. } = outcome {
                assert_eq!(bound_bps.is_some(), problem.chains.len() < 2, "seed {seed}: {progress:?}");
                checked += 1;
            }
        }
        assert!(checked > 20, "{checked}");
    }

    #[test]
    fn stops_when_told_and_proves_nothing_then() {
        let (problem, switch) = instance(1_003);
        let (outcome, progress) = plan(&problem, &switch, &mut |progress| progress.patterns < 1);
        assert_eq!(progress.patterns, 1);
        assert!(progress.of > 1);
        match outcome {
            Outcome::Placed { bound_bps, .. } => assert!(bound_bps.is_none_or(|bound| bound == ceiling::of(&problem))),
            Outcome::Infeasible { proven, .. } => assert!(!proven),
        }
        let (outcome, progress) = plan(&problem, &switch, &mut |_| false);
        assert!(progress.patterns <= 1 && progress.allocations <= 1, "{progress:?}");
        assert!(!matches!(outcome, Outcome::Infeasible { proven: true, .. }));
    }
}

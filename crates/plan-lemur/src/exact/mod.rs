//! The exact planner: the best placement there is, with proof.
//!
//! Each chain's patterns, cards and core allocations are enumerated and thinned to those that none is better
//! than in everything ([`options`]); a mixed-integer program chooses one for each chain, and rates
//! ([`master`]); the switch is asked whether it can hold the choice, and if not, the reason is forbidden and
//! the program solved again. Every program in between allows more than there is, so that the first solution
//! which fits is the best one, and the value of the last program bounds all others when time runs out. When it runs out
//! before all patterns were looked at, those that were are used, and [`ceiling`] bounds what the others might carry.

pub mod ceiling;
pub mod lifting;
pub mod master;
pub mod options;
pub mod patterns;
pub mod rates;
pub mod relax;
pub mod remedy;
pub mod resources;
pub mod symmetry;

#[cfg(test)]
mod exhaustive;
#[cfg(test)]
pub(super) mod instances;
#[cfg(test)]
mod rack_tests;
#[cfg(test)]
mod related_tests;
#[cfg(test)]
mod remedy_tests;
#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use lifting::{Conflict, Lifting};
use master::{Found, Goal, Master, Solved};
use options::{Choice, Options};
use patterns::{Symmetry, count};
use rates::{Settled, objective_bps};
use resources::{Resources, UNIT};
use symmetry::{Swap, server_classes, swaps};

use catena_plan_model::placement::{Outcome, Placement};
use catena_plan_model::problem::{Objective, Problem};
use catena_plan_model::relation::{by_level, is_provable, levels};
use catena_plan_model::switch::Feasible;

/// How near to the best a solution must be in the end, relative.
const EXACT: f64 = 1e-9;
/// How near it must be while it is only asked whether it fits the switch.
const ROUGH: f64 = 0.03;

/// How far the planner may go.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// How long it may take.
    pub time: Duration,
    /// A chain with more patterns than this is kept to one server at a time; then nothing is proven.
    pub patterns: f64,
    /// How often the switch may be asked again about each set that it does not hold, to learn more from it:
    /// many times if it answers in microseconds, never if it is a compiler.
    pub questions: usize,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { time: Duration::from_secs(60), patterns: 2e6, questions: 300 }
    }
}

/// What planning took.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Effort {
    /// Patterns looked at, by chain.
    pub patterns: Vec<usize>,
    /// Choices left after thinning, by chain.
    pub choices: Vec<usize>,
    /// Programs solved.
    pub solves: usize,
    /// Sets of nodes that the switch was found not to hold.
    pub cuts: usize,
}

/// What the exact planner says.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The decision. Its bound equals its value when it is proven to be the best.
    pub outcome: Outcome,
    /// What it took.
    pub effort: Effort,
    /// What is in the way, if nothing can be placed.
    pub obstacles: Option<relax::Obstacles>,
}

/// Plan `problem`, where `switch` says what the switch holds: monotonely, and with no regard to which of equal
/// branches of a chain are on it. A placement `start` that keeps all promises is
/// what comes back when time runs out before a better one is found.
#[must_use]
pub fn plan(problem: &Problem, switch: &dyn Feasible, start: Option<&Placement>, settings: &Settings) -> Answer {
    let deadline = Instant::now() + settings.time;
    let resources = Resources::of(problem);
    let search = Search::new(problem, &resources, switch, settings, deadline);
    let mut effort = search.effort();
    let end = search.best(&mut effort);
    let complete = search.complete && !search.cut;
    let started = start.map(|p| (objective_bps(problem, &p.rates_bps), p.clone()));
    let (found, bound_bps) = match end {
        End::Best { found, proven, bound } => {
            let settled = search.settled(&found);
            let placement = settled.placement();
            let value = objective_bps(problem, &placement.rates_bps);
            let bound_bps = if proven && complete {
                Some(value)
            } else {
                bound.filter(|_| complete).map(|b| (b * UNIT).max(value))
            };
            (Some((value, placement)), bound_bps)
        }
        End::Time { bound } => (None, bound.filter(|_| complete).map(|b| b * UNIT)),
        End::Infeasible { proven } => {
            if started.is_none() && !search.cut {
                // Some of the time is left for whoever wants to know more than one sentence.
                let left = deadline.saturating_duration_since(Instant::now()) / 4;
                let obstacles = relax::obstacles(problem, switch, &Settings { time: left, ..*settings });
                let why = obstacles.describe(problem);
                let outcome = Outcome::Infeasible { proven: proven && complete, why };
                return Answer { outcome, effort, obstacles: Some(obstacles) };
            }
            (None, None)
        }
    };
    let best = [found, started].into_iter().flatten().reduce(|a, b| if better(problem, &b, &a) { b } else { a });
    let outcome = match best {
        Some((marginal_bps, placement)) => {
            // Without a program that all choices went into, what there is bounds every plan.
            let bound_bps = bound_bps.unwrap_or_else(|| ceiling::of(problem));
            let bound_bps = Some(bound_bps.max(marginal_bps)).filter(|_| is_provable(problem));
            Outcome::Placed { placement, marginal_bps, bound_bps }
        }
        None => Outcome::Infeasible { proven: false, why: "no placement was found in the time allowed".into() },
    };
    Answer { outcome, effort, obstacles: None }
}

/// Whether a placement, with its value, is better than another one.
fn better(problem: &Problem, a: &(f64, Placement), b: &(f64, Placement)) -> bool {
    let levels = |p: &Placement| by_level(problem, &p.rates_bps);
    let (of_a, of_b) = (levels(&a.1), levels(&b.1));
    if of_a.len() < 2 {
        return a.0 > b.0;
    }
    let differs = |(a, b): &(&f64, &f64)| (**a - **b).abs() > 1e-6 * b.abs().max(1e3);
    of_a.iter().zip(&of_b).find(differs).is_some_and(|(a, b)| a > b)
}

/// How a search ended; values and bounds in [`UNIT`]s.
enum End {
    Best { found: Found, proven: bool, bound: Option<f64> },
    Time { bound: Option<f64> },
    Infeasible { proven: bool },
}

/// A problem with its chains' choices, ready to be solved.
struct Search<'a> {
    problem: &'a Problem,
    resources: &'a Resources,
    switch: &'a dyn Feasible,
    swaps: Vec<Vec<Swap>>,
    options: Vec<Options>,
    /// Each chain's level of priority.
    levels: Vec<usize>,
    /// Whether all patterns of all chains were to be looked at.
    complete: bool,
    /// Whether time ran out before they were.
    cut: bool,
    questions: usize,
    deadline: Instant,
}

impl<'a> Search<'a> {
    fn new(
        problem: &'a Problem,
        resources: &'a Resources,
        switch: &'a dyn Feasible,
        settings: &Settings,
        deadline: Instant,
    ) -> Search<'a> {
        let swaps: Vec<Vec<Swap>> = problem.chains.iter().map(swaps).collect();
        let counts: Vec<f64> = problem.chains.iter().map(|chain| count(problem, chain)).collect();
        // Names of equal servers can be settled once: where it helps most.
        let largest = (0..counts.len()).reduce(|a, b| if counts[b] > counts[a] { b } else { a });
        let mut complete = true;
        let mut options = Vec::new();
        // Half of the time is for choosing among what is found in the other half.
        let now = Instant::now();
        let found_until = now + deadline.saturating_duration_since(now) / 2;
        for (id, chain) in problem.chains.iter().enumerate() {
            // Where nothing joins the servers, no chain goes from one to another: nothing is left out.
            let alone = problem.switch.is_none();
            let one_server = alone || counts[id] > settings.patterns;
            complete &= alone || !one_server;
            let classes = (Some(id) == largest).then(|| server_classes(problem));
            let symmetry = Symmetry { swaps: swaps[id].clone(), classes, one_server };
            options.push(Options::of(problem, resources, chain, &symmetry, found_until));
        }
        let cut = options.iter().any(|o: &Options| o.cut);
        let levels = levels(problem.chains.len(), &problem.relations);
        let questions = settings.questions;
        Search { problem, resources, switch, swaps, options, levels, complete, cut, questions, deadline }
    }

    fn effort(&self) -> Effort {
        Effort {
            patterns: self.options.iter().map(|o| o.patterns).collect(),
            choices: self.options.iter().map(|o| o.choices.len()).collect(),
            ..Effort::default()
        }
    }

    /// What `found` chose, for all chains.
    fn settled(&self, found: &Found) -> Settled<'_> {
        let choices = self.choices(found).into_iter().flatten().collect();
        Settled { problem: self.problem, resources: self.resources, choices }
    }

    fn choices<'s>(&'s self, found: &Found) -> Vec<Option<&'s Choice>> {
        let choice = |(options, choice): (&'s Options, &Option<usize>)| choice.and_then(|c| options.choices.get(c));
        self.options.iter().zip(&found.choices).map(choice).collect()
    }

    /// The best choices for the problem's objective.
    fn best(&self, effort: &mut Effort) -> End {
        let mut master = Master::new(self.problem, self.resources, &self.options);
        let weights = || self.problem.chains.iter().map(|c| c.weight).collect::<Vec<f64>>();
        match self.problem.objective {
            _ if self.levels.iter().any(|level| *level > 0) => self.by_level(&mut master, effort),
            Objective::Marginal => self.most(&mut master, vec![1.0; self.options.len()], effort),
            Objective::Weighted => self.most(&mut master, weights(), effort),
            Objective::Fair => self.fairest(&mut master, weights(), effort),
        }
    }

    /// The largest sum; of solutions with that sum the one that occupies the least, if there is time.
    fn most(&self, master: &mut Master<'_>, factors: Vec<f64>, effort: &mut Effort) -> End {
        let best = self.fitting(master, &Goal::Sum(factors.clone()), effort);
        let End::Best { found, proven: true, bound } = best else { return best };
        let goal = Goal::Occupied { factors, floor: found.value };
        match self.fitting(master, &goal, effort) {
            End::Best { found, .. } => End::Best { found, proven: true, bound },
            _ => End::Best { found, proven: true, bound },
        }
    }

    /// The largest sum of each level of priority, given those of the levels above.
    fn by_level(&self, master: &mut Master<'_>, effort: &mut Effort) -> End {
        let marginal = self.problem.objective == Objective::Marginal;
        let weight = |chain: usize| if marginal { 1.0 } else { self.problem.chains[chain].weight };
        let count = self.levels.iter().max().map_or(0, |last| last + 1);
        for level in 0..count {
            let factor = |(chain, of): (usize, &usize)| if *of == level { weight(chain) } else { 0.0 };
            let factors: Vec<f64> = self.levels.iter().enumerate().map(factor).collect();
            let goal = Goal::Sum(factors.clone());
            let best = if level + 1 == count {
                self.most(master, factors, effort)
            } else {
                self.fitting(master, &goal, effort)
            };
            match best {
                End::Best { found, proven: true, .. } if level + 1 < count => {
                    let Goal::Sum(factors) = goal else { continue };
                    master.floors.push((factors, found.value));
                }
                // What bounds one level bounds no sum.
                End::Best { found, proven, .. } => return End::Best { found, proven, bound: None },
                End::Time { .. } => return End::Time { bound: None },
                End::Infeasible { proven } => return End::Infeasible { proven },
            }
        }
        End::Time { bound: None }
    }

    fn fairest(&self, master: &mut Master<'_>, divisors: Vec<f64>, effort: &mut Effort) -> End {
        let count = divisors.iter().filter(|d| **d > 0.0).count();
        if count == 0 {
            return self.fitting(master, &Goal::Any, effort);
        }
        let mut floors = Vec::new();
        let mut last = None;
        while floors.len() < count {
            let goal = Goal::Least { divisors: divisors.clone(), floors: floors.clone() };
            match (self.fitting(master, &goal, effort), last.take()) {
                (End::Best { found, proven, bound }, before) => {
                    // The first value is the objective's; the others only say who comes next.
                    let first = match before {
                        Some(End::Best { bound, .. }) => bound,
                        _ => bound,
                    };
                    floors.push(found.value);
                    last = Some(End::Best { found, proven, bound: first });
                    if !proven {
                        break;
                    }
                }
                (End::Time { .. }, Some(End::Best { found, bound, .. })) => {
                    return End::Best { found, proven: false, bound };
                }
                (_, Some(before)) => return before,
                (end, None) => return end,
            }
        }
        last.unwrap_or(End::Time { bound: None })
    }

    /// The best choices for `goal` that fit the switch.
    fn fitting(&self, master: &mut Master<'_>, goal: &Goal, effort: &mut Effort) -> End {
        let mut certain = true;
        let mut bound = None;
        let mut fit: Option<Found> = None;
        let mut gap = EXACT;
        loop {
            let left = self.deadline.saturating_duration_since(Instant::now());
            effort.solves += 1;
            let solved = if left.is_zero() { Solved::Nothing(f64::NAN) } else { master.solve(goal, gap, left) };
            let (found, in_time) = match solved {
                Solved::Best(found) => (found, true),
                Solved::Some(found) => (found, false),
                Solved::Nothing(value) => {
                    if certain && value.is_finite() {
                        bound = Some(value);
                    }
                    return match fit {
                        Some(found) => End::Best { found, proven: false, bound },
                        None => End::Time { bound },
                    };
                }
                Solved::Infeasible => return End::Infeasible { proven: certain },
            };
            if certain {
                bound = Some(found.bound);
            }
            match self.conflict(&found) {
                None if gap == EXACT || !in_time => {
                    return End::Best { found, proven: in_time && certain, bound };
                }
                // Good enough to fall back on; now for the best.
                None => {
                    fit = Some(found);
                    gap = EXACT;
                }
                Some(conflict) => {
                    certain &= conflict.proven;
                    effort.cuts += 1;
                    master.forbid(&conflict, &self.swaps);
                    // While solutions do not fit, proving that they are the best is a waste.
                    gap = if fit.is_none() { ROUGH } else { EXACT };
                }
            }
        }
    }

    /// Why the switch cannot hold what `found` chose.
    fn conflict(&self, found: &Found) -> Option<Conflict> {
        let nodes = |chain: usize| self.problem.chains[chain].nodes.len();
        let on = |(id, choice): (usize, Option<&Choice>)| choice.map_or(vec![false; nodes(id)], Choice::on_switch);
        let on_switch: Vec<Vec<bool>> = self.choices(found).into_iter().enumerate().map(on).collect();
        if !on_switch.iter().flatten().any(|on| *on) {
            return None;
        }
        let nodes = self.switch.conflict(self.problem, &on_switch)?;
        let (problem, switch, options) = (self.problem, self.switch, &self.options);
        Some(Lifting { problem, switch, options, questions: self.questions, until: self.deadline }.lift(&nodes))
    }
}

//! The master problem: one choice for each chain, and rates, so that no resource runs out.
//!
//! Lemur's mixed-integer program leaves the switch out, because only its compiler knows what fits (Lemur,
//! §2). Here it comes in by cuts: whenever a solution does not fit, the reason is forbidden. A cut counts
//! the chains whose choice has its part of the reason on the switch, which is stronger than counting nodes:
//! a chain has one choice.

use std::time::Duration;

use super::super::related::{Rate, rows};
use super::lifting::Conflict;
use super::options::{Choice, Options, limit};
use super::resources::{ROUNDING, Resource, Resources, UNIT};
use super::symmetry::{Swap, images};
use catena_plan_model::placement::Site;
use catena_plan_model::problem::{ChainId, Problem};
use catena_solver::{self as solver, Column, Limits, Outcome, Sense};

/// Slack in constraints that say "as good as before", in units of rate.
const AS_BEFORE: f64 = 1e-8;
/// What the solver may miss a row or bound by.
const FEASIBILITY: f64 = 1e-9;

/// Chains that cannot all make such choices.
#[derive(Clone, Debug, PartialEq)]
pub struct Cut {
    /// The choices that count, by chain.
    pub choices: Vec<(ChainId, Vec<usize>)>,
}

/// What the solver is asked to maximise (or, for `Occupied` and `Shortage`, to minimise).
#[derive(Clone, Debug, PartialEq)]
pub enum Goal {
    /// Any solution will do.
    Any,
    /// The sum of the chains' marginal rates, each by its factor.
    Sum(Vec<f64>),
    /// The sum of the least marginal rates relative to the chains' divisors: of as many as stand in
    /// `floors` and one more. The sums of fewer stay at least at the floors. Chains whose divisor is not
    /// positive are left out.
    Least {
        /// By chain.
        divisors: Vec<f64>,
        /// The best sums of the least one, the least two, and so on.
        floors: Vec<f64>,
    },
    /// What the chains occupy, among solutions whose sum of marginal rates by these factors is at least `floor`:
    /// a core or a visit a packet counts 1, a node on the switch a hundredth.
    Occupied {
        /// By chain.
        factors: Vec<f64>,
        /// The least sum.
        floor: f64,
    },
    /// What is missing of these resources, in cores, units of rate, or thousands of millions of cycles.
    Shortage(Vec<usize>),
}

/// A master problem.
pub struct Master<'a> {
    problem: &'a Problem,
    resources: &'a Resources,
    options: &'a [Options],
    chains: Vec<ChainId>,
    cuts: Vec<Cut>,
    /// Sums of marginal rates, each chain's by its factor, that are not to be less: those of earlier levels of priority.
    pub floors: Vec<(Vec<f64>, f64)>,
}

/// What the solver found.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// Index of each chain's choice; None for chains that are left out.
    pub choices: Vec<Option<usize>>,
    /// The goal's value.
    pub value: f64,
    /// No solution is better than this.
    pub bound: f64,
    /// What is missing of each resource: of those that may be missing.
    pub missing: Vec<f64>,
}

/// How solving ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Solved {
    /// With a solution as good as was asked for.
    Best(Found),
    /// Out of time, with a solution.
    Some(Found),
    /// Out of time, without a solution; no solution is better than this.
    Nothing(f64),
    /// There is no solution.
    Infeasible,
}

impl<'a> Master<'a> {
    /// For all chains of `problem`.
    #[must_use]
    pub fn new(problem: &'a Problem, resources: &'a Resources, options: &'a [Options]) -> Master<'a> {
        let chains = (0..problem.chains.len()).collect();
        Master { problem, resources, options, chains, cuts: Vec::new(), floors: Vec::new() }
    }

    /// For some chains alone; cuts stay.
    pub fn only(&mut self, chains: &[ChainId]) {
        self.chains = chains.to_vec();
    }

    /// The number of cuts.
    #[must_use]
    pub fn cuts(&self) -> usize {
        self.cuts.len()
    }

    /// Forbid that the switch holds a part of each chain of `conflict`, or what `swaps` turn the parts into.
    pub fn forbid(&mut self, conflict: &Conflict, swaps: &[Vec<Swap>]) {
        let mut cut = Cut { choices: Vec::new() };
        for (chain, parts) in &conflict.parts {
            let parts: Vec<Vec<bool>> = parts.iter().flat_map(|part| images(part, &swaps[*chain])).collect();
            let holds = |choice: &Choice| {
                let on = choice.on_switch();
                parts.iter().any(|part| part.iter().zip(&on).all(|(&part, &on)| on || !part))
            };
            let choices = self.options[*chain].choices.iter().enumerate();
            cut.choices.push((*chain, choices.filter(|(_, c)| holds(c)).map(|(id, _)| id).collect()));
        }
        self.cuts.push(cut);
    }

    /// Solve for `goal` in at most `time`; a solution within `gap` of the best one, relative, is good enough.
    #[must_use]
    pub fn solve(&self, goal: &Goal, gap: f64, time: Duration) -> Solved {
        if self.chains.iter().any(|&c| self.options[c].choices.is_empty()) {
            return Solved::Infeasible;
        }
        if self.chains.is_empty() {
            let missing = vec![0.0; self.resources.len()];
            return Solved::Best(Found { choices: vec![None; self.options.len()], value: 0.0, bound: 0.0, missing });
        }
        let least = matches!(goal, Goal::Shortage(_) | Goal::Occupied { .. });
        let mut lp = solver::Program::new(if least { Sense::Minimise } else { Sense::Maximise });
        let columns = self.columns(&mut lp, goal);
        let missing = self.resource_rows(&mut lp, goal, &columns);
        self.cut_rows(&mut lp, &columns);
        rows(&mut lp, &self.problem.relations, |chain| {
            let (_, _, marginals) = columns.iter().find(|(c, _, _)| *c == chain)?;
            let chain = &self.problem.chains[chain];
            let terms = marginals.iter().map(|m| (m.col, 1.0)).collect();
            Some(Rate { terms, low: chain.t_min_bps / UNIT, high: limit(chain) })
        });
        for (factors, floor) in &self.floors {
            let marginals = columns.iter().flat_map(|(c, _, m)| m.iter().map(|m| (m.col, factors[*c])));
            lp.row(floor - AS_BEFORE * (1.0 + floor.abs()), f64::INFINITY, marginals);
        }
        if let Goal::Least { divisors, floors } = goal {
            self.least_rows(&mut lp, &columns, divisors, floors);
        }
        if let Goal::Occupied { factors, floor } = goal {
            let marginals = columns.iter().flat_map(|(c, _, m)| m.iter().map(|m| (m.col, factors[*c])));
            lp.row(floor - AS_BEFORE * floor.abs(), f64::INFINITY, marginals);
        }
        let (solution, best) = match lp.solve(&Limits { time, gap, feasibility: FEASIBILITY }) {
            Outcome::Best(solution) => (solution, true),
            Outcome::Some(solution) => (solution, false),
            Outcome::Nothing(bound) => return Solved::Nothing(bound),
            Outcome::Infeasible => return Solved::Infeasible,
            Outcome::Unbounded => return Solved::Nothing(f64::INFINITY),
        };
        let mut choices = vec![None; self.options.len()];
        for &(chain, ref chosen, _) in &columns {
            let by_value = |a: &&Column, b: &&Column| solution.of(**a).total_cmp(&solution.of(**b));
            let most = chosen.iter().max_by(by_value);
            choices[chain] = chosen.iter().position(|c| Some(c) == most);
        }
        let missing = missing.iter().map(|col| col.map_or(0.0, |c| solution.of(c).max(0.0))).collect();
        let found = Found { choices, value: solution.value, bound: solution.bound, missing };
        if best { Solved::Best(found) } else { Solved::Some(found) }
    }

    /// For each chain: a column for each choice, and one for each way in which rate uses resources, with the
    /// marginal rate under it.
    fn columns(&self, lp: &mut solver::Program, goal: &Goal) -> Vec<(ChainId, Vec<Column>, Vec<Marginal<'a>>)> {
        let mut columns = Vec::new();
        for &chain in &self.chains {
            let factor = match goal {
                Goal::Sum(factors) => factors[chain],
                _ => 0.0,
            };
            let low = self.problem.chains[chain].t_min_bps / UNIT;
            let cost = |choice: &Choice| match goal {
                Goal::Occupied { .. } => self.occupied(choice),
                _ => 0.0,
            };
            let choices = self.options[chain].choices.iter();
            let chosen: Vec<Column> = choices.map(|choice| lp.integer_column(cost(choice), 0.0, 1.0)).collect();
            lp.row(1.0, 1.0, chosen.iter().map(|&col| (col, 1.0)));
            let mut marginals: Vec<Marginal<'a>> = Vec::new();
            for (id, choice) in self.options[chain].choices.iter().enumerate() {
                match marginals.iter_mut().find(|m| m.per_rate == choice.per_rate.as_slice()) {
                    Some(marginal) => marginal.choices.push(id),
                    None => marginals.push(Marginal {
                        per_rate: &choice.per_rate,
                        col: lp.column(factor, 0.0, f64::INFINITY),
                        choices: vec![id],
                    }),
                }
            }
            for marginal in &marginals {
                let caps = marginal
                    .choices
                    .iter()
                    .map(|&id| (chosen[id], -(self.options[chain].choices[id].cap - low).max(0.0)));
                lp.row(f64::NEG_INFINITY, 0.0, caps.chain([(marginal.col, 1.0)]));
            }
            columns.push((chain, chosen, marginals));
        }
        columns
    }

    fn occupied(&self, choice: &Choice) -> f64 {
        let visits = choice.per_rate.iter().enumerate().filter(|(resource, _)| {
            matches!(self.resources.kind(*resource), Resource::Nic(..) | Resource::SmartLink(_))
        });
        let on_switch = choice.sites.iter().filter(|site| **site == Site::Switch).count();
        choice.fixed.iter().sum::<f64>() + visits.map(|(_, v)| v).sum::<f64>() + on_switch as f64 / 100.0
    }

    fn resource_rows(
        &self,
        lp: &mut solver::Program,
        goal: &Goal,
        columns: &[(ChainId, Vec<Column>, Vec<Marginal<'a>>)],
    ) -> Vec<Option<Column>> {
        let mut missing = vec![None; self.resources.len()];
        for (resource, &capacity) in self.resources.capacity.iter().enumerate() {
            let mut row: Vec<(Column, f64)> = Vec::new();
            for (chain, chosen, marginals) in columns {
                let low = self.problem.chains[*chain].t_min_bps / UNIT;
                for (&col, choice) in chosen.iter().zip(&self.options[*chain].choices) {
                    let take = choice.fixed[resource] + low * choice.per_rate[resource];
                    if take > 0.0 {
                        row.push((col, take));
                    }
                }
                let grows = marginals.iter().filter(|m| m.per_rate[resource] > 0.0);
                row.extend(grows.map(|m| (m.col, m.per_rate[resource])));
            }
            if matches!(goal, Goal::Shortage(which) if which.contains(&resource)) {
                let col = match self.resources.kind(resource) {
                    Resource::Cores(_) => lp.integer_column(1.0, 0.0, f64::INFINITY),
                    _ => lp.column(1.0, 0.0, f64::INFINITY),
                };
                missing[resource] = Some(col);
                row.push((col, -1.0));
            }
            lp.row(f64::NEG_INFINITY, capacity * (1.0 + ROUNDING), row);
        }
        missing
    }

    fn cut_rows(&self, lp: &mut solver::Program, columns: &[(ChainId, Vec<Column>, Vec<Marginal<'a>>)]) {
        for cut in &self.cuts {
            // A chain that is left out has nothing on the switch.
            if cut.choices.iter().any(|(chain, _)| !self.chains.contains(chain)) {
                continue;
            }
            let mut row = Vec::new();
            for (chain, which) in &cut.choices {
                if let Some((_, chosen, _)) = columns.iter().find(|(c, _, _)| c == chain) {
                    row.extend(which.iter().map(|&id| (chosen[id], 1.0)));
                }
            }
            lp.row(f64::NEG_INFINITY, cut.choices.len() as f64 - 1.0, row);
        }
    }

    /// The sum of the k least of some values is the most that `k × t − Σ d` can be with `t − d ≤ value` for
    /// each; maximising it for k = 1, 2, … gives the max-min order also where values are not convex.
    fn least_rows(
        &self,
        lp: &mut solver::Program,
        columns: &[(ChainId, Vec<Column>, Vec<Marginal<'a>>)],
        divisors: &[f64],
        floors: &[f64],
    ) {
        for k in 0..=floors.len() {
            let last = k == floors.len();
            let sign = if last { 1.0 } else { 0.0 };
            let count = (k + 1) as f64;
            let level = lp.column(count * sign, f64::NEG_INFINITY, f64::INFINITY);
            let mut sum = vec![(level, count)];
            for (chain, _, marginals) in columns {
                if divisors[*chain] > 0.0 {
                    let below = lp.column(-sign, 0.0, f64::INFINITY);
                    sum.push((below, -1.0));
                    let value = marginals.iter().map(|m| (m.col, -1.0 / divisors[*chain]));
                    lp.row(f64::NEG_INFINITY, 0.0, value.chain([(level, 1.0), (below, -1.0)]));
                }
            }
            if let Some(floor) = floors.get(k) {
                lp.row(floor - AS_BEFORE * (1.0 + floor.abs()), f64::INFINITY, sum);
            }
        }
    }
}

/// The marginal rate of those choices of a chain by which a rate uses the same of every resource.
struct Marginal<'a> {
    per_rate: &'a [f64],
    col: Column,
    choices: Vec<usize>,
}

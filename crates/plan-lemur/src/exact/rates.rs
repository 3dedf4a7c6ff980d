//! The rates of chains whose choices are settled (Lemur, §3.2, "Finding Maximum Marginal Throughput"), and
//! the placement that they make together.

use super::super::links::card;
use super::super::related::{self, Bounds};
use super::options::{Choice, cores_for, share_for};
use super::resources::{ROUNDING, Resources, UNIT};
use catena_plan_model::estimate::Layout;
use catena_plan_model::placement::{Link, Placement, Subgroup};
use catena_plan_model::problem::{Objective, Problem};
use catena_solver::{self as solver, Limits, Outcome, Sense};

/// What a subgroup without traffic has of a shared core: "any positive number".
const SLIVER: f64 = 1e-12;

/// The objective's value for chains with these rates: the sum of marginal bits per second, by weight if the
/// problem says so; for a fair division the least marginal rate relative to its chain's weight.
#[must_use]
pub fn objective_bps(problem: &Problem, rates_bps: &[f64]) -> f64 {
    let marginal = |(chain, rate): (&catena_plan_model::problem::Chain, &f64)| (chain.weight, rate - chain.t_min_bps);
    let marginals = problem.chains.iter().zip(rates_bps).map(marginal);
    match problem.objective {
        Objective::Marginal => marginals.map(|(_, bps)| bps).sum(),
        Objective::Weighted => marginals.map(|(weight, bps)| weight * bps).sum(),
        Objective::Fair => {
            let relative = marginals.filter(|(weight, _)| *weight > 0.0).map(|(weight, bps)| bps / weight);
            let least = relative.fold(f64::INFINITY, f64::min);
            if least.is_finite() { least } else { 0.0 }
        }
    }
}

/// Chains whose choices are settled: all that is open is how fast they run.
pub struct Settled<'a> {
    /// The problem.
    pub problem: &'a Problem,
    /// What there is.
    pub resources: &'a Resources,
    /// The choice of each chain.
    pub choices: Vec<&'a Choice>,
}

impl Settled<'_> {
    fn low(&self, chain: usize) -> f64 {
        self.problem.chains[chain].t_min_bps / UNIT
    }

    /// What remains of each resource when all chains run at their promised rates.
    fn spare(&self) -> Vec<f64> {
        let mut spare = self.resources.capacity.clone();
        for (chain, choice) in self.choices.iter().enumerate() {
            for (resource, spare) in spare.iter_mut().enumerate() {
                *spare -= choice.fixed[resource] + choice.per_rate[resource] * self.low(chain);
            }
        }
        spare.iter_mut().for_each(|s| *s = s.max(0.0));
        spare
    }

    /// Whether all promises can be kept together.
    #[must_use]
    pub fn keeps_promises(&self) -> bool {
        let mut taken = vec![0.0; self.resources.len()];
        for (chain, choice) in self.choices.iter().enumerate() {
            for (resource, taken) in taken.iter_mut().enumerate() {
                *taken += choice.fixed[resource] + choice.per_rate[resource] * self.low(chain);
            }
        }
        let fast = self.choices.iter().enumerate().all(|(id, c)| c.cap >= self.low(id) * (1.0 - ROUNDING));
        let related = || self.problem.relations.is_empty() || self.related().is_some();
        fast && taken.iter().zip(&self.resources.capacity).all(|(t, there)| *t <= there * (1.0 + ROUNDING)) && related()
    }

    /// Marginal rates that keep the relations; None: there are none.
    fn related(&self) -> Option<Vec<f64>> {
        let chains = 0..self.choices.len();
        let lower: Vec<f64> = chains.clone().map(|c| self.low(c)).collect();
        let upper: Vec<f64> = chains.clone().map(|c| self.low(c) + self.room(c)).collect();
        let row = |(resource, &capacity): (usize, &f64)| {
            let fixed: f64 = self.choices.iter().map(|c| c.fixed[resource]).sum();
            (self.choices.iter().map(|c| c.per_rate[resource]).collect(), capacity - fixed)
        };
        let rows: Vec<(Vec<f64>, f64)> = self.resources.capacity.iter().enumerate().map(row).collect();
        let marginal = self.problem.objective == Objective::Marginal;
        let weights: Vec<f64> = self.problem.chains.iter().map(|c| if marginal { 1.0 } else { c.weight }).collect();
        let bounds = Bounds { lower: &lower, upper: &upper, rows: &rows, weights: &weights };
        let rates = related::best(&bounds, &self.problem.relations, self.problem.objective)?;
        Some(rates.iter().zip(&lower).map(|(rate, low)| rate - low).collect())
    }

    /// The best rates, bits per second. The choices must be able to keep all promises together.
    #[must_use]
    pub fn rates_bps(&self) -> Vec<f64> {
        let mut marginal = match self.problem.objective {
            _ if !self.problem.relations.is_empty() => self.related().unwrap_or_else(|| vec![0.0; self.choices.len()]),
            Objective::Marginal => self.most(|_| 1.0),
            Objective::Weighted => self.most(|chain| self.problem.chains[chain].weight),
            Objective::Fair => self.fair(),
        };
        self.trim(&mut marginal);
        let full = |(chain, m): (usize, &f64)| (self.low(chain) + m) * UNIT;
        let exact =
            |(chain, m): (usize, &f64)| if *m > 0.0 { full((chain, m)) } else { self.problem.chains[chain].t_min_bps };
        marginal.iter().enumerate().map(exact).collect()
    }

    /// How much faster than promised a chain can be.
    fn room(&self, chain: usize) -> f64 {
        (self.choices[chain].cap - self.low(chain)).max(0.0)
    }

    fn most(&self, weight: impl Fn(usize) -> f64) -> Vec<f64> {
        let spare = self.spare();
        let free: Vec<f64> =
            (0..self.choices.len()).map(|c| if weight(c) > 0.0 { self.room(c) } else { 0.0 }).collect();
        let load = |resource: usize| self.choices.iter().zip(&free).map(|(c, m)| c.per_rate[resource] * m).sum::<f64>();
        let tight: Vec<usize> = (0..spare.len()).filter(|&r| load(r) > spare[r]).collect();
        if tight.is_empty() {
            return free;
        }
        let mut lp = solver::Program::new(Sense::Maximise);
        let columns: Vec<_> = free.iter().enumerate().map(|(c, &room)| lp.column(weight(c), 0.0, room)).collect();
        for resource in tight {
            let uses = columns.iter().zip(&self.choices).map(|(&col, c)| (col, c.per_rate[resource]));
            lp.row(f64::NEG_INFINITY, spare[resource], uses);
        }
        match lp.solve(&Limits { feasibility: 1e-10, ..Limits::default() }) {
            Outcome::Best(solution) => solution.values,
            _ => vec![0.0; free.len()],
        }
    }

    /// Raise all marginal rates together, each in proportion to its weight; whoever meets a limit stays there
    /// and the others go on.
    fn fair(&self) -> Vec<f64> {
        let count = self.choices.len();
        let mut spare = self.spare();
        let mut marginal = vec![0.0; count];
        let weight = |chain: usize| self.problem.chains[chain].weight;
        let mut rising: Vec<usize> = (0..count).filter(|&c| weight(c) > 0.0 && self.room(c) > 0.0).collect();
        while !rising.is_empty() {
            let draw = |r: usize| rising.iter().map(|&c| weight(c) * self.choices[c].per_rate[r]).sum::<f64>();
            let draws: Vec<f64> = (0..spare.len()).map(draw).collect();
            let by_room = rising.iter().map(|&c| (self.room(c) - marginal[c]) / weight(c));
            let by_resource = draws.iter().zip(&spare).filter(|(d, _)| **d > 0.0).map(|(d, s)| s / d);
            let step = by_room.chain(by_resource).fold(f64::INFINITY, f64::min).max(0.0);
            for &chain in &rising {
                marginal[chain] += step * weight(chain);
            }
            spare.iter_mut().zip(&draws).for_each(|(s, d)| *s = (*s - step * d).max(0.0));
            let empty = |r: usize| spare[r] <= self.resources.capacity[r] * 1e-13;
            let before = rising.len();
            rising.retain(|&c| {
                let blocked = (0..spare.len()).any(|r| self.choices[c].per_rate[r] > 0.0 && empty(r));
                !blocked && self.room(c) - marginal[c] > self.room(c) * 1e-13
            });
            if rising.len() == before {
                // Rounding kept the one that stopped the rise from seeming at its limit.
                break;
            }
        }
        marginal
    }

    /// Take away what solvers' tolerances gave too much.
    fn trim(&self, marginal: &mut [f64]) {
        for (chain, m) in marginal.iter_mut().enumerate() {
            *m = m.clamp(0.0, self.room(chain));
        }
        let spare = self.spare();
        for (resource, &spare) in spare.iter().enumerate() {
            let load: f64 = self.choices.iter().zip(marginal.iter()).map(|(c, m)| c.per_rate[resource] * m).sum();
            if load > spare {
                let users = self.choices.iter().zip(marginal.iter_mut()).filter(|(c, _)| c.per_rate[resource] > 0.0);
                users.for_each(|(_, m)| *m *= spare / load);
            }
        }
    }

    /// The placement.
    #[must_use]
    pub fn placement(&self) -> Placement {
        let rates_bps = self.rates_bps();
        let mut subgroups = Vec::new();
        for (id, (chain, choice)) in self.problem.chains.iter().zip(&self.choices).enumerate() {
            let layout = Layout::of(self.problem, chain, &choice.sites);
            for (group, &nic) in layout.groups.iter().zip(&choice.nics) {
                let cores = if self.problem.servers[group.server].shared {
                    share_for(self.problem, chain, group, rates_bps[id] / UNIT).unwrap_or(1.0).max(SLIVER)
                } else {
                    f64::from(cores_for(self.problem, chain, group, choice.cap).unwrap_or(1))
                };
                subgroups.push(Subgroup {
                    chain: id,
                    nodes: group.nodes.clone(),
                    server: group.server,
                    cores,
                    link: group.smart_nic.map_or_else(|| card(self.problem, group.server, nic), Link::SmartNic),
                });
            }
        }
        let sites = self.choices.iter().map(|c| c.sites.clone()).collect();
        Placement { sites, subgroups, rates_bps }
    }
}

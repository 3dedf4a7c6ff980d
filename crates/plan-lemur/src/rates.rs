//! The rates of chains once cores are given: the linear program of Lemur, §3.2 ("Finding Maximum Marginal
//! Throughput").
//!
//! All coefficients are at least 0, which makes most of it easy: the program has a solution exactly when
//! the lower bounds keep every row; a single row that binds is a knapsack of divisible goods; fairness is
//! filling with water. What remains, several rows that bind together, goes to the solver.

use super::exact::resources::UNIT;
use super::related;
use catena_plan_model::problem::{ChainId, Objective};
use catena_plan_model::relation::Relation;
use catena_solver::{self as solver, Column, Limits, Outcome, Sense};

/// Rates above this count as this: no port carries a petabit.
pub const MOST_BPS: f64 = 1e15;
/// Relative room for rounding.
pub const ROUNDING: f64 = 1e-9;

/// A limit that several chains share.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The chains that take of it, ascending, with what a bit per second of each takes, above 0.
    pub terms: Vec<(ChainId, f64)>,
    /// How much there is.
    pub capacity: f64,
}

impl Row {
    /// A row of which each chain takes so much, or 0.
    #[must_use]
    pub fn of(coefficients: impl IntoIterator<Item = f64>, capacity: f64) -> Row {
        Row { terms: coefficients.into_iter().enumerate().filter(|(_, c)| *c > 0.0).collect(), capacity }
    }

    /// Let a chain, the last one or a later one, take more of it.
    pub fn add(&mut self, chain: ChainId, coefficient: f64) {
        match self.terms.last_mut() {
            Some((last, sum)) if *last == chain => *sum += coefficient,
            _ if coefficient > 0.0 => self.terms.push((chain, coefficient)),
            _ => {}
        }
    }

    /// What `rates` take of it.
    #[must_use]
    pub fn load(&self, rates: &[f64]) -> f64 {
        self.terms.iter().filter_map(|(chain, c)| Some(c * rates.get(*chain)?)).sum()
    }

    /// What a bit per second of a chain takes of it.
    fn takes(&self, chain: ChainId) -> f64 {
        self.terms.binary_search_by_key(&chain, |term| term.0).map_or(0.0, |at| self.terms[at].1)
    }

    fn holds(&self, rates: &[f64]) -> bool {
        self.load(rates) <= self.capacity * (1.0 + ROUNDING)
    }
}

/// Bounds of the chains' rates in bits per second, their weights, and what they share.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    /// The least rates.
    pub lower: Vec<f64>,
    /// The most, from what each chain has for itself.
    pub upper: Vec<f64>,
    /// What a bit per second counts.
    pub weight: Vec<f64>,
    /// What the chains share.
    pub rows: Vec<Row>,
    /// How the chains stand to each other.
    pub relations: Vec<Relation>,
}

impl Program {
    /// By how much the promises cannot be kept, relative to what there is: 0 if they can.
    #[must_use]
    pub fn shortage(&self) -> f64 {
        let own = self.lower.iter().zip(&self.upper).map(|(l, u)| excess(*l, *u));
        let shared = self.rows.iter().map(|row| excess(row.load(&self.lower), row.capacity));
        own.chain(shared).sum()
    }

    /// The best rates; None if the promises cannot be kept.
    #[must_use]
    pub fn solve(&self, objective: Objective) -> Option<Vec<f64>> {
        if self.shortage() > 0.0 {
            return None;
        }
        let upper: Vec<f64> = self.upper.iter().zip(&self.lower).map(|(u, l)| u.min(MOST_BPS).max(*l)).collect();
        if !self.relations.is_empty() {
            return self.related(&upper, objective);
        }
        if objective == Objective::Fair {
            return Some(self.fill(&upper));
        }
        let weight = |c: usize| if objective == Objective::Weighted { self.weight[c] } else { 1.0 };
        // Rows that cannot bind are left out; if one remains, or one alone keeps all others, the knapsack is exact.
        let binding: Vec<&Row> = self.rows.iter().filter(|row| !row.holds(&upper)).collect();
        let mut rates = upper.clone();
        for (chains, rows) in apart(upper.len(), &binding) {
            self.solve_part(&upper, &chains, &rows, weight, &mut rates);
        }
        Some(rates)
    }

    /// The best rates of `chains`, which share `rows` with nobody else.
    fn solve_part(
        &self,
        upper: &[f64],
        chains: &[ChainId],
        rows: &[&Row],
        weight: impl Fn(usize) -> f64 + Copy,
        rates: &mut [f64],
    ) {
        for row in rows {
            self.knapsack(upper, chains, row, weight, rates);
            if rows.iter().all(|other| other.holds(rates)) {
                return;
            }
        }
        self.simplex(upper, chains, rows, weight, rates);
    }

    /// Rates that keep the relations, if there are any, in units of their programs.
    fn related(&self, upper: &[f64], objective: Objective) -> Option<Vec<f64>> {
        let units = |bps: &[f64]| bps.iter().map(|bps| bps / UNIT).collect::<Vec<f64>>();
        let rows: Vec<(Vec<f64>, f64)> =
            self.rows.iter().map(|r| ((0..upper.len()).map(|c| r.takes(c)).collect(), r.capacity / UNIT)).collect();
        let weights = if objective == Objective::Marginal { vec![1.0; upper.len()] } else { self.weight.clone() };
        let (lower, top) = (units(&self.lower), units(upper));
        let bounds = related::Bounds { lower: &lower, upper: &top, rows: &rows, weights: &weights };
        let rates = related::best(&bounds, &self.relations, objective)?;
        let more: Vec<f64> = rates.iter().zip(&self.lower).map(|(rate, low)| (rate * UNIT - low).max(0.0)).collect();
        Some(self.trim(upper, &self.rows.iter().collect::<Vec<_>>(), &more))
    }

    /// One row: whoever gains most for what it takes goes first.
    fn knapsack(&self, upper: &[f64], chains: &[ChainId], row: &Row, weight: impl Fn(usize) -> f64, rates: &mut [f64]) {
        chains.iter().for_each(|&c| rates[c] = self.lower[c]);
        let mut left = row.capacity - row.load(rates);
        let gain = |c: usize| weight(c) / row.takes(c).max(f64::MIN_POSITIVE);
        let mut order: Vec<(f64, ChainId)> = chains.iter().map(|&c| (gain(c), c)).collect();
        order.sort_by(|a, b| b.0.total_cmp(&a.0));
        for (_, chain) in order {
            let coefficient = row.takes(chain);
            let room = upper[chain] - rates[chain];
            if coefficient <= 0.0 {
                rates[chain] = upper[chain];
            } else if weight(chain) > 0.0 && left > 0.0 {
                let more = room.min(left / coefficient);
                rates[chain] += more;
                left -= more * coefficient;
            }
        }
    }

    /// Several rows: the solver, in gigabits per second.
    fn simplex(
        &self,
        upper: &[f64],
        chains: &[ChainId],
        rows: &[&Row],
        weight: impl Fn(usize) -> f64,
        rates: &mut [f64],
    ) {
        let mut program = solver::Program::new(Sense::Maximise);
        let mut column_of: Vec<Option<Column>> = vec![None; upper.len()];
        for &c in chains {
            column_of[c] = Some(program.column(weight(c), 0.0, (upper[c] - self.lower[c]) / 1e9));
        }
        for row in rows {
            let left = (row.capacity - row.load(&self.lower)).max(0.0);
            // A row counts in its own unit: relative to its capacity.
            let capacity = row.capacity.max(f64::MIN_POSITIVE);
            let factors = row.terms.iter().filter_map(|(chain, k)| Some((column_of[*chain]?, k * 1e9 / capacity)));
            program.row(f64::NEG_INFINITY, left / capacity, factors);
        }
        let mut more = vec![0.0; upper.len()];
        if let Outcome::Best(solution) = program.solve(&Limits::default()) {
            for &c in chains {
                more[c] = column_of[c].map_or(0.0, |column| (solution.of(column) * 1e9).max(0.0));
            }
        }
        let trimmed = self.trim(upper, rows, &more);
        chains.iter().for_each(|&c| rates[c] = trimmed[c]);
    }

    /// The lower bounds and as much of `more` as rows and bounds hold: a solver's tolerance is no excuse.
    fn trim(&self, upper: &[f64], rows: &[&Row], more: &[f64]) -> Vec<f64> {
        let mut part = 1.0_f64;
        for row in rows {
            let load = row.load(more);
            let left = (row.capacity - row.load(&self.lower)).max(0.0);
            if load > left {
                part = part.min(left / load);
            }
        }
        (0..upper.len()).map(|c| (self.lower[c] + part * more.get(c).copied().unwrap_or(0.0)).min(upper[c])).collect()
    }

    /// Max-min: all rates rise in step with their weights until a bound or a row stops some of them.
    fn fill(&self, upper: &[f64]) -> Vec<f64> {
        let mut rates = self.lower.clone();
        let weight = |c: usize| self.weight[c].max(ROUNDING);
        let mut rising: Vec<bool> = (0..rates.len()).map(|c| upper[c] > rates[c]).collect();
        while rising.contains(&true) {
            let up = |c: usize| rising.get(c) == Some(&true);
            let all = (0..rates.len()).filter(|c| up(*c));
            let mut step = all.clone().map(|c| (upper[c] - rates[c]) / weight(c)).fold(f64::INFINITY, f64::min);
            for row in &self.rows {
                let speed: f64 = row.terms.iter().filter(|(c, _)| up(*c)).map(|(c, k)| k * weight(*c)).sum();
                if speed > 0.0 {
                    step = step.min((row.capacity - row.load(&rates)).max(0.0) / speed);
                }
            }
            for c in all {
                rates[c] += step * weight(c);
            }
            let mut next: Vec<bool> =
                (0..rates.len()).map(|c| rising[c] && rates[c] < upper[c] * (1.0 - ROUNDING)).collect();
            for row in self.rows.iter().filter(|row| row.load(&rates) >= row.capacity * (1.0 - ROUNDING)) {
                row.terms.iter().for_each(|(c, _)| next[*c] = false);
            }
            if next == rising {
                break;
            }
            rising = next;
        }
        rates
    }
}

/// The chains that `rows` concern in sets that share none of them, each with its rows.
fn apart<'a>(chains: usize, rows: &[&'a Row]) -> Vec<(Vec<ChainId>, Vec<&'a Row>)> {
    let mut set: Vec<usize> = (0..chains).collect();
    fn root(set: &mut [usize], mut chain: usize) -> usize {
        while set[chain] != chain {
            set[chain] = set[set[chain]];
            chain = set[chain];
        }
        chain
    }
    for row in rows {
        for pair in row.terms.windows(2) {
            let (a, b) = (root(&mut set, pair[0].0), root(&mut set, pair[1].0));
            set[b] = a;
        }
    }
    let mut place: Vec<Option<usize>> = vec![None; chains];
    let mut parts: Vec<(Vec<ChainId>, Vec<&Row>)> = Vec::new();
    for row in rows {
        let Some((first, _)) = row.terms.first() else { continue };
        let own = root(&mut set, *first);
        let part = *place[own].get_or_insert_with(|| {
            parts.push((Vec::new(), Vec::new()));
            parts.len() - 1
        });
        parts[part].1.push(row);
    }
    for chain in 0..chains {
        let own = root(&mut set, chain);
        if let Some(part) = place[own] {
            parts[part].0.push(chain);
        }
    }
    parts
}

/// By how much `need` is more than `have`, relative to it.
fn excess(need: f64, have: f64) -> f64 {
    if need <= have * (1.0 + ROUNDING) { 0.0 } else { need / have.max(f64::MIN_POSITIVE).max(need * 1e-6) - 1.0 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn programs() -> impl Strategy<Value = Program> {
        (1usize..5, 0usize..4).prop_flat_map(|(chains, rows)| {
            let rates = prop::collection::vec((0.0..5e9, 0.0..50e9, 0.1..3.0), chains);
            let coefficient = prop_oneof![Just(0.0), 0.1..3.0];
            let row = (prop::collection::vec(coefficient, chains), 1e9..60e9);
            (rates, prop::collection::vec(row, rows)).prop_map(|(rates, rows)| Program {
                lower: rates.iter().map(|r| r.0).collect(),
                upper: rates.iter().map(|r| r.0 + r.1).collect(),
                weight: rates.iter().map(|r| r.2).collect(),
                rows: rows.into_iter().map(|(coefficients, capacity)| Row::of(coefficients, capacity)).collect(),
                relations: Vec::new(),
            })
        })
    }

    fn value(program: &Program, rates: &[f64], weighted: bool) -> f64 {
        rates.iter().zip(&program.weight).map(|(r, w)| if weighted { r * w } else { *r }).sum()
    }

    proptest! {
        #[test]
        fn closed_forms_are_as_good_as_the_solver(program in programs(), weighted: bool) {
            let objective = if weighted { Objective::Weighted } else { Objective::Marginal };
            if let Some(rates) = program.solve(objective) {
                let rows: Vec<&Row> = program.rows.iter().collect();
                let weight = |c: usize| if weighted { program.weight[c] } else { 1.0 };
                let all: Vec<ChainId> = (0..program.upper.len()).collect();
                let mut solver = program.lower.clone();
                program.simplex(&program.upper, &all, &rows, weight, &mut solver);
                let (ours, theirs) = (value(&program, &rates, weighted), value(&program, &solver, weighted));
                prop_assert!((ours - theirs).abs() <= 1e-6 * theirs.max(1.0), "{ours} {theirs}");
            }
        }

        #[test]
        fn solutions_keep_bounds_and_rows(program in programs(), objective in 0..3) {
            let objective = [Objective::Marginal, Objective::Weighted, Objective::Fair][objective as usize];
            match program.solve(objective) {
                Some(rates) => {
                    for (c, rate) in rates.iter().enumerate() {
                        prop_assert!(*rate >= program.lower[c] * (1.0 - 1e-9));
                        prop_assert!(*rate <= program.upper[c] * (1.0 + 1e-9));
                    }
                    prop_assert!(program.rows.iter().all(|row| row.load(&rates) <= row.capacity * (1.0 + 1e-8)));
                }
                None => prop_assert!(program.rows.iter().any(|row| row.load(&program.lower) > row.capacity)),
            }
        }

        /// Nobody can rise but at the cost of somebody who has no more.
        #[test]
        fn fair_rates_are_max_min(program in programs()) {
            if let Some(rates) = program.solve(Objective::Fair) {
                let share = |c: usize| (rates[c] - program.lower[c]) / program.weight[c];
                for c in 0..rates.len() {
                    let at_bound = rates[c] >= program.upper[c] * (1.0 - 1e-8);
                    let blocked = program.rows.iter().any(|row| {
                        row.takes(c) > 0.0
                            && row.load(&rates) >= row.capacity * (1.0 - 1e-7)
                            && (0..rates.len()).all(|d| row.takes(d) == 0.0 || share(d) <= share(c) + 1e3)
                    });
                    prop_assert!(at_bound || blocked, "chain {c} of {rates:?}");
                }
            }
        }
    }

    #[test]
    fn whoever_takes_least_of_the_link_goes_first() {
        let program = Program {
            lower: vec![1.0, 1.0],
            upper: vec![10.0, 10.0],
            weight: vec![1.0, 1.0],
            rows: vec![Row::of([2.0, 1.0], 13.0)],
            relations: Vec::new(),
        };
        assert_eq!(program.solve(Objective::Marginal), Some(vec![1.5, 10.0]));
        assert_eq!(Program { lower: vec![6.0, 2.0], ..program }.solve(Objective::Marginal), None);
    }
}

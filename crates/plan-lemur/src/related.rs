//! Rates that keep the relations between chains, by integer programs: one for each level of priority.

use catena_plan_model::problem::{ChainId, Objective};
use catena_plan_model::relation::{Relation, levels};
use catena_solver::{Column, Limits, Outcome, Program, Sense};

use super::exact::resources::UNIT;

/// Slack in rows that say "as good as before", in units of rate.
const AS_BEFORE: f64 = 1e-8;

/// A chain's rate in a program, in [`UNIT`]s: columns by their factors and a constant, and the most it can be.
pub struct Rate {
    /// Columns.
    pub terms: Vec<(Column, f64)>,
    /// What there is without them.
    pub low: f64,
    /// The most.
    pub high: f64,
}

/// Hold the rates of a program to the ratios among those chains that it has.
pub fn rows(lp: &mut Program, relations: &[Relation], rate: impl Fn(ChainId) -> Option<Rate>) {
    for relation in relations {
        let members: Vec<_> = relation.members().iter().filter_map(|m| Some((m, rate(m.chain)?))).collect();
        if members.len() < 2 {
            continue;
        }
        let most = members.iter().map(|(m, r)| m.has(r.high * UNIT) / UNIT).fold(0.0, f64::max);
        let level = lp.column(0.0, 0.0, most);
        for (member, rate) in members {
            let from = member.factor * (rate.low - member.from_bps / UNIT);
            let has = || rate.terms.iter().map(|(column, k)| (*column, k * member.factor));
            lp.row(f64::NEG_INFINITY, -from, has().chain([(level, -1.0)]));
            let cap = member.cap_bps / UNIT;
            if cap <= rate.high * (1.0 + 1e-9) {
                let capped = lp.integer_column(0.0, 0.0, 1.0);
                lp.row(-from, f64::INFINITY, has().chain([(level, -1.0), (capped, most)]));
                lp.row(-rate.low, f64::INFINITY, rate.terms.iter().copied().chain([(capped, -cap * (1.0 - 1e-9))]));
            } else {
                lp.row(-from, f64::INFINITY, has().chain([(level, -1.0)]));
            }
        }
    }
}

/// What rates are held to, in [`UNIT`]s.
pub struct Bounds<'a> {
    /// The least rates.
    pub lower: &'a [f64],
    /// The most.
    pub upper: &'a [f64],
    /// What chains share: what each takes for a unit, and how much there is.
    pub rows: &'a [(Vec<f64>, f64)],
    /// What a unit of each chain counts.
    pub weights: &'a [f64],
}

/// The best rates within `bounds` that keep `relations`, level by level; None: there are none. A fair division is one of
/// the least marginal rate first and of the sum then; where there are several levels, priorities go before it.
#[must_use]
pub fn best(bounds: &Bounds<'_>, relations: &[Relation], objective: Objective) -> Option<Vec<f64>> {
    let count = bounds.lower.len();
    let levels = levels(count, relations);
    let last = levels.iter().copied().max().unwrap_or(0);
    let fair = objective == Objective::Fair && last == 0;
    let mut floors: Vec<(Vec<f64>, f64)> = Vec::new();
    let mut least = None;
    let mut found = None;
    for step in usize::from(!fair)..=last + 1 {
        let counts = |c: usize| step > 0 && levels[c] == step - 1;
        let factors: Vec<f64> = (0..count).map(|c| if counts(c) { bounds.weights[c] } else { 0.0 }).collect();
        let mut lp = Program::new(Sense::Maximise);
        let room = |c: usize| (bounds.upper[c] - bounds.lower[c]).max(0.0);
        let columns: Vec<Column> = (0..count).map(|c| lp.column(factors[c], 0.0, room(c))).collect();
        for (uses, capacity) in bounds.rows {
            let taken: f64 = uses.iter().zip(bounds.lower).map(|(k, low)| k * low).sum();
            // A row counts relative to its capacity.
            let unit = capacity.max(f64::MIN_POSITIVE);
            let terms = columns.iter().zip(uses).map(|(column, k)| (*column, k / unit));
            lp.row(f64::NEG_INFINITY, (capacity - taken).max(0.0) / unit, terms);
        }
        let rate = |c: ChainId| Rate { terms: vec![(columns[c], 1.0)], low: bounds.lower[c], high: bounds.upper[c] };
        rows(&mut lp, relations, |c| Some(rate(c)));
        for (factors, floor) in &floors {
            let terms = columns.iter().zip(factors).map(|(column, k)| (*column, *k));
            lp.row(floor - AS_BEFORE * (1.0 + floor.abs()), f64::INFINITY, terms);
        }
        if fair {
            let worst = lp.column(if step == 0 { 1.0 } else { 0.0 }, least.unwrap_or(0.0), f64::INFINITY);
            for (column, weight) in columns.iter().zip(bounds.weights).filter(|(_, weight)| **weight > 0.0) {
                lp.row(0.0, f64::INFINITY, [(*column, 1.0 / weight), (worst, -1.0)]);
            }
        }
        let Outcome::Best(solution) = lp.solve(&Limits { feasibility: 1e-10, ..Limits::default() }) else { break };
        match step {
            0 => least = Some((solution.value - AS_BEFORE).max(0.0)),
            _ => floors.push((factors, solution.value)),
        }
        found = Some(columns.iter().zip(bounds.lower).map(|(c, low)| low + solution.of(*c).max(0.0)).collect());
    }
    found
}

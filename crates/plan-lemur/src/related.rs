//! Rates that keep the relations between chains, by integer programs: one for each level of priority.

use catena_plan_model::problem::{ChainId, Objective};
use catena_plan_model::relation::{Relation, Traffic, levels};
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
    // What classes carry, where a relation names one of several of its chain.
    let mut classes: Vec<(Traffic, Column)> = Vec::new();
    for relation in relations {
        let mut of = |traffic: Traffic| -> Option<Rate> {
            let whole = rate(traffic.chain)?;
            if traffic.class.is_none() {
                return Some(whole);
            }
            let known = classes.iter().find(|(class, _)| *class == traffic).map(|(_, column)| *column);
            let column = known.unwrap_or_else(|| {
                let column = lp.column(0.0, 0.0, whole.high);
                classes.push((traffic, column));
                column
            });
            Some(Rate { terms: vec![(column, 1.0)], low: 0.0, high: whole.high })
        };
        let members: Vec<_> = relation.members().iter().filter_map(|m| Some((m, of(m.traffic())?))).collect();
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
    // All of a chain's together carry no more than it does.
    classes.sort_by_key(|(class, _)| class.chain);
    for together in classes.chunk_by(|(a, _), (b, _)| a.chain == b.chain) {
        let Some(whole) = rate(together[0].0.chain) else { continue };
        let others = whole.terms.iter().map(|(column, k)| (*column, -k));
        lp.row(f64::NEG_INFINITY, whole.low, together.iter().map(|(_, column)| (*column, 1.0)).chain(others));
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
/// the least marginal rate relative to its weight, then of the next one, and so on; where there are several levels, priorities
/// go before it.
#[must_use]
pub fn best(bounds: &Bounds<'_>, relations: &[Relation], objective: Objective) -> Option<Vec<f64>> {
    let count = bounds.lower.len();
    let levels = levels(count, relations);
    let last = levels.iter().copied().max().unwrap_or(0);
    let weighted = bounds.weights.iter().filter(|weight| **weight > 0.0).count();
    let fair = objective == Objective::Fair && last == 0 && weighted > 0;
    let steps = if fair { weighted } else { last + 1 };
    let mut floors: Vec<(Vec<f64>, f64)> = Vec::new();
    let mut least: Vec<f64> = Vec::new();
    let mut found = None;
    for step in 0..steps {
        let counts = |c: usize| !fair && levels[c] == step;
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
            least_sums(&mut lp, &columns, bounds.weights, &least);
        }
        let Outcome::Best(solution) = lp.solve(&Limits { feasibility: 1e-10, ..Limits::default() }) else { break };
        if fair {
            least.push(solution.value);
        } else {
            floors.push((factors, solution.value));
        }
        found = Some(columns.iter().zip(bounds.lower).map(|(c, low)| low + solution.of(*c).max(0.0)).collect());
    }
    found
}

/// Maximise the sum of the least rates relative to `weights`, of one more than there are `floors`, where the sums of fewer stay
/// at least at these. The sum of the k least of some values is the most that `k × t − Σ d` can be with `t − d ≤ value` for each.
fn least_sums(lp: &mut Program, columns: &[Column], weights: &[f64], floors: &[f64]) {
    for k in 0..=floors.len() {
        let sign = if k == floors.len() { 1.0 } else { 0.0 };
        let count = (k + 1) as f64;
        let level = lp.column(count * sign, f64::NEG_INFINITY, f64::INFINITY);
        let mut sum = vec![(level, count)];
        for (column, weight) in columns.iter().zip(weights).filter(|(_, weight)| **weight > 0.0) {
            let below = lp.column(-sign, 0.0, f64::INFINITY);
            sum.push((below, -1.0));
            lp.row(f64::NEG_INFINITY, 0.0, [(*column, -1.0 / weight), (level, 1.0), (below, -1.0)]);
        }
        if let Some(floor) = floors.get(k) {
            lp.row(floor - AS_BEFORE * (1.0 + floor.abs()), f64::INFINITY, sum);
        }
    }
}

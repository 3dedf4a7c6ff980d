//! Cores for the subgroups of a pattern, and with them links and rates (Lemur, §3.2, step 3).
//!
//! The paper says that the heuristic "generates core allocations" and not how. Here: every subgroup first
//! gets the fewest cores that keep its chain's `t_min`; the cores that are left go where they raise the
//! objective most, a choice of one step of each chain's [`ladder`](super::ladder), found by dynamic
//! programming. That is the best there is for the pattern as long as cores are what binds. Where a link binds, cores
//! of chains that use less of it are worth more: the choice is repeated at each price that a bit on the
//! link can have (a chain's weight over what it takes of the link), and the linear program decides.

use std::cmp::Ordering;

use super::ladder::{self, Step, ladder, whole};
use super::links;
use super::rates::{Program, ROUNDING, Row};
use super::spare;
use catena_plan_model::estimate::{Group, Layout};
use catena_plan_model::placement::Link;
use catena_plan_model::problem::{Objective, Problem};
use catena_plan_model::relation::by_level;

/// A subgroup on shared cores has at least this part of one.
const LEAST_CORE: f64 = 1e-6;

/// Of more chains no prices are tried: each is an allocation of its own.
const PRICED: usize = 64;

/// Who gets cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Promises first, then the objective.
    Best,
    /// One each; the others to the chains in turn, whatever was promised.
    Even,
    /// Promises first, then the first chain as much as it can use, then the second.
    ByIndex,
    /// One each.
    One,
}

/// How good an allocation is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Score {
    /// By how much promises and limits are missed, relative to them; 0 if none is.
    pub shortage: f64,
    /// The objective's value, bits per second.
    pub value: f64,
    /// For max-min: each chain's marginal rate over its weight, ascending; with priorities what each level has.
    pub fair: Vec<f64>,
    /// Cores used.
    pub cores: f64,
}

impl Score {
    /// Whether this is better than `other`, rounding aside; of equals, what takes fewer cores.
    #[must_use]
    pub fn better(&self, other: &Score) -> bool {
        let order = |a: f64, b: f64| {
            if (a - b).abs() <= ROUNDING * a.abs().max(b.abs()) { Ordering::Equal } else { a.total_cmp(&b) }
        };
        let fair = self.fair.iter().zip(&other.fair).map(|(a, b)| order(*a, *b));
        order(other.shortage, self.shortage)
            .then(fair.fold(Ordering::Equal, Ordering::then))
            .then(order(self.value, other.value))
            .then(order(other.cores, self.cores))
            == Ordering::Greater
    }

    /// Whether all promises and limits are kept.
    #[must_use]
    pub fn feasible(&self) -> bool {
        self.shortage <= 0.0
    }
}

/// Cores, links and rates for a pattern.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Allocation {
    /// Cores by chain and group.
    pub cores: Vec<Vec<f64>>,
    /// Links by chain and group.
    pub links: Vec<Vec<Link>>,
    /// Bits per second by chain.
    pub rates: Vec<f64>,
    /// How good that is.
    pub score: Score,
    /// The program that the rates solve.
    pub program: Program,
}

/// Give cores, links and rates to chains that lie as `layouts` say.
#[must_use]
pub fn allocate(problem: &Problem, layouts: &[&Layout], policy: Policy) -> Allocation {
    let lone = |chain: usize| {
        let visits: f64 = layouts[chain].groups.iter().map(|g| g.visits).fold(0.0, f64::max);
        let widest = problem.servers.iter().flat_map(|s| &s.nics_bps).copied();
        let widest = widest.chain(problem.smart_nics.iter().map(|n| n.bps)).fold(0.0, f64::max);
        problem.chains[chain].limit_bps().min(widest / (visits * layouts[chain].on_link).max(f64::MIN_POSITIVE))
    };
    let mut missed = 0.0;
    let mut ladders: Vec<Vec<Step>> = Vec::with_capacity(layouts.len());
    for (id, (chain, layout)) in problem.chains.iter().zip(layouts).enumerate() {
        let (steps, shortage) = ladder(problem, chain, layout, lone(id));
        missed += shortage;
        missed += (layout.latency_ns / chain.d_max_ns - 1.0 - ROUNDING).max(0.0);
        missed += if layout.joined { 0.0 } else { 1.0 };
        ladders.push(steps);
    }
    let steps = |choice: &[usize]| -> Vec<Vec<u32>> {
        ladders.iter().zip(choice).map(|(ladder, step)| ladder[*step].cores.clone()).collect()
    };
    let one = || -> Vec<Vec<u32>> {
        layouts.iter().map(|l| l.groups.iter().map(|g| u32::from(whole(problem, g))).collect()).collect()
    };
    match policy {
        Policy::One => finish(problem, layouts, one(), missed),
        Policy::Even => finish(problem, layouts, spare::in_turn(problem, layouts, one()), missed),
        Policy::ByIndex => finish(problem, layouts, steps(&spare::by_index(problem, &ladders)), missed),
        Policy::Best => {
            let weights: Vec<f64> = problem
                .chains
                .iter()
                .map(|c| if problem.objective == Objective::Weighted { c.weight } else { 1.0 })
                .collect();
            let first = spare::best(problem, &ladders, &weights);
            let mut best = finish(problem, layouts, steps(&first), missed);
            let mut tried = vec![first];
            for prices in prices(&best, &weights) {
                let choice = spare::best(problem, &ladders, &prices);
                if !tried.contains(&choice) {
                    let other = finish(problem, layouts, steps(&choice), missed);
                    if other.score.better(&best.score) {
                        best = other;
                    }
                    tried.push(choice);
                }
            }
            best
        }
    }
}

/// What a bit per second of each chain is worth when a row binds, at each price that the row can have.
fn prices(allocation: &Allocation, weights: &[f64]) -> Vec<Vec<f64>> {
    let program = &allocation.program;
    let mut all = Vec::new();
    if weights.len() > PRICED {
        return all;
    }
    for row in program.rows.iter().filter(|row| row.load(&program.upper) > row.capacity * (1.0 + ROUNDING)) {
        for (chain, coefficient) in &row.terms {
            // A little less than the price at which the chain is worth nothing, so that it takes what others leave.
            let price = weights[*chain] / coefficient * (1.0 - 1e-6);
            let mut worth = weights.to_vec();
            row.terms.iter().for_each(|(chain, c)| worth[*chain] = (worth[*chain] - price * c).max(0.0));
            all.push(worth);
        }
    }
    all
}

/// Rates for given cores; on servers with shared cores, these too. `missed` is what is known to be short.
#[must_use]
pub fn finish(problem: &Problem, layouts: &[&Layout], cores: Vec<Vec<u32>>, missed: f64) -> Allocation {
    let mut short = missed;
    let mut used = vec![0_u32; problem.servers.len()];
    for (layout, cores) in layouts.iter().zip(&cores) {
        for (group, k) in layout.groups.iter().zip(cores) {
            used[group.server] += k;
        }
    }
    for (server, used) in problem.servers.iter().zip(&used) {
        short += (f64::from(*used) / f64::from(server.cores.max(1)) - 1.0).max(0.0);
    }
    let cores: Vec<Vec<f64>> = cores.into_iter().map(|k| k.into_iter().map(f64::from).collect()).collect();
    let sharing = Sharing::new(problem, layouts);
    let mut best = solve(problem, layouts, cores.clone(), &sharing, short);
    // A group on shared cores that one core holds back may be worth its spreading: one after the other.
    let mut sharing = sharing;
    while let Some(wider) = sharing.widened(problem, layouts, &best) {
        let other = solve(problem, layouts, cores.clone(), &wider, short);
        if !other.score.better(&best.score) {
            break;
        }
        (best, sharing) = (other, wider);
    }
    best
}

/// Which groups on shared cores have more than one.
struct Sharing(Vec<Vec<bool>>);

impl Sharing {
    fn new(problem: &Problem, layouts: &[&Layout]) -> Sharing {
        let several = |chain: usize, group: &Group| {
            let chain = &problem.chains[chain];
            !whole(problem, group)
                && group.replicable
                && ladder::carries(problem, chain, group, 1) < chain.t_min_bps * (1.0 - ROUNDING)
        };
        let each = |(chain, layout): (usize, &&Layout)| layout.groups.iter().map(|g| several(chain, g)).collect();
        Sharing(layouts.iter().enumerate().map(each).collect())
    }

    /// The same with several cores for the groups that hold back a chain; None if there is no such group.
    fn widened(&self, problem: &Problem, layouts: &[&Layout], now: &Allocation) -> Option<Sharing> {
        for (chain, layout) in layouts.iter().enumerate() {
            let bound = |id: usize| {
                let group = &layout.groups[id];
                let one = ladder::carries(problem, &problem.chains[chain], group, 1);
                let rate = now.rates.get(chain).copied().unwrap_or(0.0);
                !whole(problem, group) && !self.0[chain][id] && group.replicable && rate >= one * (1.0 - ROUNDING)
            };
            let groups: Vec<usize> = (0..layout.groups.len()).filter(|id| bound(*id)).collect();
            if !groups.is_empty() {
                let mut wider = Sharing(self.0.clone());
                groups.into_iter().for_each(|id| wider.0[chain][id] = true);
                return Some(wider);
            }
        }
        None
    }
}

fn solve(
    problem: &Problem,
    layouts: &[&Layout],
    mut cores: Vec<Vec<f64>>,
    sharing: &Sharing,
    short: f64,
) -> Allocation {
    let lower: Vec<f64> = problem.chains.iter().map(|c| c.t_min_bps).collect();
    let mut upper: Vec<f64> = problem.chains.iter().map(|c| c.limit_bps()).collect();
    let mut shared: Vec<Row> =
        problem.servers.iter().map(|server| Row { terms: Vec::new(), capacity: f64::from(server.cores) }).collect();
    for (id, (chain, layout)) in problem.chains.iter().zip(layouts).enumerate() {
        for (g, group) in layout.groups.iter().enumerate() {
            let clock = problem.servers[group.server].clock_hz;
            if whole(problem, group) {
                upper[id] = upper[id].min(group.packets(cores[id][g], clock) * chain.packet_bits());
            } else {
                let several = sharing.0[id][g];
                let cost = group.cost + if several { group.spread } else { 0.0 };
                if !several {
                    upper[id] = upper[id].min(ladder::carries(problem, chain, group, 1));
                }
                shared[group.server].add(id, cost / clock / chain.packet_bits());
                shared[group.server].capacity -= LEAST_CORE;
            }
        }
    }
    shared.retain(|row| !row.terms.is_empty());
    let weight: Vec<f64> = problem.chains.iter().map(|c| c.weight).collect();
    let program = |rates: &[f64]| {
        let links = links::assign(problem, layouts, rates);
        let mut rows = links::rows(problem, layouts, &links);
        rows.extend(shared.iter().cloned());
        let relations = problem.relations.clone();
        (Program { lower: lower.clone(), upper: upper.clone(), weight: weight.clone(), rows, relations }, links)
    };
    let (mut best, mut links) = program(&upper);
    if best.shortage() > 0.0 && problem.servers.iter().any(|s| s.nics_bps.len() > 1) {
        let (other, other_links) = program(&lower);
        if other.shortage() < best.shortage() {
            (best, links) = (other, other_links);
        }
    }
    let solved = best.solve(problem.objective);
    // Where promises could be kept one by one, relations are what cannot be kept with them.
    let unrelated = if solved.is_none() && best.shortage() <= 0.0 { 1.0 } else { 0.0 };
    let shortage = short + best.shortage() + unrelated;
    let rates = solved.unwrap_or_else(|| lower.clone());
    for (id, (chain, layout)) in problem.chains.iter().zip(layouts).enumerate() {
        for (g, group) in layout.groups.iter().enumerate().filter(|(_, group)| !whole(problem, group)) {
            let clock = problem.servers[group.server].clock_hz;
            let one = rates[id] / chain.packet_bits() * group.cost / clock;
            let several = rates[id] / chain.packet_bits() * (group.cost + group.spread) / clock;
            cores[id][g] = if one <= 1.0 + ROUNDING { one.clamp(LEAST_CORE, 1.0) } else { several };
        }
    }
    let score = score(problem, &rates, shortage, cores.iter().flatten().sum());
    Allocation { cores, links, rates, score, program: best }
}

/// How good rates are.
#[must_use]
pub fn score(problem: &Problem, rates: &[f64], shortage: f64, cores: f64) -> Score {
    let marginal = |weighted: bool| {
        let each = problem.chains.iter().zip(rates);
        each.map(|(c, r)| (r - c.t_min_bps) * if weighted { c.weight } else { 1.0 }).sum::<f64>()
    };
    // Earlier levels of priority go before later ones, as the poorer before the richer.
    let mut fair = by_level(problem, rates);
    if fair.len() < 2 {
        fair.clear();
    }
    if problem.objective == Objective::Fair && fair.is_empty() {
        let share = |(c, r): (&catena_plan_model::problem::Chain, &f64)| (r - c.t_min_bps) / c.weight.max(ROUNDING);
        fair = problem.chains.iter().zip(rates).map(share).collect();
        fair.sort_by(f64::total_cmp);
    }
    let value = marginal(problem.objective == Objective::Weighted);
    Score { shortage, value, fair, cores }
}

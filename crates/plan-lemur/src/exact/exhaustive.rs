//! The naive reference: every site of every node, every card, every number of cores, and for each of these
//! the best rates by trying all corners of what is allowed. It shares the meaning of a placement
//! ([`Layout`]) with the planner and nothing else.

use super::patterns::sites;
use catena_plan_model::estimate::{Group, Layout};
use catena_plan_model::placement::Site;
use catena_plan_model::problem::{Objective, Problem};
use catena_plan_model::relation::{Relation, levels};
use catena_plan_model::switch::Feasible;

/// `Σ factors × rate ≤ limit`, in thousands of millions of bits per second.
struct Row {
    factors: Vec<f64>,
    limit: f64,
}

/// The best objective value: one number, for a fair division each chain's, ascending, or with priorities each level's.
/// None: no placement.
pub fn best(problem: &Problem, switch: &dyn Feasible) -> Option<Vec<f64>> {
    let nodes: Vec<(usize, usize)> =
        problem.chains.iter().enumerate().flat_map(|(c, chain)| (0..chain.nodes.len()).map(move |n| (c, n))).collect();
    let choices: Vec<Vec<Site>> = nodes.iter().map(|&(c, n)| sites(problem, &problem.chains[c].nodes[n])).collect();
    let mut best = None;
    each(&choices.iter().map(Vec::len).collect::<Vec<_>>(), &mut |at| {
        let mut placed: Vec<Vec<Site>> = vec![Vec::new(); problem.chains.len()];
        for ((&(chain, _), &at), sites) in nodes.iter().zip(at).zip(&choices) {
            placed[chain].push(sites[at]);
        }
        let on: Vec<Vec<bool>> = placed.iter().map(|c| c.iter().map(|s| *s == Site::Switch).collect()).collect();
        if switch.verdict(problem, &on).fits() {
            with_sites(problem, &placed, &mut best);
        }
    });
    best
}

/// All numbers with digits below `ends`.
fn each(ends: &[usize], visit: &mut dyn FnMut(&[usize])) {
    if ends.contains(&0) {
        return;
    }
    let mut at = vec![0; ends.len()];
    loop {
        visit(&at);
        let Some(turn) = (0..at.len()).find(|&n| at[n] + 1 < ends[n]) else { return };
        at[turn] += 1;
        at[..turn].fill(0);
    }
}

/// A packet with its tunnel's header on a link, of one without.
fn header(problem: &Problem, chain: usize) -> f64 {
    let bytes = problem.chains[chain].packet_bytes;
    problem.switch.as_ref().map_or(1.0, |switch| (bytes + switch.header_bytes()) / bytes)
}

fn with_sites(problem: &Problem, placed: &[Vec<Site>], best: &mut Option<Vec<f64>>) {
    let layouts: Vec<Layout> = problem.chains.iter().zip(placed).map(|(c, s)| Layout::of(problem, c, s)).collect();
    if layouts.iter().zip(&problem.chains).any(|(l, c)| l.latency_ns > c.d_max_ns || !l.joined) {
        return;
    }
    let groups: Vec<(usize, &Group)> =
        layouts.iter().enumerate().flat_map(|(c, l)| l.groups.iter().map(move |g| (c, g))).collect();
    let cards = |g: &Group| if g.smart_nic.is_some() { 1 } else { problem.servers[g.server].nics_bps.len() };
    // On shared cores a subgroup has at most a core, or more than one.
    let cores = |g: &Group| match (problem.servers[g.server].shared, g.replicable) {
        (_, false) => 1,
        (true, true) => 2,
        (false, true) => problem.servers[g.server].cores as usize,
    };
    let ends: Vec<usize> = groups.iter().flat_map(|(_, g)| [cards(g), cores(g)]).collect();
    each(&ends, &mut |at| {
        if let Some(value) = with_cores(problem, &layouts, &groups, at) {
            let better = best.as_ref().is_none_or(|best| {
                let first = value.iter().zip(best).find(|(v, b)| (*v - *b).abs() > 1e-7);
                first.is_some_and(|(v, b)| v > b)
            });
            if better {
                *best = Some(value);
            }
        }
    });
}

fn with_cores(problem: &Problem, layouts: &[Layout], groups: &[(usize, &Group)], at: &[usize]) -> Option<Vec<f64>> {
    let chains = problem.chains.len();
    let mut rows: Vec<Row> = Vec::new();
    let alone = |chain: usize, factor: f64, limit: f64| {
        let mut factors = vec![0.0; chains];
        factors[chain] = factor;
        Row { factors, limit }
    };
    for (id, chain) in problem.chains.iter().enumerate() {
        rows.push(alone(id, -1.0, -chain.t_min_bps / 1e9));
        rows.push(alone(id, 1.0, chain.t_max_bps.min(chain.ingress_bps) / 1e9));
    }
    for (id, server) in problem.servers.iter().enumerate() {
        let mut shared = Row { factors: vec![0.0; chains], limit: f64::from(server.cores) };
        let mut taken = 0;
        let mut cards: Vec<Row> =
            server.nics_bps.iter().map(|bps| Row { factors: vec![0.0; chains], limit: bps / 1e9 }).collect();
        for (&(chain, group), at) in groups.iter().zip(at.chunks(2)) {
            if group.server != id {
                continue;
            }
            if group.smart_nic.is_none() {
                cards[at[0]].factors[chain] += group.visits * header(problem, chain);
            }
            let bits = problem.chains[chain].packet_bytes * 8.0;
            if server.shared {
                let spread = if at[1] == 1 { group.spread } else { 0.0 };
                shared.factors[chain] += (group.cost + spread) / server.clock_hz / bits * 1e9;
                if at[1] == 0 {
                    rows.push(alone(chain, 1.0, server.clock_hz / group.cost * bits / 1e9));
                }
            } else {
                taken += at[1] + 1;
                let spread = if at[1] > 0 { group.spread } else { 0.0 };
                let each = server.clock_hz / (group.cost + spread) * bits / 1e9;
                rows.push(alone(chain, 1.0, each * (at[1] + 1) as f64));
            }
        }
        if taken > server.cores as usize {
            return None;
        }
        rows.push(shared);
        rows.extend(cards);
    }
    for (id, card) in problem.smart_nics.iter().enumerate() {
        let mut link = Row { factors: vec![0.0; chains], limit: card.bps / 1e9 };
        let mut work = Row { factors: vec![0.0; chains], limit: card.cycles_hz / 1e9 };
        for (chain, layout) in layouts.iter().enumerate() {
            link.factors[chain] +=
                layout.stays.iter().filter(|s| s.smart_nic == Some(id)).map(|s| s.visits).sum::<f64>()
                    * header(problem, chain);
            let cycles = layout.smart_nic_cycles.iter().filter(|(n, _)| *n == id).map(|(_, c)| c).sum::<f64>();
            work.factors[chain] += cycles / (problem.chains[chain].packet_bytes * 8.0);
        }
        rows.extend([link, work]);
    }
    if let Some(switch) = &problem.switch {
        let passes = |l: &Layout| l.stays.iter().fold(1.0, |passes, stay| passes + stay.visits);
        rows.push(Row { factors: layouts.iter().map(passes).collect(), limit: switch.capacity_bps / 1e9 });
    } else {
        let mut factors = vec![0.0; chains];
        for (chain, about) in problem.chains.iter().enumerate() {
            factors[chain] = 1.0 - about.nodes.iter().map(|node| node.entry).sum::<f64>();
        }
        if factors.iter().any(|part| *part > 1e-9) {
            let own: f64 = problem.servers.iter().flat_map(|server| &server.nics_bps).sum();
            let smart: f64 = problem.smart_nics.iter().map(|card| card.bps).sum();
            for (chain, layout) in layouts.iter().enumerate() {
                factors[chain] += layout.stays.iter().map(|stay| stay.visits).sum::<f64>();
            }
            rows.push(Row { factors, limit: (own + smart) / 1e9 });
        }
    }
    // A class in a ratio with a chain: its own chain carries at least its part. Of ratios this reference knows no others, and
    // none with an upper end.
    for members in problem.relations.iter().map(Relation::members).filter(|members| !members.is_empty()) {
        let [class, chain] = members else { unreachable!("two members") };
        assert!(class.class.is_some() && chain.class.is_none() && class.cap_bps.is_infinite());
        let mut row = alone(class.chain, -class.factor, 0.0);
        row.factors[chain.chain] = chain.factor;
        rows.push(row);
    }
    let low: Vec<f64> = problem.chains.iter().map(|c| c.t_min_bps / 1e9).collect();
    if !holds(&rows, &low) {
        return None;
    }
    let weights: Vec<f64> = problem.chains.iter().map(|c| c.weight).collect();
    let levels = levels(chains, &problem.relations);
    if levels.iter().any(|level| *level > 0) {
        return Some(by_level(problem, rows, &levels, &low));
    }
    Some(match problem.objective {
        Objective::Marginal => vec![corner(&rows, &vec![1.0; chains], &low)],
        Objective::Weighted => vec![corner(&rows, &weights, &low)],
        Objective::Fair => fair(&rows, &weights, &low),
    })
}

/// The largest sum of each level, given those of the levels before it.
fn by_level(problem: &Problem, mut rows: Vec<Row>, levels: &[usize], low: &[f64]) -> Vec<f64> {
    let mut values = Vec::new();
    for level in 0..=levels.iter().copied().max().unwrap_or(0) {
        let weight = |c: usize| if problem.objective == Objective::Marginal { 1.0 } else { problem.chains[c].weight };
        let weights: Vec<f64> = (0..low.len()).map(|c| if levels[c] == level { weight(c) } else { 0.0 }).collect();
        let value = corner(&rows, &weights, low);
        let promised: f64 = weights.iter().zip(low).map(|(w, l)| w * l).sum();
        // Looser than what `holds` lets pass, so that the corners of the next level are there.
        rows.push(Row { factors: weights.iter().map(|w| -w).collect(), limit: 1e-8 - value - promised });
        values.push(value);
    }
    values
}

fn holds(rows: &[Row], rates: &[f64]) -> bool {
    rows.iter().all(|row| row.factors.iter().zip(rates).map(|(f, r)| f * r).sum::<f64>() <= row.limit + 1e-9)
}

/// The most that `Σ weight × (rate − low)` can be: a corner, where as many rows as chains hold exactly.
fn corner(rows: &[Row], weights: &[f64], low: &[f64]) -> f64 {
    let count = weights.len();
    let mut best = 0.0_f64;
    each(&vec![rows.len(); count], &mut |which| {
        if which.windows(2).all(|w| w[0] < w[1]) {
            let matrix = which.iter().map(|&r| rows[r].factors.clone()).collect();
            let rates = solve(matrix, which.iter().map(|&r| rows[r].limit).collect());
            if let Some(rates) = rates.filter(|rates| holds(rows, rates)) {
                let value = rates.iter().zip(low).zip(weights).map(|((r, l), w)| w * (r - l)).sum();
                best = best.max(value);
            }
        }
    });
    best
}

/// Gauss's elimination; None: no single solution.
fn solve(mut matrix: Vec<Vec<f64>>, mut right: Vec<f64>) -> Option<Vec<f64>> {
    let count = right.len();
    for column in 0..count {
        let pivot = (column..count).max_by(|&a, &b| matrix[a][column].abs().total_cmp(&matrix[b][column].abs()))?;
        if matrix[pivot][column].abs() < 1e-12 {
            return None;
        }
        matrix.swap(column, pivot);
        right.swap(column, pivot);
        for row in (0..count).filter(|&row| row != column) {
            let factor = matrix[row][column] / matrix[column][column];
            let taken: Vec<f64> = matrix[column].iter().map(|v| v * factor).collect();
            matrix[row].iter_mut().zip(taken).for_each(|(v, t)| *v -= t);
            right[row] -= right[column] * factor;
        }
    }
    Some((0..count).map(|n| right[n] / matrix[n][n]).collect())
}

/// Raise all by halving the distance to what is too much; who cannot rise alone stays; and again.
fn fair(rows: &[Row], weights: &[f64], low: &[f64]) -> Vec<f64> {
    let count = weights.len();
    let mut levels = vec![0.0; count];
    let mut rising: Vec<usize> = (0..count).collect();
    let rates = |levels: &[f64]| -> Vec<f64> { (0..count).map(|c| low[c] + weights[c] * levels[c]).collect() };
    while !rising.is_empty() {
        let (mut good, mut bad) = (levels[rising[0]], 1e3);
        for _ in 0..80 {
            let middle = (good + bad) / 2.0;
            rising.iter().for_each(|&c| levels[c] = middle);
            if holds(rows, &rates(&levels)) { good = middle } else { bad = middle }
        }
        rising.iter().for_each(|&c| levels[c] = good);
        rising.retain(|&c| {
            let mut higher = levels.clone();
            higher[c] += 1e-6;
            holds(rows, &rates(&higher))
        });
    }
    levels.sort_by(f64::total_cmp);
    levels
}

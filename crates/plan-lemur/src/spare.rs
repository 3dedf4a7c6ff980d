//! Who gets the spare cores, in four ways.

use super::ladder::{Step, carries, whole};
use catena_plan_model::estimate::Layout;
use catena_plan_model::problem::{Objective, Problem};

/// More states than this and the choice is made greedily.
const MOST_STATES: usize = 1024;

/// The step of each ladder that is worth most, where a bit per second of each chain has these weights and
/// no server gives more cores than it has.
#[must_use]
pub fn best(problem: &Problem, ladders: &[Vec<Step>], weights: &[f64]) -> Vec<usize> {
    let mut room: Vec<u32> = problem.servers.iter().map(|s| s.cores).collect();
    for ladder in ladders {
        for (left, used) in room.iter_mut().zip(ladder.first().map(|s| s.used.as_slice()).unwrap_or_default()) {
            match left.checked_sub(*used) {
                Some(rest) => *left = rest,
                // The promises alone take too much.
                None => return vec![0; ladders.len()],
            }
        }
    }
    let states = room.iter().try_fold(1_usize, |product, left| {
        product.checked_mul(*left as usize + 1).filter(|states| *states <= MOST_STATES)
    });
    match states {
        _ if problem.objective == Objective::Fair => poorest_first(problem, ladders, &room),
        Some(states) => programmed(ladders, weights, &room, states),
        None => greedy(ladders, weights, room),
    }
}

/// Cores that a step takes beyond the first, by server.
fn more(ladder: &[Step], step: usize) -> impl Iterator<Item = u32> {
    let used = |id: usize| ladder.get(id).map(|s| s.used.as_slice()).unwrap_or_default();
    used(step).iter().zip(used(0)).map(|(now, first)| now - first)
}

fn gain(ladder: &[Step], from: usize, to: usize) -> f64 {
    match (ladder.get(from), ladder.get(to)) {
        (Some(from), Some(to)) => to.cap_bps - from.cap_bps,
        _ => 0.0,
    }
}

/// By dynamic programming: the state is how many spare cores of each server are given away.
fn programmed(ladders: &[Vec<Step>], weights: &[f64], room: &[u32], states: usize) -> Vec<usize> {
    let mut strides = Vec::with_capacity(room.len());
    let mut stride = 1;
    for left in room {
        strides.push(stride);
        stride *= *left as usize + 1;
    }
    let digit = |state: usize, server: usize| (state / strides[server]) % (room[server] as usize + 1);
    let mut value = vec![f64::NEG_INFINITY; states];
    value[0] = 0.0;
    let mut choices: Vec<Vec<u16>> = Vec::with_capacity(ladders.len());
    for (ladder, weight) in ladders.iter().zip(weights) {
        let mut next = value.clone();
        let mut choice = vec![0_u16; states];
        for step in 1..ladder.len() {
            let cores: Vec<u32> = more(ladder, step).collect();
            let shift: usize = cores.iter().zip(&strides).map(|(k, s)| *k as usize * s).sum();
            let worth = weight * gain(ladder, 0, step);
            if worth <= 0.0 {
                continue;
            }
            for state in 0..states {
                let fits = |(server, k): (usize, &u32)| digit(state, server) + *k as usize <= room[server] as usize;
                if value[state] > f64::NEG_INFINITY
                    && cores.iter().enumerate().all(fits)
                    && value[state] + worth > next[state + shift]
                {
                    next[state + shift] = value[state] + worth;
                    choice[state + shift] = step as u16;
                }
            }
        }
        value = next;
        choices.push(choice);
    }
    let mut state = 0;
    for other in 1..states {
        if value[other] > value[state] {
            state = other;
        }
    }
    let mut steps = vec![0; ladders.len()];
    for (chain, choice) in choices.iter().enumerate().rev() {
        steps[chain] = usize::from(choice[state]);
        let cores = more(&ladders[chain], steps[chain]);
        state -= cores.zip(&strides).map(|(k, s)| k as usize * s).sum::<usize>();
    }
    steps
}

/// Step by step, wherever a core gains most; a step may be the sum of several.
fn greedy(ladders: &[Vec<Step>], weights: &[f64], mut room: Vec<u32>) -> Vec<usize> {
    let mut steps = vec![0; ladders.len()];
    loop {
        let mut best: Option<(f64, usize, usize)> = None;
        for (chain, ladder) in ladders.iter().enumerate() {
            for step in steps[chain] + 1..ladder.len() {
                let cores = delta(ladder, steps[chain], step);
                if cores.iter().zip(&room).any(|(k, left)| k > left) {
                    break;
                }
                let per_core =
                    weights[chain] * gain(ladder, steps[chain], step) / f64::from(cores.iter().sum::<u32>().max(1));
                if per_core > best.map_or(0.0, |b| b.0) {
                    best = Some((per_core, chain, step));
                }
            }
        }
        let Some((_, chain, step)) = best else { return steps };
        take(&mut room, &delta(&ladders[chain], steps[chain], step));
        steps[chain] = step;
    }
}

fn delta(ladder: &[Step], from: usize, to: usize) -> Vec<u32> {
    more(ladder, to).zip(more(ladder, from)).map(|(to, from)| to.saturating_sub(from)).collect()
}

fn take(room: &mut [u32], cores: &[u32]) {
    room.iter_mut().zip(cores).for_each(|(left, k)| *left = left.saturating_sub(*k));
}

/// Max-min: whoever has least above its promise climbs, as long as it can.
fn poorest_first(problem: &Problem, ladders: &[Vec<Step>], room: &[u32]) -> Vec<usize> {
    let mut room = room.to_vec();
    let mut steps = vec![0; ladders.len()];
    let mut climbing: Vec<usize> = (0..ladders.len()).collect();
    loop {
        let share = |chain: usize| {
            let chain_of = &problem.chains[chain];
            (ladders[chain][steps[chain]].cap_bps - chain_of.t_min_bps) / chain_of.weight.max(1e-9)
        };
        let Some(&chain) = climbing.iter().min_by(|&&a, &&b| share(a).total_cmp(&share(b))) else { return steps };
        let next = steps[chain] + 1;
        let cores = delta(&ladders[chain], steps[chain], next);
        if next < ladders[chain].len() && cores.iter().zip(&room).all(|(k, left)| k <= left) {
            take(&mut room, &cores);
            steps[chain] = next;
        } else {
            climbing.retain(|c| *c != chain);
        }
    }
}

/// Greedy of Lemur, §5.1: the first chain climbs as far as it can, then the second.
#[must_use]
pub fn by_index(problem: &Problem, ladders: &[Vec<Step>]) -> Vec<usize> {
    let mut room: Vec<u32> = problem.servers.iter().map(|s| s.cores).collect();
    for ladder in ladders {
        take(&mut room, ladder.first().map(|s| s.used.as_slice()).unwrap_or_default());
    }
    let mut steps = vec![0; ladders.len()];
    for (chain, ladder) in ladders.iter().enumerate() {
        while steps[chain] + 1 < ladder.len() {
            let cores = delta(ladder, steps[chain], steps[chain] + 1);
            if cores.iter().zip(&room).any(|(k, left)| k > left) {
                break;
            }
            take(&mut room, &cores);
            steps[chain] += 1;
        }
    }
    steps
}

/// HW Preferred and its like (Lemur, §5.2: "allocates spare cores evenly among chains"): each chain in turn
/// gives a core to the slowest subgroup that may have another one, whether that helps or not.
#[must_use]
pub fn in_turn(problem: &Problem, layouts: &[&Layout], mut cores: Vec<Vec<u32>>) -> Vec<Vec<u32>> {
    let mut room: Vec<u32> = problem.servers.iter().map(|s| s.cores).collect();
    for (layout, cores) in layouts.iter().zip(&cores) {
        for (group, k) in layout.groups.iter().zip(cores) {
            room[group.server] = room[group.server].saturating_sub(*k);
        }
    }
    loop {
        let before = room.clone();
        for (chain, layout) in layouts.iter().enumerate() {
            let slowest = (0..layout.groups.len())
                .filter(|&id| {
                    let group = &layout.groups[id];
                    group.replicable && whole(problem, group) && room[group.server] > 0
                })
                .min_by(|&a, &b| {
                    let rate =
                        |id: usize| carries(problem, &problem.chains[chain], &layout.groups[id], cores[chain][id]);
                    rate(a).total_cmp(&rate(b))
                });
            if let Some(id) = slowest {
                room[layout.groups[id].server] -= 1;
                cores[chain][id] += 1;
            }
        }
        if room == before {
            return cores;
        }
    }
}

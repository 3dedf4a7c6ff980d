//! Who gets the spare cores, in four ways.

use std::collections::BinaryHeap;

use super::ladder::{Step, carries, whole};
use catena_plan_model::estimate::Layout;
use catena_plan_model::problem::{Objective, Problem, ServerId};

/// More states than this and the choice is made greedily.
const MOST_STATES: usize = 1024;

/// The step of each ladder that is worth most, where a bit per second of each chain has these weights and
/// no server gives more cores than it has.
#[must_use]
pub fn best(problem: &Problem, ladders: &[Vec<Step>], weights: &[f64]) -> Vec<usize> {
    let mut room: Vec<u32> = problem.servers.iter().map(|s| s.cores).collect();
    for ladder in ladders {
        for (server, used) in first(ladder) {
            match room[*server].checked_sub(*used) {
                Some(rest) => room[*server] = rest,
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

/// What the first step takes, by server.
fn first(ladder: &[Step]) -> &[(ServerId, u32)] {
    ladder.first().map(|step| step.used.as_slice()).unwrap_or_default()
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
            let cores = delta(ladder, 0, step);
            let shift: usize = cores.iter().map(|(server, k)| *k as usize * strides[*server]).sum();
            let worth = weight * gain(ladder, 0, step);
            if worth <= 0.0 {
                continue;
            }
            for state in 0..states {
                let fits =
                    |(server, k): &(ServerId, u32)| digit(state, *server) + *k as usize <= room[*server] as usize;
                if value[state] > f64::NEG_INFINITY
                    && cores.iter().all(fits)
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
        let cores = delta(&ladders[chain], 0, steps[chain]);
        state -= cores.iter().map(|(server, k)| *k as usize * strides[*server]).sum::<usize>();
    }
    steps
}

/// Step by step, wherever a core gains most; a step may be the sum of several.
///
/// Room only shrinks, so what a chain gains for a core at best never rises while it stays on its step: whoever is first by what
/// was found before and still has it is first.
fn greedy(ladders: &[Vec<Step>], weights: &[f64], mut room: Vec<u32>) -> Vec<usize> {
    let mut steps = vec![0; ladders.len()];
    let best = |chain: usize, from: usize, room: &[u32]| -> Option<Offer> {
        let ladder = &ladders[chain];
        let mut best: Option<Offer> = None;
        for step in from + 1..ladder.len() {
            let cores = delta(ladder, from, step);
            if !fit(&cores, room) {
                break;
            }
            let sum: u32 = cores.iter().map(|(_, k)| k).sum();
            let per_core = weights[chain] * gain(ladder, from, step) / f64::from(sum.max(1));
            if per_core > best.as_ref().map_or(0.0, |b| b.per_core) {
                best = Some(Offer { per_core, chain, step });
            }
        }
        best
    };
    let mut offers: BinaryHeap<Offer> = (0..ladders.len()).filter_map(|chain| best(chain, 0, &room)).collect();
    while let Some(offer) = offers.pop() {
        let now = best(offer.chain, steps[offer.chain], &room);
        if now.as_ref() != Some(&offer) {
            offers.extend(now);
            continue;
        }
        take(&mut room, &delta(&ladders[offer.chain], steps[offer.chain], offer.step));
        steps[offer.chain] = offer.step;
        offers.extend(best(offer.chain, offer.step, &room));
    }
    steps
}

/// What a chain would gain for each core that it climbs with.
#[derive(PartialEq)]
struct Offer {
    per_core: f64,
    chain: usize,
    step: usize,
}

impl Eq for Offer {}

impl PartialOrd for Offer {
    fn partial_cmp(&self, other: &Offer) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Offer {
    /// The most for a core; of equals the first chain.
    fn cmp(&self, other: &Offer) -> std::cmp::Ordering {
        self.per_core.total_cmp(&other.per_core).then(other.chain.cmp(&self.chain)).then(other.step.cmp(&self.step))
    }
}

/// Cores that one step takes beyond another, by server.
fn delta(ladder: &[Step], from: usize, to: usize) -> Vec<(ServerId, u32)> {
    let used = |id: usize| ladder.get(id).map(|s| s.used.as_slice()).unwrap_or_default();
    used(to).iter().zip(used(from)).map(|((server, to), (_, from))| (*server, to.saturating_sub(*from))).collect()
}

fn fit(cores: &[(ServerId, u32)], room: &[u32]) -> bool {
    cores.iter().all(|(server, k)| *k <= room[*server])
}

fn take(room: &mut [u32], cores: &[(ServerId, u32)]) {
    cores.iter().for_each(|(server, k)| room[*server] = room[*server].saturating_sub(*k));
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
        if next < ladders[chain].len() && fit(&cores, &room) {
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
        take(&mut room, first(ladder));
    }
    let mut steps = vec![0; ladders.len()];
    for (chain, ladder) in ladders.iter().enumerate() {
        while steps[chain] + 1 < ladder.len() {
            let cores = delta(ladder, steps[chain], steps[chain] + 1);
            if !fit(&cores, &room) {
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

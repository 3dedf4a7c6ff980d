//! Several workers: each runs everything for a part of the flows, or each runs some of the tasks.
//!
//! Lan's dissertation, §5.3.2, assigns tasks to workers and asks that each worker's weights sum to 1. Two
//! ways are offered here:
//!
//! - [`Assignment::Replicated`]: every worker runs the same tasks with the same tree, for its part of the
//!   flows. Shares hold on each worker, so they hold in sum, whatever the load; needs that every module may be
//!   replicated.
//! - [`Assignment::Spread`]: each task runs on one worker. The plan's shares fix what tasks take relative to
//!   each other, so the fullest worker decides how much all get, and workers with less to do would spend
//!   their slack on more than was promised: tasks there are held by rate limits instead of asking, as the
//!   dissertation does, for a partition in which all workers come out equal, which costs tasks. Tasks with a
//!   module in common that may not be replicated stay together. The fullest worker's load is minimal up to
//!   [`EXACT`] blocks of tasks, and within 4/3 of it beyond (Graham, "Bounds on Multiprocessing Timing
//!   Anomalies", Theorem 2: largest first).

use serde::{Deserialize, Serialize};

use super::graph::Graph;
use super::strategy::Alpine;
use super::tasks::Tasks;
use super::tree::SchedulerTree;

/// Up to this many blocks of tasks, the best assignment is found.
pub const EXACT: usize = 16;
/// A worker that is less full than this, relative to the fullest, is held by rate limits.
const FULL: f64 = 0.999;

/// Which worker runs which tasks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Assignment {
    /// Each worker runs all tasks, for its part of the flows.
    Replicated {
        /// Number of workers.
        workers: usize,
        /// The tree that each has.
        tree: SchedulerTree,
    },
    /// Each task runs on one worker.
    Spread {
        /// One tree a worker.
        trees: Vec<SchedulerTree>,
        /// For each task, its worker.
        worker_of: Vec<usize>,
        /// For each worker, its cycles relative to the fullest one's, 0 to 1.
        load: Vec<f64>,
        /// What everybody gets, relative to the plan for one worker: at most the number of workers.
        speedup: f64,
    },
}

/// Share `plan` among `workers`: replicated if all modules allow it, else task by task.
#[must_use]
pub fn assign(plan: &Alpine, workers: usize) -> Assignment {
    let workers = workers.max(1);
    if workers == 1 || plan.graph.modules.iter().all(|module| module.replicable) {
        let all: Vec<usize> = (0..plan.tasks.tasks.len()).collect();
        return Assignment::Replicated { workers, tree: SchedulerTree::of(&plan.tasks, &all) };
    }
    spread(plan, workers)
}

/// Assign each task of `plan` to one of `workers`.
#[must_use]
pub fn spread(plan: &Alpine, workers: usize) -> Assignment {
    let workers = workers.max(1);
    let blocks = blocks(&plan.graph, &plan.tasks);
    let cycles = |block: &Vec<usize>| block.iter().map(|t| plan.tasks.tasks[*t].cycles).sum::<f64>();
    let loads: Vec<f64> = blocks.iter().map(cycles).collect();
    let place = balance(&loads, workers);
    let mut worker_of = vec![0; plan.tasks.tasks.len()];
    let mut load = vec![0.0; workers];
    for (block, worker) in place.iter().enumerate() {
        load[*worker] += loads[block];
        blocks[block].iter().for_each(|t| worker_of[*t] = *worker);
    }
    let fullest = load.iter().copied().fold(0.0, f64::max);
    let all: f64 = load.iter().sum();
    // Never more than what comes in.
    let most = plan.tasks.tasks.iter().map(|task| task.sigma).fold(0.0, f64::max);
    let speedup = if fullest > 0.0 { (all / fullest).min(1.0 / most) } else { 1.0 };
    load.iter_mut().for_each(|l| *l = if fullest > 0.0 { *l / fullest } else { 0.0 });
    let mut scaled = plan.tasks.clone();
    for task in &mut scaled.tasks {
        task.packets *= speedup;
        task.cycles *= speedup;
    }
    let tree = |(worker, load): (usize, &f64)| {
        let here: Vec<usize> = (0..worker_of.len()).filter(|t| worker_of[*t] == worker).collect();
        if *load < FULL { SchedulerTree::limited(&scaled, &here) } else { SchedulerTree::of(&scaled, &here) }
    };
    let trees = load.iter().enumerate().map(tree).collect();
    Assignment::Spread { trees, worker_of, load, speedup }
}

/// Tasks that must be on one worker: they have a module in common that may not be replicated.
fn blocks(graph: &Graph, tasks: &Tasks) -> Vec<Vec<usize>> {
    let mut block: Vec<usize> = (0..tasks.tasks.len()).collect();
    for (m, module) in graph.modules.iter().enumerate().filter(|(_, module)| !module.replicable) {
        let same = |(other, copy): &(usize, &super::graph::Module)| *other < m && copy.origin == module.origin;
        if let Some((other, _)) = graph.modules.iter().enumerate().find(same) {
            let (a, b) = (block[tasks.task_of[other]], block[tasks.task_of[m]]);
            block.iter_mut().filter(|x| **x == b).for_each(|x| *x = a);
        }
    }
    let mut blocks: Vec<Vec<usize>> = vec![Vec::new(); tasks.tasks.len()];
    block.iter().enumerate().for_each(|(task, b)| blocks[*b].push(task));
    blocks.retain(|tasks| !tasks.is_empty());
    blocks
}

/// Put loads on workers so that the fullest one is least full.
fn balance(loads: &[f64], workers: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..loads.len()).collect();
    order.sort_by(|a, b| loads[*b].total_cmp(&loads[*a]));
    let mut full = vec![0.0; workers];
    let mut place = vec![0; loads.len()];
    for block in &order {
        let least = (0..workers).min_by(|a, b| f64::total_cmp(&full[*a], &full[*b])).unwrap_or(0);
        full[least] += loads[*block];
        place[*block] = least;
    }
    if loads.len() <= EXACT {
        let best = full.iter().copied().fold(0.0, f64::max);
        let mut search =
            Search { loads, order: &order, full: vec![0.0; workers], place: place.clone(), best, found: place };
        search.down(0);
        return search.found;
    }
    place
}

/// Branch and bound over the blocks, largest first.
struct Search<'a> {
    loads: &'a [f64],
    order: &'a [usize],
    full: Vec<f64>,
    place: Vec<usize>,
    best: f64,
    found: Vec<usize>,
}

impl Search<'_> {
    fn down(&mut self, depth: usize) {
        let Some(block) = self.order.get(depth).copied() else {
            self.best = self.full.iter().copied().fold(0.0, f64::max);
            self.found.clone_from(&self.place);
            return;
        };
        for worker in 0..self.full.len() {
            let before = self.full[worker];
            // Workers that are equally full are the same to what follows.
            let seen = self.full[..worker].contains(&before);
            if seen || before + self.loads[block] >= self.best * (1.0 - 1e-12) {
                continue;
            }
            self.full[worker] += self.loads[block];
            self.place[block] = worker;
            self.down(depth + 1);
            self.full[worker] = before;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fullest(loads: &[f64], place: &[usize], workers: usize) -> f64 {
        let of = |worker: usize| loads.iter().zip(place).filter(|(_, w)| **w == worker).map(|(l, _)| l).sum::<f64>();
        (0..workers).map(of).fold(0.0, f64::max)
    }

    proptest! {
        #[test]
        fn no_assignment_is_better_balanced(
            loads in proptest::collection::vec(1.0..100.0, 1..7),
            workers in 1usize..4,
        ) {
            let found = fullest(&loads, &balance(&loads, workers), workers);
            let mut best = f64::INFINITY;
            for code in 0..workers.pow(loads.len() as u32) {
                let place: Vec<usize> = (0..loads.len()).map(|b| code / workers.pow(b as u32) % workers).collect();
                best = best.min(fullest(&loads, &place, workers));
            }
            prop_assert!(found <= best * (1.0 + 1e-9), "{found} {best}");
        }

        #[test]
        fn many_blocks_are_within_four_thirds_of_the_mean_or_the_largest(
            loads in proptest::collection::vec(1.0..100.0, 17..60),
            workers in 2usize..9,
        ) {
            let found = fullest(&loads, &balance(&loads, workers), workers);
            let mean = loads.iter().sum::<f64>() / workers as f64;
            let largest = loads.iter().copied().fold(0.0, f64::max);
            // List scheduling's bound: the last block put on the fullest worker began at most at the mean.
            prop_assert!(found <= mean + largest);
        }
    }
}

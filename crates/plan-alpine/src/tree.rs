//! The scheduler tree of a worker, as plain data: what the host backend turns into the dataplane's.
//!
//! Lan's dissertation, Figure 5.2 and §5.4.2: priorities outside, weights inside, tasks as leaves.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::tasks::Tasks;

/// Weights are whole numbers that sum to about this.
const WEIGHTS: f64 = 65_536.0;
/// A rate limit saves up what comes in this many seconds: a worker that has to share its core misses a slice of some
/// milliseconds now and then, and what it could not use meanwhile is not lost to who is held to a rate.
const BURST_SECONDS: f64 = 1e-2;

/// A node of a scheduler tree.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum SchedulerTree {
    /// A task, by its index in [`Tasks::tasks`].
    Task(usize),
    /// The first child that has work runs.
    Priority(Vec<SchedulerTree>),
    /// Children share cycles by weight.
    Fair(Vec<(u32, SchedulerTree)>),
    /// Children take turns.
    RoundRobin(Vec<SchedulerTree>),
    /// The child takes in no more than a rate.
    Limit {
        /// What is counted.
        unit: Unit,
        /// So many a second.
        rate: u64,
        /// So many may be saved up.
        burst: u64,
        /// What is limited.
        child: Box<SchedulerTree>,
    },
}

/// What a rate limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Packets.
    Packets,
    /// Bits of whole packets as they came in: what promises are about, whatever packets are like.
    Bits,
}

impl SchedulerTree {
    /// What lets `child` take in at most so many a second.
    #[must_use]
    pub fn limit(unit: Unit, rate: f64, child: SchedulerTree) -> SchedulerTree {
        let least = |n: f64| (n as u64).max(1);
        let (rate, burst) = (least(rate.round()), least((rate * BURST_SECONDS).ceil()));
        SchedulerTree::Limit { unit, rate, burst, child: Box::new(child) }
    }

    /// The tree for those of `tasks` that `here` names; each is on one worker.
    #[must_use]
    pub fn of(tasks: &Tasks, here: &[usize]) -> SchedulerTree {
        SchedulerTree::with(tasks, here, SchedulerTree::Task)
    }

    /// The same, with every task held to its planned rate, so that ratios hold on a worker that could do more.
    #[must_use]
    pub fn limited(tasks: &Tasks, here: &[usize]) -> SchedulerTree {
        SchedulerTree::with(tasks, here, |task| {
            let rate = tasks.tasks.get(task).map_or(0.0, |t| t.packets);
            SchedulerTree::limit(Unit::Packets, rate, SchedulerTree::Task(task))
        })
    }

    /// The weight of who has this part of a whole: at least 1.
    #[must_use]
    pub fn weight(part: f64) -> u32 {
        ((part * WEIGHTS).round() as u32).max(1)
    }

    fn with(tasks: &Tasks, here: &[usize], leaf: impl Fn(usize) -> SchedulerTree) -> SchedulerTree {
        let mut levels: Vec<usize> = here.iter().filter_map(|t| tasks.tasks.get(*t)).map(|t| t.level).collect();
        levels.sort_unstable();
        levels.dedup();
        let level = |level: usize| {
            let of_level = |t: &&usize| tasks.tasks.get(**t).is_some_and(|task| task.level == level);
            let own: Vec<usize> = here.iter().filter(of_level).copied().collect();
            match own[..] {
                [task] => leaf(task),
                _ => fair(tasks, &own, &leaf),
            }
        };
        match levels[..] {
            [only] => level(only),
            _ => SchedulerTree::Priority(levels.iter().map(|l| level(*l)).collect()),
        }
    }

    /// All tasks of the tree.
    #[must_use]
    pub fn tasks(&self) -> Vec<usize> {
        match self {
            SchedulerTree::Task(task) => vec![*task],
            SchedulerTree::Priority(children) | SchedulerTree::RoundRobin(children) => {
                children.iter().flat_map(SchedulerTree::tasks).collect()
            }
            SchedulerTree::Fair(children) => children.iter().flat_map(|(_, child)| child.tasks()).collect(),
            SchedulerTree::Limit { child, .. } => child.tasks(),
        }
    }
}

fn fair(tasks: &Tasks, own: &[usize], leaf: &impl Fn(usize) -> SchedulerTree) -> SchedulerTree {
    let part = |t: &usize| tasks.tasks.get(*t).map_or(0.0, |task| task.weight);
    let all: f64 = own.iter().map(part).sum();
    let weight = |t: &usize| if all > 0.0 { SchedulerTree::weight(part(t) / all) } else { 1 };
    SchedulerTree::Fair(own.iter().map(|t| (weight(t), leaf(*t))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::Task;

    fn tasks(given: &[(usize, f64)]) -> Tasks {
        let task = |(start, (level, cycles)): (usize, &(usize, f64))| Task {
            start,
            modules: vec![start],
            queue: true,
            level: *level,
            weight: *cycles,
            sigma: 1.0,
            packets: 2e6,
            cycles: *cycles,
        };
        let tasks = given.iter().enumerate().map(task).collect();
        Tasks { tasks, task_of: Vec::new(), classes: Vec::new(), idle: 0.0 }
    }

    #[test]
    fn priorities_stand_outside_and_weights_inside() {
        let tasks = tasks(&[(1, 3e8), (0, 5e8), (1, 1e8)]);
        let tree = SchedulerTree::of(&tasks, &[0, 1, 2]);
        let fair = SchedulerTree::Fair(vec![(49_152, SchedulerTree::Task(0)), (16_384, SchedulerTree::Task(2))]);
        assert_eq!(tree, SchedulerTree::Priority(vec![SchedulerTree::Task(1), fair]));
        assert_eq!(tree.tasks(), [1, 0, 2]);
        assert_eq!(SchedulerTree::of(&tasks, &[2]), SchedulerTree::Task(2));
        let limited = SchedulerTree::limited(&tasks, &[1]);
        assert_eq!(
            limited,
            SchedulerTree::Limit {
                unit: Unit::Packets,
                rate: 2_000_000,
                burst: 20_000,
                child: Box::new(SchedulerTree::Task(1))
            }
        );
    }
}

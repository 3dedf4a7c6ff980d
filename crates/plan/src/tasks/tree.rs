//! The scheduler tree of a worker with the upper ends of promises in it (Lemur, §4.2: "We also use the scheduler to enforce
//! t_max").

use catena_plan_alpine::SchedulerTree;
use catena_plan_alpine::tree::Unit;

/// Weights of a chain's tasks are whole numbers that sum to about this.
const WEIGHTS: f64 = 65_536.0;

/// A chain that may not have all that comes.
pub(super) struct Cap {
    /// The tasks that it enters by.
    pub tasks: Vec<Entry>,
    /// Bits per second that it may have of a worker.
    pub bps: f64,
}

/// A task that a chain enters by.
pub(super) struct Entry {
    /// Which.
    pub task: usize,
    /// Packets per second.
    pub packets: f64,
    /// Its weight among the tasks of its level.
    pub weight: f64,
}

/// The tree where each chain of `caps` is held to its rate: all tasks by which it enters together, where they stand side by
/// side. Those on different levels of priority have parts of it, as planned.
pub(super) fn limited(tree: SchedulerTree, caps: &[Cap]) -> SchedulerTree {
    match tree {
        SchedulerTree::Priority(levels) => {
            SchedulerTree::Priority(levels.into_iter().map(|level| limited(level, caps)).collect())
        }
        SchedulerTree::Fair(children) => fair(children, caps),
        SchedulerTree::Task(task) => match caps.iter().find(|cap| cap.has(task)) {
            Some(cap) => cap.limit(&[task], SchedulerTree::Task(task)),
            None => SchedulerTree::Task(task),
        },
        // The tree of a partition has no others.
        other => other,
    }
}

fn fair(children: Vec<(u32, SchedulerTree)>, caps: &[Cap]) -> SchedulerTree {
    let mut together: Vec<(u32, SchedulerTree)> = Vec::new();
    let mut held: Vec<(u32, Vec<usize>)> = vec![(0, Vec::new()); caps.len()];
    for (weight, child) in children {
        let cap = match child {
            SchedulerTree::Task(task) => caps.iter().position(|cap| cap.has(task)).map(|cap| (cap, task)),
            _ => None,
        };
        match cap {
            Some((cap, task)) => {
                held[cap].0 += weight;
                held[cap].1.push(task);
            }
            None => together.push((weight, child)),
        }
    }
    for (cap, (weight, tasks)) in caps.iter().zip(held) {
        if !tasks.is_empty() {
            together.push((weight, cap.limit(&tasks, cap.share(&tasks))));
        }
    }
    match together.pop() {
        Some((_, only)) if together.is_empty() => only,
        last => SchedulerTree::Fair(together.into_iter().chain(last).collect()),
    }
}

impl Cap {
    fn has(&self, task: usize) -> bool {
        self.tasks.iter().any(|own| own.task == task)
    }

    /// What `tasks`, which stand side by side, share by weight.
    fn share(&self, tasks: &[usize]) -> SchedulerTree {
        let here = || self.tasks.iter().filter(|own| tasks.contains(&own.task));
        let all: f64 = here().map(|own| own.weight).sum();
        let weight = |own: &Entry| if all > 0.0 { (own.weight / all * WEIGHTS).round().max(1.0) as u32 } else { 1 };
        match tasks {
            [only] => SchedulerTree::Task(*only),
            _ => SchedulerTree::Fair(here().map(|own| (weight(own), SchedulerTree::Task(own.task))).collect()),
        }
    }

    /// `child`, which has these tasks of the chain, held to their part of its rate.
    fn limit(&self, tasks: &[usize], child: SchedulerTree) -> SchedulerTree {
        let all: f64 = self.tasks.iter().map(|own| own.packets).sum();
        let here: f64 = self.tasks.iter().filter(|own| tasks.contains(&own.task)).map(|own| own.packets).sum();
        let part = if tasks.len() == self.tasks.len() || all <= 0.0 { 1.0 } else { here / all };
        SchedulerTree::limit(Unit::Bits, self.bps * part, child)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(task: usize) -> SchedulerTree {
        SchedulerTree::Task(task)
    }

    fn limit(rate: u64, child: SchedulerTree) -> SchedulerTree {
        SchedulerTree::Limit { unit: Unit::Bits, rate, burst: rate.div_ceil(100), child: Box::new(child) }
    }

    fn cap() -> Cap {
        let entry = |(task, packets, weight)| Entry { task, packets, weight };
        Cap { tasks: [(1, 3e5, 0.3), (2, 1e5, 0.1)].map(entry).into(), bps: 4e5 }
    }

    #[test]
    fn tasks_of_a_chain_are_held_together() {
        let caps = [cap()];
        let tree = SchedulerTree::Fair(vec![(5, task(0)), (3, task(1)), (1, task(2))]);
        let both = SchedulerTree::Fair(vec![(49_152, task(1)), (16_384, task(2))]);
        assert_eq!(limited(tree, &caps), SchedulerTree::Fair(vec![(5, task(0)), (4, limit(400_000, both))]));
        let tree = SchedulerTree::Fair(vec![(3, task(1)), (1, task(2))]);
        assert!(matches!(limited(tree, &caps), SchedulerTree::Limit { rate: 400_000, .. }));
    }

    #[test]
    fn on_different_levels_each_has_its_part() {
        let caps = [cap()];
        let tree = SchedulerTree::Priority(vec![
            SchedulerTree::Fair(vec![(5, task(0)), (3, task(1))]),
            SchedulerTree::Fair(vec![(1, task(2)), (1, task(3))]),
        ]);
        let expected = SchedulerTree::Priority(vec![
            SchedulerTree::Fair(vec![(5, task(0)), (3, limit(300_000, task(1)))]),
            SchedulerTree::Fair(vec![(1, task(3)), (1, limit(100_000, task(2)))]),
        ]);
        assert_eq!(limited(tree, &caps), expected);
    }
}

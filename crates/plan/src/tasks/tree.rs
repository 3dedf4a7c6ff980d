//! The scheduler tree of a worker with both ends of promises in it (Lemur, §4.2: "We also use the scheduler to enforce
//! t_max").

use catena_plan_alpine::tree::Unit;
use catena_plan_alpine::{SchedulerTree, Task, Tasks};

/// The part of its weight that is left at least to who has all of it by its promise, where that may be less than was planned.
const LEFT: f64 = 0.01;
/// How many times its weight has who gets all that it may have: its limit holds it, so its weight need not, which would leave it less where
/// its packets cost more than is known. What it has no use for is the others', by their weights.
const ROOM: f64 = 3.0;

/// Whose turn it is, with each chain of `caps` held to its rate. In front of all weights and levels of priority stands what the
/// chains of `first` are promised: what is beyond that comes to them in its place, so that nobody has to be held to anything for
/// their sake, and no promise depends on what functions are thought to cost. The port's task, which is the first and works for
/// everybody, stands beside all that: it always has something to read where more comes than can be done, and would leave nothing
/// to who comes after it.
pub(super) fn of(tasks: &Tasks, caps: &[Cap], first: &[Cap]) -> SchedulerTree {
    let (all, others): (Vec<usize>, Vec<usize>) = ((0..tasks.tasks.len()).collect(), (1..tasks.tasks.len()).collect());
    if others.is_empty() || !is_beside(tasks, first) {
        return limited(SchedulerTree::of(&beyond(tasks, caps, first), &all), caps);
    }
    let cycles = |task: &Task| task.cycles;
    let (port, sum) = (tasks.tasks.first().map_or(0.0, cycles), tasks.tasks.iter().map(cycles).sum::<f64>());
    let port = if sum > 0.0 { port / sum } else { 0.5 };
    let mut levels = match limited(SchedulerTree::of(&beyond(tasks, caps, first), &others), caps) {
        SchedulerTree::Priority(levels) => levels,
        one => vec![one],
    };
    let mut promised: Vec<(u32, SchedulerTree)> = first.iter().map(|cap| (1, cap.whole())).collect();
    match promised.pop() {
        None => {}
        Some((_, only)) if promised.is_empty() => levels.insert(0, only),
        last => levels.insert(0, SchedulerTree::Fair(promised.into_iter().chain(last).collect())),
    }
    SchedulerTree::Fair(vec![
        (SchedulerTree::weight(port), SchedulerTree::Task(0)),
        (SchedulerTree::weight(1.0 - port), SchedulerTree::Priority(levels)),
    ])
}

/// The tasks with the weights of what is left of them, where what the chains of `first` are promised is served in front: who has
/// more of its part by that has less by its weight. Who has all that it may have by `caps` has some more.
fn beyond(tasks: &Tasks, caps: &[Cap], first: &[Cap]) -> Tasks {
    let mut beyond = tasks.clone();
    let full = caps.iter().filter(|cap| cap.full);
    full.flat_map(|cap| &cap.tasks).for_each(|own| beyond.tasks[own.task].weight *= ROOM);
    for cap in first {
        let all: f64 = cap.tasks.iter().map(|own| own.packets).sum();
        let left = if all > 0.0 { 1.0 - cap.bps / cap.bits / all } else { 1.0 };
        cap.tasks.iter().for_each(|own| beyond.tasks[own.task].weight *= left.max(LEFT));
    }
    beyond
}

/// Whether the port's task stands beside all others: where there are levels, or something in front of them.
fn is_beside(tasks: &Tasks, first: &[Cap]) -> bool {
    !first.is_empty() || tasks.tasks.iter().any(|task| task.level > 0)
}

/// The weight of each task among those that it shares with, as [`of`] has them.
pub(super) fn weights(tasks: &Tasks, (caps, first): (&[Cap], &[Cap])) -> Vec<f64> {
    let several = is_beside(tasks, first);
    let sum: f64 = tasks.tasks.iter().map(|task| task.cycles).sum();
    let tasks = &beyond(tasks, caps, first);
    let own = |(n, task): (usize, &Task)| {
        let beside = |(other, t): &(usize, &Task)| t.level == task.level && (!several || *other > 0);
        let all: f64 = tasks.tasks.iter().enumerate().filter(beside).map(|(_, t)| t.weight).sum();
        match (n, several) {
            (0, true) if sum > 0.0 => task.cycles / sum,
            (0, true) => 0.5,
            _ if all > 0.0 => task.weight / all,
            _ => 0.0,
        }
    };
    tasks.tasks.iter().enumerate().map(own).collect()
}

/// A chain and a rate: what it may have and no more, or what it has before all others.
pub(super) struct Cap {
    /// The tasks that it enters by.
    pub tasks: Vec<Entry>,
    /// Bits per second of a worker.
    pub bps: f64,
    /// Bits of a packet.
    pub bits: f64,
    /// Whether it gets all of it, by the tasks' weights.
    pub full: bool,
}

/// A task that a chain enters by.
#[derive(Clone)]
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
fn limited(tree: SchedulerTree, caps: &[Cap]) -> SchedulerTree {
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
            None => together.push((weight, limited(child, caps))),
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
        let weight = |own: &Entry| if all > 0.0 { SchedulerTree::weight(own.weight / all) } else { 1 };
        match tasks {
            [only] => SchedulerTree::Task(*only),
            _ => SchedulerTree::Fair(here().map(|own| (weight(own), SchedulerTree::Task(own.task))).collect()),
        }
    }

    /// All its tasks, held to its rate.
    fn whole(&self) -> SchedulerTree {
        let tasks: Vec<usize> = self.tasks.iter().map(|own| own.task).collect();
        self.limit(&tasks, self.share(&tasks))
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
        Cap { tasks: [(1, 3e5, 0.3), (2, 1e5, 0.1)].map(entry).into(), bps: 4e5, bits: 1.0, full: false }
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
    fn what_is_promised_in_front_is_not_given_twice() {
        let served = |(start, cycles): (usize, f64)| Task {
            start,
            modules: vec![start],
            queue: start > 0,
            level: 0,
            weight: cycles / 100.0,
            sigma: 1.0,
            packets: cycles,
            cycles,
        };
        let tasks = Tasks {
            tasks: [(0, 40.0), (1, 45.0), (2, 15.0)].map(served).into(),
            task_of: vec![0, 1, 2],
            classes: Vec::new(),
            idle: 0.0,
        };
        // Two thirds of what it gets is promised to it: beyond that it has as much as the other.
        let first = [Cap {
            tasks: vec![Entry { task: 1, packets: 45.0, weight: 0.45 }],
            bps: 3_000.0,
            bits: 100.0,
            full: false,
        }];
        let SchedulerTree::Fair(sides) = of(&tasks, &[], &first) else { panic!("the port stands beside nobody") };
        let SchedulerTree::Priority(levels) = &sides[1].1 else { panic!("nothing stands in front") };
        assert_eq!(levels[0], limit(3_000, task(1)));
        assert!(matches!(&levels[1], SchedulerTree::Fair(two) if two[0].0 == two[1].0), "{:?}", levels[1]);
        let shown = weights(&tasks, (&[], &first));
        let near = |own: &f64, is: f64| (own - is).abs() < 1e-9;
        assert!(near(&shown[0], 0.4) && near(&shown[1], 0.5) && near(&shown[2], 0.5), "{shown:?}");
        // Who gets all that it may have is held by its limit, and not by its weight.
        let cap = |full| {
            [Cap { tasks: vec![Entry { task: 2, packets: 15.0, weight: 0.15 }], bps: 1_500.0, bits: 100.0, full }]
        };
        assert_eq!(weights(&tasks, (&cap(false), &first)), shown);
        let shown = weights(&tasks, (&cap(true), &first));
        assert!(near(&shown[1], 1.0 / (1.0 + ROOM)) && near(&shown[2], ROOM / (1.0 + ROOM)), "{shown:?}");
        let SchedulerTree::Fair(sides) = of(&tasks, &cap(true), &first) else {
            panic!("the port stands beside nobody")
        };
        let SchedulerTree::Priority(levels) = &sides[1].1 else { panic!("nothing stands in front") };
        let SchedulerTree::Fair(two) = &levels[1] else { panic!("{levels:?}") };
        assert!((f64::from(two[1].0) / f64::from(two[0].0) - ROOM).abs() < 1e-3, "{two:?}");
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

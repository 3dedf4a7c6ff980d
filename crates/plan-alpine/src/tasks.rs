//! A partition with its weights, and what comes of it.

use serde::{Deserialize, Serialize};

use super::graph::{Graph, ModuleId};
use super::program::{Queues, has_queue};
use super::promise::{Levels, Promise};

/// Which tasks there are and how they share a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tasks {
    /// The tasks, by the module they begin at.
    pub tasks: Vec<Task>,
    /// For each module, its task.
    pub task_of: Vec<usize>,
    /// What each class gets.
    pub classes: Vec<Served>,
    /// Cycles per second that nobody needs.
    pub idle: f64,
}

/// A task: a module, and all downstream of it up to the next tasks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// The module it begins at.
    pub start: ModuleId,
    /// Its modules, ascending.
    pub modules: Vec<ModuleId>,
    /// Whether a queue has to be put in front of `start`.
    pub queue: bool,
    /// Level of priority; 0 comes first.
    pub level: usize,
    /// Its part of the cycles of its level, 0 to 1: its weight among the level's tasks.
    pub weight: f64,
    /// The part of the packets meant for it that it takes, 0 to 1.
    pub sigma: f64,
    /// Packets per second that it takes.
    pub packets: f64,
    /// Cycles per second, with its queue's.
    pub cycles: f64,
}

/// What a class gets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Served {
    /// Packets per second that leave by its exit.
    pub packets: f64,
    /// Cycles per second that count for it: those of its modules and queues.
    pub cycles: f64,
}

impl Tasks {
    /// Work out the tasks that begin where `starts` says, when each module sees the part `sigma` of its packets.
    #[must_use]
    pub fn of(graph: &Graph, levels: &Levels, starts: &[bool], sigma: &[f64]) -> Tasks {
        let packets = graph.packets();
        let mut tasks: Vec<Task> = Vec::new();
        let mut task_of = vec![0; graph.modules.len()];
        for (m, module) in graph.modules.iter().enumerate() {
            let task = match module.upstream {
                Some(up) if !starts[m] => task_of[up],
                _ => {
                    tasks.push(Task {
                        start: m,
                        modules: Vec::new(),
                        queue: has_queue(graph, m),
                        level: levels.module[m],
                        weight: 0.0,
                        sigma: sigma[m],
                        packets: packets[m] * sigma[m],
                        cycles: 0.0,
                    });
                    tasks.len() - 1
                }
            };
            task_of[m] = task;
            tasks[task].modules.push(m);
            tasks[task].cycles += packets[m] * sigma[m] * (module.cycles + queue(graph, starts, m));
        }
        let mut level_cycles = vec![0.0; levels.count];
        tasks.iter().for_each(|task| level_cycles[task.level] += task.cycles);
        for task in &mut tasks {
            let all: f64 = level_cycles[task.level];
            task.weight = if all > 0.0 { task.cycles / all } else { 0.0 };
        }
        let charged = |m: ModuleId| sigma[m] * (graph.modules[m].charged() + queue(graph, starts, m));
        let served = |(j, class): (usize, &super::graph::Class)| Served {
            packets: class.packets * sigma[class.exit],
            cycles: class.packets * graph.path(j).map(charged).sum::<f64>(),
        };
        let classes = graph.classes.iter().enumerate().map(served).collect();
        let idle = (graph.hz - level_cycles.iter().sum::<f64>()).max(0.0);
        Tasks { tasks, task_of, classes, idle }
    }

    /// Let each level have no more cycles than the ones above leave; weights stay as they are.
    pub(super) fn fit(&mut self, graph: &Graph, levels: &Levels) {
        let mut left = graph.hz;
        let mut parts = Vec::new();
        for level in 0..levels.count {
            let needs: f64 = self.tasks.iter().filter(|task| task.level == level).map(|task| task.cycles).sum();
            parts.push(if needs > left * (1.0 + 1e-9) { left.max(0.0) / needs } else { 1.0 });
            left -= needs.min(left);
        }
        for task in &mut self.tasks {
            let part = parts[task.level];
            (task.sigma, task.packets, task.cycles) = (task.sigma * part, task.packets * part, task.cycles * part);
        }
        for (served, exit) in self.classes.iter_mut().zip(graph.classes.iter().map(|class| class.exit)) {
            let part = parts[self.tasks[self.task_of[exit]].level];
            (served.packets, served.cycles) = (served.packets * part, served.cycles * part);
        }
        self.idle = left.max(0.0);
    }

    /// Packets per second that leave, of all classes.
    #[must_use]
    pub fn throughput(&self) -> f64 {
        self.classes.iter().map(|class| class.packets).sum()
    }

    /// How far the cycles (or packets) of a ratio promise's members are from what was promised: the sum of the
    /// differences of parts, 0 to 2 (Lan's dissertation, §5.5.2); 0 for what is no ratio.
    #[must_use]
    pub fn error(&self, promise: &Promise) -> f64 {
        let (members, cpu) = match promise {
            Promise::Priority(_) | Promise::Rate { .. } | Promise::Beyond(_) => return 0.0,
            Promise::Cpu(members) => (members, true),
            Promise::Throughput(members) => (members, false),
        };
        let of = |class: &Served| if cpu { class.cycles } else { class.packets };
        let got: Vec<f64> =
            members.iter().map(|(subject, _)| subject.iter().map(|j| of(&self.classes[*j])).sum()).collect();
        let (all, weights) = (got.iter().sum::<f64>(), members.iter().map(|(_, weight)| weight).sum::<f64>());
        got.iter().zip(members).map(|(got, (_, weight))| (got / all - weight / weights).abs()).sum()
    }
}

fn queue(graph: &Graph, starts: &[bool], module: ModuleId) -> f64 {
    if starts[module] && has_queue(graph, module) { graph.queue_cycles } else { 0.0 }
}

/// Tasks begin here, and how their weights were reckoned.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Partition {
    pub starts: Vec<bool>,
    pub sigma: Vec<f64>,
    pub queues: Queues,
}

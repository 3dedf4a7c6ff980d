//! What counters say of a plan that runs: whose the cycles were, and what everything cost.
//!
//! A class has the cycles of the modules on its path and of both ends of the queues in front of them, those of what is
//! dropped at a queue's entrance included; not those of the port and of the classifier, which work before anyone
//! knows for whom. In what several classes share, a class has its part by packets. As packets are only told by class
//! where they leave, that part is found from there: a queue drops the last to come, which keeps the mix of classes as it
//! was, so that of the packets at a module the part of a class is that of the way it takes among those behind, and of
//! the class among those of that way.

use catena_packet::BATCH;
use catena_plan::alpine::measured::{self, Measured};
use catena_plan::alpine::{Alpine, Cost, Kind, Options, Promise, Tasks};

/// The part of what comes to a queue that is to be dropped at least: costs vary by some percent from one moment to the
/// next, and a queue that runs empty costs its class its turn.
pub const SURPLUS: f64 = 0.05;
/// Weights that serve less than this part of what was planned keep promises by burning cycles in queues.
const LEAST: f64 = 0.4;

/// Packets of a batch, and cycles per packet.
pub type Point = (f64, f64);

/// Lay `cycles = packet + batch / packets of a batch` through points, by least squares; neither is less than 0.
pub fn line(points: &[Point]) -> Cost {
    let count = points.len().max(1) as f64;
    let mean = |of: &dyn Fn(&Point) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(&|p| 1.0 / p.0), mean(&|p| p.1));
    let (xx, xy) = (mean(&|p| (1.0 / p.0 - x).powi(2)), mean(&|p| (1.0 / p.0 - x) * (p.1 - y)));
    let slope = if xx > 0.0 { (xy / xx).max(0.0) } else { 0.0 };
    match y - slope * x {
        packet if packet >= 0.0 => Cost { packet, batch: slope },
        _ => Cost { packet: 0.0, batch: if x > 0.0 { y / x } else { 0.0 } },
    }
}

/// Packets, and the cycles spent on them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Work {
    /// Batches that came in.
    pub batches: f64,
    /// Packets that came in.
    pub packets: f64,
    /// Cycles.
    pub cycles: f64,
}

impl Work {
    fn each(self) -> f64 {
        if self.packets > 0.0 { self.cycles / self.packets } else { 0.0 }
    }

    /// Packets of a batch.
    fn batch(self) -> f64 {
        if self.batches > 0.0 { self.packets / self.batches } else { BATCH as f64 }
    }
}

/// Counters of a worker, or their growth, or those of several workers together.
#[derive(Clone, Debug)]
pub struct Seen {
    /// On-CPU time of the worker.
    pub cpu_ns: f64,
    /// For each module of the graph; nothing for the port.
    pub modules: Vec<Work>,
    /// For each module, the entrance of the queue in front of it: what came, and what putting it in or dropping it took.
    pub queues: Vec<Work>,
    /// For each module, packets that left behind it, by class.
    pub exits: Vec<Vec<f64>>,
    /// For each task, what its source gave and the cycles of all its runs.
    pub tasks: Vec<Work>,
}

impl Seen {
    /// Apply `f` to every figure of two.
    fn with(&self, other: &Seen, f: impl Fn(f64, f64) -> f64) -> Seen {
        let work = |a: &[Work], b: &[Work]| {
            let one = |(a, b): (&Work, &Work)| Work {
                batches: f(a.batches, b.batches),
                packets: f(a.packets, b.packets),
                cycles: f(a.cycles, b.cycles),
            };
            a.iter().zip(b).map(one).collect()
        };
        let numbers = |(a, b): (&Vec<f64>, &Vec<f64>)| a.iter().zip(b).map(|(a, b)| f(*a, *b)).collect();
        Seen {
            cpu_ns: f(self.cpu_ns, other.cpu_ns),
            modules: work(&self.modules, &other.modules),
            queues: work(&self.queues, &other.queues),
            exits: self.exits.iter().zip(&other.exits).map(numbers).collect(),
            tasks: work(&self.tasks, &other.tasks),
        }
    }

    /// What happened since `before`.
    pub fn since(&self, before: &Seen) -> Seen {
        self.with(before, |after, before| after - before)
    }

    /// Two workers' together.
    pub fn plus(&self, other: &Seen) -> Seen {
        self.with(other, |a, b| a + b)
    }

    /// Packets that left.
    pub fn packets(&self) -> f64 {
        self.exits.iter().flatten().sum()
    }

    /// What taking packets from the source of a task costs: what its runs took beside its modules.
    fn source(&self, plan: &Alpine, task: usize) -> Work {
        let tasks = &plan.tasks;
        let own: f64 = tasks.tasks[task].modules.iter().map(|m| self.modules[*m].cycles).sum();
        let ends = |m: &usize| plan.graph.modules[*m].upstream.is_some_and(|up| tasks.task_of[up] == task);
        let entrances: f64 = (0..self.queues.len()).filter(ends).map(|m| self.queues[m].cycles).sum();
        let Work { cycles, .. } = self.tasks[task];
        Work { cycles: (cycles - own - entrances).max(0.0), ..self.tasks[task] }
    }

    /// Cycles of each class.
    pub fn cycles(&self, plan: &Alpine) -> Vec<f64> {
        let graph = &plan.graph;
        let arrivals = |m: usize| self.queues[m].packets.max(self.modules[m].packets);
        let downstream = graph.downstream();
        let of_class = |j: usize| {
            // From the exit up: the class's part of the packets at the module in hand.
            let exit = graph.classes[j].exit;
            let all: f64 = self.exits[exit].iter().sum();
            let mut part = if all > 0.0 { self.exits[exit].get(j).copied().unwrap_or(0.0) / all } else { 0.0 };
            let mut cycles = 0.0;
            for m in graph.path(j) {
                if m != exit {
                    let below: f64 = downstream[m].iter().map(|d| arrivals(*d)).sum();
                    let way = graph.path(j).find(|d| graph.modules[*d].upstream == Some(m)).map_or(0.0, arrivals);
                    part *= if below > 0.0 { way / below } else { 0.0 };
                }
                if graph.modules[m].kind != Kind::Port {
                    let task = plan.tasks.task_of[m];
                    let begins = plan.tasks.tasks[task].start == m && plan.tasks.tasks[task].queue;
                    let queue = if begins { self.source(plan, task).cycles + self.queues[m].cycles } else { 0.0 };
                    cycles += part * (self.modules[m].cycles + queue);
                }
            }
            cycles
        };
        (0..graph.classes.len()).map(of_class).collect()
    }

    /// Each class's part of the cycles and what it was promised.
    pub fn parts(&self, plan: &Alpine, promise: &Promise) -> Vec<(f64, f64)> {
        let got = self.cycles(plan);
        let Promise::Cpu(members) = promise else { return Vec::new() };
        let (all, weights) = (got.iter().sum::<f64>(), members.iter().map(|(_, weight)| weight).sum::<f64>());
        let of = |subject: &Vec<usize>| subject.iter().map(|j| got[*j]).sum::<f64>();
        members.iter().map(|(subject, weight)| (of(subject) / all, weight / weights)).collect()
    }

    /// The sum of the differences between what classes got and what they were promised, 0 to 2 (Lan's dissertation,
    /// §5.5.2).
    pub fn error(&self, plan: &Alpine, promise: &Promise) -> f64 {
        self.parts(plan, promise).iter().map(|(got, promised)| (got - promised).abs()).sum()
    }

    /// Cycles per packet of the port, the classifier (if there is one) and the modules, by their index in the shape;
    /// 0 where nothing came. A module that stands in the graph several times has the mean.
    pub fn costs(&self, plan: &Alpine, modules: usize) -> (f64, Option<f64>, Vec<f64>) {
        let graph = &plan.graph;
        let mut sums = vec![Work::default(); modules];
        let mut classify = None;
        for (m, module) in graph.modules.iter().enumerate() {
            match (module.kind, module.upstream) {
                (Kind::Port, Some(_)) => classify = Some(self.modules[m].each()),
                (Kind::Port, None) => {}
                _ => {
                    let sum = &mut sums[module.origin.saturating_sub(1)];
                    sum.batches += self.modules[m].batches;
                    sum.packets += self.modules[m].packets;
                    sum.cycles += self.modules[m].cycles;
                }
            }
        }
        (self.source(plan, 0).each(), classify, sums.into_iter().map(Work::each).collect())
    }

    /// How many packets of a batch came to each module, by its index in the shape; and all that a line over batches can
    /// be laid through: the module, packets of a batch, cycles per packet.
    pub fn batches(&self, plan: &Alpine, modules: usize) -> (Vec<f64>, Vec<(usize, Point)>) {
        let (mut sums, mut points) = (vec![Work::default(); modules], Vec::new());
        for (m, module) in plan.graph.modules.iter().enumerate().filter(|(_, module)| module.kind != Kind::Port) {
            let (work, origin) = (self.modules[m], module.origin.saturating_sub(1));
            sums[origin].batches += work.batches;
            sums[origin].packets += work.packets;
            if work.packets > 0.0 {
                points.push((origin, (work.batch(), work.each())));
            }
        }
        (sums.into_iter().map(Work::batch).collect(), points)
    }

    /// The same of queues: of their entrances, with the part that is dropped, and of their exits.
    pub fn queue_batches(&self, plan: &Alpine) -> (Vec<(Point, f64)>, Vec<Point>) {
        let queued = plan.tasks.tasks.iter().enumerate().filter(|(_, planned)| planned.queue);
        let point = |work: Work| (work.batch(), work.each());
        let ends = queued.map(|(task, planned)| {
            let entrance = self.queues[planned.start];
            let dropped = 1.0 - self.tasks[task].packets / entrance.packets.max(1.0);
            ((point(entrance), dropped), point(self.source(plan, task)))
        });
        ends.unzip()
    }

    /// Cycles per packet of a queue, both ends, on average over all queues.
    pub fn queue(&self, plan: &Alpine) -> f64 {
        let mut sum = (0.0, 0);
        for (task, planned) in plan.tasks.tasks.iter().enumerate().filter(|(_, planned)| planned.queue) {
            sum = (sum.0 + self.source(plan, task).each() + self.queues[planned.start].each(), sum.1 + 1);
        }
        if sum.1 > 0 { sum.0 / f64::from(sum.1) } else { 0.0 }
    }

    /// Weigh the tasks of `plan` anew, with every cost as it was seen here, the entrance of each queue where it is paid:
    /// by all that come to it, in the task in front.
    ///
    /// None if with these costs the same partition cannot keep the promise, or hardly serves anybody then.
    pub fn weighed(&self, plan: &Alpine, promise: &Promise) -> Option<Tasks> {
        let costs = Measured {
            modules: self.modules.iter().map(|module| module.each()).collect(),
            entrances: self.queues.iter().map(|queue| queue.each()).collect(),
            sources: (0..plan.tasks.tasks.len()).map(|task| self.source(plan, task).each()).collect(),
        };
        let options = Options { surplus: SURPLUS, ..Options::default() };
        let promises = std::slice::from_ref(promise);
        let weighed = measured::weighed(&plan.graph, &plan.tasks, promises, &costs, options).ok()?;
        (weighed.throughput() >= LEAST * plan.tasks.throughput()).then_some(weighed)
    }
}

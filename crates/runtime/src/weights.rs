//! Weights that follow what functions cost.
//!
//! A plan's weights are as right as its profile. While tasks have more to do than they can, their counters say what everything
//! costs where it stands and how much of whom comes, and from that the weights are set anew, on all workers alike. Where workers
//! are idle and nothing is dropped at the tasks' queues everybody has all that comes, and weights change nothing.
//!
//! How much the port reads follows what queues drop besides ([`reading`]), weights follow what came of them ([`served`]), and those
//! of chains that a `cpu` relation names what is spent on their packets before those wait in a queue ([`tenants`]).

mod reading;
mod served;
mod tenants;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use catena_compile::names::{CLASSIFY, queue};
use catena_compile::tasks;
use catena_dataplane::graph::NodeCounters;
use catena_dataplane::pipeline::TaskId;
use catena_dataplane::schedule::Tree;
use catena_dataplane::task::TaskCounters;
use catena_dataplane::worker::{Posted, WorkerHandle};
use catena_dataplane::{Pipeline, clock};
use catena_plan::alpine::SchedulerTree;
use catena_plan::alpine::measured::Measured;
use catena_plan::tasks::{Division, Related, Start};

use crate::tenants::Tenants as Told;
use served::{Did, Has, Served};
use tenants::Tenants;

/// How often weights are set, and so many times in the beginning, when nothing is known but the profile.
const EVERY: Duration = Duration::from_millis(200);
const FIRST: (Duration, u32) = (Duration::from_millis(50), 20);
/// What something costs is the middle of so many measurements: while one was made, the core may have been another's for a while.
const SAMPLES: usize = 5;
/// Fewer packets of a module tell nothing of what it costs.
const ENOUGH: f64 = 1_000.0;
/// Of whom more than this part comes beyond what it is promised, more than that is divided.
const NEARLY: f64 = 0.05;
/// A queue that drops more than this part of what comes is one whose task has always something to do.
const DROPS: f64 = 0.001;
/// Workers that spend this part of their time with packets may have more to do than they can: ports lose it.
const BUSY: f64 = 0.8;
/// Weights of which none changes by more than this part of itself stay as they are.
const SAME: f64 = 0.01;

/// What is counted on a worker.
pub struct Watched {
    /// By name; a name of several has all of them.
    modules: HashMap<String, Vec<Arc<NodeCounters>>>,
    /// Of the plan's tasks.
    tasks: Vec<Arc<TaskCounters>>,
    ids: Vec<TaskId>,
    /// Tasks that the plan does not know.
    others: Vec<TaskId>,
    beside: Vec<Arc<TaskCounters>>,
    /// How many workers its port's task reads for.
    reads_for: usize,
}

impl Watched {
    /// Watch a pipeline whose tasks are the plan's, `ids` in its order, of which the first reads for so many workers, and `others`.
    pub fn of(pipeline: &Pipeline, ids: Vec<TaskId>, others: Vec<TaskId>, reads_for: usize) -> Watched {
        let mut modules: HashMap<String, Vec<Arc<NodeCounters>>> = HashMap::new();
        for (_, info) in pipeline.graph.nodes() {
            modules.entry(info.name.to_string()).or_default().push(Arc::clone(&info.counters));
        }
        let counters =
            |id: &TaskId| pipeline.tasks().find(|(task, _)| task == id).map(|(_, t)| Arc::clone(t.counters()));
        let [tasks, beside] = [&ids, &others].map(|ids| ids.iter().filter_map(counters).collect());
        Watched { modules, tasks, ids, others, beside, reads_for }
    }

    /// The scheduler tree for a planned one: tasks that the plan does not know have as many cycles as all others together.
    pub fn tree(&self, planned: &SchedulerTree) -> Tree {
        tree(&reading::for_all(planned, self.reads_for), &self.ids, &self.others)
    }
}

fn tree(planned: &SchedulerTree, ids: &[TaskId], others: &[TaskId]) -> Tree {
    let planned = tasks::tree(planned, ids);
    match others {
        [] => planned,
        // By cycles: what returns through many functions is no more than what goes forward.
        [other] => Tree::fair([(1, planned), (1, Tree::Task(*other))]),
        _ => Tree::fair([(1, planned), (1, Tree::fair(others.iter().map(|task| (1, Tree::Task(*task)))))]),
    }
}

/// Packets, and cycles spent on them, of one kind on all workers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Work {
    packets: f64,
    bytes: f64,
    cycles: f64,
}

impl Work {
    fn since(self, before: Work) -> Work {
        let (packets, bytes) = (self.packets - before.packets, self.bytes - before.bytes);
        Work { packets, bytes, cycles: self.cycles - before.cycles }
    }
}

/// The last measurements of a cost.
#[derive(Clone, Debug, Default)]
struct Samples {
    last: Vec<f64>,
    next: usize,
}

impl Samples {
    /// Take one more; returns the middle of all.
    fn add(&mut self, cycles: f64) -> f64 {
        match self.last.get_mut(self.next) {
            Some(oldest) => *oldest = cycles,
            None => self.last.push(cycles),
        }
        self.next = (self.next + 1) % SAMPLES;
        let mut sorted = self.last.clone();
        sorted.sort_by(f64::total_cmp);
        sorted[(sorted.len() - 1) / 2]
    }
}

/// What was counted so far.
#[derive(Clone, Debug, Default)]
struct Counts {
    /// By module of the division.
    modules: Vec<Work>,
    /// By module of the division: the entrance of the queue in front of it.
    entrances: Vec<Work>,
    /// By task.
    tasks: Vec<Work>,
    /// By module of the division: packets that found the queue in front of it full.
    dropped: Vec<u64>,
    /// By worker and module of the division: packets that came to the queue in front of it, and those of them that found it full.
    queued: Vec<Vec<(u64, u64)>>,
    /// Packets that the ports' task read, and the runs of each worker's first one.
    read: f64,
    runs: f64,
    /// By worker: cycles spent on packets, also in tasks that the plan does not know.
    spent: Vec<f64>,
}

/// What is weighed again in a run.
pub struct Weighed {
    /// The plan's tasks.
    pub division: Division,
    /// Whether there are several chains.
    pub several: bool,
    /// The chains of each `cpu` relation, with their weights.
    pub shares: Vec<Vec<(String, f64)>>,
}

/// The weights of a run.
pub struct Weights {
    division: Division,
    workers: Vec<Watched>,
    /// By module of the division, its name in the pipeline.
    names: Vec<String>,
    /// By module of the division, the name of the queue in front of it.
    queues: Vec<Option<String>>,
    /// What everything costs, as far as is known, and the last measurements: of modules, of entrances, of sources.
    costs: Measured,
    samples: [Vec<Samples>; 3],
    /// By module of the division: bits of a packet that came to the queue in front of it; 0: not known.
    bits: Vec<f64>,
    set: SchedulerTree,
    /// By task: cycles of a packet in the weights that are set.
    each: Vec<f64>,
    served: Served,
    /// How many times as much of the others' cycles the port has as costs say.
    reading: f64,
    tenants: Option<Tenants>,
    /// With what the port reads, and what is left to tenants.
    given: SchedulerTree,
    before: Counts,
    looked: Instant,
    next: Instant,
    looks: u32,
    posted: Vec<Posted<()>>,
    /// How often weights were set.
    times: u32,
}

impl Weights {
    /// Begin with the weights that were planned.
    pub fn new(weighed: Weighed, workers: Vec<Watched>) -> Weights {
        let Weighed { division, several, shares } = weighed;
        let here = |name: &String| match name.split_once('/') {
            Some((_, function)) if !several => function.to_owned(),
            _ => name.clone(),
        };
        let names: Vec<String> = division.modules().iter().map(here).collect();
        let mut queues = vec![None; names.len()];
        for ((start, _), begins) in division.tasks().zip(division.starts()) {
            queues[start] = match begins {
                Start::Port => None,
                Start::Function { .. } => Some(queue(&names[start])),
                Start::Class(class) => Some(queue(class)),
            };
        }
        let costs = division.planned();
        let planned = division.figures();
        let set = planned.tree;
        let each: Vec<f64> = planned.tasks.iter().map(|task| task.cycles / task.packets).collect();
        let none = |costs: &Vec<f64>| vec![Samples::default(); costs.len()];
        let samples = [&costs.modules, &costs.entrances, &costs.sources].map(none);
        let tenants = Tenants::of(&division, &shares);
        let mut weights = Weights {
            samples,
            bits: vec![0.0; names.len()],
            division,
            workers,
            names,
            queues,
            costs,
            tenants,
            given: set.clone(),
            set,
            served: Served::new(each.len()),
            each,
            reading: reading::FIRST,
            before: Counts::default(),
            looked: Instant::now(),
            next: Instant::now() + FIRST.0,
            looks: 0,
            posted: Vec::new(),
            times: 0,
        };
        weights.before = weights.counts();
        weights
    }

    /// How often weights were set.
    pub fn times(&self) -> u32 {
        self.times
    }

    /// Set the weights where it is time to and they are wrong.
    pub fn look(&mut self, handles: &[WorkerHandle]) {
        self.posted.retain(|posted| posted.answer().is_none());
        if Instant::now() < self.next || !self.posted.is_empty() {
            return;
        }
        self.looks = self.looks.saturating_add(1);
        self.next = Instant::now() + if self.looks < FIRST.1 { FIRST.0 } else { EVERY };
        let now = self.counts();
        let seconds = self.looked.elapsed().as_secs_f64();
        self.looked = Instant::now();
        // One worker may read for all.
        let spent = now.spent.iter().zip(&self.before.spent).map(|(now, before)| now - before).fold(0.0, f64::max);
        let is_full = spent > BUSY * seconds * clock::hertz() as f64;
        let busy = now.dropped.iter().sum::<u64>() > self.before.dropped.iter().sum() || is_full;
        if let Some(tenants) = &mut self.tenants {
            tenants.account(&now, &self.before);
        }
        self.learn(&now);
        let entered: Vec<Work> =
            now.entrances.iter().zip(&self.before.entrances).map(|(now, b)| now.since(*b)).collect();
        let came: Vec<f64> = entered.iter().map(|work| work.packets).collect();
        for (bits, work) in self.bits.iter_mut().zip(&entered).filter(|(_, work)| work.packets >= ENOUGH) {
            *bits = work.bytes * 8.0 / work.packets;
        }
        // By the first worker, for all.
        let read = now.read - self.before.read;
        let least = self.least_dropped(&now.queued, &came, seconds);
        let did = self.did(&now, &came);
        self.before = now;
        if !busy {
            return;
        }
        if is_full {
            self.reading = reading::follow(self.reading, least, self.division.surplus(), self.workers.len());
            self.served.learn(&self.set, &did, seconds * self.workers.len() as f64);
        }
        let costs = self.with_strangers(read, &came);
        let again = self.division.weighed(&costs, &came, &self.bits);
        if let Some((tree, each)) = again.filter(|(tree, _)| !is_same(tree, &self.set)) {
            (self.set, self.each) = (tree, each);
        }
        let tree = self.served.tree(&reading::tree(&self.set, self.reading));
        let tree = self.tenants.as_ref().map_or_else(|| tree.clone(), |tenants| tenants.divide(&tree));
        if is_same(&tree, &self.given) {
            return;
        }
        for (worker, handle) in self.workers.iter().zip(handles) {
            let tree = worker.tree(&tree);
            self.posted.push(handle.post(move |pipeline, _| pipeline.set_tree(tree)));
        }
        self.given = tree;
        self.times += 1;
    }

    /// The least part of what came in so many seconds to a queue, of those that are to be full, that found it so: each worker has its
    /// own. A chain of which no more comes than it is promised has all of that whatever the port reads.
    fn least_dropped(&self, queued: &[Vec<(u64, u64)>], came: &[f64], seconds: f64) -> Option<f64> {
        let wants = |related: &Related| {
            let all: f64 = related.chain.iter().map(|module| came[*module] * self.bits[*module]).sum();
            came[related.module] >= ENOUGH && all / seconds > related.promised_bps * (1.0 + NEARLY)
        };
        let dropped = |Related { module, .. }| {
            let since = queued.iter().zip(&self.before.queued).map(move |(now, before)| {
                ((now[module].0 - before[module].0) as f64, (now[module].1 - before[module].1) as f64)
            });
            since.filter(|(came, _)| *came >= ENOUGH).map(|(came, dropped)| dropped / came)
        };
        self.division.related().filter(wants).flat_map(dropped).reduce(f64::min)
    }

    /// What each task did since the last time, where so much came to the queues. Whose weight follows accounts has nothing to say here.
    fn did(&self, now: &Counts, came: &[f64]) -> Vec<Did> {
        let did = |(task, (start, _)): (usize, (usize, &[usize]))| Did {
            packets: now.tasks[task].since(self.before.tasks[task]).packets,
            bits: self.bits[start],
            has: match (now.dropped[start] - self.before.dropped[start]) as f64 {
                _ if came[start] < ENOUGH || self.tenants.as_ref().is_some_and(|tenants| tenants.has(task)) => {
                    Has::Nothing
                }
                dropped if dropped > DROPS * came[start] => Has::Plenty,
                _ => Has::Little,
            },
            cycles: self.each[task],
        };
        self.division.tasks().enumerate().map(did).collect()
    }

    /// Return what tenants' packets cost until now; None where there are no tenants.
    pub fn tenants(&mut self) -> Option<Told> {
        let now = self.counts();
        let tenants = self.tenants.as_mut()?;
        tenants.account(&now, &self.before);
        self.before = now;
        Some(tenants.told())
    }

    /// The costs where some of what is read is of no chain: who is for somebody pays for reading it, too. Where a chain has no queue
    /// nobody counts what is its.
    fn with_strangers(&self, read: f64, came: &[f64]) -> Measured {
        let mut costs = self.costs.clone();
        let known: f64 = self.division.entrances_in(0).map(|module| came[module]).sum();
        let each = if known >= ENOUGH && self.division.all_wait() { (read / known).max(1.0) } else { 1.0 };
        costs.sources[0] *= each;
        for (cost, _) in costs.modules.iter_mut().zip(&self.names).filter(|(_, name)| *name == CLASSIFY) {
            *cost *= each;
        }
        costs
    }

    fn counts(&self) -> Counts {
        let mut counts = Counts {
            modules: vec![Work::default(); self.names.len()],
            entrances: vec![Work::default(); self.names.len()],
            tasks: vec![Work::default(); self.division.tasks().count()],
            dropped: vec![0; self.names.len()],
            queued: Vec::new(),
            read: 0.0,
            runs: 0.0,
            spent: Vec::new(),
        };
        if let Some(task) = self.workers.first().and_then(|worker| worker.tasks.first()) {
            counts.read = task.input.packets.get() as f64;
        }
        for worker in &self.workers {
            let sum = |into: &mut Work, name: &str| {
                for node in worker.modules.get(name).into_iter().flatten() {
                    into.packets += node.input.packets.get() as f64;
                    into.bytes += node.input.bytes.get() as f64;
                    into.cycles += node.cycles.get() as f64;
                }
            };
            let mut queued = vec![(0, 0); self.names.len()];
            for (module, name) in self.names.iter().enumerate() {
                sum(&mut counts.modules[module], name);
                let Some(queue) = &self.queues[module] else { continue };
                sum(&mut counts.entrances[module], queue);
                for node in worker.modules.get(queue).into_iter().flatten() {
                    queued[module].0 += node.input.packets.get();
                    queued[module].1 += node.drops.total();
                }
                counts.dropped[module] += queued[module].1;
            }
            counts.queued.push(queued);
            counts.runs += worker.tasks.first().map_or(0.0, |task| task.runs.get() as f64);
            let all = worker.tasks.iter().chain(&worker.beside);
            counts.spent.push(all.map(|task| task.cycles.get() as f64).sum());
            for (into, task) in counts.tasks.iter_mut().zip(&worker.tasks) {
                into.packets += task.input.packets.get() as f64;
                into.cycles += task.cycles.get() as f64;
            }
        }
        counts
    }

    /// Take what things cost since the last time for what they cost, where enough packets tell.
    fn learn(&mut self, now: &Counts) {
        let grown = |now: &[Work], before: &[Work]| -> Vec<Work> {
            now.iter().zip(before).map(|(now, before)| now.since(*before)).collect()
        };
        let modules = grown(&now.modules, &self.before.modules);
        let entrances = grown(&now.entrances, &self.before.entrances);
        let told = |work: &Work| work.packets >= ENOUGH;
        let [of_modules, of_entrances, of_sources] = &mut self.samples;
        for (n, work) in modules.iter().enumerate().filter(|(_, work)| told(work)) {
            self.costs.modules[n] = of_modules[n].add(work.cycles / work.packets);
        }
        for (n, work) in entrances.iter().enumerate().filter(|(_, work)| told(work)) {
            self.costs.entrances[n] = of_entrances[n].add(work.cycles / work.packets);
        }
        // What the port reads is told by no module.
        self.costs.modules[0] = 0.0;
        let tasks = grown(&now.tasks, &self.before.tasks);
        for (task, work) in tasks.iter().enumerate().filter(|(_, work)| told(work)) {
            let queues: f64 = self.division.entrances_in(task).map(|module| entrances[module].cycles).sum();
            // Of the same time, so that an interruption in a module is none of the source.
            let each = |module: usize| match &modules[module] {
                work if told(work) => work.cycles / work.packets,
                _ => self.costs.modules[module],
            };
            let own: f64 = self.division.parts(task).map(|(module, part)| part * each(module)).sum();
            let source = ((work.cycles - queues) / work.packets - own).max(0.0);
            self.costs.sources[task] = of_sources[task].add(source);
        }
    }
}

/// Whether two trees of the same tasks hardly differ.
fn is_same(a: &SchedulerTree, b: &SchedulerTree) -> bool {
    let near = |a: f64, b: f64| (a - b).abs() <= SAME * a.min(b);
    match (a, b) {
        (SchedulerTree::Task(a), SchedulerTree::Task(b)) => a == b,
        (SchedulerTree::Priority(a), SchedulerTree::Priority(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
        }
        (SchedulerTree::Fair(a), SchedulerTree::Fair(b)) => {
            let all =
                |children: &[(u32, SchedulerTree)]| children.iter().map(|(weight, _)| f64::from(*weight)).sum::<f64>();
            let (whole, other) = (all(a), all(b));
            let child = |((x, a), (y, b)): (&(u32, SchedulerTree), &(u32, SchedulerTree))| {
                near(f64::from(*x) / whole, f64::from(*y) / other) && is_same(a, b)
            };
            a.len() == b.len() && a.iter().zip(b).all(child)
        }
        (SchedulerTree::Limit { rate: x, child: a, .. }, SchedulerTree::Limit { rate: y, child: b, .. }) => {
            near(*x as f64, *y as f64) && is_same(a, b)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;

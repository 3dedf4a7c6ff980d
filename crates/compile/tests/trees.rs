//! The dataplane's scheduler tree of a planned one.

use catena_compile::tasks;
use catena_dataplane::pipeline::Time;
use catena_dataplane::port::Sink;
use catena_dataplane::schedule::{Leaves, Ran};
use catena_dataplane::task::Task;
use catena_dataplane::{Context, Pipeline, Pulled, Source, TaskId, Tree, clock};
use catena_packet::Batch;
use catena_plan::alpine::SchedulerTree;
use catena_plan::alpine::tree::Unit;

struct Nothing;

impl Source for Nothing {
    fn pull(&mut self, _: &mut Context, _: &mut Batch) -> Pulled {
        Pulled::Idle
    }
}

fn ids(tasks: usize) -> Vec<TaskId> {
    let mut pipeline = Pipeline::new(Time::Wall);
    let sink = pipeline.graph.add("sink", Box::new(Sink));
    (0..tasks).map(|n| pipeline.add_task(Task::new(&n.to_string(), Box::new(Nothing), sink))).collect()
}

/// Tasks of which some have always work, each run as dear as all others.
struct Tasks {
    ids: Vec<TaskId>,
    works: Vec<bool>,
    cycles: Vec<u64>,
}

/// Cycles, packets and bits of a run.
const RUN: (u64, u64, u64) = (20_000, 32, 32 * 1_000);

impl Tasks {
    fn new(tasks: usize) -> Tasks {
        Tasks { ids: ids(tasks), works: vec![true; tasks], cycles: vec![0; tasks] }
    }

    /// Run a tree for so many ms, from a time in ms on; returns the part of the cycles that each task had.
    fn run(&mut self, tree: &mut Tree, from: u64, ms: u64) -> Vec<f64> {
        self.cycles.fill(0);
        let (first, last) = (from * 1_000_000, (from + ms) * 1_000_000);
        let mut now = first as f64;
        while (now as u64) < last {
            let ran = tree.run(now as u64, self);
            now += ran.cycles.max(RUN.0) as f64 * 1e9 / clock::hertz() as f64;
        }
        let all = ms as f64 / 1e3 * clock::hertz() as f64;
        self.cycles.iter().map(|cycles| *cycles as f64 / all).collect()
    }
}

impl Leaves for Tasks {
    fn run(&mut self, task: TaskId) -> Ran {
        let n = self.ids.iter().position(|id| *id == task).expect("a task of the tree");
        if !self.works[n] {
            return Ran::default();
        }
        self.cycles[n] += RUN.0;
        Ran { packets: RUN.1, bits: RUN.2, cycles: RUN.0 }
    }
}

fn near(is: f64, wanted: f64) -> bool {
    (is - wanted).abs() < 0.02
}

/// A port brings a chain now too much for its queue and now too little; what the port itself did not find it need not make up for.
#[test]
fn who_waits_for_the_port_has_its_part_in_the_end_and_the_port_saves_up_nothing() {
    let planned = SchedulerTree::Fair([2, 1, 1].into_iter().zip((0..3).map(SchedulerTree::Task)).collect());
    for (absent, then) in [(1, 0.25 + 0.25), (0, 0.5)] {
        let mut tasks = Tasks::new(3);
        let mut tree = tasks::tree(&planned, &tasks.ids.clone());
        assert!(tasks.run(&mut tree, 0, 20).into_iter().zip([0.5, 0.25, 0.25]).all(|(is, wanted)| near(is, wanted)));
        tasks.works[absent] = false;
        let without = tasks.run(&mut tree, 20, 20);
        assert!(without[absent] == 0.0 && near(without.iter().sum(), 1.0), "{without:?}");
        tasks.works[absent] = true;
        let with = tasks.run(&mut tree, 40, 20);
        assert!(near(with[absent], then), "task {absent} was absent for 20 ms of 40: {with:?}");
    }
}

#[test]
fn who_slept_is_owed_nothing() {
    let planned = SchedulerTree::Fair((0..3).map(|task| (1, SchedulerTree::Task(task))).collect());
    let mut tasks = Tasks::new(3);
    let mut tree = tasks::tree(&planned, &tasks.ids.clone());
    tasks.run(&mut tree, 0, 10);
    tasks.works[1] = false;
    tasks.run(&mut tree, 10, 100);
    tasks.works[1] = true;
    let with = tasks.run(&mut tree, 110, 30);
    assert!(with.iter().all(|part| near(*part, 1.0 / 3.0)), "{with:?}");
}

#[test]
fn a_limit_is_of_bits_and_a_task_that_is_not_there_has_no_turn() {
    // A tenth of what it could do.
    let bits = clock::hertz() as f64 / RUN.0 as f64 * RUN.2 as f64;
    let limited = SchedulerTree::limit(Unit::Bits, bits / 10.0, SchedulerTree::Task(1));
    let planned = SchedulerTree::Priority(vec![SchedulerTree::Task(7), limited, SchedulerTree::Task(0)]);
    let mut tasks = Tasks::new(2);
    let mut tree = tasks::tree(&planned, &tasks.ids.clone());
    let parts = tasks.run(&mut tree, 0, 1_000);
    assert!(near(parts[0], 0.9) && near(parts[1], 0.1), "{parts:?}");
}

//! One trial: a plan is run for a while as planned, its weights are set again from what everything then cost, and it is
//! run again.

use std::time::{Duration, Instant};

use catena_dataplane::clock;
use catena_plan::alpine::{Alpine, Promise, SchedulerTree, Tasks};

use crate::build::Running;
use crate::pipelines::Shape;
use crate::seen::Seen;

/// How long a worker runs before anything is counted: queues fill, tables learn the flows; and after new weights.
const LEAD: Duration = Duration::from_millis(40);
const SETTLE: Duration = Duration::from_millis(15);
/// How long costs are counted, and how long the result is.
const COSTS: Duration = Duration::from_millis(60);
const RESULT: Duration = Duration::from_millis(250);
/// How often weights are set from the costs measured since.
const WEIGHINGS: usize = 3;
/// The part of a stretch that its worker must have had its core, and how often it is taken until it had.
const CALM: f64 = 0.99;
const ATTEMPTS: usize = 8;
/// Stretches that a profile is the calmest of.
const STRETCHES: usize = 5;
/// Most partitions tried after the first.
const PARTITIONS: usize = 4;

/// What came of a plan.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Error of the shares with the weights as planned, 0 to 2.
    pub planned: f64,
    /// The same once weights were set from costs measured in place.
    pub error: f64,
    /// The largest difference of any class then.
    pub largest: f64,
    /// Whether weights could be set again.
    pub weighed: bool,
    /// Packets that left per second of on-CPU time.
    pub rate: f64,
    /// Cycles per packet that left.
    pub cycles: f64,
    /// What was run in the end.
    pub plan: Alpine,
}

/// Makes another plan, for the `n`th time from 0, with the costs that were seen while the plan given ran.
pub type Replan<'a> = &'a dyn Fn(usize, &Alpine, &Seen) -> Option<Alpine>;

/// Run a plan on these cores, each with traffic and tables of its own and the same tree.
///
/// What a packet costs depends on how many are with it in a batch and on what waits in queues, and so on the plan. So
/// the plan runs for a moment, weights are set from what everything cost, and again, [`WEIGHINGS`] times, as a controller
/// would do all the time. Where those costs allow no weights with this partition, `replan` makes another one.
///
/// # Errors
/// What could not be built or ended early.
pub fn run(
    shape: &Shape,
    plan: &Alpine,
    promise: &Promise,
    cores: &[usize],
    replan: Replan,
) -> Result<Outcome, String> {
    let mut plan = plan.clone();
    let mut errors = Vec::new();
    for partition in 0..=PARTITIONS {
        let workers = start(shape, &plan, cores)?;
        std::thread::sleep(LEAD);
        let (mut weights, mut other) = (None, None);
        for _ in 0..WEIGHINGS {
            let seen = watch(&workers, COSTS)?;
            errors.push(seen.error(&plan, promise));
            weights = seen.weighed(&plan, promise);
            let Some(tasks) = &weights else {
                other = replan(partition, &plan, &seen);
                break;
            };
            let tree = schedule(tasks);
            workers.iter().try_for_each(|worker| worker.schedule(&tree))?;
        }
        if let Some(other) = other {
            workers.into_iter().try_for_each(Running::end)?;
            plan = other;
            continue;
        }
        let seen = watch(&workers, RESULT)?;
        workers.into_iter().try_for_each(Running::end)?;
        let parts = seen.parts(&plan, promise);
        let differences = parts.iter().map(|(got, promised)| (got - promised).abs());
        let seconds = seen.cpu_ns / 1e9;
        return Ok(Outcome {
            planned: errors.first().copied().unwrap_or(0.0),
            error: differences.clone().sum(),
            largest: differences.fold(0.0, f64::max),
            weighed: weights.is_some(),
            rate: seen.packets() / seconds * cores.len() as f64,
            cycles: seconds * clock::hertz() as f64 / seen.packets(),
            plan,
        });
    }
    Err("no partition was run to its end".to_owned())
}

/// Run a plan as it is, and return what was counted.
///
/// # Errors
/// As [`run`].
pub fn profile(shape: &Shape, plan: &Alpine, core: usize) -> Result<Seen, String> {
    let workers = start(shape, plan, &[core])?;
    std::thread::sleep(LEAD);
    // The calmest of several: whatever else ran on the core only adds.
    let stretches: Vec<Seen> = (0..STRETCHES).map(|_| watch(&workers, COSTS)).collect::<Result<_, _>>()?;
    workers.into_iter().try_for_each(Running::end)?;
    let cost = |seen: &Seen| seen.cpu_ns / seen.packets();
    stretches.into_iter().min_by(|a, b| cost(a).total_cmp(&cost(b))).ok_or_else(|| "no stretch".to_owned())
}

fn schedule(tasks: &Tasks) -> SchedulerTree {
    SchedulerTree::of(tasks, &(0..tasks.tasks.len()).collect::<Vec<_>>())
}

fn start(shape: &Shape, plan: &Alpine, cores: &[usize]) -> Result<Vec<Running>, String> {
    let tree = schedule(&plan.tasks);
    cores.iter().map(|core| Running::start(shape, plan, &tree, *core)).collect()
}

/// Let workers settle, then count for a while; all of them together. What else runs on a worker's core counts as cycles
/// of the module that was interrupted: a stretch in which that was so is taken again, and at last the calmest.
fn watch(workers: &[Running], time: Duration) -> Result<Seen, String> {
    std::thread::sleep(SETTLE);
    let mut best: Option<(f64, Seen)> = None;
    for _ in 0..ATTEMPTS {
        let start = Instant::now();
        let before: Vec<Seen> = workers.iter().map(Running::seen).collect::<Result<_, _>>()?;
        std::thread::sleep(time);
        let after: Vec<Seen> = workers.iter().map(Running::seen).collect::<Result<_, _>>()?;
        let elapsed = start.elapsed().as_nanos() as f64 * workers.len() as f64;
        let grown = after.iter().zip(&before).map(|(after, before)| after.since(before));
        let seen = grown.reduce(|a, b| a.plus(&b)).ok_or("no worker")?;
        let own = seen.cpu_ns / elapsed;
        if best.as_ref().is_none_or(|(most, _)| own > *most) {
            best = Some((own, seen));
        }
        if own > CALM {
            break;
        }
    }
    best.map(|(_, seen)| seen).ok_or_else(|| "no stretch".to_owned())
}

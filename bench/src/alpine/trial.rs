//! One trial: a plan is run for a while as planned, its weights are set again from what everything then cost, and it is
//! run again.

use std::time::Duration;

use catena_dataplane::clock;
use catena_plan::alpine::{Alpine, Promise, SchedulerTree};

use crate::build::Running;
use crate::pipelines::Shape;
use crate::seen::Seen;

/// How long a worker runs before anything is counted: queues fill, tables learn the flows.
const LEAD: Duration = Duration::from_millis(40);
/// How long costs are counted, and how long the result is.
const COSTS: Duration = Duration::from_millis(120);
const RESULT: Duration = Duration::from_millis(250);

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
    /// Counters of the second part.
    pub seen: Seen,
}

/// Run `plan` on these cores, each with traffic and tables of its own and the same tree. Without a `promise` it is run only
/// as planned.
///
/// # Errors
/// What could not be built or ended early.
pub fn run(shape: &Shape, plan: &Alpine, promise: Option<&Promise>, cores: &[usize]) -> Result<Outcome, String> {
    let all: Vec<usize> = (0..plan.tasks.tasks.len()).collect();
    let tree = SchedulerTree::of(&plan.tasks, &all);
    let start = |core: &usize| Running::start(shape, plan, &tree, *core);
    let workers: Vec<Running> = cores.iter().map(start).collect::<Result<_, _>>()?;
    let mut seen = watch(&workers, COSTS)?;
    let planned = promise.map_or(0.0, |promise| seen.error(plan, promise));
    let weighed = promise.and_then(|promise| seen.weighed(plan, promise));
    if let Some(tasks) = &weighed {
        let tree = SchedulerTree::of(tasks, &all);
        workers.iter().try_for_each(|worker| worker.schedule(&tree))?;
    }
    if promise.is_some() {
        seen = watch(&workers, RESULT)?;
    }
    workers.into_iter().try_for_each(Running::end)?;
    let parts = promise.map_or_else(Vec::new, |promise| seen.parts(plan, promise));
    let differences = parts.iter().map(|(got, promised)| (got - promised).abs());
    let seconds = seen.cpu_ns / 1e9;
    Ok(Outcome {
        planned,
        error: differences.clone().sum(),
        largest: differences.fold(0.0, f64::max),
        weighed: weighed.is_some(),
        rate: seen.packets() / seconds * cores.len() as f64,
        cycles: seconds * clock::hertz() as f64 / seen.packets(),
        seen,
    })
}

/// Let workers settle, then count for a while; all of them together.
fn watch(workers: &[Running], time: Duration) -> Result<Seen, String> {
    std::thread::sleep(LEAD);
    let before: Vec<Seen> = workers.iter().map(Running::seen).collect::<Result<_, _>>()?;
    std::thread::sleep(time);
    let after: Vec<Seen> = workers.iter().map(Running::seen).collect::<Result<_, _>>()?;
    let grown = after.iter().zip(&before).map(|(after, before)| after.since(before));
    grown.reduce(|a, b| a.plus(&b)).ok_or_else(|| "no worker".to_owned())
}

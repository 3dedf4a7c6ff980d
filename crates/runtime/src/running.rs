//! A run under way, looked after by a thread until it ends.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle, park_timeout};
use std::time::{Duration, Instant};

use catena_compile::Host;
use catena_dataplane::task::TaskCounters;
use catena_policy::PolicyGraph;

use crate::Failure;
use crate::notes::Note;
use crate::planned::Planned;
use crate::promised::Promised;
use crate::report::Report;
use crate::workers::Workers;

/// How often a run is looked after.
const LOOK: Duration = Duration::from_millis(20);
/// The same while packets wait for it.
const SOON: Duration = Duration::from_micros(100);

/// A run under way. One that is dropped is asked to stop.
pub struct Running {
    thread: Option<JoinHandle<Result<Report, Failure>>>,
    shared: Arc<Shared>,
    inputs: Vec<Arc<TaskCounters>>,
    started: Instant,
}

#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    ended: Mutex<bool>,
    ends: Condvar,
}

/// Says that the run has ended, also by a panic.
struct Ends(Arc<Shared>);

impl Drop for Ends {
    fn drop(&mut self) {
        *self.0.ended.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.ends.notify_all();
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").field("packets", &self.packets()).field("is_ended", &self.is_ended()).finish()
    }
}

impl Running {
    /// Look after workers that have started.
    ///
    /// # Errors
    /// The system's, when it starts no thread.
    pub(crate) fn begin(
        workers: Workers,
        host: Host,
        graph: PolicyGraph,
        planned: Option<Planned>,
        (is_live, notes): (bool, Vec<Note>),
    ) -> Result<Running, Failure> {
        let (shared, inputs, started) = (Arc::<Shared>::default(), workers.inputs().to_vec(), Instant::now());
        let ends = Ends(Arc::clone(&shared));
        let thread = Builder::new().name("run".to_owned()).spawn(move || {
            let (mut workers, elapsed) = attend(workers, &ends.0.stop, started);
            let (rebalanced, weighed) = (workers.rebalanced(), workers.weighed());
            let tenants = workers.tenants();
            let mut report = Report::new(&host, &workers.join()?, elapsed);
            report.moved(rebalanced);
            report.tenants = tenants;
            report.notes = notes;
            report.deployment = planned.as_ref().and_then(Planned::deployment);
            if is_live && planned.as_ref().is_some_and(|planned| planned.tasks().is_some()) {
                report.promised = Some(Promised::of(&graph, &report));
            }
            // What a function costs where nobody profiled it is no news.
            let profiled = planned.filter(|planned| !planned.is_own());
            report.planned = profiled.map(|planned| planned.compare(&graph, &report, weighed));
            Ok(report)
        })?;
        Ok(Running { thread: Some(thread), shared, inputs, started })
    }

    /// Return how many packets came in so far.
    pub fn packets(&self) -> u64 {
        self.inputs.iter().map(|counters| counters.input.packets.get()).sum()
    }

    /// Return how long packets have flowed.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Ask for the end: no further packets are read, and those on their way go on to where they leave. Returns at once.
    pub fn stop(&self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(run) = &self.thread {
            run.thread().unpark();
        }
    }

    /// Return whether the run has ended, of itself or because it was asked to.
    pub fn is_ended(&self) -> bool {
        *self.shared.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wait for the end, at most so long; returns whether the run has ended.
    pub fn wait(&self, most: Duration) -> bool {
        let ended = self.shared.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.shared.ends.wait_timeout_while(ended, most, |ended| !*ended);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Wait for the end, and return the figures. What could not be read or written to its end is among them
    /// ([`Report::problems`]).
    ///
    /// # Errors
    /// When a worker ended by a panic, which is a defect of Catena or of a module of yours.
    pub fn join(mut self) -> Result<Report, Failure> {
        let Some(thread) = self.thread.take() else { return Err("the run was joined before".into()) };
        thread.join().unwrap_or_else(|_| Err("a defect of Catena: the run's thread panicked".into()))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Weigh tasks and move slots until all workers have ended; returns how long that took.
fn attend(mut workers: Workers, stop: &AtomicBool, started: Instant) -> (Workers, Duration) {
    let mut stopped = false;
    while !workers.is_ended() {
        if !stopped && stop.load(Ordering::Relaxed) {
            workers.stop();
            stopped = true;
        }
        let is_awaited = workers.rebalance(stopped);
        workers.weigh();
        // Who asks for the end wakes it.
        park_timeout(if is_awaited { SOON } else { LOOK });
    }
    (workers, started.elapsed())
}

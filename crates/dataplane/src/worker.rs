//! Workers: threads that run pipelines, each pinned to a core if asked.
//!
//! Others change a running pipeline by sending the worker an edit, which it applies between two batches:
//! there no packet is inside a module, so none is lost. Modules that an edit adds are started before the next batch.

mod gathering;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use catena_packet::DepotHandle;

use crate::clock::Wall;
use crate::module::Context;
use crate::order::Order;
use crate::pipeline::{Pipeline, Time};
use crate::queue::Room;
use crate::schedule::Ran;

pub use gathering::Gathering;
use gathering::Member;

/// ns of the context's time between two ticks.
const TICK_NS: u64 = 1_000_000;
/// Fruitless looks at all tasks before a worker yields its core, and before it sleeps.
const SPIN: u32 = 2_000;
const YIELD: u32 = 4_000;
/// The same of one that waits for others: some µs.
const SPIN_BEHIND_OTHERS: u32 = 32;
/// Packets that wait in a module for other workers, from which on a replay waits for them.
const MOST_WAITING: usize = 128;
/// How long an idle worker sleeps: short beside a network's round trip, long beside a wake-up.
const NAP: Duration = Duration::from_micros(50);
/// Fruitless looks after which modules hand on what somebody may be waiting for: some 20 ms while the worker sleeps in
/// between.
const IDLE: u32 = 256;

type Edit = Box<dyn FnOnce(&mut Pipeline, &mut Context) + Send>;

/// A worker before it runs.
pub struct Worker {
    pipeline: Pipeline,
    context: Context,
    core: Option<usize>,
    name: String,
    gathering: Option<Arc<Gathering>>,
    closes: Vec<Room>,
    order: Option<(Arc<Order>, usize)>,
    /// Fruitless looks before it yields its core.
    spins: u32,
}

/// What is left when a worker has ended.
pub struct Ended {
    /// The pipeline, with its modules' state and counters.
    pub pipeline: Pipeline,
    /// What modules could not write out, and why those that could not be started were not, with their names.
    pub failed: Vec<(Arc<str>, String)>,
    /// Whether it could be pinned to the core asked for.
    pub pinned: bool,
    /// ns that the thread spent on a core.
    pub cpu_ns: u64,
}

/// Why an edit did not go well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EditError<R> {
    /// The worker had already ended: nothing was changed.
    Ended,
    /// The edit was applied, but these modules that it added could not be started, and are in the pipeline all the
    /// same: a new attempt is to take them out and add others.
    NotStarted {
        /// What the edit returned.
        answer: R,
        /// The modules, and why each could not.
        modules: Vec<(Arc<str>, String)>,
    },
}

impl<R> fmt::Display for EditError<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EditError::Ended => f.write_str("the worker has ended"),
            EditError::NotStarted { modules, .. } => {
                let told: Vec<String> = modules.iter().map(|(module, error)| format!("{module}: {error}")).collect();
                f.write_str(&told.join("; "))
            }
        }
    }
}

impl<R: fmt::Debug> std::error::Error for EditError<R> {}

/// A running worker.
pub struct WorkerHandle {
    thread: JoinHandle<Ended>,
    edits: Sender<Edit>,
    signal: Arc<Signal>,
}

#[derive(Default)]
struct Signal {
    stop: AtomicBool,
    edits: AtomicBool,
}

impl Worker {
    /// Make a worker for a pipeline. `seed` makes its randomness repeatable.
    pub fn new(name: &str, pipeline: Pipeline, depot: &DepotHandle, seed: u64) -> Self {
        Worker {
            pipeline,
            context: Context::new(depot, seed),
            core: None,
            name: name.to_owned(),
            gathering: None,
            closes: Vec::new(),
            order: None,
            spins: SPIN,
        }
    }

    /// Let the worker yield its core soon when it finds nothing: others, who may have no core of their own, must do something first.
    #[must_use]
    pub fn gives_way(mut self) -> Self {
        self.spins = SPIN_BEHIND_OTHERS;
        self
    }

    /// Let the worker, which is this one of several, tell how far it has come with the packets of a replay.
    #[must_use]
    pub fn ordered(mut self, order: &Arc<Order>, worker: usize) -> Self {
        self.order = Some((Arc::clone(order), worker));
        self.gives_way()
    }

    /// Let the worker end together with others, whom its modules answer. As many workers must come there as it was made for. When
    /// its own packets have come to their ends it closes the queues through which the others get theirs.
    #[must_use]
    pub fn ends_with(mut self, gathering: Arc<Gathering>, closes: Vec<Room>) -> Self {
        (self.gathering, self.closes) = (Some(gathering), closes);
        self
    }

    /// Pin the worker to a core.
    pub fn pin(mut self, core: usize) -> Self {
        self.core = Some(core);
        self
    }

    /// Return the files that modules create or empty when they start, by module; `-` is the standard output.
    pub fn outputs(&self) -> Vec<(Arc<str>, PathBuf)> {
        self.pipeline.graph.outputs()
    }

    /// Start the modules: they open what they write to. Whoever starts several workers calls this for all of them
    /// first, so that none works in vain.
    ///
    /// # Errors
    /// What could not be opened, with the module's name.
    pub fn open(&mut self) -> Result<(), String> {
        self.pipeline.graph.start(self.pipeline.time).map_err(|(module, error)| format!("{module}: {error}"))
    }

    /// Start the worker's thread, and its modules before it unless [`Self::open`] did.
    ///
    /// # Errors
    /// The system's, when it starts no thread, and those of [`Self::open`].
    pub fn start(mut self) -> std::io::Result<WorkerHandle> {
        self.open().map_err(std::io::Error::other)?;
        let (sender, receiver) = channel();
        let signal = Arc::new(Signal::default());
        let (theirs, name) = (signal.clone(), self.name.clone());
        let thread = std::thread::Builder::new().name(name).spawn(move || self.work(&receiver, &theirs))?;
        Ok(WorkerHandle { thread, edits: sender, signal })
    }

    fn work(mut self, edits: &Receiver<Edit>, signal: &Signal) -> Ended {
        let pinned = self.core.is_none_or(pin_this_thread);
        let gathering = self.gathering.take();
        let _member = gathering.as_deref().map(Member);
        let place = gathering.as_deref().map(Gathering::begin).unwrap_or_default();
        let cx = &mut self.context;
        let pipeline = &mut self.pipeline;
        let mut wall = Wall::new();
        if pipeline.time == Time::Packets {
            cx.tell_packets_apart();
        }
        let (mut due, mut fruitless) = (Ticks::default(), 0u32);
        loop {
            let stops = signal.stop.load(Ordering::Relaxed);
            match &self.order {
                // All workers go on up to the same packet.
                Some((order, _)) if stops => order.stop(),
                None if stops => break,
                _ => {}
            }
            if signal.edits.swap(false, Ordering::Acquire) {
                edits.try_iter().for_each(|edit| edit(pipeline, cx));
            }
            if pipeline.time == Time::Wall {
                cx.set_wall(wall.now().0);
            }
            pipeline.graph.poll(cx);
            due.settle(pipeline, cx, &mut wall, self.order.as_ref());
            // A replay loses nothing: who waits holds up what comes.
            let is_crowded = pipeline.time == Time::Packets && pipeline.graph.most_waiting() > MOST_WAITING;
            let ran = if is_crowded { Ran::default() } else { pipeline.step(cx) };
            due.settle(pipeline, cx, &mut wall, self.order.as_ref());
            if ran.packets > 0 {
                fruitless = 0;
                continue;
            }
            fruitless = fruitless.wrapping_add(1);
            let is_broken = gathering.as_ref().is_some_and(|gathering| gathering.is_broken());
            if let Some(gathering) = &gathering
                && pipeline.graph.most_waiting() == 0
            {
                gathering.rest(place);
            }
            if is_broken || !is_crowded && pipeline.is_done() {
                break;
            }
            if fruitless.is_multiple_of(IDLE) {
                pipeline.graph.idle(cx);
            }
            rest(fruitless, self.spins);
        }
        // Edits that came too late still get their answer.
        let edit = |pipeline: &mut Pipeline, cx: &mut Context| edits.try_iter().for_each(|edit| edit(pipeline, cx));
        edit(pipeline, cx);
        let order = self.order.as_ref();
        pipeline.drain(cx);
        let go_on = |pipeline: &mut Pipeline, cx: &mut Context| {
            pipeline.graph.poll(cx);
            if let Some((order, worker)) = order {
                order.publish(*worker, pipeline.first_waiting());
            }
        };
        if let Some(gathering) = &gathering {
            let is_waited_for = |pipeline: &Pipeline| pipeline.graph.most_waiting() > 0 || pipeline.graph.is_holding();
            // Who spreads packets ends when nothing can come back to be spread: what others had in hand has gone on.
            let is_through = |pipeline: &mut Pipeline, cx: &mut Context| {
                !pipeline.drain(cx) && !is_waited_for(pipeline) && self.closes.iter().all(Room::is_empty)
            };
            let mut fruitless = 0;
            while !gathering.is_broken() {
                edit(pipeline, cx);
                go_on(pipeline, cx);
                if is_through(pipeline, cx) {
                    if self.closes.is_empty() {
                        break;
                    }
                    gathering.wait_for_others(place, || go_on(pipeline, cx));
                    if is_through(pipeline, cx) {
                        break;
                    }
                }
                fruitless += 1;
                rest(fruitless, SPIN);
            }
            self.closes.iter().for_each(Room::close);
            // Slots may still be on their way to this worker, as long as the one who holds their packets has not come so far.
            let may_take_in = self.closes.is_empty();
            gathering.wait(0, || {
                if may_take_in {
                    edit(pipeline, cx);
                }
                go_on(pipeline, cx);
            });
            if gathering.is_broken() {
                let failed = vec![(self.name.into(), "ended in the middle, as another worker did".to_owned())];
                return Ended { pipeline: self.pipeline, failed, pinned, cpu_ns: thread_cpu_ns() };
            }
        }
        let failed = pipeline.graph.end(cx);
        if let Some((order, worker)) = order {
            order.end(*worker);
        }
        if let Some(gathering) = &gathering {
            gathering.wait(1, || pipeline.graph.poll(cx));
            pipeline.graph.poll(cx);
            pipeline.give_up(cx);
        }
        Ended { pipeline: self.pipeline, failed, pinned, cpu_ns: thread_cpu_ns() }
    }
}

/// When modules were told last that time has passed.
#[derive(Default)]
struct Ticks(u64);

impl Ticks {
    /// Tell modules that time has passed, if it has, and others how far the worker has come. In a replay what modules do then comes
    /// after the same packet each time, and before anybody hears that the packet has its fate.
    #[inline(always)]
    fn settle(
        &mut self,
        pipeline: &mut Pipeline,
        cx: &mut Context,
        wall: &mut Wall,
        order: Option<&(Arc<Order>, usize)>,
    ) {
        if cx.now() >= self.0 + TICK_NS && (order.is_none() || pipeline.first_waiting().is_none()) {
            self.0 = cx.now();
            pipeline.graph.tick(cx);
            wall.adjust();
        }
        if let Some((order, worker)) = order {
            order.publish(*worker, pipeline.first_waiting());
        }
    }
}

#[cold]
fn rest(fruitless: u32, spins: u32) {
    match fruitless {
        _ if fruitless < spins => std::hint::spin_loop(),
        0..YIELD => std::thread::yield_now(),
        _ => std::thread::sleep(NAP),
    }
}

/// An edit that was asked for.
pub struct Posted<R> {
    told: Receiver<R>,
    /// Whether it has begun, or was withdrawn.
    begun: Arc<AtomicBool>,
}

impl<R> Posted<R> {
    /// Return what the edit returned, once it has; `None` until then.
    ///
    /// # Errors
    /// [`EditError::Ended`] when the worker ended before.
    pub fn answer(&self) -> Option<Result<R, EditError<R>>> {
        match self.told.try_recv() {
            Ok(answer) => Some(Ok(answer)),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Err(EditError::Ended)),
        }
    }

    /// Withdraw it; returns whether that came in time: then it is never done.
    pub fn withdraw(&self) -> bool {
        !self.begun.swap(true, Ordering::AcqRel)
    }
}

impl WorkerHandle {
    /// Apply an edit to the running pipeline between two batches, and return what it returns. Modules that it adds are
    /// started before the next packet; those that were started before are left alone.
    ///
    /// # Errors
    /// When the worker has already ended, and when a module that was added cannot be started. While that module stays in
    /// the pipeline, [`Ended::failed`] tells it too.
    pub fn edit<R: Send + 'static>(
        &self,
        edit: impl FnOnce(&mut Pipeline, &mut Context) -> R + Send + 'static,
    ) -> Result<R, EditError<R>> {
        let (sender, told) = channel();
        let boxed: Edit = Box::new(move |pipeline, cx| {
            let answer = edit(pipeline, cx);
            _ = sender.send((answer, pipeline.graph.start_added(pipeline.time)));
        });
        self.edits.send(boxed).map_err(|_| EditError::Ended)?;
        self.signal.edits.store(true, Ordering::Release);
        match told.recv() {
            Ok((answer, modules)) if modules.is_empty() => Ok(answer),
            Ok((answer, modules)) => Err(EditError::NotStarted { answer, modules }),
            Err(_) => Err(EditError::Ended),
        }
    }

    /// Ask for an edit that adds no module, and do not wait for it: a worker may be held up for long.
    pub fn post<R: Send + 'static>(
        &self,
        edit: impl FnOnce(&mut Pipeline, &mut Context) -> R + Send + 'static,
    ) -> Posted<R> {
        let (sender, told) = channel();
        let begun = Arc::new(AtomicBool::new(false));
        let theirs = Arc::clone(&begun);
        let boxed: Edit = Box::new(move |pipeline, cx| {
            if !theirs.swap(true, Ordering::AcqRel) {
                _ = sender.send(edit(pipeline, cx));
            }
        });
        if self.edits.send(boxed).is_ok() {
            self.signal.edits.store(true, Ordering::Release);
        }
        Posted { told, begun }
    }

    /// Ask the worker to end after the batch in hand.
    pub fn stop(&self) {
        self.signal.stop.store(true, Ordering::Relaxed);
    }

    /// Return whether the worker has ended.
    pub fn is_ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// Wait for the end.
    ///
    /// # Errors
    /// The message of the panic, when the worker ended by one.
    pub fn join(self) -> Result<Ended, String> {
        drop(self.edits);
        self.thread.join().map_err(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without a message").to_owned()
        })
    }
}

/// Pin the calling thread to a core; returns whether the system did.
pub fn pin_this_thread(core: usize) -> bool {
    if core >= libc::CPU_SETSIZE as usize {
        return false;
    }
    // SAFETY: the set is plain memory, `core` is inside it, and 0 is the calling thread.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(core, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) == 0
    }
}

/// Return the cores that this process may run on, in order; nothing where the system does not say.
pub fn allowed_cores() -> Vec<usize> {
    // SAFETY: the set is plain memory that the call writes, and is looked at inside its bounds.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) != 0 {
            return Vec::new();
        }
        (0..libc::CPU_SETSIZE as usize).filter(|core| libc::CPU_ISSET(*core, &set)).collect()
    }
}

/// Return the time that the calling thread has spent on a core, in ns.
pub fn thread_cpu_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes a `timespec` that we own.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

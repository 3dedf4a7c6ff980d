//! The workers of a run: one, or one that reads the ports and spreads packets over several.
//!
//! With several workers, each has the whole pipeline and its share of every function's state; all packets of
//! an inside address meet the same worker. The first worker reads the ports and does its own share. One queue into
//! each of the others carries the packets of both sides in the order in which they were read, so that no reply
//! overtakes its request; what leaves goes through queues to a thread that writes the ports.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use catena_compile::{Host, Queued, Side, build, tasks};
use catena_dataplane::branch::Branch;
use catena_dataplane::graph::NodeInfo;
use catena_dataplane::order::{InWindows, Merge, Order};
use catena_dataplane::pipeline::{TaskId, Time};
use catena_dataplane::port::in_turn;
use catena_dataplane::queue::{QueueIn, QueueOut, Room, queue};
use catena_dataplane::schedule::Tree;
use catena_dataplane::steer::Steer;
use catena_dataplane::task::{Task, TaskCounters};
use catena_dataplane::worker::{Ended, Gathering};
use catena_dataplane::{Graph, Inlet, Module, NodeId, Pipeline, Source, Worker, WorkerHandle};
use catena_packet::clock::Roots;
use catena_packet::wire::Seed;
use catena_packet::{Depot, DepotHandle};
use catena_plan::alpine::SchedulerTree;
use catena_state::{Share, Team};

use super::files;
use super::outputs::{Locks, Readers};
use super::ports::{self, Ports};
use crate::inode::Uses;
use crate::{Failure, streams};

/// Packets that a queue between workers holds. Who fills it rests once it is half full: the rest is for packets that wait in
/// modules.
const QUEUE: usize = 8192;
/// Small and jumbo buffers for each worker.
const SMALL: usize = 16 * 1024;
const JUMBO: usize = 512;

/// Names of the tasks that read the ports.
pub const SIDES: [&str; 2] = ["in", "out"];

/// A run under way.
pub struct Running {
    workers: Vec<WorkerHandle>,
    inputs: Vec<Arc<TaskCounters>>,
    /// Until the workers have ended.
    _locks: Locks,
}

/// How many workers there are, where, and whose turn it is on each.
pub struct Layout<'a> {
    /// Workers.
    pub count: usize,
    /// The first one's core; the others take the next ones. None: not pinned.
    pub first_core: Option<usize>,
    /// Whose turn it is: task 0 is the one that reads side `in`, the others are the host's cuts. None: tasks take
    /// turns.
    pub tree: Option<&'a SchedulerTree>,
    /// Whether interfaces keep the run going when captures and generators have ended.
    pub waits: bool,
}

/// Start the workers. All that is read is opened first, then all that is written, and then packets flow; `uses` are the
/// files of the run, but for those of its functions. Until it has begun, `over` says whether it shall end.
///
/// # Errors
/// When a port cannot be opened, a module cannot be made, two outputs are one file, or one has no reader.
pub fn start(
    host: &Host,
    layout: &Layout<'_>,
    ports: &Ports,
    seed: u64,
    uses: Uses,
    over: &dyn Fn() -> bool,
) -> Result<Running, Failure> {
    let Layout { count, first_core, tree, waits } = *layout;
    let depot = Depot::map(SMALL * (count + 1), JUMBO * (count + 1))?;
    let time = if ports.is_live() { Time::Wall } else { Time::Packets };
    let inside = ports::open(&ports.inside, 0)?;
    let outside = ports::open(&ports.outside, 1)?;
    let sources = match (inside.0, outside.0, time) {
        (Some(inside), Some(outside), Time::Packets) => {
            in_turn([inside, outside]).map(|source| Some(Box::new(source) as Box<dyn Source>))
        }
        (inside, outside, _) => [inside, outside],
    };
    let exits = [inside.1, outside.1];
    let run = Run { host, tree, depot, time, seed, first_core, follows: ports.follow(), waits };
    let (workers, inputs) = if count == 1 { run.alone(sources, exits)? } else { run.together(count, sources, exits)? };
    let (workers, locks) = open_and_start(workers, uses, over)?;
    Ok(Running { workers, inputs, _locks: locks })
}

/// Open what the workers write to, and start them.
fn open_and_start(
    mut workers: Vec<Worker>,
    mut uses: Uses,
    over: &dyn Fn() -> bool,
) -> Result<(Vec<WorkerHandle>, Locks), Failure> {
    // On standard output, the records of one function's instances are mixed.
    let mut outputs: Vec<_> = workers.iter().flat_map(Worker::outputs).collect();
    outputs.sort();
    outputs.dedup_by(|a, b| a == b && a.1.as_os_str() == "-");
    for (function, path) in outputs {
        uses.writes(&files::export_of(&function), &path)?;
    }
    let later = left_from_more_workers(&workers, &uses);
    // One that cannot be opened leaves the others as they are.
    let locks = Locks::take(uses.outputs())?;
    let begun = Readers::wait(uses.outputs(), over).and_then(|readers| {
        workers.iter_mut().try_for_each(Worker::open)?;
        for path in later {
            streams::tell(format_args!(
                "catena: {} is left as it was: this run has not as many workers\n",
                path.display()
            ));
        }
        drop(readers);
        workers.into_iter().map(|worker| Ok(worker.start()?)).collect()
    });
    match begun {
        Ok(workers) => Ok((workers, locks)),
        Err(why) => {
            locks.give_up();
            Err(why)
        }
    }
}

/// Return the files that are there where functions of further workers would write theirs.
fn left_from_more_workers(workers: &[Worker], uses: &Uses) -> Vec<PathBuf> {
    let numbered = |path: &Path, number: usize| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{number}"));
        PathBuf::from(name)
    };
    let written: Vec<_> = uses.outputs().iter().map(|(_, path)| path).collect();
    let firsts = workers.first().map(Worker::outputs).unwrap_or_default();
    let missing = |(_, path): (_, PathBuf)| {
        let next = (1..).map(move |number| numbered(&path, number)).skip_while(|path| written.contains(&path));
        next.take_while(|path| path.is_file()).collect::<Vec<_>>()
    };
    firsts.into_iter().flat_map(missing).collect()
}

struct Run<'a> {
    host: &'a Host,
    tree: Option<&'a SchedulerTree>,
    depot: DepotHandle,
    time: Time,
    seed: u64,
    first_core: Option<usize>,
    /// Sides whose packets come from an interface while others come from what has an end.
    follows: [bool; 2],
    /// Whether these are waited for all the same, where a chain has a way for them.
    waits: bool,
}

/// Workers before they start, and the counters of the tasks that read the ports.
type Made = (Vec<Worker>, Vec<Arc<TaskCounters>>);

type Sources = [Option<Box<dyn Source>>; 2];
type Exits = [Box<dyn Module>; 2];

impl Run<'_> {
    fn alone(&self, sources: Sources, exits: Exits) -> Result<Made, Failure> {
        let mut exits = exits.map(Some);
        let exit = |side| exits[side as usize].take().expect("a pipeline has one exit for each side");
        let built = build(self.host, Seed::from_number(self.seed), (Share::WHOLE, None), exit)?;
        let mut pipeline = Pipeline::with(built.graph, self.time);
        let (mut inputs, mut ports, mut roots) = (Vec::new(), Vec::new(), Roots::default());
        for (side, source) in sources.into_iter().enumerate() {
            let Some(source) = source else { continue };
            let inlet = built.entries[side].unwrap_or_else(|| no_way(&mut pipeline.graph, side));
            let task = self.reading(side, source, inlet, built.entries[side].is_some()).rooted(roots.one_more()?);
            inputs.push(task.counters().clone());
            ports.push(pipeline.add_task(task));
        }
        // An output that no chain leads to becomes an empty one, rather than stay what it was.
        for (side, unreached) in exits.into_iter().enumerate() {
            unreached.map(|exit| pipeline.graph.add(&format!("port {}", SIDES[side]), exit));
        }
        self.divide(&mut pipeline, &ports, built.queued, &[]);
        Ok((vec![self.worker("worker 0", pipeline, 0)], inputs))
    }

    fn together(&self, count: usize, sources: Sources, exits: Exits) -> Result<Made, Failure> {
        // Exit queues: one entrance for each worker, on each side.
        let mut leaving: Vec<(Vec<QueueIn>, QueueOut)> = (0..2).map(|_| queue(QUEUE, count)).collect();
        let recorded = self.time == Time::Packets;
        let whole = sources.iter().flatten().all(|source| source.is_recorded());
        // What a plan's tasks drop depends on who is faster.
        let order = (recorded && whole && self.host.cuts.is_empty()).then(|| Order::new(count, 2));
        // Who of several workers asks first is a matter of chance: a replay has to repeat.
        let team = match &order {
            Some(order) => Some(in_order(count, order)),
            None => (self.time == Time::Wall).then(|| Team::new(count)),
        };
        let gathering = Gathering::new(count);
        let mut graphs = Vec::new();
        for index in 0..count {
            let share = Share { index: index as u32, count: count as u32 };
            let mut rooms = Vec::new();
            let mut entrances = [leaving[0].0.pop(), leaving[1].0.pop()];
            let exit = |side: Side| -> Box<dyn Module> {
                let entrance = entrances[side as usize].take().expect("one entrance for each worker and side");
                rooms.push(entrance.room());
                Box::new(entrance)
            };
            let built = build(self.host, Seed::from_number(self.seed), (share, team.as_ref()), exit)?;
            // A side that no chain leaves by: its queue must not wait for us.
            entrances.into_iter().flatten().for_each(|unused| unused.room().close());
            graphs.push((built, rooms));
        }
        let mut workers = Vec::new();
        let mut entering: Vec<QueueIn> = Vec::new();
        let mut graphs = graphs.into_iter().enumerate();
        let Some((_, (first, first_rooms))) = graphs.next() else { return Err("there is no worker".into()) };
        for (index, (built, rooms)) in graphs {
            let mut pipeline = Pipeline::with(built.graph, self.time);
            let inlets = [0, 1].map(|side| built.entries[side].unwrap_or_else(|| no_way(&mut pipeline.graph, side)));
            let (entrance, exit) = queue(QUEUE, 1);
            let task = self.share((exit, order.as_ref()), index, inlets, &rooms);
            let port = pipeline.add_task(task);
            self.divide(&mut pipeline, &[port], built.queued, &rooms);
            entering.extend(entrance);
            let worker = self.worker(&format!("worker {index}"), pipeline, index);
            let worker = worker.ends_with(Arc::clone(&gathering), Vec::new());
            workers.push(order.iter().fold(worker, |worker, order| worker.ordered(order, index)));
        }
        let mut pipeline = Pipeline::with(first.graph, self.time);
        let (mut inputs, mut ports, mut roots) = (Vec::new(), Vec::new(), Roots::default());
        let steering = Seed::from_number(self.seed ^ 0x0073_7465_6572);
        let mut rooms = first_rooms.clone();
        let to_others: Vec<_> = entering.iter().map(QueueIn::room).collect();
        rooms.extend(to_others.iter().cloned());
        let to_workers: Vec<(u16, NodeId)> = (1u16..)
            .zip(entering)
            .map(|(gate, entrance)| (gate, pipeline.graph.add(&format!("to worker {gate}"), Box::new(entrance))))
            .collect();
        let inlets = [0, 1].map(|side| first.entries[side].unwrap_or_else(|| no_way(&mut pipeline.graph, side)));
        // In a replay who reads is ahead of its own packets, as it is of the others'.
        let own = order.as_ref().map(|order| {
            let (mut entrance, exit) = queue(QUEUE, 1);
            let entrance = entrance.pop().expect("one was asked for");
            rooms.push(entrance.room());
            let task = self.share((exit, Some(order)), 0, inlets, &first_rooms);
            (pipeline.graph.add("to worker 0", Box::new(entrance)), task)
        });
        let (own, share) = own.unzip();
        for (side, source) in sources.into_iter().enumerate() {
            let owner = owner(self.host, count as u32);
            let steer = pipeline
                .graph
                .add(&format!("spread {}", SIDES[side]), Box::new(Steer::new(count as u32, steering, owner)));
            pipeline.graph.connect(steer, 0, own.map_or(inlets[side], Inlet::from));
            for (gate, node) in &to_workers {
                pipeline.graph.connect(steer, *gate, *node);
            }
            let Some(source) = source else { continue };
            let inlet = Inlet { node: steer, gate: side as u16 };
            let has_way = first.entries[side].is_some();
            let task = self.reading(side, source, inlet, has_way).rooted(roots.one_more()?);
            let mut task = order.iter().fold(task, Task::ordered);
            rooms.iter().for_each(|room| task.heed(room.clone()));
            inputs.push(task.counters().clone());
            ports.push(pipeline.add_task(task));
        }
        ports.extend(share.map(|share| pipeline.add_task(share)));
        self.divide(&mut pipeline, &ports, first.queued, &first_rooms);
        let worker = self.worker("worker 0", pipeline, 0).ends_with(gathering, to_others);
        workers.insert(0, order.iter().fold(worker, |worker, order| worker.ordered(order, 0)));
        // Who reads along from a live stream gets packets in time even when no further one comes.
        let mut writing = Pipeline::new(if whole { self.time } else { Time::Wall });
        for ((side, exit), (_, queue)) in (0..2).zip(exits).zip(leaving) {
            let node: NodeId = writing.graph.add(&format!("port {}", SIDES[side]), exit);
            let leaving: Box<dyn Source> = match &order {
                Some(order) => Box::new(Merge::new(queue, order, side)),
                None => Box::new(queue),
            };
            writing.add_task(Task::new(&format!("leaving {}", SIDES[side]), leaving, node));
        }
        let writer = Worker::new("writer", writing, &self.depot, self.seed);
        workers.push(if order.is_some() { writer.gives_way() } else { writer });
        Ok((workers, inputs))
    }

    /// Make the task of a worker whose packets another one reads.
    fn share(
        &self,
        (queue, order): (QueueOut, Option<&Arc<Order>>),
        worker: usize,
        inlets: [Inlet; 2],
        rooms: &[Room],
    ) -> Task {
        let name = format!("share {worker}");
        let recorded = self.time == Time::Packets;
        let mut task = match order {
            Some(order) => {
                let given = InWindows::new(queue, order, worker);
                Task::by_side(&name, Box::new(given), inlets, recorded).patient()
            }
            None => Task::by_side(&name, Box::new(queue), inlets, recorded),
        };
        rooms.iter().for_each(|room| task.heed(room.clone()));
        task
    }

    /// Make the task that reads a side.
    fn reading(&self, side: usize, source: Box<dyn Source>, inlet: Inlet, has_way: bool) -> Task {
        let task = Task::new(SIDES[side], source, inlet);
        if self.follows[side] && !(self.waits && has_way) { task.follow() } else { task }
    }

    /// Add the tasks that begin inside the pipeline, and set whose turn it is. Tasks that the plan does not know,
    /// such as the one that reads side `out`, take turns with all others together.
    fn divide(&self, pipeline: &mut Pipeline, ports: &[TaskId], queued: Vec<Queued>, rooms: &[Room]) {
        let mut ids: Vec<TaskId> = ports.iter().take(1).copied().collect();
        for Queued { name, queue, inlet } in queued {
            let mut task = Task::inner(&name, Box::new(queue), inlet);
            rooms.iter().for_each(|room| task.heed(room.clone()));
            ids.push(pipeline.add_task(task));
        }
        if let Some(planned) = self.tree {
            let others = ports.iter().skip(1).map(|port| Tree::Task(*port));
            let planned = tasks::tree(planned, &ids);
            pipeline.tree = Some(match ports.len() {
                0 | 1 => planned,
                _ => Tree::round_robin(std::iter::once(planned).chain(others)),
            });
        }
    }

    fn worker(&self, name: &str, pipeline: Pipeline, index: usize) -> Worker {
        let worker = Worker::new(name, pipeline, &self.depot, self.seed.wrapping_add(index as u64));
        match self.first_core {
            Some(core) => worker.pin(core + index),
            None => worker,
        }
    }
}

/// Make a team that does what is asked in the order of a replay.
fn in_order(workers: usize, order: &Arc<Order>) -> Arc<Team> {
    let order = Arc::clone(order);
    Team::in_order(workers, Arc::new(move || order.through()))
}

/// Where packets go that come in by a side from which no chain has a way.
fn no_way(graph: &mut Graph, side: usize) -> Inlet {
    graph.add(&format!("no way from {}", SIDES[side]), Box::new(Branch::new(Vec::new(), Seed::from_number(0)))).into()
}

/// Which worker owns a packet on the way back, as the functions that rewrite addresses say.
fn owner(host: &Host, count: u32) -> catena_dataplane::steer::Owner {
    let owners = host.owners(count);
    Box::new(move |packet| owners.iter().find_map(|owner| owner(packet)))
}

impl Running {
    /// Return whether all workers have ended.
    pub fn is_ended(&self) -> bool {
        self.workers.iter().all(WorkerHandle::is_ended)
    }

    /// Ask for the end: the first worker stops reading, the others finish what waits.
    pub fn stop(&self) {
        if let Some(first) = self.workers.first() {
            first.stop();
        }
    }

    /// Return how many packets came in so far.
    pub fn packets(&self) -> u64 {
        self.inputs.iter().map(|counters| counters.input.packets.get()).sum()
    }

    /// Wait for all workers.
    ///
    /// # Errors
    /// When a worker ended by a panic.
    pub fn join(self) -> Result<Vec<Ended>, Failure> {
        let ended = self.workers.into_iter().map(|worker| {
            worker.join().map_err(|panic| format!("a worker ended by a defect of Catena: {panic}").into())
        });
        ended.collect()
    }
}

/// Return every module of every worker.
pub fn modules(ended: &[Ended]) -> Vec<NodeInfo> {
    ended.iter().flat_map(|e| e.pipeline.graph.nodes()).map(|(_, info)| info).collect()
}

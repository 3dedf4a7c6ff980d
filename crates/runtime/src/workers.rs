//! The workers of a run: one, or one that reads the ports and spreads packets over several.
//!
//! With several workers, each has the whole pipeline and its share of every function's state; all packets of
//! an inside address meet the same worker. What comes live the first worker reads, and does its own share. One queue into
//! each of the others carries the packets of both sides in the order in which they were read, so that no reply
//! overtakes its request. What is recorded every worker reads for itself. What leaves goes through queues to a thread that
//! writes the ports.

mod together;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use catena_compile::{Built, Host, Queued, Side, build};
use catena_dataplane::branch::Branch;
use catena_dataplane::graph::NodeInfo;
use catena_dataplane::order::{Merge, Order};
use catena_dataplane::own::{Input, Own};
use catena_dataplane::pipeline::{TaskId, Time};
use catena_dataplane::port::{Stream, in_turn};
use catena_dataplane::queue::{QueueIn, QueueOut, Room, queue};
use catena_dataplane::rebalance::{Done, Rebalance};
use catena_dataplane::slots::{Loads, Slots};
use catena_dataplane::steer::{Owner, Spread};
use catena_dataplane::task::{Task, TaskCounters};
use catena_dataplane::worker::{Ended, Gathering};
use catena_dataplane::{Graph, Inlet, Module, NodeId, Pipeline, Source, Worker, WorkerHandle};
use catena_packet::clock::Roots;
use catena_packet::wire::Seed;
use catena_packet::{Depot, DepotHandle, SLOTS};
use catena_plan::alpine::SchedulerTree;
use catena_state::{Share, Team};

use crate::inode::Uses;
use crate::notes::{Listener, Note};
use crate::outputs::{Locks, Readers};
use crate::ports::{self, Ports};
use crate::tenants::Tenants;
use crate::weights::{Watched, Weighed, Weights};
use crate::{Failure, files};

/// Packets that a queue between workers holds. Who fills it rests once it is half full: the rest is for packets that wait in
/// modules.
const QUEUE: usize = 8192;
/// Small and jumbo buffers for each worker.
const SMALL: usize = 16 * 1024;
const JUMBO: usize = 512;
// Whoever waits for a large buffer can get one: what is held, in a pool's magazines, or just read leaves one over.
const _: () = assert!(JUMBO >= Own::MOST_LARGE + 4 * 16 + catena_packet::BATCH);

/// As many workers as a run may have.
pub const MOST: usize = 64;

/// Names of the tasks that read the ports.
pub const SIDES: [&str; 2] = ["in", "out"];

/// The workers of a run under way.
pub struct Workers {
    workers: Vec<WorkerHandle>,
    inputs: Vec<Arc<TaskCounters>>,
    /// Of a replay by several.
    order: Option<Arc<Order>>,
    /// Where slots go from one worker to another.
    rebalance: Option<Rebalance>,
    /// Where tasks are weighed.
    weights: Option<Weights>,
    /// Until the workers have ended.
    _locks: Locks,
}

/// How many workers there are, where, and whose turn it is on each.
pub struct Layout<'a> {
    /// Workers.
    pub count: usize,
    /// The core of each. None: not pinned.
    pub cores: Option<&'a [usize]>,
    /// Whose turn it is: task 0 is the one that reads side `in`, the others are the host's cuts. None: tasks take
    /// turns.
    pub tree: Option<&'a SchedulerTree>,
    /// Whether interfaces keep the run going when captures and generators have ended.
    pub waits: bool,
    /// Whether slots go from busy workers to idle ones.
    pub rebalances: bool,
    /// Which worker has which slot, by the slot's number. None: each has as many.
    pub slots: Option<Vec<u16>>,
    /// Seed of the hash that numbers flows: a flow's slot is the first bits of it.
    pub numbering: u64,
}

/// Start the workers. All that is read is opened first, then all that is written, and then packets flow; `uses` are the
/// files of the run, but for those of its functions; what is `weighed` is weighed again by what
/// it costs. Until it has begun, the listener says whether it shall end.
///
/// # Errors
/// When a port cannot be opened, a module cannot be made, two outputs are one file, or one has no reader.
pub fn start(
    host: &Host,
    layout: &Layout<'_>,
    weighed: Option<Weighed>,
    ports: &mut Ports,
    seed: u64,
    uses: Uses,
    listener: Listener<'_>,
) -> Result<Workers, Failure> {
    let Layout { count, cores, tree, waits, rebalances, ref slots, numbering } = *layout;
    let depot = Depot::map(SMALL * (count + 1), JUMBO * (count + 1))?;
    let time = if ports.is_live() { Time::Wall } else { Time::Packets };
    let files = [ports::file(&ports.inside[0], count > 1)?, ports::file(&ports.outside[0], count > 1)?];
    let inside = ports::open(&mut ports.inside, 0, files[0].as_ref())?;
    let outside = ports::open(&mut ports.outside, 1, files[1].as_ref())?;
    let sources = turns(time, [inside.0, outside.0]);
    let exits = [inside.1, outside.1];
    let slots = match slots {
        Some(given) => given_slots(given, count)?,
        None => Slots::even(count as u16),
    };
    let loads = rebalances.then(Loads::new);
    let (follows, live) = (ports.follow(), ports.live());
    let making = Making { host, tree, depot, time, seed, numbering, cores, follows, waits, live, slots, loads };
    // What is whole beforehand can be read as often as there are workers; what a plan's tasks drop depends on who is faster.
    let is_whole = time == Time::Packets && sources.iter().flatten().all(|source| source.is_recorded());
    let Made { workers, inputs, order, rebalance, watched } = match count {
        1 => making.alone(sources, exits)?,
        _ if is_whole && host.cuts.is_empty() && ports.can_be_read_by_all() => {
            making.in_order(count, (ports, &files), sources, exits)?
        }
        _ => making.together(count, sources, exits)?,
    };
    // All pipelines are built: from now on a table lives as long as one of them has it.
    host.tables.clear();
    let (workers, locks) = open_and_start(workers, uses, listener)?;
    let weights = weighed.map(|weighed| Weights::new(weighed, watched));
    Ok(Workers { workers, inputs, order, rebalance, weights, _locks: locks })
}

/// Let two sides of recorded traffic take turns.
fn turns(time: Time, sources: Sources) -> Sources {
    match (sources, time) {
        ([Some(inside), Some(outside)], Time::Packets) => {
            in_turn([inside, outside]).map(|source| Some(Box::new(source) as Box<dyn Source>))
        }
        (sources, _) => sources,
    }
}

/// Open what the workers write to, and start them.
fn open_and_start(
    mut workers: Vec<Worker>,
    mut uses: Uses,
    listener: Listener<'_>,
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
    let begun = Readers::wait(uses.outputs(), listener).and_then(|readers| {
        workers.iter_mut().try_for_each(Worker::open)?;
        for path in later {
            (listener.tell)(&Note::LeftAsItWas(path));
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

/// The slots as they are given: each to one of the workers.
fn given_slots(given: &[u16], count: usize) -> Result<Arc<Slots>, Failure> {
    let owner = |slot: usize| given.get(slot).copied().filter(|worker| usize::from(*worker) < count);
    if let Some(slot) = (0..SLOTS).find(|slot| owner(*slot).is_none()) {
        return Err(format!("flow slot {slot} is given to none of {count} workers").into());
    }
    Ok(Slots::given(count as u16, |slot| owner(usize::from(slot)).unwrap_or_default()))
}

struct Making<'a> {
    host: &'a Host,
    tree: Option<&'a SchedulerTree>,
    depot: DepotHandle,
    time: Time,
    seed: u64,
    /// Seed of the hash that numbers flows.
    numbering: u64,
    /// The core of each worker.
    cores: Option<&'a [usize]>,
    /// Sides whose packets come from an interface while others come from what has an end.
    follows: [bool; 2],
    /// Whether these are waited for all the same, where a chain has a way for them.
    waits: bool,
    /// Sides whose packets come from an interface. They are lost there if nobody takes them: whoever has no room for more must
    /// not hold up the others.
    live: [bool; 2],
    /// Who has which packets.
    slots: Arc<Slots>,
    /// How many came of each slot, where that is counted.
    loads: Option<Arc<Loads>>,
}

/// Workers before they start.
struct Made {
    workers: Vec<Worker>,
    /// The counters of the tasks that read the ports.
    inputs: Vec<Arc<TaskCounters>>,
    /// Of a replay by several.
    order: Option<Arc<Order>>,
    rebalance: Option<Rebalance>,
    /// What is counted on each that has the pipeline.
    watched: Vec<Watched>,
}

type Sources = [Option<Box<dyn Source>>; 2];
type Exits = [Box<dyn Module>; 2];
/// A worker's pipeline, and the queues that it ends in.
type Inner = (Built, Vec<Room>);
/// The queues to the ports, by side.
type Leaving = Vec<(Vec<QueueIn>, QueueOut)>;

impl Making<'_> {
    fn alone(&self, sources: Sources, exits: Exits) -> Result<Made, Failure> {
        let mut exits = exits.map(Some);
        let exit = |side| exits[side as usize].take().expect("a pipeline has one exit for each side");
        let built = build(self.host, Seed::from_number(self.seed), (Share::WHOLE, None), exit)?;
        let mut pipeline = Pipeline::with(built.graph, self.time);
        pipeline.graph.in_order = self.time == Time::Packets;
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
        let watched = vec![self.divide(&mut pipeline, (&ports, 1), built.queued, &[])];
        Ok(Made { workers: vec![self.worker("worker 0", pipeline, 0)], inputs, order: None, rebalance: None, watched })
    }

    /// Make workers that all read what is recorded; their packets leave as those of one would.
    fn in_order(
        &self,
        count: usize,
        (ports, files): (&Ports, &[Option<Stream>; 2]),
        first: Sources,
        exits: Exits,
    ) -> Result<Made, Failure> {
        let order = Order::new(count, exits.len());
        let through = Arc::clone(&order);
        let team = Team::in_order(count, Arc::new(move || through.through()));
        let gathering = Gathering::new(count);
        let (graphs, leaving) = self.graphs(count, Some(&team))?;
        let (mut workers, mut inputs) = (Vec::new(), Vec::new());
        let mut first = Some(first);
        for (index, (built, rooms)) in graphs.into_iter().enumerate() {
            let read = || -> Result<Sources, Failure> {
                let inside = ports::read(&ports.inside[0], 0, files[0].as_ref())?;
                Ok(turns(self.time, [inside, ports::read(&ports.outside[0], 1, files[1].as_ref())?]))
            };
            let sources = first.take().map_or_else(read, Ok)?;
            let mut roots = Roots::default();
            let rooted = (0u16..).zip(sources).filter_map(|(side, source)| Some((side, source?)));
            let read: Vec<Input> = rooted
                .map(|(side, source)| Ok::<_, Failure>(Input::new(source, roots.one_more()?, side)))
                .collect::<Result<_, _>>()?;
            if index == 0 {
                inputs.extend(read.iter().map(|input| Arc::clone(input.counters())));
            }
            let own = Own::new(read, self.spread(count, Some(&team)), &order, index);
            let mut pipeline = Pipeline::with(built.graph, self.time);
            pipeline.graph.in_order = true;
            let inlets = inlets(&mut pipeline, built.entries);
            pipeline.add_task(self.share(Box::new(own), index, inlets.into(), &rooms).patient());
            let worker = self.worker(&format!("worker {index}"), pipeline, index);
            workers.push(worker.ends_with(Arc::clone(&gathering), Vec::new()).ordered(&order, index));
        }
        let mut writing = Pipeline::new(self.time);
        for ((side, exit), (_, queue)) in exits.into_iter().enumerate().zip(leaving) {
            let node: NodeId = writing.graph.add(&format!("port {}", SIDES[side]), exit);
            let merged = Merge::new(queue, &order, side);
            writing.add_task(Task::new(&format!("leaving {}", SIDES[side]), Box::new(merged), node));
        }
        workers.push(Worker::new("writer", writing, &self.depot, self.seed).gives_way());
        Ok(Made { workers, inputs, order: Some(order), rebalance: None, watched: Vec::new() })
    }

    /// Build each worker's pipeline, which ends in queues, and return it with their rooms; and the far ends of the queues, by
    /// side.
    fn graphs(&self, count: usize, team: Option<&Arc<Team>>) -> Result<(Vec<Inner>, Leaving), Failure> {
        // One entrance for each worker, on each side.
        let mut leaving: Leaving = (0..2).map(|_| queue(QUEUE, count)).collect();
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
            let built = build(self.host, Seed::from_number(self.seed), (share, team), exit)?;
            // A side that no chain leaves by: its queue must not wait for us.
            entrances.into_iter().flatten().for_each(|unused| unused.room().close());
            graphs.push((built, rooms));
        }
        Ok((graphs, leaving))
    }

    /// Return what tells whose each packet is.
    fn spread(&self, count: usize, team: Option<&Arc<Team>>) -> Spread {
        let spread = Spread::new(&self.slots, Seed::from_number(self.numbering), owner(self.host, count as u32, team));
        match &self.loads {
            Some(loads) => spread.counting(loads),
            None => spread,
        }
    }

    /// Make the task of a worker that takes its packets from here.
    fn share(&self, source: Box<dyn Source>, worker: usize, inlets: Vec<Inlet>, rooms: &[Room]) -> Task {
        let mut task = Task::by_side(&format!("share {worker}"), source, inlets, self.time == Time::Packets);
        rooms.iter().for_each(|room| task.heed(room.clone()));
        task
    }

    /// Make the task that reads a side.
    fn reading(&self, side: usize, source: Box<dyn Source>, inlet: Inlet, has_way: bool) -> Task {
        let task = Task::new(SIDES[side], source, inlet);
        if self.follows[side] && !(self.waits && has_way) { task.follow() } else { task }
    }

    /// Add the tasks that begin inside the pipeline, and set whose turn it is, where the ports' first one reads for so many workers;
    /// returns what is counted there.
    fn divide(
        &self,
        pipeline: &mut Pipeline,
        (ports, reads_for): (&[TaskId], usize),
        queued: Vec<Queued>,
        rooms: &[Room],
    ) -> Watched {
        let mut ids: Vec<TaskId> = ports.iter().take(1).copied().collect();
        for Queued { name, queue, inlet } in queued {
            let mut task = Task::inner(&name, Box::new(queue), inlet);
            rooms.iter().for_each(|room| task.heed(room.clone()));
            ids.push(pipeline.add_task(task));
        }
        let watched = Watched::of(pipeline, ids, ports.iter().skip(1).copied().collect(), reads_for);
        if let Some(planned) = self.tree {
            pipeline.tree = Some(watched.tree(planned));
        }
        watched
    }

    fn worker(&self, name: &str, pipeline: Pipeline, index: usize) -> Worker {
        let worker = Worker::new(name, pipeline, &self.depot, self.seed.wrapping_add(index as u64));
        match self.cores.and_then(|cores| cores.get(index)) {
            Some(core) => worker.pin(*core),
            None => worker,
        }
    }
}

/// Return where each side's packets enter a pipeline.
fn inlets(pipeline: &mut Pipeline, entries: [Option<Inlet>; 2]) -> [Inlet; 2] {
    [0, 1].map(|side| entries[side].unwrap_or_else(|| no_way(&mut pipeline.graph, side)))
}

/// Where packets go that come in by a side from which no chain has a way.
fn no_way(graph: &mut Graph, side: usize) -> Inlet {
    graph.add(&format!("no way from {}", SIDES[side]), Box::new(Branch::new(Vec::new(), Seed::from_number(0)))).into()
}

/// Which worker owns a packet on the way back, as the functions that rewrite addresses say.
fn owner(host: &Host, count: u32, team: Option<&Arc<Team>>) -> Owner {
    let owners = host.owners(count, team);
    Box::new(move |packet| owners.iter().find_map(|owner| owner(packet)))
}

impl Workers {
    /// Return whether all workers have ended.
    pub fn is_ended(&self) -> bool {
        self.workers.iter().all(WorkerHandle::is_ended)
    }

    /// Ask for the end: who reads stops, and what waits is finished.
    pub fn stop(&self) {
        match (&self.order, self.workers.first()) {
            (Some(order), _) => order.stop(),
            (None, Some(first)) => first.stop(),
            (None, None) => {}
        }
    }

    /// Compare the workers' loads, where it is time to and the run does not end, and let slots go from a busy worker to an idle
    /// one. Returns whether packets wait for that.
    pub fn rebalance(&mut self, ends: bool) -> bool {
        self.rebalance.as_mut().is_some_and(|rebalance| rebalance.look(&self.workers, ends))
    }

    /// Weigh the plan's tasks by what they cost, where it is time to.
    pub fn weigh(&mut self) {
        if let Some(weights) = &mut self.weights {
            weights.look(&self.workers);
        }
    }

    /// Return how often that changed the weights.
    pub fn weighed(&self) -> u32 {
        self.weights.as_ref().map_or(0, Weights::times)
    }

    /// Return what tenants' packets cost until now; None where there are no tenants.
    pub fn tenants(&mut self) -> Option<Tenants> {
        self.weights.as_mut()?.tenants()
    }

    /// Return what came of that so far; nothing where slots stay where they are.
    pub fn rebalanced(&self) -> Option<Done> {
        self.rebalance.as_ref().map(|rebalance| rebalance.done().clone())
    }

    /// Return the counters of the tasks that read the ports.
    pub fn inputs(&self) -> &[Arc<TaskCounters>] {
        &self.inputs
    }

    /// Wait for all workers.
    ///
    /// # Errors
    /// When a worker ended by a panic.
    pub fn join(self) -> Result<Vec<Ended>, Failure> {
        let ended = self.workers.into_iter().map(|worker| {
            worker.join().map_err(|panic| Failure::new(format!("a worker ended by a defect of Catena: {panic}")))
        });
        ended.collect()
    }
}

/// Return every module of every worker.
pub fn modules(ended: &[Ended]) -> Vec<NodeInfo> {
    ended.iter().flat_map(|e| e.pipeline.graph.nodes()).map(|(_, info)| info).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_slot_has_a_worker_that_there_is() {
        let told = |given: &[u16]| given_slots(given, 2).err().map(|why| why.to_string());
        let mut given: Vec<u16> = (0..SLOTS).map(|slot| (slot % 2) as u16).collect();
        assert_eq!(told(&given), None);
        given[7] = 2;
        assert_eq!(told(&given).as_deref(), Some("flow slot 7 is given to none of 2 workers"));
        assert_eq!(told(&given[..7]).as_deref(), Some("flow slot 7 is given to none of 2 workers"));
    }
}

//! Packets from another core: one thread makes them and puts them into a queue, another measures what takes them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use catena_dataplane::graph::NodeCounters;
use catena_dataplane::pipeline::Time;
use catena_dataplane::port::Sink;
use catena_dataplane::queue::{QueueIn, queue};
use catena_dataplane::slots::Slots;
use catena_dataplane::steer::{Spread, Steer};
use catena_dataplane::task::{Task, TaskCounters};
use catena_dataplane::worker::pin_this_thread;
use catena_dataplane::{Context, Graph, Module, Pipeline};
use catena_packet::clock::Root;
use catena_packet::wire::Seed;
use catena_packet::{Batch, Depot, DepotHandle};

use super::bed::Traffic;
use super::chain::{Headers, Line};

/// Packets that the queue holds, as between the workers of a run.
const QUEUE: usize = 4096;
const BUFFERS: usize = 16 * 1024;
/// How long both sides run before they are measured.
const WARM_UP: Duration = Duration::from_millis(200);
/// Steps between two looks at the clock.
const STEPS: usize = 100;
/// A stretch lasts until so many packets have come, as the other core may be busy with something else.
const PACKETS: u64 = 3_200;
/// Fewer will do after this long: some time slices of the system's.
const LONG: Duration = Duration::from_millis(20);
/// How long the first packet is waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// What the far side does with the packets.
pub enum Far {
    /// A chain's functions.
    Chain(Line),
    /// Only looks at them, as any function does.
    Looks,
}

/// A thread that makes packets on a core, and a pipeline for the calling thread that takes them.
pub struct Across {
    feeder: Option<JoinHandle<Result<(), String>>>,
    stop: Arc<AtomicBool>,
    pipeline: Pipeline,
    context: Context,
    far: Arc<TaskCounters>,
    functions: Vec<Arc<NodeCounters>>,
    /// What spreading costs the near side: the module that decides, and the queue's entrance.
    steer: Arc<NodeCounters>,
    entrance: Arc<NodeCounters>,
    packets: u64,
    _depot: DepotHandle,
}

/// What a stretch cost, in cycles per packet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Handed {
    /// Each function on the far side.
    pub functions: Vec<f64>,
    /// Deciding where a packet goes.
    pub steer: f64,
    /// Putting it into the queue, and on the far side taking it out and looking at it.
    pub handover: f64,
}

impl Across {
    /// Start the thread that makes packets, pinned to `core`. All of them go to the far side.
    ///
    /// # Errors
    /// What is wrong with the traffic; what the system refuses.
    pub fn new(far: Far, traffic: Traffic, core: usize, seed: u64) -> Result<Across, String> {
        let depot = Depot::map(BUFFERS, 16).map_err(|error| error.to_string())?;
        let (mut entrances, exit) = queue(QUEUE, 1);
        let entrance = entrances.pop().ok_or("a queue has an entrance")?;
        let stop = Arc::new(AtomicBool::new(false));
        let near = Near::new(traffic, entrance, seed)?;
        let (steer, into) = (near.steer.clone(), near.entrance.clone());
        let (theirs, stopped) = (depot.clone(), stop.clone());
        let feeder = std::thread::Builder::new()
            .name("feeder".to_owned())
            .spawn(move || near.work(&theirs, core, &stopped))
            .map_err(|error| error.to_string())?;
        let (graph, inlet, functions) = match far {
            Far::Chain(line) => (line.graph, line.inlet, line.functions),
            Far::Looks => {
                let mut graph = Graph::new();
                let (looks, sink) = (graph.add("look", Box::new(Look(0))), graph.add("sink", Box::new(Sink)));
                graph.connect(looks, 0, sink);
                (graph, looks.into(), Vec::new())
            }
        };
        let mut pipeline = Pipeline::with(graph, Time::Packets);
        let task = Task::new("far", Box::new(exit), inlet);
        let far = task.counters().clone();
        pipeline.add_task(task);
        let context = Context::new(&depot, seed);
        let mut across = Across {
            feeder: Some(feeder),
            stop,
            pipeline,
            context,
            far,
            functions,
            steer,
            entrance: into,
            packets: 3 * traffic.flows,
            _depot: depot,
        };
        across.warm_up()?;
        Ok(across)
    }

    fn warm_up(&mut self) -> Result<(), String> {
        let start = Instant::now();
        while start.elapsed() < WARM_UP || self.far.input.packets.get() < self.packets {
            self.steps();
            if self.feeder.as_ref().is_some_and(JoinHandle::is_finished) {
                return self.end();
            }
        }
        Line::nothing_lost(&self.pipeline.graph)
    }

    fn steps(&mut self) {
        for _ in 0..STEPS {
            self.pipeline.step(&mut self.context);
        }
        self.pipeline.graph.tick(&mut self.context);
    }

    /// Run for a while and tell what it cost.
    ///
    /// # Errors
    /// When no packet comes.
    pub fn stretch(&mut self, time: Duration) -> Result<Handed, String> {
        let per = |counters: &NodeCounters| (counters.cycles.get(), counters.input.packets.get());
        let watched: Vec<Arc<NodeCounters>> =
            self.functions.iter().chain([&self.steer, &self.entrance]).cloned().collect();
        let before: Vec<(u64, u64)> = watched.iter().map(|c| per(c)).collect();
        let far = (self.far.cycles.get(), self.far.input.packets.get());
        let start = Instant::now();
        let come = |across: &Self| across.far.input.packets.get() - far.1;
        loop {
            self.steps();
            let (elapsed, come) = (start.elapsed(), come(self));
            let patience = match come {
                0 => PATIENCE,
                1..PACKETS => LONG,
                _ => time,
            };
            if elapsed >= patience {
                break;
            }
        }
        if come(self) == 0 {
            return Err("no packet has come from the other core for two seconds".to_owned());
        }
        let share = |(cycles, packets): (u64, u64), (c, p): (u64, u64)| {
            cycles.saturating_sub(c) as f64 / packets.saturating_sub(p).max(1) as f64
        };
        let mut figures: Vec<f64> = watched.iter().zip(before).map(|(c, before)| share(per(c), before)).collect();
        let (entrance, steer) = (figures.pop().unwrap_or(0.0), figures.pop().unwrap_or(0.0));
        let taken = share((self.far.cycles.get(), self.far.input.packets.get()), far);
        Ok(Handed { functions: figures, steer, handover: entrance + taken })
    }

    /// Stop the thread, and check that all packets went through.
    ///
    /// # Errors
    /// Who dropped how many, and why; that the thread could not run where it should.
    pub fn end(&mut self) -> Result<(), String> {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.feeder.take().map_or(Ok(Ok(())), JoinHandle::join);
        ended.map_err(|_| "the thread that makes packets ended by a panic".to_owned())??;
        Line::nothing_lost(&self.pipeline.graph)
    }
}

impl Drop for Across {
    fn drop(&mut self) {
        // Nothing to tell any more.
        _ = self.end();
    }
}

/// The side that makes the packets.
struct Near {
    pipeline: Pipeline,
    steer: Arc<NodeCounters>,
    entrance: Arc<NodeCounters>,
    seed: u64,
}

impl Near {
    fn new(traffic: Traffic, entrance: QueueIn, seed: u64) -> Result<Near, String> {
        let mut graph = Graph::new();
        let room = entrance.room();
        let headers = graph.add("headers", Box::new(Headers));
        let steer = graph.add(
            "spread",
            Box::new(Steer::new(Spread::new(&Slots::even(1), Seed::from_number(seed), Box::new(|_| None)))),
        );
        let queue = graph.add("to the other core", Box::new(entrance));
        graph.connect(headers, 0, steer);
        graph.connect(steer, 0, queue);
        let nodes = graph.nodes();
        let counters = |id| nodes.iter().find(|(node, _)| *node == id).map(|(_, n)| n.counters.clone());
        let (Some(steer), Some(entrance)) = (counters(steer), counters(queue)) else {
            return Err("a module that was added is not there".to_owned());
        };
        let mut pipeline = Pipeline::with(graph, Time::Packets);
        let mut task = Task::new("near", traffic.source(seed)?, headers).rooted(Root::first());
        task.heed(room);
        pipeline.add_task(task);
        Ok(Near { pipeline, steer, entrance, seed })
    }

    fn work(mut self, depot: &DepotHandle, core: usize, stop: &AtomicBool) -> Result<(), String> {
        if !pin_this_thread(core) {
            return Err(format!("cannot pin to core {core}"));
        }
        let mut context = Context::new(depot, self.seed);
        while !stop.load(Ordering::Relaxed) {
            self.pipeline.step(&mut context);
        }
        Line::nothing_lost(&self.pipeline.graph)
    }
}

/// Reads a word of every packet and of what is known of it.
struct Look(u64);

impl Module for Look {
    fn process(&mut self, _cx: &mut Context, batch: &mut Batch) {
        for packet in batch.iter() {
            let at = usize::from(packet.layers().l3);
            self.0 = self.0.wrapping_add(packet.data().get(at).copied().map_or(0, u64::from));
        }
        std::hint::black_box(self.0);
    }
}

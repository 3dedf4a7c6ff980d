//! A plan as a running worker: modules, queues in front of tasks, the classifier if there is one, and the tree.

use std::sync::Arc;

use catena_compile::tasks::tree;
use catena_dataplane::counter::Counter;
use catena_dataplane::graph::NodeCounters;
use catena_dataplane::pipeline::{TaskId, Time};
use catena_dataplane::queue::{QueueOut, queue};
use catena_dataplane::task::{Task, TaskCounters};
use catena_dataplane::worker::thread_cpu_ns;
use catena_dataplane::{NodeId, Pipeline, Source, Worker, WorkerHandle};
use catena_packet::{Depot, DepotHandle};
use catena_plan::alpine::{Alpine, Graph, Kind, SchedulerTree};

use crate::pipelines::Shape;
use crate::seen::{Seen, Work};
use crate::traffic::{Port, Tally};
use crate::works;

/// Packets that a queue holds: few enough for those of all queues to stay in the second-level cache.
const QUEUE: usize = 256;
/// Buffers beside those that wait in queues.
const SPARE: usize = 8192;

/// A worker that runs a plan.
pub struct Running {
    handle: WorkerHandle,
    ids: Vec<TaskId>,
    watched: Arc<Watched>,
    _depot: DepotHandle,
}

/// The counters of everything.
struct Watched {
    /// For each module of the graph, its dataplane modules', where its packets leave included; none for the port.
    modules: Vec<Vec<Arc<NodeCounters>>>,
    /// For each module, the entrance of the queue in front of it.
    queues: Vec<Option<Arc<NodeCounters>>>,
    /// For each module, packets that left behind it, by class.
    exits: Vec<Option<Arc<[Counter]>>>,
    /// For each task of the plan.
    tasks: Vec<Arc<TaskCounters>>,
}

impl Running {
    /// Build what `plan` says and start it on `core`, with traffic of its own.
    ///
    /// # Errors
    /// What a function or the system refuses.
    pub fn start(shape: &Shape, plan: &Alpine, schedule: &SchedulerTree, core: usize) -> Result<Self, String> {
        let graph = &plan.graph;
        let count = graph.modules.len();
        let downstream = graph.downstream();
        let rows = works::rows(shape)?;
        let mut pipeline = Pipeline::new(Time::Wall);
        let mut nodes: Vec<Vec<NodeId>> = Vec::with_capacity(count);
        let mut ends: Vec<Option<NodeId>> = vec![None; count];
        let mut exits: Vec<Option<Arc<[Counter]>>> = vec![None; count];
        for (i, module) in graph.modules.iter().enumerate() {
            let row = match shape_module(graph, i) {
                Some(m) => rows[m].clone(),
                None if module.upstream.is_some() => {
                    vec![works::classifier(shape, &front_gates(graph, i), &plan.apart)?]
                }
                None => Vec::new(),
            };
            let add = |module| pipeline.graph.add(&format!("module {i}"), Box::new(module));
            nodes.push(row.into_iter().map(add).collect());
            if downstream[i].is_empty() {
                let (tally, counters) = Tally::new(graph.classes.len());
                ends[i] = Some(pipeline.graph.add("exit", Box::new(tally)));
                exits[i] = Some(counters);
            }
        }
        let mut entrances: Vec<Option<NodeId>> = vec![None; count];
        let mut waiting: Vec<Option<QueueOut>> = (0..count).map(|_| None).collect();
        for task in plan.tasks.tasks.iter().filter(|task| task.queue) {
            let (mut ways_in, way_out) = queue(QUEUE, 1);
            entrances[task.start] = ways_in.pop().map(|way_in| pipeline.graph.add("queue", Box::new(way_in)));
            waiting[task.start] = Some(way_out);
        }
        let first = |i: usize| entrances[i].or(nodes[i].first().copied());
        for i in 0..count {
            nodes[i].windows(2).for_each(|pair| pipeline.graph.connect(pair[0], 0, pair[1]));
            let Some(last) = nodes[i].last().copied() else { continue };
            if let Some(end) = ends[i] {
                pipeline.graph.connect(last, 0, end);
            }
            for (n, next) in downstream[i].iter().enumerate() {
                let Some(to) = first(*next) else { continue };
                pipeline.graph.connect(last, gate(shape, graph, i, n, *next), to);
            }
        }
        let mut ids = Vec::new();
        let mut tasks = Vec::new();
        for planned in &plan.tasks.tasks {
            let start = planned.start;
            let task = match waiting[start].take() {
                Some(way_out) => {
                    let inlet = nodes[start].first().ok_or("a queue in front of a port")?;
                    Task::inner("queue", Box::new(way_out) as Box<dyn Source>, *inlet)
                }
                None => {
                    let inlet = downstream[start].first().and_then(|next| first(*next));
                    let port = Port::new(graph.classes.len(), 7 + core as u64);
                    Task::new("port", Box::new(port), inlet.ok_or("a port that leads nowhere")?)
                }
            };
            tasks.push(task.counters().clone());
            ids.push(pipeline.add_task(task));
        }
        pipeline.tree = Some(tree(schedule, &ids));
        let infos = pipeline.graph.nodes();
        let counters = |node: &NodeId| infos.iter().find(|(id, _)| id == node).map(|(_, info)| info.counters.clone());
        let watched = Watched {
            modules: (0..count).map(|i| nodes[i].iter().chain(&ends[i]).filter_map(counters).collect()).collect(),
            queues: entrances.iter().map(|node| node.as_ref().and_then(counters)).collect(),
            exits,
            tasks,
        };
        let depot = Depot::map(QUEUE * ids.len() + SPARE, 16).map_err(|error| error.to_string())?;
        let handle = Worker::new("alpine", pipeline, &depot, 1).pin(core).start().map_err(|error| error.to_string())?;
        Ok(Running { handle, ids, watched: Arc::new(watched), _depot: depot })
    }

    /// Schedule by another tree from the next batch on.
    ///
    /// # Errors
    /// When the worker has ended.
    pub fn schedule(&self, schedule: &SchedulerTree) -> Result<(), String> {
        let tree = tree(schedule, &self.ids);
        self.handle.edit(move |pipeline, _| pipeline.tree = Some(tree)).map_err(|error| error.to_string())
    }

    /// Return all counters as they stand between two batches.
    ///
    /// # Errors
    /// When the worker has ended.
    pub fn seen(&self) -> Result<Seen, String> {
        let watched = self.watched.clone();
        self.handle.edit(move |_, _| watched.read()).map_err(|error| error.to_string())
    }

    /// End the worker.
    ///
    /// # Errors
    /// When it could not be pinned, or lost packets anywhere but in queues.
    pub fn end(self) -> Result<(), String> {
        self.handle.stop();
        let ended = self.handle.join()?;
        if !ended.pinned {
            return Err("the worker could not be pinned to its core".to_owned());
        }
        for (_, node) in ended.pipeline.graph.nodes().iter().filter(|(_, node)| &*node.name != "queue") {
            if let Some((reason, count)) = node.counters.drops.iter().next() {
                return Err(format!("{} dropped {count} packets: {}", node.name, reason.text(node.reasons)));
            }
        }
        Ok(())
    }
}

impl Watched {
    fn read(&self) -> Seen {
        let sum = |nodes: &Vec<Arc<NodeCounters>>| Work {
            batches: nodes.first().map_or(0.0, |node| node.batches.get() as f64),
            packets: nodes.first().map_or(0.0, |node| node.input.packets.get() as f64),
            cycles: nodes.iter().map(|node| node.cycles.get() as f64).sum(),
        };
        let one = |node: &Option<Arc<NodeCounters>>| node.iter().cloned().collect();
        Seen {
            cpu_ns: thread_cpu_ns() as f64,
            modules: self.modules.iter().map(sum).collect(),
            queues: self.queues.iter().map(|queue| sum(&one(queue))).collect(),
            exits: self
                .exits
                .iter()
                .map(|exit| exit.iter().flat_map(|e| e.iter()).map(|c| c.get() as f64).collect())
                .collect(),
            tasks: self
                .tasks
                .iter()
                .map(|task| Work {
                    batches: task.runs.get() as f64,
                    packets: task.input.packets.get() as f64,
                    cycles: task.cycles.get() as f64,
                })
                .collect(),
        }
    }
}

/// The module of the shape that a module of the graph is, unless it is the port or the classifier.
fn shape_module(graph: &Graph, i: usize) -> Option<usize> {
    let module = &graph.modules[i];
    (module.kind != Kind::Port).then(|| module.origin.saturating_sub(1))
}

/// For each class, the gate of the classifier that leads to its way.
fn front_gates(graph: &Graph, classifier: usize) -> Vec<u16> {
    let ways: Vec<usize> =
        (0..graph.modules.len()).filter(|i| graph.modules[*i].upstream == Some(classifier)).collect();
    let way = |j: usize| graph.path(j).find_map(|m| ways.iter().position(|way| *way == m));
    (0..graph.classes.len()).map(|j| way(j).unwrap_or(0) as u16).collect()
}

/// The gate by which packets go from `i` to `next`, its `n`th downstream module.
fn gate(shape: &Shape, graph: &Graph, i: usize, n: usize, next: usize) -> u16 {
    let (Some(from), Some(to)) = (shape_module(graph, i), shape_module(graph, next)) else { return n as u16 };
    let mut downstream = (0..shape.upstream.len()).filter(|m| shape.upstream[*m] == Some(from));
    works::gate(shape, from, downstream.position(|m| m == to).unwrap_or(0) as u16)
}

//! Several workers, of which the first reads what comes live and spreads it over all.

use std::sync::Arc;

use catena_compile::Host;
use catena_compile::host::{Lowered, ModuleId};
use catena_dataplane::pipeline::Time;
use catena_dataplane::queue::{QueueIn, QueueOut, Room, queue};
use catena_dataplane::rebalance::{Member, Rebalance};
use catena_dataplane::steer::Steer;
use catena_dataplane::task::Task;
use catena_dataplane::worker::Gathering;
use catena_dataplane::{Inlet, NodeId, Pipeline, Worker};
use catena_packet::Way;
use catena_packet::clock::Roots;
use catena_state::Team;

use super::{Exits, Made, Making, QUEUE, SIDES, Sources, inlets};
use crate::Failure;

impl Making<'_> {
    /// Make workers of which the first reads what comes live, and spreads it.
    pub(super) fn together(&self, count: usize, sources: Sources, exits: Exits) -> Result<Made, Failure> {
        // Who of several workers asks first is a matter of chance: a replay has to repeat.
        let new = if self.loads.is_some() { Team::moving } else { Team::new };
        let team = (self.time == Time::Wall).then(|| new(count));
        let whole = sources.iter().flatten().all(|source| source.is_recorded());
        let gathering = Gathering::new(count);
        let (graphs, leaving) = self.graphs(count, team.as_ref())?;
        let (mut workers, mut members, mut watched) = (Vec::new(), Vec::new(), Vec::new());
        let mut entering: Vec<QueueIn> = Vec::new();
        let mut graphs = graphs.into_iter().enumerate();
        let Some((_, (first, first_rooms))) = graphs.next() else { return Err("there is no worker".into()) };
        // Nothing comes back in where nobody claims what it is for.
        let mut turns = if team.is_some() { Turns::of(self.host, count) } else { Turns::default() };
        for (index, (built, rooms)) in graphs {
            let mut pipeline = Pipeline::with(built.graph, self.time);
            let mut inlets = inlets(&mut pipeline, built.entries).to_vec();
            let mut leaves = rooms.clone();
            inlets.extend(turns.join(&mut pipeline, &built.nodes, &mut leaves));
            let (entrance, exit) = queue(QUEUE, 1);
            let task = self.share(Box::new(exit), index, inlets, &rooms);
            let port = pipeline.add_task(task);
            watched.push(self.divide(&mut pipeline, (&[port], 1), built.queued, &rooms));
            members.push(member(&pipeline, entrance.first(), leaves));
            entering.extend(entrance);
            let worker = self.worker(&format!("worker {index}"), pipeline, index);
            workers.push(worker.ends_with(Arc::clone(&gathering), Vec::new()));
        }
        let mut pipeline = Pipeline::with(first.graph, self.time);
        let (mut inputs, mut ports, mut roots) = (Vec::new(), Vec::new(), Roots::default());
        let to_others: Vec<_> = entering.iter().map(QueueIn::room).collect();
        let to_workers: Vec<(u16, NodeId)> = (1u16..)
            .zip(entering)
            .map(|(gate, entrance)| (gate, pipeline.graph.add(&format!("to worker {gate}"), Box::new(entrance))))
            .collect();
        let inlets = inlets(&mut pipeline, first.entries);
        let spread = |pipeline: &mut Pipeline, name: &str, own: Inlet| {
            let steer = Steer::new(self.spread(count, team.as_ref()));
            let held = steer.room();
            let steer = pipeline.graph.add(&format!("spread {name}"), Box::new(steer));
            pipeline.graph.connect(steer, 0, own);
            for (gate, node) in &to_workers {
                pipeline.graph.connect(steer, *gate, *node);
            }
            (steer, held)
        };
        let mut leaves = first_rooms.clone();
        let own = turns.join(&mut pipeline, &first.nodes, &mut leaves);
        let mut waiting: Vec<Room> = Vec::new();
        for (side, source) in sources.into_iter().enumerate() {
            let (steer, held) = spread(&mut pipeline, SIDES[side], inlets[side]);
            waiting.extend(held.clone());
            let Some(source) = source else { continue };
            let inlet = Inlet { node: steer, gate: side as u16 };
            let has_way = first.entries[side].is_some();
            let mut task = self.reading(side, source, inlet, has_way).rooted(roots.one_more()?);
            let others = to_others.iter().chain(&held).filter(|_| !self.live[side]);
            first_rooms.iter().chain(others).for_each(|room| task.heed(room.clone()));
            inputs.push(task.counters().clone());
            ports.push(pipeline.add_task(task));
        }
        for ((side, (name, exit)), inlet) in (2u16..).zip(turns.exits()).zip(own) {
            let (steer, held) = spread(&mut pipeline, &name, inlet);
            waiting.extend(held);
            let task = Task::inner(&name, Box::new(exit), Inlet { node: steer, gate: side });
            ports.push(pipeline.add_task(task));
        }
        watched.insert(0, self.divide(&mut pipeline, (&ports, count), first.queued, &first_rooms));
        members.insert(0, member(&pipeline, None, leaves));
        workers.insert(0, self.worker("worker 0", pipeline, 0).ends_with(gathering, to_others));
        // Who reads along from a live stream gets packets in time even when no further one comes.
        let mut writing = Pipeline::new(if whole { self.time } else { Time::Wall });
        for ((side, exit), (_, queue)) in exits.into_iter().enumerate().zip(leaving) {
            let node: NodeId = writing.graph.add(&format!("port {}", SIDES[side]), exit);
            writing.add_task(Task::new(&format!("leaving {}", SIDES[side]), Box::new(queue), node));
        }
        workers.push(Worker::new("writer", writing, &self.depot, self.seed));
        let rebalance = self.loads.as_ref().map(|loads| Rebalance::new(&self.slots, loads, members, waiting));
        Ok(Made { workers, inputs, order: None, rebalance, watched })
    }
}

/// Packets that a function sends back in, to the instance of another worker: a NAT's hairpins. The first worker spreads them as those
/// that come in by its sides; they are sides of their own, from the third on.
#[derive(Default)]
struct Turns(Vec<Turn>);

struct Turn {
    name: String,
    module: ModuleId,
    entrances: Vec<QueueIn>,
    exit: QueueOut,
}

/// Packets that a queue of these holds, for each worker.
const TURNED: usize = 1024;
/// The gate by which a function sends them, and the one by which they come in.
const FROM: u16 = 2;
const TO: u16 = 1;

impl Turns {
    fn of(host: &Host, workers: usize) -> Turns {
        let turns = host.modules.iter().enumerate().filter_map(|(module, of)| match &of.kind {
            Lowered::Function { descriptor, .. } if descriptor.owner.is_some() => {
                let (entrances, exit) = queue(TURNED, workers);
                Some(Turn { name: format!("turned {}", of.name), module, entrances, exit })
            }
            _ => None,
        });
        // As many as ports can be told apart beside the two sides.
        Turns(turns.take(usize::from(Way::PORTS) - SIDES.len()).collect())
    }

    /// Let the functions of one worker's pipeline send packets back in; returns where they come in there, and adds the queues by which
    /// they leave.
    fn join(&mut self, pipeline: &mut Pipeline, nodes: &[NodeId], exits: &mut Vec<Room>) -> Vec<Inlet> {
        let join = |turn: &mut Turn| {
            let node = nodes[turn.module];
            if let Some(entrance) = turn.entrances.pop() {
                exits.push(entrance.room());
                let queue = pipeline.graph.add(&turn.name, Box::new(entrance));
                pipeline.graph.connect(node, FROM, queue);
            }
            Inlet { node, gate: TO }
        };
        self.0.iter_mut().map(join).collect()
    }

    fn exits(self) -> impl Iterator<Item = (String, QueueOut)> {
        self.0.into_iter().map(|turn| (turn.name, turn.exit))
    }
}

/// Return what must be known of a worker whose slots may go to another.
fn member(pipeline: &Pipeline, entrance: Option<&QueueIn>, exits: Vec<Room>) -> Member {
    let tasks = pipeline.tasks().map(|(_, task)| Arc::clone(task.counters())).collect();
    Member { entrance: entrance.map(QueueIn::room), exits, tasks }
}

//! What a queue between tasks of one core costs: packets of several chains, each with a task of its own behind a queue, against the
//! same packets without.
//!
//! What a queue costs is more than its two ends: a task more has turns, and each takes what has come since the last.

use catena_dataplane::pipeline::Time;
use catena_dataplane::port::Sink;
use catena_dataplane::queue::queue;
use catena_dataplane::schedule::Tree;
use catena_dataplane::task::Task;
use catena_dataplane::{Context, Module, Pipeline};
use catena_packet::Batch;
use catena_packet::clock::Root;
use catena_plan_model::profile::QUEUE_PACKETS;

use super::bed::Traffic;
use super::chain::PARTS;

/// Packets that a queue holds, as in a run.
const QUEUE: usize = QUEUE_PACKETS;

/// Sends packets on by the network that they go to: one of [`PARTS`].
struct Divide;

impl Module for Divide {
    fn process(&mut self, cx: &mut Context, batch: &mut Batch) {
        cx.parse(batch);
        batch.filter(|_, packet| {
            let layers = packet.layers();
            // The third byte of the destination, as the classes that functions are measured behind.
            let at = usize::from(layers.l3) + 18;
            let gate = packet.data().get(at).map_or(0, |byte| (u32::from(*byte) * PARTS) >> 8);
            cx.emit(gate as u16, packet);
            None
        });
    }
}

/// Packets of some chains: each leaves at once, or by a queue and a task of its own.
///
/// # Errors
/// What the traffic's generator refuses.
pub fn divided(traffic: Traffic, by_queues: bool, seed: u64) -> Result<Pipeline, String> {
    let mut pipeline = Pipeline::new(Time::Packets);
    let divide = pipeline.graph.add("divide", Box::new(Divide));
    let (mut behind, mut rooms) = (Vec::new(), Vec::new());
    for gate in 0..PARTS as u16 {
        let sink = pipeline.graph.add(&format!("sink {gate}"), Box::new(Sink));
        if !by_queues {
            pipeline.graph.connect(divide, gate, sink);
            continue;
        }
        let (mut entrances, exit) = queue(QUEUE, 1);
        let entrance = entrances.pop().ok_or("a queue has an entrance")?;
        rooms.push(entrance.room());
        let into = pipeline.graph.add(&format!("queue {gate}"), Box::new(entrance));
        pipeline.graph.connect(divide, gate, into);
        behind.push(Task::new(&format!("behind {gate}"), Box::new(exit), sink));
    }
    let mut source = Task::new("source", traffic.source(seed)?, divide).rooted(Root::first());
    rooms.into_iter().for_each(|room| source.heed(room));
    let source = pipeline.add_task(source);
    if by_queues {
        let tasks: Vec<_> = behind.into_iter().map(|task| pipeline.add_task(task)).collect();
        // The source costs most, as in a run. What the others need less than their part of the cycles falls to it.
        let parts = tasks.into_iter().map(|task| (1, Tree::Task(task)));
        pipeline.tree = Some(Tree::fair(std::iter::once((PARTS, Tree::Task(source))).chain(parts)));
    }
    Ok(pipeline)
}

//! Functions in turn: several chains on one core, each behind a queue, so that other chains' code runs between two batches of one.
//!
//! Behind a queue batches are full again, and yet a function costs more than alone on its core: of its code, of its table's lines and of
//! what the processor foresees of its branches less is in the nearest caches when its next batch comes.

use catena_dataplane::pipeline::Time;
use catena_dataplane::queue::queue;
use catena_dataplane::schedule::Tree;
use catena_dataplane::task::Task;
use catena_dataplane::{Graph, Inlet, Pipeline};
use catena_functions::registry;
use catena_functions::workload::Setup;
use catena_packet::clock::Root;
use catena_plan_model::profile::QUEUE_PACKETS;

use super::bed::{Bed, Traffic};
use super::chain::{Chain, Line, PARTS, Parsed};
use super::companion::Companion;

/// Functions of the other chains; the one that is measured is left out. They differ in what they do and look up.
const OTHERS: [&str; 4] = ["NAT", "LB", "ACL", "Monitor"];

/// Make a bed where a function has a chain of its own, which takes turns with chains of others. What is measured comes first.
///
/// # Errors
/// What is wrong with the chains or their traffic.
pub fn bed(setup: &Setup, name: &str, traffic: Traffic, beside: bool, seed: u64) -> Result<Bed, String> {
    let mut setups = vec![setup.clone()];
    for other in OTHERS.into_iter().filter(|other| *other != name).take(PARTS as usize - 1) {
        let workload = registry::find(other).and_then(|function| function.workload).ok_or("a function is not there")?;
        setups.push((workload.setup)(workload.size.map_or(1, |size| size.usual)));
    }
    let chain = Chain { parsed: Parsed::ByFunction, ..Chain::beside(&setups) };
    let companion = beside.then(|| Companion::of(traffic.flows));
    let line = Line::new(&chain, seed, companion)?;
    let functions = line.functions;
    Bed::of(with_queues(line.graph, line.inlet, traffic, seed)?, functions, traffic, seed)
}

/// Put a queue and a task behind each gate of a branch.
fn with_queues(mut graph: Graph, branch: Inlet, traffic: Traffic, seed: u64) -> Result<Pipeline, String> {
    let (mut behind, mut rooms) = (Vec::new(), Vec::new());
    for gate in 0..PARTS as u16 {
        let inlet = graph.next(branch.node, gate).ok_or("a chain has no way in")?;
        let (mut entrances, exit) = queue(QUEUE_PACKETS, 1);
        let entrance = entrances.pop().ok_or("a queue has an entrance")?;
        rooms.push(entrance.room());
        let into = graph.add(&format!("queue {gate}"), Box::new(entrance));
        graph.connect(branch.node, gate, into);
        behind.push(Task::new(&format!("behind {gate}"), Box::new(exit), inlet));
    }
    let mut pipeline = Pipeline::with(graph, Time::Packets);
    let mut source = Task::new("source", traffic.source(seed)?, branch).rooted(Root::first());
    rooms.into_iter().for_each(|room| source.heed(room));
    let source = pipeline.add_task(source);
    let tasks: Vec<_> = behind.into_iter().map(|task| pipeline.add_task(task)).collect();
    // A batch for each queue comes, and then each chain has its turn: on average it finds a full one.
    let reads = std::iter::repeat_n(source, PARTS as usize);
    pipeline.tree = Some(Tree::round_robin(reads.chain(tasks).map(Tree::Task)));
    Ok(pipeline)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_full_and_all_chains_have_their_turns() {
        let limiter = registry::find("Limiter").and_then(|function| function.workload).unwrap();
        let traffic = Traffic { flows: 10_000, new: Some(10_000), parts: 1 };
        let mut bed = bed(&(limiter.setup)(10_000), "Limiter", traffic, true, 1).unwrap();
        bed.steps(5_000);
        bed.nothing_lost().unwrap();
        let batches = bed.batches();
        assert!(batches.len() == PARTS as usize && batches.iter().all(|packets| *packets > 28.0), "{batches:?}");
    }
}

//! What the framework itself costs a packet, beside the functions.

use std::sync::Arc;

use catena_compile::names::CLASSIFY;
use catena_dataplane::graph::{Graph, NodeCounters};
use catena_functions::registry;
use catena_functions::workload::{LONG_LIVED, SHORT_LIVED};
use catena_plan_model::profile::{FULL_BATCH, NETWORK_STEPS, Overheads};

use super::Options;
use super::across::{Across, Far};
use super::bed::{Bed, Traffic};
use super::calm::{Calm, STRETCH};
use super::chain::{Chain, Line, PARTS, Parsed};
use super::figures::median;
use super::queues::divided;

/// Classes of the two chain files that are compared, powers of two.
const CLASSES: [u32; 2] = [2, 16];
/// A function without state of its packets, whose cost hardly varies: to see in it what parsing headers costs.
const STEADY: &str = "IPv4Fwd";
const TRAFFIC: Traffic = Traffic { flows: LONG_LIVED, new: None, parts: 1 };

/// Measure the overheads, in cycles per packet, each as the median of so many runs.
///
/// # Errors
/// What the system refuses.
pub fn measure(calm: &mut Calm, runs: u32, options: &Options) -> Result<Overheads, String> {
    let visit = whole(calm, runs, || Bed::new(&Chain::of(&[]), TRAFFIC, false, 1))?;
    let from_port = options.port.as_ref().map(|port| {
        let bed = || Bed::of_source(Line::new(&Chain::of(&[]), 1, None)?, port.source()?, TRAFFIC, 1);
        // What is wrong with a file is said with its name already.
        let named =
            |error: String| if error.starts_with(&port.name) { error } else { format!("{}: {error}", port.name) };
        whole(calm, runs, bed).map_err(named)
    });
    let [together, by_queues] = [false, true]
        .map(|by_queues| whole(calm, runs, || Bed::of(divided(TRAFFIC, by_queues, 1)?, Vec::new(), TRAFFIC, 1)));
    let few = classified(calm, runs, &Chain::of_classes(CLASSES[0]))?;
    let many = classified(calm, runs, &Chain::of_classes(CLASSES[1]))?;
    let [few_ports, many_ports] = CLASSES.map(Chain::of_port_classes);
    let longer = f64::from(few_ports.steps()?) - f64::from(NETWORK_STEPS);
    let ports = (classified(calm, runs, &few_ports)?, classified(calm, runs, &many_ports)?);
    // Filters are tried in order, and the traffic is spread evenly: half of them are tried for a packet, and half of
    // one more.
    let tried = f64::from(CLASSES[1] - CLASSES[0]) / 2.0;
    let spread = options.other.map_or(Ok(0.0), |core| spread(calm, runs, core))?;
    let steady = registry::find(STEADY).and_then(|f| f.workload).ok_or("the function to parse for is not there")?;
    let setup = (steady.setup)(steady.size.map_or(1, |size| size.usual));
    let parse = parsed(calm, runs, options.beside, &Chain::of(std::slice::from_ref(&setup)))?;
    let small = parsed(calm, runs, options.beside, &Chain::of_a_part(&setup))?;
    let parse_batch = (small - parse).max(0.0) / (f64::from(PARTS - 1) / FULL_BATCH);
    let classify = ((many - few) / tried).max(0.0);
    let step = ((ports.1 - ports.0) / tried - classify).max(0.0) / longer.max(1.0);
    let branch = (few - classify * (1.0 + f64::from(CLASSES[0])) / 2.0).max(0.0);
    let from_port = from_port.transpose()?.unwrap_or(visit);
    Ok(Overheads {
        visit: from_port,
        spread,
        queue: (by_queues? - together?).max(0.0),
        classify,
        step,
        branch,
        parse,
        parse_batch,
    })
}

fn whole(calm: &mut Calm, runs: u32, bed: impl Fn() -> Result<Bed, String>) -> Result<f64, String> {
    let mut bed = bed()?;
    bed.warm_up()?;
    let whole = medians(calm, runs, || Ok(bed.stretch(STRETCH).whole))?;
    bed.nothing_lost()?;
    Ok(whole)
}

/// What finding the class costs.
fn classified(calm: &mut Calm, runs: u32, classes: &Chain) -> Result<f64, String> {
    let mut line = Line::new(classes, 1, None)?;
    line.functions = named(&line.graph, CLASSIFY);
    // Of so many flows that the processor cannot learn by heart whose class comes next.
    let mut bed = Bed::of_line(line, Traffic { flows: SHORT_LIVED, new: None, parts: 1 }, 1)?;
    bed.warm_up()?;
    let found = medians(calm, runs, || Ok(bed.stretch(STRETCH).functions.iter().sum()))?;
    bed.nothing_lost()?;
    Ok(found)
}

/// What parsing headers costs: what a chain's first function costs more if it does that itself. Behind a branch other
/// functions run between two batches, and leave less of headers, and of the code that reads them, in the nearest caches:
/// the companion does.
fn parsed(calm: &mut Calm, runs: u32, beside: bool, chain: &Chain) -> Result<f64, String> {
    let mut function = |chain: &Chain| -> Result<f64, String> {
        let traffic = Traffic { flows: SHORT_LIVED, new: None, parts: 1 };
        let mut bed = Bed::new(chain, traffic, beside, 1)?;
        bed.warm_up()?;
        let cost = medians(calm, runs, || Ok(bed.stretch(STRETCH).functions.iter().sum()))?;
        bed.nothing_lost()?;
        Ok(cost)
    };
    let itself = function(&Chain { parsed: Parsed::ByFunction, ..chain.clone() })?;
    Ok((itself - function(chain)?).max(0.0))
}

fn named(graph: &Graph, name: &str) -> Vec<Arc<NodeCounters>> {
    let nodes = graph.nodes();
    nodes.iter().filter(|(_, node)| &*node.name == name).map(|(_, node)| node.counters.clone()).collect()
}

/// What it costs to spread packets over two cores: which one, and for the half that leaves the way there.
fn spread(calm: &mut Calm, runs: u32, other: usize) -> Result<f64, String> {
    let mut across = Across::new(Far::Looks, TRAFFIC, other, 1)?;
    let spread = medians(calm, runs, || {
        let handed = across.stretch(STRETCH)?;
        Ok(handed.steer + handed.handover / 2.0)
    })?;
    across.end()?;
    Ok(spread)
}

/// The median of runs of one figure.
fn medians(calm: &mut Calm, runs: u32, mut stretch: impl FnMut() -> Result<f64, String>) -> Result<f64, String> {
    let mut samples = Vec::new();
    for _ in 0..runs {
        samples.extend(calm.run(|| Ok(vec![stretch()?]))?);
    }
    Ok(median(&mut samples))
}

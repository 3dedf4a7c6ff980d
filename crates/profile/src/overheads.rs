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
use super::companion::Companion;
use super::figures::median;
use super::queues::divided;

/// Classes of the chain files that are compared, powers of two.
const CLASSES: [u32; 3] = [2, 4, 16];
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
    let mut classified = |chain: &Chain, count: u32| classified(calm, runs, options.beside, (chain, count));
    let mut found = [0.0; CLASSES.len()];
    for (found, count) in found.iter_mut().zip(CLASSES) {
        *found = classified(&Chain::of_classes(count), count)?;
    }
    let ends = [CLASSES[0], CLASSES[2]];
    let [few_ports, many_ports] = ends.map(Chain::of_port_classes);
    let longer = f64::from(few_ports.steps()?) - f64::from(NETWORK_STEPS);
    let ports = (classified(&few_ports, ends[0])?, classified(&many_ports, ends[1])?);
    let Finding { classify, branch, choice } = Finding::of(found);
    let tried = TRIED[2] - TRIED[0];
    let spread = options.other.map_or(Ok(0.0), |core| spread(calm, runs, core))?;
    let steady = registry::find(STEADY).and_then(|f| f.workload).ok_or("the function to parse for is not there")?;
    let setup = (steady.setup)(steady.size.map_or(1, |size| size.usual));
    let parse = parsed(calm, runs, options.beside, &Chain::of(std::slice::from_ref(&setup)))?;
    let small = parsed(calm, runs, options.beside, &Chain::of_a_part(&setup))?;
    let parse_batch = (small - parse).max(0.0) / (f64::from(PARTS - 1) / FULL_BATCH);
    // Ports take no other bits than networks.
    let step = (ports.1 - ports.0 - (found[2] - found[0])).max(0.0) / tried / longer.max(1.0);
    let from_port = from_port.transpose()?.unwrap_or(visit);
    Ok(Overheads {
        visit: from_port,
        spread,
        queue: (by_queues? - together?).max(0.0),
        classify,
        step,
        branch,
        choice,
        parse,
        parse_batch,
    })
}

/// Filters that are tried for a packet, of [`CLASSES`]: one after the other, and traffic is spread evenly over them, so half of
/// them and half of one more.
const TRIED: [f64; 3] = [1.5, 2.5, 8.5];
/// What the class tells, in bits.
const BITS: [f64; 3] = [1.0, 2.0, 4.0];

/// What finding the class is made of, in cycles per packet: `branch + classify × tried + choice × bits`. With tries alone, four
/// classes are dearer than the line through two and sixteen says, by an eighth.
#[derive(Debug, PartialEq)]
struct Finding {
    classify: f64,
    branch: f64,
    choice: f64,
}

impl Finding {
    /// Take apart what it costs with [`CLASSES`].
    fn of(found: [f64; 3]) -> Finding {
        let [(cost, tries, bits), (rest, rest_tries, rest_bits)] =
            [1, 2].map(|n| (found[n] - found[n - 1], TRIED[n] - TRIED[n - 1], BITS[n] - BITS[n - 1]));
        // Cramer's rule; where noise would make one of them less than nothing, the other is all.
        let whole = tries * rest_bits - rest_tries * bits;
        let classify = (cost * rest_bits - rest * bits) / whole;
        let choice = (tries * rest - rest_tries * cost) / whole;
        let (classify, choice) = match (classify < 0.0, choice < 0.0) {
            (_, true) => (((cost + rest) / (tries + rest_tries)).max(0.0), 0.0),
            (true, _) => (0.0, ((cost + rest) / (bits + rest_bits)).max(0.0)),
            _ => (classify, choice),
        };
        Finding { classify, branch: (found[0] - classify * TRIED[0] - choice * BITS[0]).max(0.0), choice }
    }
}

fn whole(calm: &mut Calm, runs: u32, bed: impl Fn() -> Result<Bed, String>) -> Result<f64, String> {
    let mut bed = bed()?;
    bed.warm_up()?;
    let whole = medians(calm, runs, || Ok(bed.stretch(STRETCH).whole))?;
    bed.nothing_lost()?;
    Ok(whole)
}

/// What finding the class costs. The functions of its chain, which run between two batches, leave less of it in the nearest
/// caches: each class has a companion for them.
fn classified(calm: &mut Calm, runs: u32, beside: bool, (classes, count): (&Chain, u32)) -> Result<f64, String> {
    let flows = SHORT_LIVED / u64::from(count);
    let mut line = Line::ending(classes, 1, || beside.then(|| Companion::of(flows)))?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tries_and_bits_are_those_of_the_classes() {
        for (n, count) in CLASSES.into_iter().enumerate() {
            assert!((TRIED[n] - (1.0 + f64::from(count)) / 2.0).abs() < 1e-9 && BITS[n].exp2() == f64::from(count));
        }
    }

    #[test]
    fn finding_a_class_is_taken_apart() {
        let is = |classify: f64, branch: f64, choice: f64| {
            [0, 1, 2].map(|n| branch + classify * TRIED[n] + choice * BITS[n])
        };
        let near = |found: Finding, [classify, branch, choice]: [f64; 3]| {
            let off = [found.classify - classify, found.branch - branch, found.choice - choice];
            assert!(off.iter().all(|off| off.abs() < 1e-9), "{found:?}");
        };
        near(Finding::of(is(10.0, 8.0, 11.0)), [10.0, 8.0, 11.0]);
        near(Finding::of(is(15.0, 10.0, 0.0)), [15.0, 10.0, 0.0]);
        // Noise: the line through the ends, or nothing at all.
        near(Finding::of([30.0, 40.0, 135.0]), [15.0, 7.5, 0.0]);
        near(Finding::of([30.0, 20.0, 25.0]), [0.0, 30.0, 0.0]);
    }
}

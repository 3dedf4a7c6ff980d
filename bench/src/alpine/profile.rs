//! What everything costs: before there is a plan, and while one runs.
//!
//! Run to completion gives the costs of modules and port, the manual way those of a queue and of the classifier. How
//! costs depend on the packets of a batch is laid through these and three runs more: a queue behind each branch, the
//! manual way with queues that drop much, and a classifier that tells a single class apart.

use catena_dataplane::clock;
use catena_plan::alpine::{Alpine, Ends, Graph, Objective, Promise, Strategy};
use catena_plan::profile::FULL_BATCH;
use catena_records::record::median;

use crate::pipelines::{Figures, Shape};
use crate::ratios::Draw;
use crate::seen::{Point, SURPLUS, Seen, line};
use crate::{plan_to_drop, trial};

/// The part of packets that an entrance drops at most to tell what putting in costs, and at least to tell what dropping
/// does.
const HARDLY: f64 = 0.02;
const OFTEN: f64 = 0.2;
/// The part that queues drop when they drop much.
const MUCH: f64 = 0.4;
/// Packets of a batch that is as good as full.
const NEARLY_FULL: f64 = 0.9 * FULL_BATCH;

/// Measure what everything costs.
///
/// # Errors
/// What could not be planned or run.
pub fn profile(shape: &Shape, core: usize) -> Result<Figures, String> {
    let hz = clock::hertz() as f64;
    let classes = shape.exits.len();
    // Of any plausible size: nothing is decided by them.
    let guess = Figures {
        hz,
        packets: hz / 20.0,
        port: 20.0,
        modules: vec![50.0; shape.upstream.len()],
        queue: 20.0,
        classify: 50.0,
        ..Figures::default()
    };
    let graph = shape.graph(&guess);
    let equal = Promise::Cpu((0..classes).map(|j| (vec![j], 1.0)).collect());
    let run =
        |graph: &Graph, promise: &Promise, strategy, apart: &[usize], surplus| -> Result<(Alpine, Seen), String> {
            let mut plan = plan_to_drop(graph, promise, (strategy, Objective::FewestTasks), surplus)?;
            plan.apart.extend(apart);
            let seen = trial::profile(shape, &plan, core)?;
            Ok((plan, seen))
        };
    let seen =
        |graph: &Graph, promise: &Promise, strategy, apart: &[usize]| run(graph, promise, strategy, apart, SURPLUS);
    let once = seen(&graph, &equal, Strategy::RunToCompletion, &[])?;
    let apart = seen(&graph, &equal, Strategy::Manual, &[])?;
    let modules = shape.upstream.len();
    let (port, _, costs) = once.1.costs(&once.0, modules);
    let classify = apart.1.costs(&apart.0, modules).1.unwrap_or(0.0);
    let rough = Figures {
        hz,
        // More than a port that does nothing else could read.
        packets: hz / port / classes as f64,
        port,
        modules: costs,
        queue: apart.1.queue(&apart.0),
        classify,
        ..Figures::default()
    };
    let graph = shape.graph(&rough);
    // Ratios that a queue behind each branch can hold, and queues that all drop much, so that all batches are full.
    let branches = seen(&graph, &Draw::Attainable.promise(&graph, 3), Strategy::SemiManual, &[])?;
    let full = run(&graph, &equal, Strategy::Manual, &[], MUCH)?;
    let one = seen(&graph.classified(&[0]), &equal, Strategy::RunToCompletion, &[0])?;
    let classify_one = one.1.costs(&one.0, modules).1.unwrap_or(0.0);
    // Of all classes, at equal rates, so many are tried on average; of a single one, that one.
    let tried = (classes + 1) as f64 / 2.0;
    let (batch, mut points) = (once.1.batches(&once.0, modules).0, Vec::new());
    let (mut entrances, mut exits) = (Vec::new(), Vec::new());
    for (plan, seen) in [&apart, &branches, &full, &one] {
        points.extend(seen.batches(plan, modules).1);
        let (entrance, exit) = seen.queue_batches(plan);
        entrances.extend(entrance);
        exits.extend(exit);
    }
    // What a plan chooses between are the batches of run to completion and full ones behind a queue; a module that has
    // full ones anyway may have those of run to completion behind a classifier.
    let per_batch = |m: usize| {
        let small = batch[m] < NEARLY_FULL;
        let tells = |(of, (packets, _)): &&(usize, Point)| *of == m && (!small || *packets > NEARLY_FULL);
        let own = points.iter().filter(tells).map(|(_, point)| *point);
        line(&own.chain([(batch[m], rough.modules[m])]).collect::<Vec<_>>()).batch
    };
    let figures = Figures {
        batches: batch.iter().enumerate().map(|(m, batch)| (per_batch(m), *batch)).collect(),
        ends: ends(&entrances, &exits),
        classify_each: ((classify - classify_one) / (tried - 1.0)).max(0.0),
        ..rough.clone()
    };
    eprintln!("{}: {figures:.1?}", shape.name);
    Ok(figures)
}

/// What the ends of queues cost: putting in by the batches of entrances that drop hardly anything, dropping by what
/// the others cost more.
fn ends(entrances: &[(Point, f64)], exits: &[Point]) -> Ends {
    let (few, many): (Vec<_>, Vec<_>) = entrances.iter().partition(|(_, dropped)| *dropped < HARDLY);
    let entrance = line(&few.iter().map(|(point, _)| *point).collect::<Vec<_>>());
    let mut more: Vec<f64> = many
        .iter()
        .filter(|(_, dropped)| *dropped > OFTEN)
        .map(|((batch, cycles), dropped)| (cycles - entrance.in_batches(*batch)) / dropped)
        .collect();
    Ends { entrance, drop: median(&mut more).0.max(0.0), exit: line(exits) }
}

/// The figures with the costs that were seen with a plan; those that were not stay.
pub fn updated(shape: &Shape, figures: &Figures, plan: &Alpine, seen: &Seen) -> Figures {
    let (port, classify, modules) = seen.costs(plan, shape.upstream.len());
    let or = |new: f64, old: f64| if new > 0.0 { new } else { old };
    let (in_place, _) = seen.batches(plan, modules.len());
    let batches = (0..modules.len()).map(|m| match figures.batches.get(m) {
        Some((per_batch, _)) if modules[m] > 0.0 => (*per_batch, in_place[m]),
        Some(batch) => *batch,
        None => (0.0, in_place[m]),
    });
    let batches = batches.collect();
    let modules = modules.iter().zip(&figures.modules).map(|(new, old)| or(*new, *old));
    Figures {
        port,
        modules: modules.collect(),
        batches,
        queue: or(seen.queue(plan), figures.queue),
        classify: classify.unwrap_or(figures.classify),
        ..*figures
    }
}

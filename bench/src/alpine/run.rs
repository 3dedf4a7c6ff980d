//! Alpine on the dataplane: error of the shares and throughput, against run to completion, the manual and the
//! semi-manual way (Lan's dissertation, §5.5.2, Figures 5.6, 5.7 and 5.9).
//!
//!     bench-alpine-run [--only WORD] [--trials N] [--workers N] [FILE]
//!
//! Prints a record a case, and puts them into FILE if it is given one. What the modules do stands in `works.rs`, whose
//! cycles are whose in `seen.rs`. First every shape is profiled: run to completion for the costs of its modules and of the
//! port, the manual way for those of a queue and of the classifier. Plans are made with these.

mod build;
mod pipelines;
mod ratios;
mod seen;
mod traffic;
mod trial;
mod works;

use std::path::PathBuf;
use std::process::ExitCode;

use catena_bench::Record;
use catena_bench::record::{median, update};
use catena_dataplane::clock;
use catena_plan::alpine::{Alpine, Graph, Options, Promise, Strategy, solve};

use pipelines::{Figures, Shape};
use ratios::Draw;
use seen::{SURPLUS, Seen};

/// The ways, Alpine's first.
const WAYS: [(Strategy, &str); 4] = [
    (Strategy::Alpine, "Alpine"),
    (Strategy::Manual, "manual"),
    (Strategy::SemiManual, "semi-manual"),
    (Strategy::RunToCompletion, "run to completion"),
];

struct Asked {
    only: String,
    trials: u64,
    workers: Option<usize>,
    file: Option<PathBuf>,
}

fn main() -> ExitCode {
    match asked().and_then(|asked| measure(&asked)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("bench-alpine-run: {message}");
            ExitCode::FAILURE
        }
    }
}

fn asked() -> Result<Asked, String> {
    let mut asked = Asked { only: String::new(), trials: 10, workers: None, file: None };
    let mut args = std::env::args().skip(1);
    while let Some(name) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{name} needs a value"));
        let number = |text: String| text.parse::<u64>().map_err(|_| format!("expected a number, found `{text}`"));
        match name.as_str() {
            "--only" => asked.only = value()?,
            "--trials" => asked.trials = number(value()?)?.max(1),
            "--workers" => asked.workers = Some(number(value()?)? as usize),
            _ => asked.file = Some(PathBuf::from(name)),
        }
    }
    Ok(asked)
}

fn measure(asked: &Asked) -> Result<(), String> {
    let available = std::thread::available_parallelism().map_or(1, |n| n.get());
    let mut cases: Vec<(Shape, Vec<Draw>, usize)> = Vec::new();
    for workers in (1..=2).filter(|n| *n <= available && asked.workers.is_none_or(|asked| asked == *n)) {
        cases.extend(Shape::pipelines().into_iter().map(|shape| (shape, vec![Draw::Attainable, Draw::Any], workers)));
    }
    if asked.workers.is_none_or(|workers| workers == 1) {
        cases.extend((2..=6).map(|depth| (Shape::binary(depth), vec![Draw::Attainable], 1)));
    }
    for (shape, draws, workers) in cases.iter().filter(|(shape, ..)| shape.name.contains(&asked.only)) {
        // The last core first: the first one has most of the system's own work.
        let cores: Vec<usize> = (0..*workers).map(|n| available - 1 - n).collect();
        let figures = profile(shape, cores[0])?;
        for draw in draws {
            let records = case(shape, &figures, *draw, &cores, asked.trials)?;
            for record in &records {
                println!("{}", report(record));
            }
            if let Some(file) = &asked.file {
                update(file, &records).map_err(|error| format!("{}: {error}", file.display()))?;
            }
        }
    }
    Ok(())
}

fn report(record: &Record) -> String {
    let peers = record.peer.iter().map(|(name, value)| format!("; {name} {value:.3}")).collect::<String>();
    let limit = record.limit.as_deref().unwrap_or("");
    format!("{}: {:.3} {} ± {:.3}{peers} ({limit})", record.case, record.value, record.unit, record.spread)
}

/// Measure what everything costs.
fn profile(shape: &Shape, core: usize) -> Result<Figures, String> {
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
    };
    let graph = shape.graph(&guess);
    let equal = Promise::Cpu((0..classes).map(|j| (vec![j], 1.0)).collect());
    let seen = |strategy| -> Result<(Alpine, Seen), String> {
        let plan = plan(&graph, &equal, strategy)?;
        let seen = trial::profile(shape, &plan, core)?;
        Ok((plan, seen))
    };
    let (plan, seen_once) = seen(Strategy::RunToCompletion)?;
    let (port, _, modules) = seen_once.costs(&plan, shape.upstream.len());
    let (plan, seen_apart) = seen(Strategy::Manual)?;
    let (_, classify, _) = seen_apart.costs(&plan, shape.upstream.len());
    let figures = Figures {
        hz,
        // More than a port that does nothing else could read.
        packets: hz / port / classes as f64,
        port,
        modules,
        queue: seen_apart.queue(&plan),
        classify: classify.unwrap_or(0.0),
    };
    eprintln!("{}: {figures:.1?}", shape.name);
    Ok(figures)
}

/// The figures with the costs that were seen with a plan; those that were not stay.
fn updated(shape: &Shape, figures: &Figures, plan: &Alpine, seen: &Seen) -> Figures {
    let (port, classify, modules) = seen.costs(plan, shape.upstream.len());
    let or = |new: f64, old: f64| if new > 0.0 { new } else { old };
    let modules = modules.iter().zip(&figures.modules).map(|(new, old)| or(*new, *old));
    Figures {
        port,
        modules: modules.collect(),
        queue: or(seen.queue(plan), figures.queue),
        classify: classify.unwrap_or(figures.classify),
        ..*figures
    }
}

fn plan(graph: &Graph, promise: &Promise, strategy: Strategy) -> Result<Alpine, String> {
    // Of a tree of depth 5, small enough to be tried, a proof may take minutes: what is found by then is run.
    let options = Options { strategy, seconds: 1.0, surplus: SURPLUS, ..Options::default() };
    solve(graph, std::slice::from_ref(promise), options).map_err(|refusal| refusal.to_string())
}

/// What the trials of one way gave.
#[derive(Default)]
struct Gathered {
    /// Error in percent: with weights as first planned, with weights set again, and the largest of a class.
    planned: Vec<f64>,
    error: Vec<f64>,
    largest: Vec<f64>,
    /// Packets per µs, and the manual way's relative to it in the same trial.
    rate: Vec<f64>,
    manual: Vec<f64>,
    cycles: Vec<f64>,
    tasks: Vec<usize>,
    fronted: usize,
    replanned: usize,
    fallen: usize,
    unweighed: usize,
    refused: usize,
}

fn case(shape: &Shape, figures: &Figures, draw: Draw, cores: &[usize], trials: u64) -> Result<Vec<Record>, String> {
    let graph = shape.graph(figures);
    let mut ways: Vec<Gathered> = WAYS.iter().map(|_| Gathered::default()).collect();
    for trial in 0..trials {
        let promise = draw.promise(&graph, trial);
        let mut rates = [None; WAYS.len()];
        for (w, (strategy, name)) in WAYS.iter().enumerate() {
            let way = &mut ways[w];
            let Ok(plan) = plan(&graph, &promise, *strategy) else {
                way.refused += 1;
                continue;
            };
            let replan = |n: usize, ran: &Alpine, seen: &Seen| {
                let graph = shape.graph(&updated(shape, figures, ran, seen));
                let make = |strategy| self::plan(&graph, &promise, strategy).ok();
                match (strategy, n) {
                    (Strategy::Alpine, 0 | 1) => make(Strategy::Alpine),
                    // The dissertation's own bound of what suffices.
                    (Strategy::Alpine, 2) => make(Strategy::SemiManual).or_else(|| make(Strategy::Manual)),
                    (Strategy::Alpine, 3) => make(Strategy::Manual),
                    _ => None,
                }
            };
            let outcome = trial::run(shape, &plan, &promise, cores, &replan)?;
            let (planned, error) = (outcome.planned * 100.0, outcome.error * 100.0);
            eprintln!(
                "  {trial} {name}: {} tasks then {}, error {planned:.2} % then {error:.2} %, {:.2} Mpps, {:.1} cycles/packet",
                plan.tasks.tasks.len(),
                outcome.plan.tasks.tasks.len(),
                outcome.rate / 1e6,
                outcome.cycles,
            );
            way.planned.push(planned);
            way.error.push(error);
            way.largest.push(outcome.largest * 100.0);
            way.rate.push(outcome.rate / 1e6);
            way.cycles.push(outcome.cycles);
            way.tasks.push(outcome.plan.tasks.tasks.len());
            way.fronted += usize::from(!outcome.plan.apart.is_empty());
            way.replanned += usize::from(*strategy == Strategy::Alpine && outcome.plan.tasks.tasks != plan.tasks.tasks);
            way.fallen += usize::from(outcome.plan.strategy != *strategy);
            way.unweighed += usize::from(!outcome.weighed && *strategy != Strategy::RunToCompletion);
            rates[w] = Some(outcome.rate);
        }
        for (w, way) in ways.iter_mut().enumerate() {
            if let (Some(manual), Some(own)) = (rates[1], rates[w]) {
                way.manual.push(manual / own);
            }
        }
    }
    Ok(records(shape, figures, draw, cores.len(), &mut ways))
}

fn records(shape: &Shape, figures: &Figures, draw: Draw, workers: usize, ways: &mut [Gathered]) -> Vec<Record> {
    let cores = if workers == 1 { "one core" } else { "two cores" };
    let tree = shape.name.starts_with("binary");
    let case = |what: &str| format!("run {}: {}: {cores}: {what}", shape.name, draw.name());
    let middle = |way: &mut Gathered, of: fn(&mut Gathered) -> &mut Vec<f64>| median(of(way));
    let record = |ways: &mut [Gathered], what: &str, unit: &str, of: fn(&mut Gathered) -> &mut Vec<f64>| {
        let (value, spread) = middle(&mut ways[0], of);
        let peers = ways.iter_mut().zip(WAYS).skip(1).filter(|(way, _)| !way.rate.is_empty());
        let peer = peers.map(|(way, (_, name))| (name.to_owned(), middle(way, of).0)).collect();
        Record { bench: "alpine".into(), case: case(what), unit: unit.into(), value, spread, peer, ..Record::default() }
    };
    let most = |samples: &[f64]| samples.iter().copied().fold(0.0, f64::max);
    let error = {
        let bar = if workers == 1 { 1.0 } else { 4.0 };
        // §5.5.2: less than 1 % on one core, than 4 % on two, than 3 % with trees.
        let paper = if tree { 3.0 } else { bar };
        let own = &mut ways[0];
        let limit = format!(
            "with the weights as first planned {:.2}; largest trial {:.2}, largest of a class {:.2}",
            median(&mut own.planned).0,
            most(&own.error),
            most(&own.largest),
        );
        let limit = format!(
            "{limit}; partition made again in {} trials, the semi-manual or manual one taken in {}, no weights in {}",
            own.replanned, own.fallen, own.unweighed
        );
        let record = record(ways, "error", "%", |way| &mut way.error);
        Record { bar: Some(bar), paper: Some(paper), limit: Some(limit), ..record }
    };
    let rate = {
        let own = &ways[0];
        let (fewest, most) = (own.tasks.iter().min().unwrap_or(&0), own.tasks.iter().max().unwrap_or(&0));
        let limit = format!(
            "{fewest}–{most} tasks; of {} trials {} with a classifier in front, {} refused",
            own.rate.len() + own.refused,
            own.fronted,
            own.refused
        );
        Record { limit: Some(limit), ..record(ways, "packets that leave", "Mpps", |way| &mut way.rate) }
    };
    let ratio = {
        // Table 5.3.
        let paper = match (shape.name.as_str(), workers) {
            ("IP router", 1) => Some(1.0 / 1.91),
            ("firewall", 1) => Some(1.0 / 1.74),
            ("transparent proxy", 1) => Some(1.0 / 1.30),
            _ => None,
        };
        let limit = format!(
            "cycles: port {:.0}, classifier {:.0}, queue {:.0}, modules {}; {:.0} of all a packet",
            figures.port,
            figures.classify,
            figures.queue,
            listed(&figures.modules),
            median(&mut ways[0].cycles).0,
        );
        let record = record(ways, "manual's packets to Alpine's", "ratio", |way| &mut way.manual);
        Record { bar: Some(1.0 / 1.3), paper, limit: Some(limit), peer: Vec::new(), ..record }
    };
    vec![error, rate, ratio]
}

/// Figures in a row, or from the least to the most where they are many.
fn listed(cycles: &[f64]) -> String {
    match cycles.len() {
        0..=8 => cycles.iter().map(|c| format!("{c:.0}")).collect::<Vec<_>>().join(" "),
        _ => {
            let least = cycles.iter().copied().fold(f64::INFINITY, f64::min);
            format!("{least:.0} to {:.0}", cycles.iter().copied().fold(0.0, f64::max))
        }
    }
}

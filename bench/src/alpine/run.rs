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
mod profile;
mod ratios;
mod seen;
mod traffic;
mod trial;
mod works;

use std::path::PathBuf;
use std::process::ExitCode;

use catena_plan::alpine::{Alpine, Front, Graph, Objective, Options, Promise, Strategy, solve};
use catena_records::Record;
use catena_records::record::{median, retire, update};

use pipelines::{Figures, Shape};
use profile::{profile, updated};
use ratios::Draw;
use seen::{SURPLUS, Seen};

/// A way to make a plan.
pub type How = (Strategy, Objective);

/// The ways, Alpine's two first.
const WAYS: [(How, &str); 5] = [
    ((Strategy::Alpine, Objective::FewestTasks), "Alpine"),
    ((Strategy::Alpine, Objective::MostPackets), "most packets"),
    ((Strategy::Manual, Objective::FewestTasks), "manual"),
    ((Strategy::SemiManual, Objective::FewestTasks), "semi-manual"),
    ((Strategy::RunToCompletion, Objective::FewestTasks), "run to completion"),
];
/// The error below which a way holds the ratios: the dissertation's on one core (§5.5.2).
const HOLDS: f64 = 0.01;
/// The manual one, that others are held against.
const MANUAL: usize = 2;

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
    let mut made = Vec::new();
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
            made.extend(records);
        }
    }
    let all = asked.only.is_empty() && asked.workers.is_none();
    match asked.file.as_ref().filter(|_| all) {
        Some(file) => retire(file, "alpine", "run ", &made).map_err(|error| format!("{}: {error}", file.display())),
        None => Ok(()),
    }
}

fn report(record: &Record) -> String {
    let peers = record.peer.iter().map(|(name, value)| format!("; {name} {value:.3}")).collect::<String>();
    let limit = record.limit.as_deref().unwrap_or("");
    format!("{}: {:.3} {} ± {:.3}{peers} ({limit})", record.case, record.value, record.unit, record.spread)
}

fn plan(graph: &Graph, promise: &Promise, how: How) -> Result<Alpine, String> {
    plan_to_drop(graph, promise, how, SURPLUS)
}

/// Plan so that each queue drops at least the part `surplus` of what comes.
fn plan_to_drop(graph: &Graph, promise: &Promise, (strategy, objective): How, surplus: f64) -> Result<Alpine, String> {
    // Of a tree of depth 5, small enough to be tried, a proof may take minutes: what is found by then is run.
    let front = if objective == Objective::MostPackets { Front::WhenFaster } else { Front::LastResort };
    let options = Options { strategy, objective, front, seconds: 1.0, surplus, ..Options::default() };
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
    /// The same as planned first.
    planned_manual: Vec<f64>,
    cycles: Vec<f64>,
    /// The rate relative to the first plan's.
    foreseen: Vec<f64>,
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
    let mut best = Vec::new();
    for trial in 0..trials {
        let promise = draw.promise(&graph, trial);
        let mut holding: f64 = 0.0;
        let (mut rates, mut planned_rates) = ([None; WAYS.len()], [None; WAYS.len()]);
        for (w, (how, name)) in WAYS.iter().enumerate() {
            let way = &mut ways[w];
            let Ok(plan) = plan(&graph, &promise, *how) else {
                way.refused += 1;
                continue;
            };
            let replan = |n: usize, ran: &Alpine, seen: &Seen| {
                let graph = shape.graph(&updated(shape, figures, ran, seen));
                let make = |how| self::plan(&graph, &promise, how).ok();
                let usual = |strategy| make((strategy, Objective::FewestTasks));
                match (how.0, n) {
                    (Strategy::Alpine, 0 | 1) => make(*how),
                    // The dissertation's own bound of what suffices.
                    (Strategy::Alpine, 2) => usual(Strategy::SemiManual).or_else(|| usual(Strategy::Manual)),
                    (Strategy::Alpine, 3) => usual(Strategy::Manual),
                    _ => None,
                }
            };
            let outcome = trial::run(shape, &plan, &promise, cores, &replan)?;
            let (planned, error) = (outcome.planned * 100.0, outcome.error * 100.0);
            eprintln!(
                "  {trial} {name}: {} tasks then {}, {} then {} apart, error {planned:.2} % then {error:.2} %, {:.2} Mpps \
                 (planned {:.2}), {:.1} cycles/packet",
                plan.tasks.tasks.len(),
                outcome.plan.tasks.tasks.len(),
                plan.apart.len(),
                outcome.plan.apart.len(),
                outcome.rate / 1e6,
                plan.tasks.throughput() / 1e6,
                outcome.cycles,
            );
            way.planned.push(planned);
            way.error.push(error);
            way.largest.push(outcome.largest * 100.0);
            way.rate.push(outcome.rate / 1e6);
            way.cycles.push(outcome.cycles);
            way.foreseen.push(outcome.rate / cores.len() as f64 / plan.tasks.throughput());
            way.tasks.push(outcome.plan.tasks.tasks.len());
            if !outcome.plan.apart.is_empty() {
                way.fronted += 1;
            }
            if how.0 == Strategy::Alpine && outcome.plan.tasks.tasks != plan.tasks.tasks {
                way.replanned += 1;
            }
            if outcome.plan.strategy != how.0 {
                way.fallen += 1;
            }
            if !outcome.weighed && how.0 != Strategy::RunToCompletion {
                way.unweighed += 1;
            }
            rates[w] = Some(outcome.rate);
            if outcome.error < HOLDS {
                holding = holding.max(outcome.rate);
            }
            planned_rates[w] = Some(plan.tasks.throughput());
        }
        if let (Some(manual), true) = (rates[MANUAL], holding > 0.0) {
            best.push(manual / holding);
        }
        for (w, way) in ways.iter_mut().enumerate() {
            if let (Some(manual), Some(own)) = (rates[MANUAL], rates[w]) {
                way.manual.push(manual / own);
            }
            if let (Some(manual), Some(own)) = (planned_rates[MANUAL], planned_rates[w]) {
                way.planned_manual.push(manual / own);
            }
        }
    }
    let about = |own| records(shape, figures, draw, cores.len(), &mut ways, own);
    let mut all: Vec<Record> = (0..MANUAL).flat_map(about).collect();
    let (value, spread) = median(&mut best);
    let workers = if cores.len() == 1 { "one core" } else { "two cores" };
    let case = format!("run {}: {}: {workers}, best as measured", shape.name, draw.name());
    all.push(Record {
        bench: "alpine".into(),
        case: format!("{case}: manual's packets to its"),
        unit: "ratio".into(),
        value,
        spread,
        bar: Some(1.0 / 1.3),
        limit: Some(format!("of {trials} trials {} with a way that holds", best.len())),
        ..Record::default()
    });
    Ok(all)
}

/// The records of one of Alpine's ways, beside the others'.
fn records(
    shape: &Shape,
    figures: &Figures,
    draw: Draw,
    workers: usize,
    ways: &mut [Gathered],
    own: usize,
) -> Vec<Record> {
    let cores = if workers == 1 { "one core" } else { "two cores" };
    let cores = if own > 0 { format!("{cores}, {}", WAYS[own].1) } else { cores.to_owned() };
    let tree = shape.name.starts_with("binary");
    let case = |what: &str| format!("run {}: {}: {cores}: {what}", shape.name, draw.name());
    let middle = |way: &mut Gathered, of: fn(&mut Gathered) -> &mut Vec<f64>| median(of(way));
    let record = |ways: &mut [Gathered], what: &str, unit: &str, of: fn(&mut Gathered) -> &mut Vec<f64>| {
        let (value, spread) = middle(&mut ways[own], of);
        let peers = ways.iter_mut().zip(WAYS).skip(MANUAL).filter(|(way, _)| !way.rate.is_empty());
        let peer = peers.map(|(way, (_, name))| (name.to_owned(), middle(way, of).0)).collect();
        Record { bench: "alpine".into(), case: case(what), unit: unit.into(), value, spread, peer, ..Record::default() }
    };
    let most = |samples: &[f64]| samples.iter().copied().fold(0.0, f64::max);
    let error = {
        let bar = if workers == 1 { 1.0 } else { 4.0 };
        // §5.5.2: less than 1 % on one core, than 4 % on two, than 3 % with trees.
        let paper = if tree { 3.0 } else { bar };
        let own = &mut ways[own];
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
        let own = &mut ways[own];
        let (fewest, most) = (own.tasks.iter().min().unwrap_or(&0), own.tasks.iter().max().unwrap_or(&0));
        let limit = format!(
            "{fewest}–{most} tasks; of {} trials {} with a classifier in front, {} refused; {:.2} of the rate first planned",
            own.rate.len() + own.refused,
            own.fronted,
            own.refused,
            median(&mut own.foreseen).0,
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
            "planned {:.2}; cycles: port {:.0}, classifier {:.0}, queue {:.0}, modules {}; {:.0} of all a packet",
            median(&mut ways[own].planned_manual).0,
            figures.port,
            figures.classify,
            figures.queue,
            listed(&figures.modules),
            median(&mut ways[own].cycles).0,
        );
        let record = record(ways, "manual's packets to Alpine's", "ratio", |way| &mut way.manual);
        let peer = record.peer.iter().filter(|(name, _)| name != WAYS[MANUAL].1).cloned().collect();
        Record { bar: Some(1.0 / 1.3), paper, limit: Some(limit), peer, ..record }
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

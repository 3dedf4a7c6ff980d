//! Measures what reducing a chain's graph gains: cycles per packet as it is, and reduced.
//!
//!     bench-reduced [--core N] [--samples N] [--only LETTERS] [--output FILE]
//!
//! Packets from memory, one pinned worker; time is on-CPU time. All chains take turns, so that a slow spell of the
//! machine hits all.

mod cases;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use cases::Case;
use catena_compile::library::signatures;
use catena_compile::{Counts, build, lower, reduce};
use catena_dataplane::generator::{Generator, Spec};
use catena_dataplane::pipeline::Time;
use catena_dataplane::port::Sink;
use catena_dataplane::task::Task;
use catena_dataplane::worker::{pin_this_thread, thread_cpu_ns};
use catena_dataplane::{Context, Pipeline, clock};
use catena_packet::clock::Root;
use catena_packet::wire::Seed;
use catena_packet::{Depot, DepotHandle};
use catena_policy::Files;
use catena_records::record::{self, Record, median};
use catena_records::report;
use catena_state::Share;

/// A sample is the median of so many stretches of this length.
const STRETCHES: usize = 40;
const STRETCH: Duration = Duration::from_millis(5);
/// How long a chain runs before its first sample, at least; and each flow has had three packets by then.
const WARM_UP: Duration = Duration::from_millis(300);
/// Steps between two looks at the clock.
const STEPS: usize = 500;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("bench-reduced: {message}");
            ExitCode::FAILURE
        }
    }
}

/// How a chain is run.
#[derive(Clone, Copy, PartialEq)]
enum How {
    AsItIs,
    Reduced(Counts),
}

impl How {
    fn name(self) -> &'static str {
        match self {
            How::AsItIs => "as it is",
            How::Reduced(Counts::Functions) => "reduced",
            How::Reduced(Counts::Totals) => "reduced, early drops",
        }
    }
}

/// The generated files, by name.
struct Made;

impl Files for Made {
    fn read(&self, path: &Path, _limit: usize) -> Result<String, String> {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        cases::files().remove(name).ok_or_else(|| format!("there is no {name}"))
    }
}

struct Bed {
    pipeline: Pipeline,
    context: Context,
    flows: u64,
    _depot: DepotHandle,
}

impl Bed {
    fn new(case: &Case, how: How) -> Result<Bed, String> {
        let outcome = catena_policy::load("case", case.text, &signatures(), &Made);
        let graph = outcome.graph.ok_or_else(|| format!("{}: {:?}", case.name, outcome.diagnostics))?;
        let mut host = lower(&graph).map_err(|error| error.to_string())?;
        if let How::Reduced(counts) = how {
            host = reduce(host, counts).map_err(|error| error.to_string())?.0;
        }
        let built = build(&host, Seed::from_number(11), (Share::WHOLE, None), |_| Box::new(Sink));
        let built = built.map_err(|error| error.to_string())?;
        let mut pipeline = Pipeline::with(built.graph, Time::Packets);
        let spec: Spec = case.traffic.parse().map_err(|error| format!("{error}"))?;
        let source = Generator::new(&spec).map_err(|(key, problem)| format!("{key}: {problem:?}"))?;
        let inlet = built.entries[0].ok_or("the chain has no way in")?;
        pipeline.add_task(Task::new("source", Box::new(source), inlet).rooted(Root::first()));
        let depot = Depot::map(16 * 1024, 16).map_err(|error| error.to_string())?;
        let context = Context::new(&depot, 1);
        let mut bed = Bed { pipeline, context, flows: spec.flows, _depot: depot };
        bed.run(WARM_UP);
        while bed.packets() < 3 * bed.flows {
            bed.run(WARM_UP);
        }
        Ok(bed)
    }

    fn packets(&self) -> u64 {
        self.pipeline.tasks().map(|(_, task)| task.counters().input.packets.get()).sum()
    }

    fn run(&mut self, time: Duration) {
        let start = Instant::now();
        while start.elapsed() < time {
            for _ in 0..STEPS {
                self.pipeline.step(&mut self.context);
            }
            self.pipeline.graph.tick(&mut self.context);
        }
    }

    /// Run for a while; returns cycles per packet.
    fn sample(&mut self) -> f64 {
        self.run(STRETCH);
        let mut stretches = [0.0; STRETCHES];
        for cycles in &mut stretches {
            let (before, start) = (self.packets(), thread_cpu_ns());
            self.run(STRETCH);
            let (packets, ns) = (self.packets() - before, thread_cpu_ns() - start);
            *cycles = ns as f64 * clock::hertz() as f64 / 1e9 / packets.max(1) as f64;
        }
        median(&mut stretches).0
    }
}

fn run() -> Result<(), String> {
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    let (mut core, mut samples, mut only) = (cores - 1, 5usize, String::new());
    let mut output = PathBuf::from("bench/results/reduced.jsonl");
    let mut args = std::env::args().skip(1);
    while let Some(name) = args.next() {
        let value = args.next().ok_or_else(|| format!("{name} needs a value"))?;
        let number = || value.parse::<usize>().map_err(|_| format!("{name}: expected a number, found `{value}`"));
        match name.as_str() {
            "--core" => core = number()?,
            "--samples" => samples = number()?.max(1),
            "--only" => only = value,
            "--output" => output = PathBuf::from(value),
            _ => return Err(format!("unknown option {name}; expected --core, --samples, --only or --output")),
        }
    }
    if !pin_this_thread(core) {
        return Err(format!("cannot pin to core {core}"));
    }
    let chosen = |case: &Case| only.is_empty() || case.name.starts_with(|letter| only.contains(letter));
    let mut beds = Vec::new();
    let cases: Vec<Case> = cases::all().into_iter().filter(chosen).collect();
    for case in &cases {
        let mut hows = vec![How::AsItIs, How::Reduced(Counts::Functions)];
        if case.early {
            hows.push(How::Reduced(Counts::Totals));
        }
        for how in hows {
            beds.push((case, how, Bed::new(case, how)?, Vec::new()));
        }
    }
    for _ in 0..samples {
        for (_, _, bed, values) in &mut beds {
            values.push(bed.sample());
        }
    }
    let mut records: Vec<Record> = Vec::new();
    let mut before = 1.0;
    for (case, how, _, values) in &mut beds {
        let (value, spread) = median(values);
        let (bench, limit) = ("reduced".to_owned(), Some(case.redundant.to_owned()).filter(|_| *how != How::AsItIs));
        let name = format!("{}: {}", case.name, how.name());
        let peer = if *how == How::AsItIs {
            before = value;
            Vec::new()
        } else {
            vec![("times as fast".to_owned(), before / value)]
        };
        let unit = "cycles/packet".to_owned();
        records.push(Record { bench, case: name, unit, value, spread, peer, limit, ..Record::default() });
    }
    print!("{}", report::table(&records));
    record::write(&output, &records).map_err(|error| format!("{}: {error}", output.display()))?;
    println!("kept in {}", output.display());
    Ok(())
}

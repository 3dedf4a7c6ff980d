//! Measures the dataplane: cycles per packet of one pinned worker, packets from memory, no network card; and the memory
//! that a flow takes of each function that remembers flows.
//!
//!     bench-dataplane [--core N] [--samples N] [--only LETTERS] [--output FILE]
//!
//! Time is on-CPU time of the worker's thread, so that other work on the machine disturbs less; the cases of
//! one sample run one after the other before the next sample, so that a slow spell hits all of them.

mod cases;
mod core_probe;
mod in_turn;
mod measure;
mod memory;
mod rules;
mod second;
mod testpmd;

use std::path::PathBuf;
use std::process::ExitCode;

use catena_dataplane::clock;
use catena_records::record::{self, Record, median};
use catena_records::report;

struct Options {
    core: usize,
    samples: usize,
    only: String,
    output: PathBuf,
}

impl Options {
    /// Whether a case is to be measured.
    fn asks_for(&self, case: &str) -> bool {
        self.only.is_empty() || case.starts_with(|letter| self.only.contains(letter))
    }
}

fn main() -> ExitCode {
    match options().and_then(|options| run(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("bench-dataplane: {message}");
            ExitCode::FAILURE
        }
    }
}

fn options() -> Result<Options, String> {
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    let mut options = Options {
        core: cores - 1,
        samples: 5,
        only: String::new(),
        output: PathBuf::from("bench/results/dataplane.jsonl"),
    };
    let mut args = std::env::args().skip(1);
    while let Some(name) = args.next() {
        let value = args.next().ok_or_else(|| format!("{name} needs a value"))?;
        let number = || value.parse::<usize>().map_err(|_| format!("{name}: expected a number, found `{value}`"));
        match name.as_str() {
            "--core" => options.core = number()?,
            "--samples" => options.samples = number()?.max(1),
            "--only" => options.only = value,
            "--output" => options.output = PathBuf::from(value),
            _ => return Err(format!("unknown option {name}; expected --core, --samples, --only or --output")),
        }
    }
    Ok(options)
}

fn run(options: &Options) -> Result<(), String> {
    let hertz = clock::hertz() as f64;
    // Asked before this thread is pinned to one core.
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    let chosen: Vec<cases::Case> = cases::all().into_iter().filter(|case| options.asks_for(case.name)).collect();
    let mut records = Vec::new();
    let before = testpmd::cycles(options.core);
    let mut prepared = Vec::new();
    for case in chosen {
        eprintln!("preparing {}", case.name);
        prepared.push((measure::Prepared::new(&case)?, case));
    }
    let mut samples = vec![Vec::new(); prepared.len()];
    for round in 0..options.samples {
        for ((prepared, case), samples) in prepared.iter_mut().zip(&mut samples) {
            let cycles = prepared.sample(options.core)?;
            eprintln!("sample {} of {}: {}: {cycles:.1} cycles/packet", round + 1, options.samples, case.name);
            samples.push(cycles);
        }
    }
    for ((_, case), samples) in prepared.iter().zip(&mut samples) {
        let (value, spread) = median(samples);
        let peer = case.peers.iter().map(|(name, cycles)| ((*name).to_owned(), *cycles)).collect();
        records.push(Record {
            bench: "dataplane".to_owned(),
            case: case.name.to_owned(),
            unit: "cycles/packet".to_owned(),
            value,
            spread,
            bar: case.bar,
            paper: None,
            peer,
            limit: Some(case.limit.to_owned()),
            ..Record::default()
        });
    }
    relative_bars(&mut records);
    let alone = functions_alone(&records);
    let rates: Vec<Record> = records
        .iter()
        .map(|r| Record {
            unit: "Mpps".to_owned(),
            value: hertz / r.value / 1e6,
            spread: hertz / r.value / 1e6 * (r.spread / r.value),
            bar: None,
            peer: Vec::new(),
            limit: None,
            ..r.clone()
        })
        .collect();
    records.extend(alone);
    // The memory of other cases would be given back while that of flows is measured.
    drop(prepared);
    for flows in memory::all().iter().filter(|flows| options.asks_for(flows.name)) {
        eprintln!("measuring {}", flows.name);
        records.push(memory::measure(flows)?);
    }
    let mut scaling = Vec::new();
    for case in cases::all().iter().filter(|case| case.second.is_some()) {
        if cores >= 2 && options.asks_for(case.name) {
            eprintln!("two workers: {}", case.name);
            scaling.extend(second::second_worker(case, options.samples)?);
        }
    }
    let after = testpmd::cycles(options.core);
    let yardstick: Vec<Record> = [("before", before), ("after", after)]
        .into_iter()
        .filter_map(|(when, cycles)| {
            Some(Record {
                bench: "dataplane".to_owned(),
                case: format!("testpmd, two net_null ports, io: {when}"),
                unit: "cycles/packet".to_owned(),
                value: cycles?,
                peer: vec![("idle machine".to_owned(), 39.0)],
                ..Record::default()
            })
        })
        .collect();
    records.extend(yardstick.iter().cloned());
    print!("{}", report::table(&records));
    if let [.., last] = &yardstick[..] {
        let mean = yardstick.iter().map(|r| r.value).sum::<f64>() / yardstick.len() as f64;
        println!("\nrelative to testpmd ({mean:.1} cycles/packet in this run, last {:.1}):", last.value);
        for record in records.iter().filter(|r| r.unit == "cycles/packet" && !r.case.starts_with("testpmd")) {
            println!("  {:<44} {:.2}", record.case, record.value / mean);
        }
    } else {
        println!("\ndpdk-testpmd is not installed: no yardstick for how busy the machine is");
    }
    records.extend(rates);
    if !scaling.is_empty() {
        print!("\n{}", report::table(&scaling));
        records.extend(scaling);
    }
    record::write(&options.output, &records).map_err(|error| format!("{}: {error}", options.output.display()))?;
    println!("\nkept in {}", options.output.display());
    Ok(())
}

/// Return what functions take of which each packet is a new flow: what the same traffic takes without them is taken away, since drawing a
/// flow is a good part of it.
fn functions_alone(records: &[Record]) -> Vec<Record> {
    let Some(base) = records.iter().find(|r| r.case == cases::NEW_FLOWS_ALONE) else { return Vec::new() };
    let of_new = |record: &&Record| record.case != base.case && record.case.ends_with(cases::EACH_NEW);
    let alone = |record: &Record| Record {
        case: format!("{}: without the generator", record.case),
        value: record.value - base.value,
        spread: record.spread + base.spread,
        limit: None,
        ..record.clone()
    };
    records.iter().filter(of_new).map(alone).collect()
}

/// Some bars are ratios to another case of the same run.
fn relative_bars(records: &mut [Record]) {
    for (case, of, ratio) in [("f", "e", 1.25), ("g", "d", 2.5), ("s", "r", 1.15)] {
        let base = records.iter().find(|r| r.case.starts_with(of)).map(|r| r.value);
        if let (Some(base), Some(record)) = (base, records.iter_mut().find(|r| r.case.starts_with(case))) {
            record.bar = Some(base * ratio);
        }
    }
}

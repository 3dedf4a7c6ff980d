//! Do functions' profiles add up to what a chain of them costs?
//!
//!     bench-additivity [--core N] [--runs N] [--output FILE]
//!
//! Plans reckon that they do (Yen et al., "Lemur", §3.2). ACL -> NAT -> LB -> Monitor is measured function by
//! function, each alone and each beside a companion (see `catena_profile`), and as a chain, in the same run.

use std::path::PathBuf;
use std::process::ExitCode;

use catena_dataplane::worker::pin_this_thread;
use catena_functions::registry;
use catena_functions::workload::Setup;
use catena_profile::bed::{Bed, Traffic};
use catena_profile::calm::{Calm, PATIENT, STRETCH};
use catena_profile::chain::Chain;
use catena_records::record::{self, Record, median};
use catena_records::report;

const CHAIN: [(&str, u64); 4] = [("ACL", 1_000), ("NAT", 1), ("LB", 1), ("Monitor", 1)];
const TRAFFIC: [(&str, Traffic); 4] = [
    ("40 flows", Traffic { flows: 40, new: None, parts: 1 }),
    ("1,000 flows", Traffic { flows: 1_000, new: None, parts: 1 }),
    ("10,000 flows", Traffic { flows: 10_000, new: None, parts: 1 }),
    ("10,000 new flows a second", Traffic { flows: 10_000, new: Some(10_000), parts: 1 }),
];

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("bench-additivity: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    let (mut core, mut runs) = (cores - 1, 10usize);
    let mut output = PathBuf::from("bench/results/additivity.jsonl");
    let mut args = std::env::args().skip(1);
    while let Some(name) = args.next() {
        let value = args.next().ok_or_else(|| format!("{name} needs a value"))?;
        let number = || value.parse::<usize>().map_err(|_| format!("{name}: expected a number, found `{value}`"));
        match name.as_str() {
            "--core" => core = number()?,
            "--runs" => runs = number()?.max(1),
            "--output" => output = PathBuf::from(value),
            _ => return Err(format!("unknown option {name}; expected --core, --runs or --output")),
        }
    }
    if !pin_this_thread(core) {
        return Err(format!("cannot pin to core {core}"));
    }
    let setups: Vec<Setup> = CHAIN.iter().filter_map(|(name, size)| setup(name, *size)).collect();
    let mut calm = Calm::new(PATIENT)?;
    let mut records = Vec::new();
    for (what, traffic) in TRAFFIC {
        eprintln!("{what}");
        // Each function alone, each beside a companion, and the chain; in turn, so that a slow spell hits all.
        let mut beds = Vec::new();
        for beside in [false, true] {
            for setup in &setups {
                beds.push(bed(std::slice::from_ref(setup), traffic, beside)?);
            }
        }
        beds.push(bed(&setups, traffic, false)?);
        let mut samples: Vec<Vec<Vec<f64>>> = vec![Vec::new(); beds.len()];
        for _ in 0..runs {
            for (bed, samples) in beds.iter_mut().zip(&mut samples) {
                // What ran between has left nothing of it in the caches.
                _ = bed.stretch(4 * STRETCH);
                samples.push(calm.run(|| Ok(bed.stretch(STRETCH).functions))?);
            }
        }
        for bed in &beds {
            bed.nothing_lost()?;
        }
        let of = |bed: usize, function: usize| -> Vec<f64> {
            samples.get(bed).into_iter().flatten().filter_map(|run| run.get(function)).copied().collect()
        };
        let count = setups.len();
        let each = |first: usize| (0..count).map(|i| of(first + i, 0)).collect::<Vec<Vec<f64>>>();
        let (alone, beside) = (each(0), each(count));
        let chain: Vec<Vec<f64>> = (0..count).map(|i| of(2 * count, i)).collect();
        let mut sums = [0.0; 3];
        for (i, (name, _)) in CHAIN.iter().enumerate() {
            for ((how, samples), sum) in
                [("alone", &alone), ("beside others", &beside), ("in the chain", &chain)].into_iter().zip(&mut sums)
            {
                let (value, spread) = median(&mut samples.get(i).cloned().unwrap_or_default());
                *sum += value;
                records.push(record(format!("{what}: {name} {how}"), value, spread, None));
            }
        }
        let [alone, beside, chain] = sums;
        for (how, sum) in [("alone", alone), ("beside others", beside)] {
            records.push(record(format!("{what}: sum of functions {how}"), sum, 0.0, None));
        }
        records.push(record(format!("{what}: chain"), chain, 0.0, None));
        for (how, sum) in [("alone", alone), ("beside others", beside)] {
            records.push(off(format!("{what}: the chain is off the sum {how}"), chain / sum));
        }
    }
    print!("{}", report::table(&records));
    println!("\n{:.0}% of the stretches were measured although the machine was not calm", 100.0 * calm.missed());
    record::write(&output, &records).map_err(|error| format!("{}: {error}", output.display()))?;
    println!("kept in {}", output.display());
    Ok(())
}

/// How far a chain costs more or less than the sum, per cent. "NF profiling variability can be bounded to within 3%,
/// consistent with our findings" (Lemur, §5.2).
fn off(case: String, ratio: f64) -> Record {
    let said = if ratio < 1.0 { "the chain costs less" } else { "the chain costs more" };
    let record = record(case, 100.0 * (ratio - 1.0).abs(), 0.0, Some(said.to_owned()));
    Record { unit: "%".to_owned(), paper: Some(3.0), ..record }
}

fn record(case: String, value: f64, spread: f64, limit: Option<String>) -> Record {
    let (bench, unit) = ("additivity".to_owned(), "cycles/packet".to_owned());
    Record { bench, case, unit, value, spread, limit, ..Record::default() }
}

fn setup(name: &str, size: u64) -> Option<Setup> {
    Some((registry::find(name)?.workload?.setup)(size))
}

/// A chain, ready to be measured.
fn bed(setups: &[Setup], traffic: Traffic, beside: bool) -> Result<Bed, String> {
    let mut bed = Bed::new(&Chain::of(setups), traffic, beside, 1)?;
    bed.warm_up()?;
    Ok(bed)
}

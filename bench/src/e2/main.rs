//! Measures E2's planning (Lan's dissertation, §3.6.2): how long placing takes, and how good it is.
//!
//!     bench-e2 [--samples N] [--only SUBSTRING] [--output FILE]
//!
//! `--only` measures the parts in whose names the text stands; each is told on standard error as it begins, and all take some minutes.
//! Graphs and random placements come from fixed seeds; only times differ from run to run.

mod graphs;
mod throughput;
mod time;

use std::path::PathBuf;
use std::process::ExitCode;

use catena_records::record::Record;
use catena_records::{record, report};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("bench-e2: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let (mut samples, mut only, mut output) = (8_u64, String::new(), PathBuf::from("bench/results/e2.jsonl"));
    let mut args = std::env::args().skip(1);
    while let Some(name) = args.next() {
        let value = args.next().ok_or_else(|| format!("{name} needs a value"))?;
        match name.as_str() {
            "--samples" => {
                samples = value.parse().map_err(|_| format!("--samples: expected a number, found `{value}`"))?
            }
            "--only" => only = value,
            "--output" => output = PathBuf::from(value),
            _ => return Err(format!("unknown option {name}; expected --samples, --only or --output")),
        }
    }
    let mut records = Vec::new();
    let mut part = |name: &str, measure: &dyn Fn() -> Vec<Record>| {
        if name.contains(&only) {
            eprintln!("{name}");
            records.extend(measure());
        }
    };
    for (name, measure) in time::PARTS {
        part(name, measure);
    }
    for alike in [true, false] {
        for core_bps in [1e9, 1.5e9, 2e9, 3e9] {
            let kind = if alike { "all alike" } else { "of different cost" };
            let name = format!("what a rack carries, functions {kind}, {} Gbit/s a core", core_bps / 1e9);
            part(&name, &|| throughput::records(core_bps, alike, samples.max(1)));
        }
    }
    if records.is_empty() {
        return Err(format!("no part has `{only}` in its name"));
    }
    print!("{}", report::table(&records));
    record::write(&output, &records).map_err(|error| format!("{}: {error}", output.display()))
}

//! Does a planned chain run as planned?
//!
//!     bench-planned [--runs N] [--packets N] [--only SUBSTRING] [--output FILE]
//!
//! As an operator would: `catena profile` of this machine, `catena plan` for a rack of one server, `catena run --plan`,
//! with the traffic that functions are profiled with. Every function's cycles, the framework's and every chain's rate
//! are held against the plan; each figure is the median of the calmest runs. Then what chains get of each other where more comes than
//! can be done ([`overload`]). All rules of the ACL permit, which `catena run` would find, and leave them out: not here (`--no-reduce`).

mod cases;
mod overload;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use catena_functions::workload;
use catena_records::record::{self, Record, median};
use catena_records::report;
use serde_json::Value;

use cases::{CASES, Case, OVERLOADED};

/// How far a measured figure may be from the planned one.
const OFF: f64 = 0.15;
/// Runs for each that counts: those count in which bringing packets in and out cost least, which it does when nothing else
/// has the core, or what the core shares with others.
const TRIED: usize = 4;
/// Runs of each function in each setting when the machine is profiled.
const PROFILED: &str = "10";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("bench-planned: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let (mut runs, mut packets, mut only) = (5_usize, 20_000_000_u64, String::new());
    let mut output = PathBuf::from("bench/results/planned.jsonl");
    let mut args = std::env::args().skip(1);
    while let Some(name) = args.next() {
        let value = args.next().ok_or_else(|| format!("{name} needs a value"))?;
        let number = || value.parse::<u64>().map_err(|_| format!("{name}: expected a number, found `{value}`"));
        match name.as_str() {
            "--runs" => runs = number()?.max(1) as usize,
            "--packets" => packets = number()?,
            "--only" => only = value,
            "--output" => output = PathBuf::from(value),
            _ => return Err(format!("unknown option {name}; expected --runs, --packets, --only or --output")),
        }
    }
    let traffic =
        format!("gen:{}", workload::traffic(workload::SHORT_LIVED, Some(workload::SHORT_LIVED), workload::PACKETS));
    let folder = std::env::temp_dir().join(format!("catena-planned-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    // After each case, so that what a night's measuring found is not lost with its end.
    let keep =
        |records: &[Record]| record::write(&output, records).map_err(|error| format!("{}: {error}", output.display()));
    let records = measured(&folder, &traffic, (runs, packets), &only, keep);
    std::fs::remove_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let records = records?;
    print!("{}", report::table(&records));
    Ok(())
}

/// Measure the cases in whose names `only` stands; what there is after each goes to `keep`.
fn measured(
    folder: &Path,
    traffic: &str,
    (runs, packets): (usize, u64),
    only: &str,
    keep: impl Fn(&[Record]) -> Result<(), String>,
) -> Result<Vec<Record>, String> {
    let wanted = |case: &&Case| case.name.contains(only);
    let all = CASES.iter().chain(OVERLOADED);
    let mut functions: Vec<&str> = all.filter(wanted).flat_map(Case::functions).collect();
    functions.sort_unstable();
    functions.dedup();
    eprintln!("profiling {}", functions.join(", "));
    let how = ["--runs", PROFILED, "--in", traffic, "--output", "profile.json"];
    catena(folder, &[&["profile"], &functions[..], &how].concat())?;
    let profile: Value = read(&folder.join("profile.json"))?;
    let clock = profile.pointer("/machine/clock_hz").and_then(Value::as_f64).ok_or("the profile has no clock")?;
    write(folder, "rack.toml", &cases::rack(clock))?;
    let mut records = Vec::new();
    for case in CASES.iter().filter(wanted) {
        plan(folder, case)?;
        let input = format!("{traffic},count={packets}");
        let mut rows: BTreeMap<(usize, usize), Row> = BTreeMap::new();
        let mut comparisons = Vec::new();
        for _ in 0..runs * TRIED {
            let text = catena(
                folder,
                &["run", "case.catena", "--no-reduce", "--plan", "plan.json", "--in", &input, "--json"],
            )?;
            let report: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
            let in_and_out = report.pointer("/planned/framework/0/measured").and_then(Value::as_f64);
            comparisons.push((in_and_out.unwrap_or(f64::INFINITY), report["planned"].clone()));
        }
        comparisons.sort_by(|a, b| a.0.total_cmp(&b.0));
        comparisons.iter().take(runs).for_each(|(_, comparison)| collect(comparison, &mut rows));
        records.extend(rows.into_iter().map(|((group, _), row)| row.record(case.name, group)));
        keep(&records)?;
    }
    for case in OVERLOADED.iter().filter(wanted) {
        plan(folder, case)?;
        records.extend(overload::measured(folder, case, traffic, runs)?);
        keep(&records)?;
    }
    Ok(records)
}

/// Write a case's files and its plan.
fn plan(folder: &Path, case: &Case) -> Result<(), String> {
    eprintln!("{}", case.name);
    case.files()?.iter().try_for_each(|(name, text)| write(folder, name, text))?;
    let args = ["plan", "case.catena", "--rack", "rack.toml", "--profile", "profile.json", "-o", "plan.json"];
    catena(folder, &args).map(drop)
}

/// The groups of a comparison, in the order that they are shown in, with their units.
const GROUPS: [(&str, &str, f64); 3] =
    [("functions", "cycles/packet", 1.0), ("framework", "cycles/packet", 1.0), ("chains", "Gbit/s", 1e-9)];

struct Row {
    name: String,
    planned: f64,
    measured: Vec<f64>,
}

/// Take what a run held against its plan.
fn collect(comparison: &Value, rows: &mut BTreeMap<(usize, usize), Row>) {
    for (group, (key, _, scale)) in GROUPS.iter().enumerate() {
        for (n, row) in comparison[key].as_array().into_iter().flatten().enumerate() {
            let figure = |key: &str| row[key].as_f64().unwrap_or(0.0) * scale;
            let name = row["name"].as_str().unwrap_or_default();
            let name = if *key == "chains" { format!("chain {name}") } else { name.to_owned() };
            let entry = rows.entry((group, n));
            let entry = entry.or_insert_with(|| Row { name, planned: figure("planned"), measured: Vec::new() });
            entry.measured.push(figure("measured"));
        }
    }
}

impl Row {
    fn record(mut self, case: &str, group: usize) -> Record {
        let (value, spread) = median(&mut self.measured);
        let off = 100.0 * (value / self.planned - 1.0);
        Record {
            bench: "planned".to_owned(),
            case: format!("{case}: {}", self.name),
            unit: GROUPS[group].1.to_owned(),
            value,
            spread,
            bar: Some(self.planned * (1.0 + OFF)),
            floor: Some(self.planned * (1.0 - OFF)),
            peer: vec![("planned".to_owned(), self.planned)],
            limit: Some(format!("off by {off:+.1}%")),
            ..Record::default()
        }
    }
}

/// Run the `catena` that was built with this benchmark.
fn catena(folder: &Path, args: &[&str]) -> Result<String, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let program = own.with_file_name("catena");
    let mut command = Command::new(&program);
    // What it says of its progress is read at once, and so is what went wrong.
    let output = command.args(args).current_dir(folder).stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| format!("{}: {error}; build it with `make build`", program.display()))?;
    if !output.status.success() {
        return Err(format!("catena {}: {}", args.join(" "), output.status));
    }
    String::from_utf8(output.stdout).map_err(|error| error.to_string())
}

fn read(path: &Path) -> Result<Value, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
}

fn write(folder: &Path, name: &str, text: &str) -> Result<(), String> {
    let path = folder.join(name);
    std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
}

//! What a container that computes loses beside containers that send and receive, without and with enforcement.
//!
//!     bench-iron [--rounds N] [--measured MS] [--only WORDS] [--output FILE]
//!
//! As Khalid's dissertation, sections 2.1.3 and 2.3.1, Figures 2.1 to 2.5 and 2.9 to 2.12: the penalty factor is the time that
//! the victim's work takes, relative to its time when all the others compute. Each round has three turns: all compute, traffic,
//! traffic with enforcement. A factor is the median over rounds, each relative to its own round. The row without traffic is
//! the noise of the machine. Then what packets cost ([`costs`], Table 2.15), how near containers come to their limits
//! ([`limits`], Figure 2.14), what the accounts cost ([`tracing`]), what ordinary programs lose ([`applications`], Figure 2.13), and where
//! packets are dropped ([`dropping`], Figure 2.16). Needs root, and two CPUs.

mod applications;
mod cases;
mod costs;
mod dropping;
mod limits;
mod over;
mod tracing;

use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Duration;

use catena_isolation::scene::turn::{Seen, Times, Turn, Way};
use catena_isolation::scene::{OUTSIDE, Scene, SceneError, actor};
use catena_records::record::{self, Record, median};
use catena_records::report;

use cases::{CASES, Case};

/// What all containers together may use, in percent of the core.
const QUOTAS: f64 = 90.0;
/// The most that a victim may lose.
const BAR: f64 = 1.05;
/// What a shaped container may send.
const SHAPED: &str = "200mbit";
/// The word by which this program does a part of a scene.
const ACT: &str = "act";

struct Options {
    rounds: u64,
    measured: Duration,
    only: String,
    output: PathBuf,
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("bench-iron: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let mut args = std::env::args().skip(1).peekable();
    if args.next_if(|word| word == ACT).is_some() {
        return actor::act(&args.collect::<Vec<_>>());
    }
    let mut options = Options {
        rounds: 5,
        measured: Duration::from_millis(1200),
        only: String::new(),
        output: PathBuf::from("bench/results/iron.jsonl"),
    };
    while let Some(name) = args.next() {
        let value = args.next().ok_or_else(|| format!("{name} needs a value"))?;
        let number = || value.parse::<u64>().map_err(|_| format!("{name}: expected a number, found `{value}`"));
        match name.as_str() {
            "--rounds" => options.rounds = number()?.max(1),
            "--measured" => options.measured = Duration::from_millis(number()?.max(200)),
            "--only" => options.only = value,
            "--output" => options.output = PathBuf::from(value),
            _ => return Err(format!("unknown option {name}; expected --rounds, --measured, --only or --output")),
        }
    }
    over::listen();
    // As the work of enforcement on another core is nobody's traffic; processes of a scene choose their own.
    actor::pin(OUTSIDE).map_err(|error| format!("CPU {OUTSIDE}: {error}"))?;
    let mut records = Vec::new();
    // Each row is kept as it comes: what is cut off is not lost.
    let mut keep = |rows: Vec<Record>| {
        let kept = record::update(&options.output, &rows);
        records.extend(rows);
        kept.map_err(|error| format!("{}: {error}", options.output.display()))
    };
    for case in CASES.iter().filter(|case| case.name.contains(&options.only)) {
        eprintln!("{}", case.name);
        match measure(case, &options) {
            Ok(rows) => keep(rows.into())?,
            // The others can still be measured.
            Err(Skipped::Shaping(why)) => eprintln!("  not measured: no token bucket: {why}"),
            Err(Skipped::Failed(why)) => return Err(why),
        }
    }
    let failed = |error: SceneError| error.to_string();
    keep(costs::rows(&options).map_err(failed)?)?;
    for row in limits::rows(&options) {
        keep(vec![row.map_err(failed)?])?;
    }
    for rows in [tracing::rows, applications::rows, dropping::rows] {
        keep(rows(&options).map_err(failed)?)?;
    }
    print!("{}", report::table(&records));
    Ok(())
}

/// Why a row is missing.
enum Skipped {
    Shaping(String),
    Failed(String),
}

/// Play a row's rounds.
fn measure(case: &Case, options: &Options) -> Result<[Record; 2], Skipped> {
    let failed = |error: SceneError| Skipped::Failed(error.to_string());
    let quota = QUOTAS / case.containers as f64;
    let containers: Vec<(String, f64)> = (0..case.containers).map(|number| (format!("c{number}"), quota)).collect();
    let mut scene = Scene::new(&containers, &[ACT]).map_err(failed)?;
    if case.traffic.way == Way::Out && case.traffic.protocol == actor::Protocol::Udp {
        scene.sink().map_err(failed)?;
    }
    if case.is_shaped {
        shape(&scene).map_err(Skipped::Shaping)?;
    }
    // For up to a second after enforcement the kernel still waits for the end of its long period.
    let turns = [(Turn::Calm, 1200), (Turn::Without, 200), (case.enforced, 1000)];
    let mut factors = [Vec::new(), Vec::new()];
    let mut gaps = [0.0_f64; 2];
    let mut costs = [Vec::new(), Vec::new()];
    for _ in 0..options.rounds {
        let mut calm = 0.0;
        for (number, (turn, before)) in turns.into_iter().enumerate() {
            let times = Times { before: Duration::from_millis(before), measured: options.measured };
            let seen = scene.turn(case.traffic, turn, times, over::is_over).map_err(failed)?;
            let Some(number) = number.checked_sub(1) else {
                calm = seen.work;
                continue;
            };
            factors[number].push(calm / seen.work.max(f64::MIN_POSITIVE));
            gaps[number] = gaps[number].max(seen.status.gap * 100.0);
            costs[number].push(interferers(&scene, case, &seen));
        }
    }
    let [mut without, mut with] = factors;
    let mut record = |number: usize, samples: &mut [f64], how: &str| {
        let (value, spread) = median(samples);
        let (cost, _) = median(&mut costs[number]);
        Record {
            bench: "iron".to_owned(),
            case: format!("{}: {how}", case.name),
            unit: "penalty factor".to_owned(),
            value,
            spread,
            bar: (number == 1).then_some(BAR),
            paper: case.paper[number],
            peer: vec![("accounts' gap, %".to_owned(), gaps[number]), ("interferers' cost, %".to_owned(), cost)],
            ..Record::default()
        }
    };
    let how = if case.enforced == Turn::Threads { "with threads" } else { "with accounts" };
    Ok([record(0, &mut without, "without"), record(1, &mut with, how)])
}

/// Return what the containers with traffic cost together, in percent of one CPU.
fn interferers(scene: &Scene, case: &Case, seen: &Seen) -> f64 {
    let with_traffic = scene.containers().iter().skip(1).take(case.traffic.count);
    with_traffic.map(|container| seen.cost(container.cgroup())).sum()
}

/// Hold what containers send to a rate, by a hierarchical token bucket.
fn shape(scene: &Scene) -> Result<(), String> {
    for container in scene.containers() {
        let device = container.sends_by();
        for words in [
            format!("qdisc add dev {device} root handle 1: htb default 1"),
            format!("class add dev {device} parent 1: classid 1:1 htb rate {SHAPED}"),
        ] {
            let mut command = Command::new("tc");
            command.args(["-n", container.namespace()]).args(words.split(' '));
            let output = command.output().map_err(|error| format!("tc: {error}"))?;
            if !output.status.success() {
                return Err(format!("tc {words}: {}", String::from_utf8_lossy(&output.stderr).trim()));
            }
        }
    }
    Ok(())
}

//! Lemur's experiments (Yen et al., Meeting SLOs in Cross-Platform NFV, CoNEXT 2020, §5) with Catena's planners.
//!
//!     bench-lemur [--samples N] [--output FILE]
//!
//! Rates are those that the plans promise, in Gbit/s, 0 where a strategy finds no plan (in Figure 2 what is beyond the
//! promises, elsewhere all); every plan has passed the checker. The paper gives few of its figures in numbers:
//! where it does, they stand beside.

mod other;
mod sets;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use catena_plan::check::check;
use catena_plan::lemur::{Strategy, place};
use catena_plan::placement::{Outcome, Placement};
use catena_plan::problem::Problem;
use catena_plan::switch;
use catena_records::record::{self, Record, median};
use catena_records::report;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("bench-lemur: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let mut samples = 9;
    let mut output = PathBuf::from("bench/results/lemur.jsonl");
    let mut args = std::env::args().skip(1);
    while let Some(name) = args.next() {
        let value = args.next().ok_or_else(|| format!("{name} needs a value"))?;
        match name.as_str() {
            "--samples" => samples = value.parse().map_err(|_| format!("--samples: `{value}` is no number"))?,
            "--output" => output = PathBuf::from(value),
            _ => return Err(format!("unknown option {name}; expected --samples or --output")),
        }
    }
    let mut records = sets::figure_2(samples)?;
    records.extend(other::figure_3()?);
    records.extend(other::latency()?);
    records.extend(other::eleven_translators()?);
    records.extend(sets::profile_errors()?);
    record::write(&output, &records).map_err(|error| format!("{}: {error}", output.display()))?;
    println!("{}", report::table(&records));
    Ok(())
}

/// A case of this benchmark.
fn case(name: String, unit: &str, value: f64) -> Record {
    Record { bench: "lemur".into(), case: name, unit: unit.into(), value, ..Record::default() }
}

/// A plan and its aggregate rate in Gbit/s.
struct Planned {
    placement: Placement,
    gbps: f64,
    /// Whether no better one exists, as far as the planner knows.
    proven: bool,
}

/// Plan, and let the checker look at it; None: the strategy finds none.
fn plan(problem: &Problem, strategy: Strategy) -> Result<Option<Planned>, String> {
    let switch = switch::for_problem(problem);
    let Outcome::Placed { placement, marginal_bps, bound_bps } = place(problem, strategy, switch.as_ref()) else {
        return Ok(None);
    };
    check(problem, &placement, switch.as_ref()).map_err(|wrong| format!("{}: {wrong:?}", strategy.name()))?;
    let proven = bound_bps.is_some_and(|bound| bound <= marginal_bps * (1.0 + 1e-6));
    Ok(Some(Planned { gbps: placement.rates_bps.iter().sum::<f64>() / 1e9, placement, proven }))
}

/// Milliseconds that a strategy takes: median and spread of so many runs, each with a switch that remembers nothing.
fn time(problem: &Problem, strategy: Strategy, samples: usize) -> (f64, f64) {
    let mut times: Vec<f64> = (0..samples.max(1))
        .map(|_| {
            let start = Instant::now();
            let switch = switch::for_problem(problem);
            std::hint::black_box(place(problem, strategy, switch.as_ref()));
            start.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    median(&mut times)
}

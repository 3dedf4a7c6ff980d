//! The options of `catena run` as what a run is made of.

use std::path::Path;

use catena::{Chain, Counts, Failure, Names, Port, Ports, Run};
use catena_runtime::files::export_of;
use catena_runtime::inode::{self, Uses};

use crate::arguments::RunOptions;

/// What the parts of a run are called on the command line.
pub const NAMES: Names = Names {
    sources: ["--in", "--back-in"],
    exits: ["--back-out", "--out"],
    workers: "--workers",
    core: "--core",
    rebalance: "--rebalance",
    tenants: "--tenants",
};

/// Read the names of ports.
///
/// # Errors
/// What is wrong with an option.
pub fn ports(options: &RunOptions) -> Result<Ports, Failure> {
    let input = Port::source(&options.input, NAMES.sources[0])?;
    let output = Port::exit(&options.output, NAMES.exits[1])?;
    let mut ports = Ports::between(input, output);
    if let Some(path) = &options.back_in {
        ports.outside[0] = Port::Capture(path.clone());
    }
    if let Some(path) = &options.back_out {
        ports.inside[1] = Port::capture_out(path, NAMES.exits[0])?;
    }
    if let (Port::Interface(from), Port::Interface(to)) = (&ports.inside[0], &ports.outside[1])
        && from == to
    {
        let (from, to) = (&options.input, &options.output);
        return Err(format!("--in {from}, --out {to}: one interface would take in again what it sends").into());
    }
    Ok(ports)
}

/// A run of a chain file as the options ask for it, but for its ports and plan.
pub fn run<'a>(options: &RunOptions, chain: &'a Chain) -> Run<'a> {
    let counts = if options.early_drops { Counts::Totals } else { Counts::Functions };
    let run = Run::of(chain)
        .named(NAMES)
        .workers(options.workers)
        .rebalance(options.rebalance)
        .tenants(options.tenants)
        .first_core(options.core)
        .seed(options.seed)
        .reduce((!options.no_reduce).then_some(counts))
        .wait_for_interfaces(options.duration.is_some());
    match &options.plan {
        Some(plan) => run.reads("--plan", plan),
        None => run,
    }
}

/// Return the files of a run, but for those that functions write to, which depend on the number of workers: those of one worker
/// are looked at, so that what is wrong is said before a source is waited for.
///
/// # Errors
/// When one would be written over another, or over something that is read.
pub fn files(run: &mut Run<'_>) -> Result<Uses, Failure> {
    let mut uses = run.uses()?;
    let outputs = &run.prepare()?.outputs;
    let mut with_outputs = uses.clone();
    for (function, path) in outputs {
        with_outputs.writes(&export_of(function), path)?;
    }
    with_outputs.check_stderr()?;
    if with_outputs.write_stdout() {
        return Ok(uses);
    }
    // The closing table goes there.
    uses.writes("the closing table on", Path::new("-"))?;
    for (function, path) in outputs {
        uses.clone().writes(&export_of(function), path)?;
    }
    Ok(uses)
}

/// Return whether packets or records of functions go to standard output.
///
/// # Errors
/// None once the run is prepared.
pub fn writes_to_stdout(run: &mut Run<'_>) -> Result<bool, Failure> {
    let exported = run.prepare()?.outputs.iter().any(|(_, path)| inode::is_stdout(path));
    Ok(exported || run.all_ports().written().any(inode::is_stdout))
}

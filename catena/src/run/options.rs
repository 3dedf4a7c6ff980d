//! The options of `catena run` as what a run is made of.

use std::path::Path;

use catena_compile::Host;
use catena_runtime::files::{export_of, of_chain};
use catena_runtime::inode::Uses;
use catena_runtime::names::Names;
use catena_runtime::trial::Files;
use catena_runtime::{Failure, Port, Ports};

use crate::arguments::RunOptions;

/// What the parts of a run are called on the command line.
pub const NAMES: Names = Names {
    sources: ["--in", "--back-in"],
    exits: ["--back-out", "--out"],
    workers: "--workers",
    core: "--core",
    rebalance: "--rebalance",
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

/// Return the files of a run, but for those that functions write to, which depend on the number of workers: `files` are
/// those of one worker, and are looked at, so that what is wrong is said before a source is waited for.
///
/// # Errors
/// When one would be written over another, or over something that is read.
pub fn files(options: &RunOptions, host: &Host, ports: &Ports, files: &Files) -> Result<Uses, Failure> {
    let mut uses = of_chain(&options.file, host, files)?;
    options.plan.iter().try_for_each(|plan| uses.reads("--plan", plan))?;
    ports.add_to(&mut uses, &NAMES)?;
    let outputs = &files.outputs;
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

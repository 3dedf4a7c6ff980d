//! The files of a run: what it reads is not written, and no two outputs are one file.

use std::path::Path;

use catena_compile::{Host, Lowered};
use catena_functions::config::Value;

use super::ports::Ports;
use crate::Failure;
use crate::arguments::RunOptions;
use crate::inode::Uses;
use crate::trial::Files;

/// Return the files of a run, but for those that functions write to, which depend on the number of workers: `files` are
/// those of one worker, and are looked at, so that what is wrong is said before a source is waited for.
///
/// # Errors
/// When one would be written over another, or over something that is read.
pub fn of(options: &RunOptions, host: &Host, ports: &Ports, files: &Files) -> Result<Uses, Failure> {
    let mut uses = of_chain(&options.file, host, files)?;
    options.plan.iter().try_for_each(|plan| uses.reads("--plan", plan))?;
    ports.add_to(&mut uses)?;
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

/// Return what the functions of a chain file read, and the chain file.
///
/// # Errors
/// When one of the chain's own outputs would be written over it, or over another one.
pub fn of_chain(file: &Path, host: &Host, files: &Files) -> Result<Uses, Failure> {
    let mut uses = Uses::default();
    uses.reads("the chain file", file)?;
    for module in &host.modules {
        let Lowered::Function { args, .. } = &module.kind else { continue };
        args.iter().try_for_each(|(name, value)| add(&mut uses, &format!("`{name}` of `{}`", module.name), value))?;
    }
    for (function, path) in &files.inputs {
        uses.reads(&export_of(function), path)?;
    }
    let mut with_outputs = uses.clone();
    for (function, path) in &files.outputs {
        with_outputs.writes(&export_of(function), path)?;
    }
    Ok(uses)
}

/// Return what the user calls a file of a function.
pub fn export_of(function: &str) -> String {
    format!("`{function}`:")
}

/// Add the files that an argument was read from.
fn add(uses: &mut Uses, what: &str, value: &Value) -> Result<(), Failure> {
    match value {
        Value::File { path, .. } => uses.reads(what, Path::new(path)),
        Value::List(values) => values.iter().try_for_each(|value| add(uses, what, value)),
        Value::Record(fields) => fields.iter().try_for_each(|(_, value)| add(uses, what, value)),
        _ => Ok(()),
    }
}

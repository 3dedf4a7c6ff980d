//! The files of a run: what it reads is not written, and no two outputs are one file.

use std::path::Path;

use catena_compile::{Host, Lowered};
use catena_functions::config::Value;

use crate::Failure;
use crate::inode::Uses;
use crate::trial::Files;

/// Return what the functions of a chain read, and the chain file, if it is one.
///
/// # Errors
/// When one of the chain's own outputs would be written over it, or over another one.
pub fn of_chain(file: Option<&Path>, host: &Host, files: &Files) -> Result<Uses, Failure> {
    let mut uses = Uses::default();
    file.iter().try_for_each(|file| uses.reads("the chain file", file))?;
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

//! Building a pipeline's modules on trial: what only a function can know of its arguments shows before a port is opened.

use std::path::PathBuf;
use std::sync::Arc;

use catena_compile::{BuildError, Counts, Findings, Host, Lowered, lower, reduce, try_modules};
use catena_packet::wire::Seed;

use crate::{Chain, Failure};

/// The files of functions, by function; `-` is a standard stream.
#[derive(Debug)]
pub struct Files {
    /// Those that they use while they run.
    pub inputs: Vec<(Arc<str>, PathBuf)>,
    /// Those that they write to.
    pub outputs: Vec<(Arc<str>, PathBuf)>,
}

/// Lower a chain file to its host pipeline, and build its modules once to throw them away.
///
/// # Errors
/// What the library lacks or a function refuses, with the place in the chain file.
pub fn lower_and_build(loaded: &Chain) -> Result<(Host, Files), Failure> {
    let host = lower(&loaded.graph).map_err(|error| format!("{}: {error}", loaded.name))?;
    let files = build_once(&host, loaded)?;
    Ok((host, files))
}

/// Build a chain file's functions once, to see what they refuse: all but those in C, whose libraries are loaded by what
/// runs them or checks them.
///
/// # Errors
/// What the library lacks or a function refuses, with the place in the chain file.
pub fn try_arguments(loaded: &Chain) -> Result<(), Failure> {
    let mut host = lower(&loaded.graph).map_err(|error| format!("{}: {error}", loaded.name))?;
    for module in &mut host.modules {
        if matches!(&module.kind, Lowered::Function { descriptor, .. } if descriptor.name == "Native") {
            module.kind = Lowered::Discard;
        }
    }
    build_once(&host, loaded).map(|_| ())
}

/// Lower a chain file to its host pipeline, and take out what is redundant.
///
/// # Errors
/// What the library lacks or a list of rules refuses, with the place in the chain file.
pub fn lower_and_reduce(loaded: &Chain, counts: Counts) -> Result<(Host, Findings), Failure> {
    let host = lower(&loaded.graph).map_err(|error| format!("{}: {error}", loaded.name))?;
    reduce(host, counts).map_err(|error| explain(&error, loaded))
}

/// Return which counts are observed: with early drops only those of the whole.
pub fn counts(early_drops: bool) -> Counts {
    if early_drops { Counts::Totals } else { Counts::Functions }
}

/// Build a pipeline's modules to throw them away, one after the other, and return the files that it would use if it ran with one
/// worker.
///
/// # Errors
/// What a function refuses, with the place in the chain file.
pub fn build_once(host: &Host, loaded: &Chain) -> Result<Files, Failure> {
    let mut files = Files { inputs: Vec::new(), outputs: Vec::new() };
    let tried = try_modules(host, Seed::from_number(0), |name, module| {
        files.inputs.extend(module.inputs().into_iter().map(|path| (Arc::clone(name), path)));
        files.outputs.extend(module.outputs().into_iter().map(|path| (Arc::clone(name), path)));
    });
    tried.map(|()| files).map_err(|error| explain(&error, loaded))
}

/// Say where in the chain file the trouble is.
fn explain(error: &BuildError, loaded: &Chain) -> Failure {
    let node = match error {
        BuildError::Argument { origin: (chain, node), .. } => {
            loaded.graph.chains.get(*chain).and_then(|c| c.nodes.get(*node))
        }
        _ => None,
    };
    let before = |at: u32| loaded.source.bytes().take(at as usize).filter(|byte| *byte == b'\n').count();
    match node.map(|node| 1 + before(node.span.start)) {
        Some(line) => Failure::new(format!("{}:{line}: {error}", loaded.name)),
        None => Failure::new(format!("{}: {error}", loaded.name)),
    }
}

//! Building a pipeline on trial: what only a function can know of its arguments shows before a port is opened.

use catena_compile::{BuildError, Host, build, lower};
use catena_dataplane::port::Sink;
use catena_packet::wire::Seed;
use catena_state::Share;

use crate::Failure;
use crate::chain::Loaded;

/// Lower a chain file to its host pipeline, and build that once to throw it away.
///
/// # Errors
/// What the library lacks or a function refuses, with the place in the chain file.
pub fn lower_and_build(loaded: &Loaded) -> Result<Host, Failure> {
    let host = lower(&loaded.graph).map_err(|error| format!("{}: {error}", loaded.name))?;
    build(&host, Seed::from_number(0), Share::WHOLE, |_| Box::new(Sink)).map_err(|error| explain(&error, loaded))?;
    Ok(host)
}

/// Say where in the chain file the trouble is.
fn explain(error: &BuildError, loaded: &Loaded) -> Failure {
    let node = match error {
        BuildError::Argument { origin: (chain, node), .. } => {
            loaded.graph.chains.get(*chain).and_then(|c| c.nodes.get(*node))
        }
        _ => None,
    };
    let before = |at: u32| loaded.source.bytes().take(at as usize).filter(|byte| *byte == b'\n').count();
    match node.map(|node| 1 + before(node.span.start)) {
        Some(line) => Failure(format!("{}:{line}: {error}", loaded.name)),
        None => Failure(format!("{}: {error}", loaded.name)),
    }
}

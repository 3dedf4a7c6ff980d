//! Files named on the command line: what is wrong with one is said in words, with its name and what was expected there.

use std::path::Path;

pub use catena_runtime::file::read;
use catena_runtime::replace;

use crate::inode::{Identity, is_stdout};
use crate::{Failure, streams};

/// Write a file in one step, as [`replace::write`] does. `-` is standard output.
///
/// # Errors
/// When that cannot be done.
pub fn write(path: &Path, text: impl AsRef<[u8]>) -> Result<(), Failure> {
    let text = text.as_ref();
    if is_stdout(path) {
        return streams::print_bytes(text);
    }
    let there = Identity::of(path);
    // `/dev/stdout`, and what it is redirected to: behind what has been printed, and before what will be.
    if there.is_some() && there == Identity::of_stream(std::io::stdout()) {
        return streams::print_bytes(text);
    }
    Ok(replace::write(path, text)?)
}

/// Check that a file can be written, before what is to be written takes minutes to make. The file itself is not touched.
///
/// # Errors
/// When it cannot.
pub fn check_writable(path: &Path) -> Result<(), Failure> {
    match is_stdout(path) {
        true => Ok(streams::check_open()?),
        false => Ok(replace::check(path)?),
    }
}

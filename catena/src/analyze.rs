//! `catena analyze`: finds the state of a network function in C or C++.
//!
//! The analysis is a program of its own, `catena-analyze`, because it is written on LLVM, which not everybody who
//! runs chains has. `make analysis` builds it where this command looks for it.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use crate::Failure;
use crate::arguments::AnalyzeOptions;

const PROGRAM: &str = "catena-analyze";

/// Become `catena-analyze` with the given arguments; return only if that fails.
pub fn analyze(options: &AnalyzeOptions) -> Result<ExitCode, Failure> {
    let program = places().into_iter().find(|place| place.is_file()).unwrap_or_else(|| PathBuf::from(PROGRAM));
    // A `--` in front of all is lost on the way here, but says that a build's command follows.
    let build = std::env::args_os().skip_while(|word| word != "analyze").nth(1).filter(|word| word == "--");
    let error = Command::new(program).args(build).args(&options.arguments).exec();
    if error.kind() == std::io::ErrorKind::NotFound {
        return Err(Failure(format!(
            "{PROGRAM} is not there: `make analysis` builds it (it needs LLVM 19, and installs it)"
        )));
    }
    Err(Failure(format!("{PROGRAM}: {error}")))
}

/// Where it may be, before `PATH`: named by `CATENA_ANALYZE`, beside this command, or where `make analysis` builds it.
fn places() -> Vec<PathBuf> {
    let mut places: Vec<PathBuf> = std::env::var_os("CATENA_ANALYZE").map(PathBuf::from).into_iter().collect();
    let own = std::env::current_exe().unwrap_or_default();
    if let Some(folder) = own.parent() {
        places.push(folder.join(PROGRAM));
        places.extend(folder.parent().map(|target| target.join("analysis").join(PROGRAM)));
    }
    places
}

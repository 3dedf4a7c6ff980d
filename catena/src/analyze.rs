//! `catena analyze` and `catena reduce`: find the state of a network function in C or C++, and remove what its configuration
//! makes redundant.
//!
//! Both are programs of their own, `catena-analyze` and `catena-reduce`, because they are written on LLVM, which not everybody
//! who runs chains has. `make analysis` builds them where these commands look for them.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use crate::Failure;

/// Become the program for a subcommand, `analyze` or `reduce`, with what stands behind it on the command line; return only if
/// that fails.
pub fn analysis(subcommand: &str) -> Result<ExitCode, Failure> {
    let program = format!("catena-{subcommand}");
    let place = places(&program).into_iter().find(|place| place.is_file()).unwrap_or_else(|| PathBuf::from(&program));
    // As it was typed: to these programs `--` says that something of another program follows, wherever it stands.
    let words = std::env::args_os().skip_while(|word| word != subcommand).skip(1);
    let error = Command::new(place).args(words).exec();
    if error.kind() == std::io::ErrorKind::NotFound {
        return Err(Failure(format!(
            "{program} is not there: `make analysis` builds it (it needs LLVM 19, and installs it)"
        )));
    }
    Err(Failure(format!("{program}: {error}")))
}

/// Where a program may be, before `PATH`: named by `CATENA_ANALYZE` or `CATENA_REDUCE`, beside this command, or where `make
/// analysis` builds it.
fn places(program: &str) -> Vec<PathBuf> {
    let variable = program.replace('-', "_").to_uppercase();
    let mut places: Vec<PathBuf> = std::env::var_os(variable).map(PathBuf::from).into_iter().collect();
    let own = std::env::current_exe().unwrap_or_default();
    if let Some(folder) = own.parent() {
        places.push(folder.join(program));
        places.extend(folder.parent().map(|target| target.join("analysis").join(program)));
    }
    places
}

//! The `catena` command.

#![deny(clippy::print_stdout, clippy::print_stderr)]

mod analyze;
mod arguments;
mod bench;
mod book;
mod chain;
mod file;
mod functions;
mod isolate;
mod new;
mod plan;
mod profile;
mod run;
mod show;
mod streams;

use std::process::ExitCode;

use arguments::{Arguments, Command};
use catena_runtime::{inode, table, trial};
use clap::Parser;

/// What went wrong, ready for the user; 1 is a problem in what was given, as a Unix tool's.
pub struct Failure(pub String);

impl<T: std::fmt::Display> From<T> for Failure {
    fn from(error: T) -> Self {
        Failure(error.to_string())
    }
}

fn main() -> ExitCode {
    if let Some(missing) = missing_feature() {
        streams::tell(format_args!(
            "catena: this processor lacks {missing}, which this build needs; build with RUSTFLAGS=-Ctarget-cpu=native\n"
        ));
        return ExitCode::FAILURE;
    }
    // A reader who leaves and a file that may not grow are errors of writing, which whoever writes handles: SIGPIPE is ignored
    // already by Rust's runtime.
    // SAFETY: nothing else runs yet, and ignoring is no handler of ours.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    let done = match Arguments::try_parse() {
        Ok(arguments) => execute(arguments.command),
        Err(usage) => say(&usage),
    };
    match done {
        Ok(code) => code,
        Err(Failure(message)) => {
            streams::tell(format_args!("catena: {}\n", streams::Printable(message)));
            ExitCode::FAILURE
        }
    }
}

fn execute(command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Run(options) => run::run(&options),
        Command::Check(options) => chain::check(&options),
        Command::Fmt(options) => chain::fmt(&options),
        Command::Show(options) => show::show(&options),
        Command::Functions(options) => functions::functions(&options),
        Command::Plan(options) => plan::plan(&options),
        Command::New(options) => new::new(&options),
        Command::Profile(options) => profile::profile(&options),
        Command::Analyze(_) => analyze::analysis("analyze"),
        Command::Reduce(_) => analyze::analysis("reduce"),
        Command::Isolate(command) => isolate::isolate(&command),
        Command::Bench(command) => bench::bench(&command),
    }
}

/// Print what the grammar says: help that was asked for, or what is wrong with a command line, which ends with 2.
fn say(usage: &clap::Error) -> Result<ExitCode, Failure> {
    if !usage.use_stderr() {
        streams::check_open()?;
        usage.print().map_err(streams::unwritten)?;
    } else {
        // Where standard error takes nothing, nobody is left to be told.
        _ = usage.print();
    }
    Ok(ExitCode::from(u8::try_from(usage.exit_code()).unwrap_or(2)))
}

/// Return what the build takes for granted and this processor has not.
fn missing_feature() -> Option<&'static str> {
    #[cfg(target_arch = "x86_64")]
    {
        let features = [
            (cfg!(target_feature = "avx2"), std::is_x86_feature_detected!("avx2"), "AVX2"),
            (cfg!(target_feature = "bmi2"), std::is_x86_feature_detected!("bmi2"), "BMI2"),
        ];
        features.into_iter().find(|(needed, there, _)| *needed && !there).map(|(_, _, name)| name)
    }
    #[cfg(not(target_arch = "x86_64"))]
    None
}

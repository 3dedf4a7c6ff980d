//! `catena run`: a chain file on packets.

mod options;
mod progress;
pub mod signals;

use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use catena::{Chain, Planned, Report, Running};
use catena_plan::plan::Plan;
use catena_planner::for_traffic;
use catena_runtime::{Port, Ports, fresh_seed};

use crate::arguments::{RunOptions, ShowOptions};
use crate::{Failure, chain, streams};

/// How often the command looks whether the run shall be over.
const LOOK: Duration = Duration::from_millis(20);
/// After this time without an end the command says what it waits for.
const SLOW_END: Duration = Duration::from_secs(2);

/// Run a chain file.
///
/// # Errors
/// When the file or a port cannot be used, or something could not be written.
pub fn run(options: &RunOptions) -> Result<ExitCode, Failure> {
    let chain = chain::load(&options.file)?;
    let mut run = options::run(options, &chain);
    // Before any port is opened: an output file is not emptied for a chain that cannot run.
    run.prepare()?;
    let ports = options::ports(options)?;
    let planned = options.plan.as_deref().map(Planned::read).transpose()?;
    let tell = |note: &_| streams::tell(format_args!("catena: {note}\n"));
    let mut run = run.ports(ports).planned(planned).tell(tell);
    // Before the time that a run may take, and that it waits for whoever reads a pipe.
    run.plan()?;
    let uses = options::files(&mut run)?;
    // When packets or records go to standard output, the table must not.
    let to_stderr = options::writes_to_stdout(&mut run)?;
    let signalled = signals::listen()?;
    let asked = Instant::now();
    let interrupted = || signalled.load(Ordering::Relaxed);
    let too_long = |since: Duration| options.duration.is_some_and(|most| since >= most);
    let running = run.using(uses).over(|| interrupted() || too_long(asked.elapsed())).start()?;
    let report = watched(running, options, &interrupted, &too_long)?;
    print(&report, options.json, to_stderr)?;
    Ok(if report.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The plan by which a file would be run, on traffic as it comes, and whether it holds all that is promised; what it does not is said.
///
/// # Errors
/// Why it cannot be planned.
pub fn planned(chain: &Chain, options: &ShowOptions) -> Result<(Plan, bool), Failure> {
    let workers = options.workers.unwrap_or(1);
    // By any port, unless one is named.
    let input = options.input.as_deref().map_or(Ok(Port::Null), |port| Port::source(port, "--in"))?;
    let ports = Ports::between(input, Port::Null);
    if let Some(port) = options.input.as_deref().filter(|_| ports.have_source() && !ports.is_live()) {
        streams::tell(format_args!(
            "catena: --in {port}: what is replayed comes as fast as it is taken, so a run has no plan of rates for it\n"
        ));
    }
    let (plan, notes) = for_traffic(chain, &ports, workers, options.seed.unwrap_or_else(fresh_seed))?;
    notes.iter().for_each(|note| streams::tell(format_args!("catena: {note}\n")));
    let holds_all = notes.is_empty() && plan.is_kept();
    Ok((plan, holds_all))
}

/// Show how far a run is until it ends.
fn watched(
    running: Running,
    options: &RunOptions,
    interrupted: &dyn Fn() -> bool,
    too_long: &dyn Fn(Duration) -> bool,
) -> Result<Report, Failure> {
    let progress = progress::Progress::new(options.quiet || options.json);
    let mut stopped: Option<Instant> = None;
    let mut told = false;
    while !running.wait(LOOK) {
        if stopped.is_none() && (interrupted() || too_long(running.elapsed())) {
            running.stop();
            stopped = Some(Instant::now());
        }
        if stopped.is_some_and(|at| at.elapsed() >= SLOW_END) && !told {
            told = true;
            progress.clear();
            let again = if interrupted() { " again" } else { "" };
            streams::tell(format_args!(
                "catena: waiting for an output to take what is left; interrupt{again} to end without\n"
            ));
        }
        progress.show(running.packets(), running.elapsed());
    }
    progress.clear();
    Ok(running.join()?)
}

/// Print the closing table, and what could not be read or written.
fn print(report: &Report, as_json: bool, to_stderr: bool) -> Result<(), Failure> {
    let text = if as_json { report.json()? } else { report.to_string() };
    let printed = if to_stderr {
        streams::tell(&text);
        Ok(())
    } else {
        streams::report(&text)
    };
    for problem in &report.problems {
        streams::tell(format_args!("catena: {problem}\n"));
    }
    printed
}

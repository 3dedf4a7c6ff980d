//! `catena run`: a chain file on packets.

mod here;
mod options;
mod progress;
pub mod signals;

use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use catena::{Chain, Planned, Port, Ports, Report, Running};
use catena_plan::plan::Plan;
pub use catena_runtime::fresh_seed;

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
    let seed = options.seed.unwrap_or_else(fresh_seed);
    let planned = match &options.plan {
        Some(path) => Some(Planned::read(path)?),
        None => planned_here(options, &chain, &ports, seed),
    };
    let mut run = run.ports(ports).planned(planned).fresh_seed(seed);
    let uses = options::files(&mut run)?;
    // When packets or records go to standard output, the table must not.
    let to_stderr = options::writes_to_stdout(&mut run)?;
    let signalled = signals::listen()?;
    let asked = Instant::now();
    let interrupted = || signalled.load(Ordering::Relaxed);
    let too_long = |since: Duration| options.duration.is_some_and(|most| since >= most);
    let tell = |note: &_| streams::tell(format_args!("catena: {note}\n"));
    let running = run.using(uses).tell(tell).over(|| interrupted() || too_long(asked.elapsed())).start()?;
    let report = watched(running, options, &interrupted, &too_long)?;
    print(&report, options.json, to_stderr)?;
    Ok(if report.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The plan by which a file would be run, on traffic as it comes.
///
/// # Errors
/// Why it cannot be planned.
pub fn planned(chain: &Chain, options: &ShowOptions) -> Result<Plan, Failure> {
    let (ports, seed) = (Ports::between(Port::Null, Port::Null), options.seed.unwrap_or_else(fresh_seed));
    if !here::promises(&chain.graph) {
        return here::unpromised(chain, &ports, options.workers, seed);
    }
    let (plan, less) = here::plan(chain, &ports, options.workers, seed)?;
    if let Some(less) = less {
        streams::tell(format_args!("catena: {less}\n"));
    }
    Ok(plan)
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

/// Plan a file for this machine. What it promises is planned where packets come as they come; why that is not possible is told.
fn planned_here(options: &RunOptions, chain: &Chain, ports: &Ports, seed: u64) -> Option<Planned> {
    // What cannot be divided among so many workers is refused by its functions, in their own words.
    let unpromised = || match here::unpromised(chain, ports, options.workers, seed) {
        Ok(plan) => Planned::here(plan),
        Err(why) => {
            streams::tell(format_args!("catena: {} is run without a plan: {}\n", chain.name, why.0));
            None
        }
    };
    if !ports.is_live() || !here::promises(&chain.graph) {
        return unpromised();
    }
    let refused = |why: &dyn std::fmt::Display| {
        streams::tell(format_args!("catena: what {} promises is held by nothing: {why}\n", chain.name));
        unpromised()
    };
    if options.rebalance {
        return refused(&"slots that move (--rebalance) find no queues between tasks on their way");
    }
    match here::plan(chain, ports, options.workers, seed) {
        Ok((plan, less)) => {
            if let Some(less) = less {
                streams::tell(format_args!("catena: {less}\n"));
            }
            Planned::here(plan)
        }
        Err(why) => refused(&why.0),
    }
}

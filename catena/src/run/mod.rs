//! `catena run`: a chain file on packets.

mod here;
mod options;
mod progress;
mod signals;

use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use catena_runtime::notes::{Listener, Note};
use catena_runtime::planned::Planned;
use catena_runtime::promised::Promised;
use catena_runtime::report::Report;
use catena_runtime::{Chain, Ports, cores, inode, moving, trial, workers};

use crate::Failure;
use crate::arguments::RunOptions;
use crate::{chain, streams};
use options::NAMES;

/// How often the command looks whether the run is over.
const LOOK: Duration = Duration::from_millis(20);
/// The same while packets wait for it.
const SOON: Duration = Duration::from_micros(100);
/// After this time without an end the command says what it waits for.
const SLOW_END: Duration = Duration::from_secs(2);

/// Run a chain file.
///
/// # Errors
/// When the file or a port cannot be used, or something could not be written.
pub fn run(options: &RunOptions) -> Result<ExitCode, Failure> {
    let loaded = chain::load(&options.file)?;
    // Before any port is opened: an output file is not emptied for a chain that cannot run.
    let (mut host, files) = if options.no_reduce {
        trial::lower_and_build(&loaded)?
    } else {
        let (host, _) = trial::lower_and_reduce(&loaded, trial::counts(options.early_drops))?;
        let files = trial::build_once(&host, &loaded)?;
        (host, files)
    };
    let mut ports = options::ports(options)?;
    let mut seed = options.seed.unwrap_or_else(fresh_seed);
    let planned = match &options.plan {
        Some(path) => Some(Planned::read(path)?),
        None => planned_here(options, &loaded, &ports, seed),
    };
    if let Some(planned) = &planned {
        planned.divide(&mut host, &loaded.graph)?;
        // Flows are numbered as the plan numbers them, so that its slots mean the same.
        seed = options.seed.or(planned.seed()).unwrap_or(seed);
    }
    let uses = options::files(options, &host, &ports, &files)?;
    // When packets or records go to standard output, the table must not.
    let to_stderr = files.outputs.iter().map(|(_, path)| path.as_path()).chain(ports.written()).any(inode::is_stdout);
    let signalled = signals::listen()?;
    let layout = workers::Layout {
        count: planned.as_ref().map_or(options.workers, |p| p.tasks().workers) as usize,
        first_core: options.core.or_else(|| planned.as_ref()?.first_core()),
        tree: planned.as_ref().map(|p| &p.tasks().tree),
        waits: options.duration.is_some(),
        rebalances: options.rebalance,
        slots: planned.as_ref().and_then(Planned::slots),
    };
    if let Some(first) = layout.first_core {
        cores::check(if options.core.is_some() { "--core" } else { "the plan's core" }, first, layout.count)?;
    }
    if layout.rebalances {
        moving::check(&host, &ports, layout.count, &NAMES)?;
    }
    let asked = Instant::now();
    let tell = |note: &Note| streams::tell(format_args!("catena: {note}\n"));
    let interrupted = || signalled.load(Ordering::Relaxed);
    let too_long = |since: Instant| options.duration.is_some_and(|most| since.elapsed() >= most);
    let over = || interrupted() || too_long(asked);
    let division = planned.as_ref().and_then(|planned| planned.division(&loaded.graph));
    let division = division.map(|division| (division, loaded.graph.chains.len() > 1));
    let mut running =
        workers::start(&host, &layout, division, &mut ports, seed, uses, Listener { tell: &tell, over: &over })?;
    // What it took to build the functions is not the packets' time.
    let started = Instant::now();
    for name in ports.down() {
        tell(&Note::Down(name.to_owned()));
    }
    let progress = progress::Progress::new(options.quiet || options.json);
    let mut stopped: Option<Instant> = None;
    let mut told = false;
    while !running.is_ended() {
        if stopped.is_none() && (interrupted() || too_long(started)) {
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
        let is_awaited = running.rebalance(stopped.is_some());
        running.weigh();
        progress.show(running.packets(), started.elapsed());
        std::thread::sleep(if is_awaited { SOON } else { LOOK });
    }
    progress.clear();
    let (rebalanced, weighed) = (running.rebalanced(), running.weighed());
    let ended = running.join()?;
    let mut report = Report::new(&host, &ended, started.elapsed());
    report.moved(rebalanced);
    if ports.is_live() && planned.is_some() {
        report.promised = Some(Promised::of(&loaded.graph, &report));
    }
    // What a function costs where nobody profiled it is no news.
    let profiled = planned.filter(|planned| !planned.is_own());
    report.planned = profiled.map(|planned| planned.compare(&loaded.graph, &report, weighed));
    let text = if options.json { report.json()? } else { report.to_string() };
    let printed = if to_stderr {
        streams::tell(&text);
        Ok(())
    } else {
        streams::report(&text)
    };
    for problem in &report.problems {
        streams::tell(format_args!("catena: {problem}\n"));
    }
    printed?;
    Ok(if report.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Plan a file that promises something for this machine, where packets come as they come; why that is not possible is told.
fn planned_here(options: &RunOptions, loaded: &Chain, ports: &Ports, seed: u64) -> Option<Planned> {
    if !ports.is_live() || !here::promises(&loaded.graph) {
        return None;
    }
    let refused = |why: &dyn std::fmt::Display| {
        streams::tell(format_args!("catena: what {} promises is held by nothing: {why}\n", loaded.name));
        None
    };
    if options.rebalance {
        return refused(&"slots that move (--rebalance) find no queues between tasks on their way");
    }
    match here::plan(loaded, ports, options.workers, seed) {
        Ok((plan, less)) => {
            if let Some(less) = less {
                streams::tell(format_args!("catena: {less}\n"));
            }
            Planned::here(plan)
        }
        Err(why) => refused(&why.0),
    }
}

/// Return a number that nobody outside can know.
pub fn fresh_seed() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
}

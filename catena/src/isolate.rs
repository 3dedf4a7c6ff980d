//! `catena isolate`: whose work network CPU is, and quotas that include it.

mod demo;
mod out;
mod prometheus;
mod table;

use std::fmt::Display;
use std::io;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use catena_isolation::guard::{self, Guard};
use catena_isolation::names::printable;
use catena_isolation::{
    Enforced, Enforcer, Interval, LONGEST_PERIOD, Means, Meter, Outcome, Port, SHORTEST_PERIOD, Status,
};
use catena_runtime::replace;
use serde::Serialize;

use out::{Out, Printed};
use prometheus::Metrics;
use table::table;

use crate::Failure;
use crate::arguments::{EnforceOptions, GuardOptions, IsolateCommand, StatusOptions, TableOptions};
use crate::run::signals;
use crate::streams::{print, tell};

/// How this program guards an enforcing one.
const GUARD: [&str; 2] = ["isolate", "guard"];
/// How often it is looked whether the guard is there.
const LOOK: Duration = Duration::from_secs(1);
/// Shortest interval: below it reading the accounts is most of what is measured.
const SHORTEST: Duration = Duration::from_millis(10);
/// Longest: nobody waits longer for a table.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// Do what is asked about network CPU.
///
/// # Errors
/// What is missing on this machine, by name, or that standard output cannot be written.
pub fn isolate(command: &IsolateCommand) -> Result<ExitCode, Failure> {
    // Messages are of one line; a name in them must not make it two.
    let in_one_line = |Failure(message)| Failure(printable(&message));
    match command {
        IsolateCommand::Status(options) => status(options).map_err(in_one_line),
        IsolateCommand::Enforce(options) => enforce(options).map_err(in_one_line),
        IsolateCommand::Guard(options) => guard(options),
        IsolateCommand::Demo(options) => demo::demo(options),
        IsolateCommand::Act(options) => match catena_isolation::scene::actor::act(&options.words) {
            Ok(()) => Ok(ExitCode::SUCCESS),
            Err(error) => Err(error.into()),
        },
    }
}

/// Tell what happened, names of cgroups in it.
fn tell_news(news: impl Display) {
    tell(message(news));
}

fn message(news: impl Display) -> String {
    format!("catena: {}\n", printable(&news.to_string()))
}

fn status(options: &StatusOptions) -> Result<ExitCode, Failure> {
    if options.tables.interval < SHORTEST || options.tables.interval > LONGEST {
        return Err("--interval: from 10ms to 24h".into());
    }
    check_metrics(&options.tables)?;
    let mut meter = Meter::start().map_err(|missing| format!("isolate status: {missing}"))?;
    let mut printer = Printer::new(&options.tables, [None, None]);
    while !printer.is_done() {
        thread::sleep(options.tables.interval);
        let status = meter.read()?;
        printer.print(&status, None, meter.interval())?;
    }
    printer.end()?;
    Ok(ExitCode::SUCCESS)
}

/// Prints intervals as it is asked to.
struct Printer<'a> {
    options: &'a TableOptions,
    /// `None`: standard output may be waited for.
    out: Option<Out>,
    /// And standard error.
    messages: Option<Out>,
    /// Whether nobody reads it any more.
    is_closed: bool,
    metrics: Metrics,
    /// Whether they could not be written the last time.
    is_stale: bool,
    printed: u32,
}

/// Check, before anything is measured or changed, that metrics can be written where they are to be.
fn check_metrics(options: &TableOptions) -> Result<(), Failure> {
    match &options.prometheus {
        Some(file) if file.as_os_str() != "-" => Ok(replace::check(file)?),
        _ => Ok(()),
    }
}

impl Printer<'_> {
    fn new(options: &TableOptions, [out, messages]: [Option<Out>; 2]) -> Printer<'_> {
        Printer { options, out, messages, is_closed: false, metrics: Metrics::new(), is_stale: false, printed: 0 }
    }

    /// Tell what happened, or let it go where nobody reads what was told before.
    fn tell(&mut self, news: impl Display) {
        let Some(messages) = &mut self.messages else { return tell_news(news) };
        if let Ok(Printed::After(lost)) = messages.print(message(news))
            && lost > 0
        {
            let said = format_args!("standard error is read too slowly: {lost} messages before that are not in it");
            // There may be no room for this either.
            _ = messages.print(message(said));
        }
    }

    /// Return whether there are as many tables as were asked for.
    fn is_done(&self) -> bool {
        self.is_closed || self.options.count.is_some_and(|count| self.printed >= count)
    }

    /// Print an interval.
    fn print(&mut self, status: &Status, enforced: Option<&[Enforced]>, interval: &Interval) -> Result<(), Failure> {
        if self.printed == 0 && !self.options.json {
            status.missing.iter().for_each(|what| self.tell(what));
        }
        if let Some(file) = &self.options.prometheus {
            self.metrics.add(status, enforced.unwrap_or_default(), interval);
            let text = self.metrics.text();
            if file.as_os_str() == "-" { self.out(text)? } else { self.write(file, &text) }
        } else if self.options.json {
            let line = match enforced {
                Some(enforced) => serde_json::to_string(&Line { status, enforced })?,
                None => serde_json::to_string(status)?,
            };
            self.out(line + "\n")?;
        } else {
            let between = if self.printed > 0 { "\n" } else { "" };
            self.out(format!("{between}{}", table(status, enforced)))?;
        }
        self.printed += 1;
        Ok(())
    }

    /// Print a text, or let it go where the ones before are not yet read.
    fn out(&mut self, text: String) -> Result<(), Failure> {
        match &mut self.out {
            None => print(text)?,
            Some(out) => match out.print(text)? {
                Printed::After(0) | Printed::Lost => {}
                Printed::After(lost) => {
                    self.tell(format_args!("standard output is read too slowly: {lost} intervals are not in it"))
                }
                Printed::Closed => self.is_closed = true,
            },
        }
        Ok(())
    }

    /// Check that what was printed last has arrived.
    fn end(&mut self) -> Result<(), Failure> {
        if let Some(messages) = &mut self.messages {
            messages.end()?;
        }
        if let Some(out) = &mut self.out {
            out.end()?;
        }
        match &self.options.prometheus {
            Some(file) if self.is_stale => {
                Err(format!("--prometheus: {}: the last metrics could not be written", file.display()).into())
            }
            _ => Ok(()),
        }
    }

    /// Write metrics. A disk that is full for a while ends neither measuring nor quotas: it is told once, as is its end.
    fn write(&mut self, file: &Path, text: &str) {
        let written = replace::write(file, text.as_bytes());
        let was_stale = std::mem::replace(&mut self.is_stale, written.is_err());
        match written {
            Err(error) if !was_stale => self.tell(format_args!("--prometheus: {error}; tried again each interval")),
            Ok(()) if was_stale => self.tell(format_args!("--prometheus: {}: written again", file.display())),
            _ => {}
        }
    }
}

/// A line of JSON of `enforce`.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    status: &'a Status,
    enforced: &'a [Enforced],
}

fn enforce(options: &EnforceOptions) -> Result<ExitCode, Failure> {
    if options.period < SHORTEST_PERIOD || options.period > LONGEST_PERIOD {
        return Err("--period: from 10ms to 500ms".into());
    }
    if options.tables.interval < options.period || options.tables.interval > LONGEST {
        return Err("--interval: from the period to 24h".into());
    }
    check_metrics(&options.tables)?;
    if options.tables.prometheus.as_deref().is_some_and(|file| is_same_file(file, &options.journal)) {
        return Err("--prometheus: that file is the journal".into());
    }
    // Before anything is changed, so that all is restored.
    let signalled = signals::listen()?;
    let mut guarded = Guarded::start(&options.journal)
        .map_err(|error| format!("isolate enforce: no guard can be started: {error}"))?;
    let enforcer = Enforcer::start(&options.cgroups, &ports(options), options.period, &options.journal);
    let mut enforcer = enforcer.map_err(|error| format!("isolate enforce: {error}"))?;
    let done = control(&mut enforcer, &mut guarded, options, || signalled.load(Ordering::Relaxed));
    let mut is_restored = true;
    for undone in enforcer.end()? {
        is_restored &= !matches!(undone.outcome, Outcome::Refused(_));
        if undone.outcome != Outcome::Restored {
            tell_news(undone);
        }
    }
    drop(guarded);
    done?;
    Ok(if is_restored { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Return whether two paths lead to one file, which need not be there.
fn is_same_file(a: &Path, b: &Path) -> bool {
    let whole = |path: &Path| {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let in_folder = || Some(folder.canonicalize().ok()?.join(path.file_name()?));
        path.canonicalize().ok().or_else(in_folder).unwrap_or_else(|| path.to_owned())
    };
    whole(a) == whole(b)
}

/// Return the devices that were named.
fn ports(options: &EnforceOptions) -> Vec<Port> {
    let all = [(&options.napi, Means::Threads), (&options.early_drop, Means::EarlyDrop)];
    let port = |(device, cgroup): &(String, String), means| {
        let (device, cgroup) = (device.clone(), cgroup.clone());
        Port { device, cgroup, means }
    };
    all.into_iter().flat_map(|(named, means)| named.iter().map(move |named| port(named, means))).collect()
}

/// This run's guard, and another one when it ends.
struct Guarded<'a> {
    journal: &'a Path,
    /// `None` where no other could be started.
    guard: Option<Guard>,
    looked: Instant,
}

impl Guarded<'_> {
    fn start(journal: &Path) -> io::Result<Guarded<'_>> {
        // The file that runs, wherever it is by now.
        let mut command = Command::new("/proc/self/exe");
        command.args(GUARD).arg("--").arg(journal);
        Ok(Guarded { journal, guard: Some(Guard::start(command)?), looked: Instant::now() })
    }

    /// Start another guard if there is none: whoever kills it alone leaves quotas without one. Returns what is to be told.
    fn look(&mut self) -> Option<String> {
        if self.looked.elapsed() < LOOK {
            return None;
        }
        self.looked = Instant::now();
        let ended = match &mut self.guard {
            None => None,
            Some(guard) => Some(guard.ended()?),
        };
        let said = ended.map(|status| format!("the guard of this run has ended ({status}): "));
        match (Guarded::start(self.journal), said) {
            (Ok(guarded), said) => {
                *self = Guarded { journal: self.journal, ..guarded };
                Some(said.unwrap_or_default() + "another guard is started")
            }
            (Err(error), Some(said)) => {
                self.guard = None;
                let until = "until there is one, nobody restores quotas should this run be killed";
                Some(format!("{said}no other can be started: {error}; {until}"))
            }
            // Told already.
            (Err(_), None) => None,
        }
    }
}

/// Wait for the end of who enforces, and restore what it left.
fn guard(options: &GuardOptions) -> Result<ExitCode, Failure> {
    for undone in guard::watch(&options.journal).map_err(|error| format!("isolate enforce: its guard: {error}"))? {
        tell_news(format_args!("left by a run that was killed: {undone}"));
    }
    Ok(ExitCode::SUCCESS)
}

/// Enforce until it is over.
fn control(
    enforcer: &mut Enforcer,
    guarded: &mut Guarded<'_>,
    options: &EnforceOptions,
    is_over: impl Fn() -> bool,
) -> Result<(), Failure> {
    let mut printer = Printer::new(&options.tables, [Out::start(), Out::messages()].map(Some));
    let done = steps(enforcer, guarded, options, &mut printer, is_over);
    let ended = printer.end();
    done.and(ended)
}

fn steps(
    enforcer: &mut Enforcer,
    guarded: &mut Guarded<'_>,
    options: &EnforceOptions,
    printer: &mut Printer<'_>,
    is_over: impl Fn() -> bool,
) -> Result<(), Failure> {
    let mut next = Instant::now();
    let mut report = next + options.tables.interval;
    while !is_over() && !printer.is_done() {
        next += options.period;
        // A step that was late is made up for by its own books, not by more steps.
        next = next.max(Instant::now());
        thread::sleep(next.saturating_duration_since(Instant::now()));
        enforcer.step()?;
        enforcer.news().iter().for_each(|news| printer.tell(news));
        if let Some(said) = guarded.look() {
            printer.tell(said);
        }
        if enforcer.is_idle() {
            return Err("isolate enforce: no cgroup is left to enforce a quota on".into());
        }
        if Instant::now() < report {
            continue;
        }
        report += options.tables.interval;
        // Who was stopped for long owes no table for each interval of that.
        if report < Instant::now() {
            report = Instant::now() + options.tables.interval;
        }
        let (status, enforced) = enforcer.report()?;
        printer.print(&status, Some(&enforced), enforcer.interval())?;
    }
    Ok(())
}

//! `catena profile`: what functions cost on this machine, as a table like Lemur's Table 4 and as `profile.json`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use catena::Port;
use catena_functions::{Descriptor, registry};
use catena_plan::profile::{Cycles, Profile, Setting};
use catena_profile::machine::cores;
use catena_profile::{Measured, Options, Step, measure, port};

use crate::arguments::ProfileOptions;
use crate::functions::find;
use crate::table::{Table, thousands};
use crate::{Failure, file, streams};

const QUICK_RUNS: u32 = 3;
/// The part of disturbed stretches from which on the user is told.
const DISTURBED: f64 = 0.1;

/// Measure functions, write the profile, print it.
///
/// # Errors
/// When there is no such function, it cannot be measured, or the file cannot be read or written.
pub fn profile(options: &ProfileOptions) -> Result<ExitCode, Failure> {
    let chosen = chosen(&options.functions)?;
    // Before minutes of measuring: what is there must be a profile, or it would be lost.
    let before = read_if_there(&options.output)?;
    file::check_writable(&options.output)?;
    let cores = cores() as usize;
    let core = options.core.unwrap_or(cores.saturating_sub(1));
    let how = Options {
        runs: if options.quick { QUICK_RUNS } else { options.runs },
        sizes: options.sizes.clone(),
        usual_only: options.quick,
        own_sizes: BTreeMap::new(),
        core,
        other: (cores > 1).then(|| if core == 0 { 1 } else { core - 1 }),
        beside: !options.alone,
        port: options.input.as_deref().map(port).transpose()?,
    };
    let lines = std::io::stderr().is_terminal();
    let Measured { mut profile, disturbed } = measure(&chosen, &how, &mut |step| tell(step, lines))?;
    if lines {
        streams::tell("\r\x1b[K");
    }
    if disturbed > DISTURBED {
        streams::tell(format_args!(
            "catena: for {:.0}% of the measuring the machine was busy with something else: expect figures too high\n",
            disturbed * 100.0
        ));
    }
    let measured: Vec<&str> = chosen.iter().filter(|f| f.workload.is_some()).map(|f| f.name).collect();
    let mut kept = Vec::new();
    if let Some(before) = before.filter(|before| before.machine.processor == profile.machine.processor) {
        kept = before.functions.keys().filter(|name| !profile.functions.contains_key(*name)).cloned().collect();
        profile = profile.completed_by(&before);
    }
    let path = options.output.display();
    let text = profile.to_text().map_err(|error| format!("{path}: {}", error.what))?;
    file::write(&options.output, &text)?;
    if options.json {
        streams::print(&text)?;
    } else {
        let from = if kept.is_empty() { String::new() } else { format!(", where {} are from before", kept.join(", ")) };
        streams::print(format_args!("{}\nkept in {path}{from}\n", page(&profile, &measured)))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Return the port that packets will come from: one that gives them whenever they are asked for, as often as they are.
fn port(text: &str) -> Result<port::Port, Failure> {
    match Port::source(text, "--in")? {
        Port::Interface(name) => {
            return Err(
                format!("--in {name}: packets of an interface come when they come; try a capture, or gen:").into()
            );
        }
        Port::Capture(path) if path == "-" => return Err("--in -: standard input comes once; try a file".into()),
        _ => {}
    }
    let name = text.to_owned();
    let open = move || Port::open_source(&name, "--in").map_err(|failure| failure.to_string());
    Ok(port::Port { name: text.to_owned(), open: Arc::new(open) })
}

/// Return the functions named, or all that can be measured.
fn chosen(names: &[String]) -> Result<Vec<&'static Descriptor>, Failure> {
    if names.is_empty() {
        return Ok(registry::FUNCTIONS.iter().copied().filter(|f| f.workload.is_some()).collect());
    }
    let mut chosen: Vec<&'static Descriptor> = Vec::new();
    for name in names {
        let function = find(name)?;
        if function.workload.is_none() {
            return Err(format!("{name} says nothing of how it is measured: its cost is that of what it runs").into());
        }
        if !chosen.iter().any(|f| f.name == function.name) {
            chosen.push(function);
        }
    }
    Ok(chosen)
}

/// Read a profile, if the file is there.
fn read_if_there(path: &Path) -> Result<Option<Profile>, Failure> {
    if !path.exists() {
        return Ok(None);
    }
    let text = file::read(path, "a profile as `catena profile` writes it")?;
    let wrong = |error| Failure(format!("{}:{error}; it is not written over: say --output FILE", path.display()));
    Profile::from_text(&text).map(Some).map_err(wrong)
}

/// Show which step of measuring begins; in `lines`, each over the one before.
pub fn tell(step: &Step, lines: bool) {
    let what = match step.function {
        None => "what the framework costs".to_owned(),
        Some(name) if step.size == 0 => format!("{name}, {}", setting(step.setting)),
        Some(name) => format!("{name}, size {}, {}", thousands(step.size), setting(step.setting)),
    };
    let what = what + if step.alone { ", alone" } else { "" };
    let line = format!("{} of {}: {what}", step.number, step.of);
    if lines {
        streams::tell(format_args!("\r\x1b[K{line}"));
    } else {
        streams::tell(format_args!("{line}\n"));
    }
}

/// Return a setting in words.
fn setting(setting: Setting) -> &'static str {
    match setting {
        Setting::LongLived => "long-lived flows",
        Setting::ShortLived => "short-lived flows",
        Setting::FewerFlows => "fewer flows",
        Setting::SmallBatches => "in small batches",
        Setting::InTurn => "in turn with others",
        Setting::AcrossCores => "from another core",
        Setting::AcrossSockets => "from another socket",
    }
}

/// Return the table of functions, the lines over their sizes, and the overheads.
fn page(profile: &Profile, functions: &[&str]) -> String {
    let heading = ["function", "size", "setting", "runs", "mean", "min", "median", "p95", "max", "max/mean"];
    let mut table = Table::new(&heading, &[false, true, false, true, true, true, true, true, true, true]);
    let measured = functions.iter().filter_map(|name| Some((*name, &profile.functions.get(*name)?.server)));
    let measured: Vec<(&str, &Cycles)> = measured.collect();
    for (name, cycles) in &measured {
        for run in &cycles.runs {
            let size =
                if cycles.unit.is_empty() { String::new() } else { thousands(run.size as u64) + " " + &cycles.unit };
            let figure = |cycles: f64| format!("{cycles:.1}");
            table.row([
                (*name).to_owned(),
                size,
                setting(run.setting).to_owned() + if run.alone { ", alone" } else { "" },
                run.count.to_string(),
                figure(run.mean),
                figure(run.min),
                figure(run.median),
                figure(run.p95),
                figure(run.max),
                format!("{:.3}", run.max / run.mean.max(f64::MIN_POSITIVE)),
            ]);
        }
    }
    let machine = &profile.machine;
    let mut page = format!(
        "CPU cycles a packet on {}, {} cores, {:.2} GHz\n\n{table}",
        machine.processor,
        machine.cores,
        machine.clock_hz / 1e9
    );
    let heading = ["function", "cycles a packet", "off by", "worst run", "a batch", "1,000 flows"];
    let mut table = Table::new(&heading, &[false, false, true, true, true, true]);
    for (name, cycles) in &measured {
        let line = match cycles.per_unit {
            slope if slope > 0.0 => format!("{:.1} + {slope:.3e} x {}", cycles.base, cycles.unit),
            _ => format!("{:.1}", cycles.base),
        };
        let percent = |part: f64| format!("{:.1}%", part * 100.0);
        table.row([
            (*name).to_owned(),
            line,
            percent(cycles.line_error),
            format!("+{}", percent(cycles.worst_factor - 1.0)),
            format!("{:.0}", cycles.per_batch),
            format!("{:.1}", cycles.per_flow * 1e3),
        ]);
    }
    _ = write!(page, "\nas lines over the size, through the worse kind of flows:\n\n{table}");
    let o = profile.overheads;
    let spread = if o.spread > 0.0 { format!(", spread over two cores {:.0}", o.spread) } else { String::new() };
    let from = profile.port.as_ref().map_or(String::new(), |port| format!(" (from {port})"));
    _ = writeln!(
        page,
        "\nthe framework: in and out {:.0}{from}, a queue between tasks {:.0}, dividing by class {:.0}, each bit that the class tells {:.1}, each class tried {:.1}, each instruction of a longer filter {:.1}{spread}",
        o.visit, o.queue, o.branch, o.choice, o.classify, o.step
    );
    page
}

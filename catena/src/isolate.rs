//! `catena isolate`: whose work network CPU is.

use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use catena_isolation::{Meter, Row, Status};
use catena_runtime::table::{Table, thousands};

use crate::Failure;
use crate::arguments::{IsolateCommand, StatusOptions};
use crate::streams::{print, tell};

/// Shortest interval: below it reading the accounts is most of what is measured.
const SHORTEST: Duration = Duration::from_millis(10);

/// Do what is asked about network CPU.
///
/// # Errors
/// What is missing on this machine, by name, or that standard output cannot be written.
pub fn isolate(command: &IsolateCommand) -> Result<ExitCode, Failure> {
    let IsolateCommand::Status(options) = command;
    status(options)
}

fn status(options: &StatusOptions) -> Result<ExitCode, Failure> {
    if options.interval < SHORTEST {
        return Err("--interval: too short; at least 10ms".into());
    }
    let mut meter = Meter::start().map_err(|missing| format!("isolate status: {missing}"))?;
    let mut printed = 0;
    while options.count.is_none_or(|count| printed < count) {
        thread::sleep(options.interval);
        let status = meter.read()?;
        if options.json {
            print(serde_json::to_string(&status)? + "\n")?;
        } else {
            if printed == 0 {
                status.missing.iter().for_each(|what| tell(format_args!("catena: {what}\n")));
            }
            let between = if printed > 0 { "\n" } else { "" };
            print(format_args!("{between}{}", table(&status)))?;
        }
        printed += 1;
    }
    Ok(ExitCode::SUCCESS)
}

/// Return what a person reads: time in percent of one CPU.
fn table(status: &Status) -> String {
    let heading = ["cgroup", "own CPU", "network CPU", "hosted", "packets", "sent", "drops"];
    let mut table = Table::new(&heading, &[false, true, true, true, true, true, true]);
    let percent = |ns: u64| format!("{:.2}%", ns as f64 * 100.0 / status.interval_ns.max(1) as f64);
    let cells = |row: &Row| {
        let cpu = row.cpu_ns.map_or_else(|| "-".to_owned(), percent);
        let counts = [row.packets, row.sent, row.drops].map(thousands);
        [row.name.clone(), cpu, percent(row.softirq_ns), percent(row.hosted_ns)].into_iter().chain(counts)
    };
    status.cgroups.iter().for_each(|row| table.row(cells(row)));
    for row in &status.unattributed {
        table.row(cells(&Row { name: format!("({})", row.name), ..row.clone() }));
    }
    format!(
        "{table}network softirqs {} (receive {}, transmit {}) in {}; charged {}, gap {:.2}%\n",
        percent(status.softirq_ns),
        percent(status.receive_ns),
        percent(status.transmit_ns),
        thousands(status.softirqs),
        percent(status.charged_ns),
        status.gap * 100.0,
    )
}

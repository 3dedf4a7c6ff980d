//! What a person reads of an interval: time in percent of one CPU.

use catena_isolation::names::in_table;
use catena_isolation::{Enforced, Row, Status};
use catena_runtime::table::{Table, thousands};

/// What is known where threads of the kernel receive.
pub const RECEIVED_BY_THREADS: &str =
    "kernel threads receive, whose time is part of own CPU and whose packets are not counted";

/// A line: an account, and its quota where it has one.
struct Line<'a> {
    row: &'a Row,
    held: Option<&'a Enforced>,
    interval_ns: u64,
}

/// A column: its heading, and what it says of a line.
type Column = (&'static str, fn(&Line<'_>) -> String);

const COLUMNS: [Column; 7] = [
    ("cgroup", |line| match line.row.id {
        Some(_) => in_table(&line.row.name),
        None => in_table(&format!("({})", line.row.name)),
    }),
    ("own CPU", |line| known(line.row.cpu_ns, |ns| line.percent(ns))),
    ("network CPU", |line| known(line.row.softirq_ns, |ns| line.percent(ns))),
    ("hosted", |line| line.percent(line.row.hosted_ns)),
    ("packets", |line| known(line.row.packets, thousands)),
    ("sent", |line| thousands(line.row.sent)),
    ("drops", |line| {
        let early = line.held.map(|held| held.dropped_early).filter(|early| *early > 0);
        known(line.row.drops.map_or(early, |drops| Some(drops + early.unwrap_or(0))), thousands)
    }),
];
/// Those that there are beside quotas.
const OF_QUOTAS: [Column; 3] = [
    ("quota", |line| known(line.held, |held| percent(held.quota_ns, 1_000_000_000))),
    ("throttled", |line| known(line.held, |held| line.percent(held.throttled_ns))),
    ("debt", |line| known(line.held, |held| format!("{:.1} ms", held.debt_ns as f64 / 1e6))),
];

impl Line<'_> {
    fn percent(&self, ns: u64) -> String {
        percent(ns, self.interval_ns)
    }
}

fn percent(ns: u64, of: u64) -> String {
    format!("{:.2}%", ns as f64 * 100.0 / of.max(1) as f64)
}

/// Return a cell of what may be unknown.
pub fn known<T>(what: Option<T>, cell: impl Fn(T) -> String) -> String {
    what.map_or_else(|| "-".to_owned(), cell)
}

/// Return the table of an interval. With quotas there are columns for them.
pub fn table(status: &Status, enforced: Option<&[Enforced]>) -> String {
    let columns: Vec<Column> =
        COLUMNS.into_iter().chain(OF_QUOTAS.into_iter().filter(|_| enforced.is_some())).collect();
    let headings: Vec<&str> = columns.iter().map(|(heading, _)| *heading).collect();
    // All but names.
    let to_the_right: Vec<bool> = (0..columns.len()).map(|column| column > 0).collect();
    let mut table = Table::new(&headings, &to_the_right);
    let enforced = enforced.unwrap_or_default();
    for row in status.cgroups.iter().chain(&status.unattributed) {
        let held = enforced.iter().find(|held| row.id == Some(held.id));
        let line = Line { row, held, interval_ns: status.interval_ns };
        table.row(columns.iter().map(|(_, cell)| cell(&line)));
    }
    let by_threads: Vec<String> =
        enforced.iter().filter(|held| held.by_threads).map(|held| in_table(&held.name)).collect();
    let why = match &by_threads[..] {
        [] => String::new(),
        names => format!("{} (--napi): {RECEIVED_BY_THREADS}\n", names.join(", ")),
    };
    let percent = |ns| percent(ns, status.interval_ns);
    format!(
        "{table}{why}network softirqs {} (receive {}, transmit {}, interrupts {}) in {}; charged {}, gap {:.2}%\n",
        percent(status.softirq_ns),
        percent(status.receive_ns),
        percent(status.transmit_ns),
        percent(status.interrupt_ns),
        thousands(status.softirqs),
        percent(status.charged_ns),
        status.gap * 100.0,
    )
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;

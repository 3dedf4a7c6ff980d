//! Accounts of network CPU as metrics in Prometheus' text format, version 0.0.4.
//!
//! Counters go on from the start of the command, as `rate()` wants them. A cgroup's are of its path: one that is made again under the same
//! path goes on with them, and those of one that is gone end.

use std::collections::BTreeMap;
use std::fmt::Write;

use catena_isolation::{Enforced, Interval, Row, Status};

/// The metrics of a command that measures.
pub struct Metrics {
    cgroups: BTreeMap<String, Account>,
    unattributed: BTreeMap<String, Account>,
    receive_ns: u64,
    transmit_ns: u64,
    interrupt_ns: u64,
    softirqs: u64,
    intervals_ns: u64,
    enforced: Vec<Enforced>,
}

/// What an account has had since the start.
#[derive(Clone, Copy, Debug, Default)]
struct Account {
    id: Option<u64>,
    cpu_ns: Option<u64>,
    /// This, packets and drops: `None` as long as nothing is known of them.
    softirq_ns: Option<u64>,
    hosted_ns: u64,
    packets: Option<u64>,
    sent: u64,
    drops: Option<u64>,
    /// Those of them that the stack never had; of cgroups with a device where that is done.
    dropped_early: Option<u64>,
    /// How long a quota has held it back, since it was made.
    throttled_ns: Option<u64>,
}

/// A metric of an account: its name, what it is, and its value.
type Metric = (&'static str, &'static str, fn(&Account) -> Option<f64>);

const OF_CGROUPS: [Metric; 8] = [
    ("cpu_seconds", "CPU time of the cgroup's processes, with network softirqs that ran in it.", |a| {
        a.cpu_ns.map(seconds)
    }),
    ("network_cpu_seconds", "CPU time of network softirqs on the cgroup's account.", |a| a.softirq_ns.map(seconds)),
    (
        "credited_cpu_seconds",
        "CPU time of network softirqs, on any account, that ran in the time of the cgroup's processes.",
        |a| Some(seconds(a.hosted_ns)),
    ),
    ("throttled_seconds", "How long the cgroup's CPU quota has held it back, summed over CPUs.", |a| {
        a.throttled_ns.map(seconds)
    }),
    ("packets", "Packets received for the cgroup, dropped ones among them.", |a| a.packets.map(number)),
    ("sent_packets", "Packets of the cgroup that a transmit softirq sent.", |a| Some(a.sent as f64)),
    ("dropped_packets", "Packets for the cgroup that were dropped.", |a| add(a.drops, a.dropped_early).map(number)),
    ("early_dropped_packets", "Those of them that were dropped before the stack had them.", |a| {
        a.dropped_early.map(number)
    }),
];
const OF_OTHERS: [Metric; 3] = [
    ("unattributed_cpu_seconds", "CPU time of network softirqs on no cgroup's account.", |a| a.softirq_ns.map(seconds)),
    ("unattributed_packets", "Packets of no cgroup.", |a| a.packets.map(number)),
    ("unattributed_dropped_packets", "Packets of no cgroup that were dropped.", |a| a.drops.map(number)),
];

impl Metrics {
    /// Begin.
    pub fn new() -> Metrics {
        Metrics {
            cgroups: BTreeMap::new(),
            unattributed: BTreeMap::new(),
            receive_ns: 0,
            transmit_ns: 0,
            interrupt_ns: 0,
            softirqs: 0,
            intervals_ns: 0,
            enforced: Vec::new(),
        }
    }

    /// Take in an interval.
    pub fn add(&mut self, status: &Status, enforced: &[Enforced], interval: &Interval) {
        // One that is gone and has an open socket still goes on, as long as something comes for it.
        let is_charged = |id| status.cgroups.iter().any(|row| row.id == Some(id));
        self.cgroups.retain(|_, account| !account.id.is_some_and(|id| interval.is_gone(id) && !is_charged(id)));
        // A cgroup without network work has no row, and takes CPU all the same.
        for (name, account) in &mut self.cgroups {
            if !status.cgroups.iter().any(|row| row.name == *name) {
                account.cpu_ns = add(account.cpu_ns, account.id.and_then(|id| interval.own_cpu(id)));
            }
        }
        status.cgroups.iter().for_each(|row| self.cgroups.entry(row.name.clone()).or_default().add(row));
        status.unattributed.iter().for_each(|row| self.unattributed.entry(row.name.clone()).or_default().add(row));
        for account in self.cgroups.values_mut() {
            account.throttled_ns = account.id.and_then(|id| interval.get(id)?.throttled_ns);
        }
        for held in enforced.iter().filter(|held| held.dropped_early > 0) {
            if let Some(account) = self.cgroups.get_mut(&held.name) {
                account.dropped_early = Some(account.dropped_early.unwrap_or(0) + held.dropped_early);
            }
        }
        self.receive_ns += status.receive_ns;
        self.transmit_ns += status.transmit_ns;
        self.interrupt_ns += status.interrupt_ns;
        self.softirqs += status.softirqs;
        self.intervals_ns += status.interval_ns;
        self.enforced = enforced.to_vec();
    }

    /// Return the metrics as Prometheus reads them.
    pub fn text(&self) -> String {
        let mut text = Text::default();
        for (name, help, value) in OF_CGROUPS {
            text.family(
                &format!("{name}_total"),
                "counter",
                help,
                self.cgroups.iter().map(|(n, a)| (n, value(a))),
                "cgroup",
            );
        }
        for (name, help, value) in OF_OTHERS {
            let of = self.unattributed.iter().map(|(n, a)| (n, value(a)));
            text.family(&format!("{name}_total"), "counter", help, of, "kind");
        }
        let directions = ["receive".to_owned(), "transmit".to_owned()];
        let times = directions.iter().zip([self.receive_ns, self.transmit_ns].map(|ns| Some(seconds(ns))));
        let help = "CPU time of network softirqs, from the entry of each to its exit.";
        text.family("softirq_seconds_total", "counter", help, times, "direction");
        let help = "CPU time of hard interrupts that raised network softirqs.";
        text.single("interrupt_seconds_total", help, seconds(self.interrupt_ns));
        text.single("softirqs_total", "Network softirqs.", self.softirqs as f64);
        text.single("measured_seconds_total", "How long has been measured.", seconds(self.intervals_ns));
        let held = |value: fn(&Enforced) -> u64| self.enforced.iter().map(move |e| (&e.name, Some(seconds(value(e)))));
        let help = "CPU time a second that the cgroup may cost, with network softirqs on its account.";
        text.family("quota_cpus", "gauge", help, held(|held| held.quota_ns), "cgroup");
        let help = "CPU time that the cgroup owes: later quotas are smaller by that.";
        text.family("debt_seconds", "gauge", help, held(|held| held.debt_ns), "cgroup");
        text.0
    }
}

impl Account {
    fn add(&mut self, row: &Row) {
        self.id = row.id;
        self.cpu_ns = add(self.cpu_ns, row.cpu_ns);
        self.softirq_ns = add(self.softirq_ns, row.softirq_ns);
        self.hosted_ns += row.hosted_ns;
        self.packets = add(self.packets, row.packets);
        self.sent += row.sent;
        self.drops = add(self.drops, row.drops);
    }
}

fn add(sum: Option<u64>, more: Option<u64>) -> Option<u64> {
    more.map_or(sum, |more| Some(sum.unwrap_or(0) + more))
}

fn number(of: u64) -> f64 {
    of as f64
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// Metrics as they are written, family by family.
#[derive(Default)]
struct Text(String);

impl Text {
    /// Add a metric with a value for each name; without any it is left out, as is a value that is not known.
    fn family<'a>(
        &mut self,
        name: &str,
        kind: &str,
        help: &str,
        values: impl Iterator<Item = (&'a String, Option<f64>)>,
        label: &str,
    ) {
        let mut values = values.filter_map(|(of, value)| Some((of, value?))).peekable();
        if values.peek().is_some() {
            self.heading(name, kind, help);
        }
        for (of, value) in values {
            _ = writeln!(self.0, "catena_isolate_{name}{{{label}=\"{}\"}} {value}", escaped(of));
        }
    }

    fn single(&mut self, name: &str, help: &str, value: f64) {
        self.heading(name, "counter", help);
        _ = writeln!(self.0, "catena_isolate_{name} {value}");
    }

    fn heading(&mut self, name: &str, kind: &str, help: &str) {
        _ = write!(self.0, "# HELP catena_isolate_{name} {help}\n# TYPE catena_isolate_{name} {kind}\n");
    }
}

/// "`label_value` can be any sequence of UTF-8 characters, but the backslash (`\`), double-quote (`"`), and line feed (`\n`) characters have
/// to be escaped" (Prometheus' documentation, Exposition formats).
fn escaped(label: &str) -> String {
    label.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use catena_isolation::Cgroups;

    use super::*;

    /// An interval of this machine, which has no cgroup of the tests' id.
    fn interval() -> Interval {
        let now = Cgroups::read().unwrap_or_default();
        Interval::new(now.clone(), now)
    }

    fn status(name: &str, ns: u64) -> Status {
        let row = Row { softirq_ns: Some(ns), ..Row::without_network(name, u64::MAX, Some(2 * ns)) };
        Status {
            interval_ns: 1_000_000_000,
            cgroups: vec![row.clone()],
            unattributed: vec![Row { name: "no packet".to_owned(), id: None, cpu_ns: None, ..row }],
            softirq_ns: 2 * ns,
            receive_ns: 2 * ns,
            transmit_ns: 0,
            interrupt_ns: 0,
            outside_ns: None,
            outside_timer_ns: None,
            softirqs: 3,
            charged_ns: 2 * ns,
            gap: 0.0,
            missing: Vec::new(),
        }
    }

    #[test]
    fn names_are_escaped_and_times_are_seconds() {
        let mut metrics = Metrics::new();
        metrics.add(&status("/a\\\"b\n", 1_500_000_000), &[], &interval());
        let text = metrics.text();
        assert!(text.contains("catena_isolate_network_cpu_seconds_total{cgroup=\"/a\\\\\\\"b\\n\"} 1.5\n"), "{text}");
        assert!(text.contains("catena_isolate_cpu_seconds_total{cgroup=\"/a\\\\\\\"b\\n\"} 3\n"), "{text}");
        assert!(text.contains("catena_isolate_unattributed_cpu_seconds_total{kind=\"no packet\"} 1.5\n"), "{text}");
        // There is no such cgroup: nobody holds it to a quota, and its metrics end.
        assert!(!text.contains("throttled") && !text.contains("quota_cpus"), "{text}");
        // Gone as it is, something comes for its socket, and its counters go on.
        metrics.add(&status("/a\\\"b\n", 500_000_000), &[], &interval());
        let text = metrics.text();
        assert!(text.contains("catena_isolate_network_cpu_seconds_total{cgroup=\"/a\\\\\\\"b\\n\"} 2\n"), "{text}");
        let other = Status { cgroups: Vec::new(), ..status("", 1_000_000_000) };
        metrics.add(&other, &[], &interval());
        let text = metrics.text();
        assert!(!text.contains("/a") && text.contains("{kind=\"no packet\"} 3\n"), "{text}");
    }

    #[test]
    fn what_is_not_known_is_left_out() {
        let mut unseen = status("/a", 1);
        let row = unseen.cgroups.remove(0);
        unseen.cgroups.push(Row { softirq_ns: None, packets: None, drops: None, ..row });
        let mut metrics = Metrics::new();
        metrics.add(&unseen, &[], &interval());
        let text = metrics.text();
        let of = |name: &str| text.contains(&format!("catena_isolate_{name}_total{{cgroup=\"/a\"}}"));
        assert!(["network_cpu_seconds", "packets", "dropped_packets"].iter().all(|name| !of(name)), "{text}");
        assert!(["cpu_seconds", "sent_packets"].iter().all(|name| of(name)), "{text}");
        // Something of it is seen after all.
        unseen.cgroups[0].packets = Some(3);
        metrics.add(&unseen, &[], &interval());
        assert!(metrics.text().contains("catena_isolate_packets_total{cgroup=\"/a\"} 3\n"), "{}", metrics.text());
    }

    #[test]
    fn a_cgroup_that_is_enforced_has_its_quota_and_debt() {
        let held = Enforced {
            name: "/a".to_owned(),
            id: u64::MAX,
            quota_ns: 300_000_000,
            next_ns: 0,
            cost_ns: 0,
            throttled_ns: 0,
            debt_ns: 2_000_000,
            dropped_early: 5,
            by_threads: false,
        };
        let mut metrics = Metrics::new();
        metrics.add(&status("/a", 1), &[held], &interval());
        let text = metrics.text();
        assert!(
            text.contains("# TYPE catena_isolate_quota_cpus gauge\ncatena_isolate_quota_cpus{cgroup=\"/a\"} 0.3\n"),
            "{text}"
        );
        assert!(text.contains("catena_isolate_debt_seconds{cgroup=\"/a\"} 0.002\n"), "{text}");
        assert!(text.contains("catena_isolate_early_dropped_packets_total{cgroup=\"/a\"} 5\n"), "{text}");
        assert!(text.contains("catena_isolate_dropped_packets_total{cgroup=\"/a\"} 5\n"), "{text}");
    }
}

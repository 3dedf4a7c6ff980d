//! Network CPU beside the CPU of cgroups' own processes, interval by interval.

use std::time::{Duration, Instant};

use serde::Serialize;

use crate::charge::{Account, Accounts, Charge};
use crate::{Cgroups, Interval, Missing, Tracer};

/// Measures from one reading to the next.
pub struct Meter {
    tracer: Tracer,
    accounts: Accounts,
    /// From the reading before the last to the last.
    interval: Interval,
    /// Whether the kernel keeps the time of interrupts apart from that of processes: then nobody has anything to get back.
    irqs_apart: bool,
    read: Instant,
}

/// What an interval brought.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// How long it was, in ns.
    pub interval_ns: u64,
    /// Cgroups with network work, the most charged first.
    pub cgroups: Vec<Row>,
    /// What is nobody's, by kind.
    pub unattributed: Vec<Row>,
    /// Time of network softirqs, measured from entry to exit, and of the hard interrupts that raised them, in ns.
    pub softirq_ns: u64,
    /// The part of receive softirqs, in ns.
    pub receive_ns: u64,
    /// The part of transmit softirqs, in ns.
    pub transmit_ns: u64,
    /// The part of hard interrupts, in ns.
    pub interrupt_ns: u64,
    /// What each hard interrupt takes of that before its handler begins and after it ends, as measured at the start, in ns: of one by
    /// a device or another CPU,
    pub outside_ns: Option<u64>,
    /// and of one by a timer.
    pub outside_timer_ns: Option<u64>,
    /// How many softirqs there were.
    pub softirqs: u64,
    /// The sum of all charges, in ns.
    pub charged_ns: u64,
    /// By how much the two differ, as a part of the first.
    pub gap: f64,
    /// What is not measured here, and why.
    pub missing: Vec<String>,
}

/// An account in an interval.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The cgroup's path, or the kind of work that is nobody's.
    pub name: String,
    /// The cgroup's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    /// CPU that the cgroup's own processes took, with the softirqs that ran in their place, in ns.
    pub cpu_ns: Option<u64>,
    /// CPU of softirqs on its account, in ns. This, packets and drops are `None` where it is not known: threads of the kernel that
    /// receive are in `cpu_ns`, and nobody sees their packets.
    pub softirq_ns: Option<u64>,
    /// CPU of softirqs, on whosever account, that ran while its processes had the CPU, in ns.
    pub hosted_ns: u64,
    /// Packets received, or batches that GRO made of several; dropped ones are among them.
    pub packets: Option<u64>,
    /// Packets that transmit softirqs sent.
    pub sent: u64,
    /// Packets dropped.
    pub drops: Option<u64>,
}

impl Row {
    /// Make the row of a cgroup that has no network work.
    pub fn without_network(name: &str, id: u64, cpu_ns: Option<u64>) -> Row {
        Row { id: Some(id), cpu_ns, ..Row::charged(name, &Charge::default()) }
    }

    /// Make the row of an account.
    fn charged(name: &str, charge: &Charge) -> Row {
        Row {
            name: name.to_owned(),
            id: None,
            cpu_ns: None,
            softirq_ns: Some(charge.ns),
            hosted_ns: charge.hosted,
            packets: Some(charge.packets),
            sent: charge.sent,
            drops: Some(charge.drops),
        }
    }

    /// Take note that threads of the kernel receive for it: nothing seen does not mean that there was nothing.
    pub(crate) fn received_by_threads(&mut self) {
        for known in [&mut self.softirq_ns, &mut self.packets, &mut self.drops] {
            *known = known.filter(|seen| *seen > 0);
        }
    }
}

impl Meter {
    /// Begin to measure.
    ///
    /// # Errors
    /// What is missing, where nothing can be measured.
    pub fn start() -> Result<Meter, Missing> {
        let irqs_apart = irqs_apart();
        let tracer = Tracer::start()?;
        Ok(Meter {
            irqs_apart,
            accounts: tracer.accounts()?,
            tracer,
            interval: Interval::new(Cgroups::default(), Cgroups::read().unwrap_or_default()),
            read: Instant::now(),
        })
    }

    /// Return what came since the last reading.
    ///
    /// # Errors
    /// When the accounts cannot be read.
    pub fn read(&mut self) -> Result<Status, Missing> {
        let accounts = self.tracer.accounts()?;
        let cgroups = Cgroups::read();
        let now = Instant::now();
        let apart = self.irqs_apart.then(|| Missing::Apart.to_string());
        let mut missing: Vec<String> = self.tracer.missing().iter().map(ToString::to_string).collect();
        missing.extend(apart);
        missing.extend(cgroups.is_none().then(|| Missing::Cgroup2.to_string()));
        self.interval.go_on(cgroups.unwrap_or_default());
        let came = accounts.since(&self.accounts);
        let mut status = Status {
            interval_ns: nanoseconds(now - self.read),
            cgroups: Vec::new(),
            unattributed: Vec::new(),
            softirq_ns: came.measured(),
            receive_ns: came.totals.receive_ns,
            transmit_ns: came.totals.transmit_ns,
            interrupt_ns: came.totals.interrupt_ns,
            outside_ns: self.tracer.outside().map(|outside| outside.message_ns),
            outside_timer_ns: self.tracer.outside().map(|outside| outside.timer_ns),
            softirqs: came.totals.softirqs,
            charged_ns: came.charged(),
            gap: came.gap(),
            missing,
        };
        for (account, charge) in &came.charges {
            let charge = Charge { hosted: if self.irqs_apart { 0 } else { charge.hosted }, ..*charge };
            if charge.ns == 0 && charge.hosted == 0 {
                continue;
            }
            let mut row = Row::charged(account.name().unwrap_or_default(), &charge);
            let &Account::Cgroup(id) = account else {
                status.unattributed.push(row);
                continue;
            };
            row.name =
                self.interval.get(id).map_or_else(|| format!("(cgroup {id}, not found)"), |cgroup| cgroup.path.clone());
            row.id = Some(id);
            row.cpu_ns = self.interval.own_cpu(id);
            status.cgroups.push(row);
        }
        status.cgroups.sort_by_key(|row| std::cmp::Reverse((row.softirq_ns, row.hosted_ns)));
        self.forget(&accounts);
        (self.accounts, self.read) = (accounts, now);
        Ok(status)
    }

    /// Return whether the kernel keeps the time of interrupts apart from that of processes.
    pub(crate) fn irqs_apart(&self) -> bool {
        self.irqs_apart
    }

    /// Return what measures.
    pub fn tracer(&self) -> &Tracer {
        &self.tracer
    }

    /// Return what measures, to be told more.
    pub(crate) fn tracer_mut(&mut self) -> &mut Tracer {
        &mut self.tracer
    }

    /// Close accounts of cgroups that are gone, by a reading of [`Self::tracer`]: those to which nothing came since the last report, for
    /// what came is still to be reported.
    pub fn forget(&mut self, now: &Accounts) {
        self.tracer.forget(now, &self.accounts);
    }

    /// Return the cgroups of the interval that was read last.
    pub fn interval(&self) -> &Interval {
        &self.interval
    }
}

/// Return a time in ns.
pub(crate) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Return whether this kernel keeps the time of interrupts apart from that of processes: it can (`CONFIG_IRQ_TIME_ACCOUNTING`), and
/// was not told otherwise when it began (`tsc=noirqtime`).
fn irqs_apart() -> bool {
    let told = std::fs::read_to_string("/proc/cmdline").unwrap_or_default();
    if told.split_whitespace().filter_map(|word| word.strip_prefix("tsc=")).any(|how| how == "noirqtime") {
        return false;
    }
    let symbols = std::fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    symbols.lines().any(|line| line.split([' ', '\t']).nth(2) == Some("irqtime_account_irq"))
}

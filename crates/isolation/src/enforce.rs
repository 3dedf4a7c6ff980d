//! The control loop: each cgroup's quota is rewritten each period, by what its packets cost and by what it did on others'.
//!
//! # What the kernel does when a quota is written
//!
//! `tg_set_cfs_bandwidth` (`kernel/sched/core.c`) refills the pool at once to the new quota, takes from all cores what they had
//! left or had overdrawn, and lets throttled ones run. It does not touch the timer, which refills once more at the end of the
//! kernel's own period. Two timers of equal period would so hand out up to twice the quota, or, where they meet, once what was
//! meant to be two halves.
//!
//! So there is one timer here: the kernel's period is set to the longest that it takes, 1 s, and the quota to what may be run
//! until the next step, each step anew. To write a quota *is* Figure 2.7's refill then. What was left or overdrawn is not lost,
//! though the kernel forgets it: the [`Ledger`] starts from the CPU time that the cgroup really took. So the kernel's own
//! refill once a second, an overdraft, or a step that comes late are in the books one step later, and no error adds up.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::charge::{Account, Accounts, Charge};
use crate::choice::{self, not_enforced};
use crate::journal::{Entry, Journal, Outcome, Undone};
use crate::ledger::{Came, LEAST, Ledger, divide};
use crate::locks::{LOCKS, Locks};
use crate::quota::{Bandwidth, CpuCgroup, Hierarchies, LONGEST_US, QuotaError};
use crate::rest::Rest;
use crate::restore::is_ours;
use crate::threaded::{Polled, ThreadedError};
use crate::unenforced::EnforceError;
use crate::{Meter, Row, Status};

/// How often new threads of a device are looked for.
const FOLLOW: Duration = Duration::from_secs(1);
/// Longest control period: half of the kernel's, which must not hand out much beside it.
pub const LONGEST_PERIOD: Duration = Duration::from_millis(500);
/// Shortest: below it the kernel's least quota, 1 ms, is more than a tenth of a period.
pub const SHORTEST_PERIOD: Duration = Duration::from_millis(10);

/// A cgroup to hold to its quota.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Its path below the mount.
    pub cgroup: String,
    /// Its quota, in ns of CPU a second; `None`: the one that it has.
    pub quota: Option<u64>,
}

/// What came of a cgroup under a quota in an interval.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Enforced {
    /// Its path.
    pub name: String,
    /// Its id.
    pub id: u64,
    /// The quota, in ns of CPU a second.
    pub quota_ns: u64,
    /// What it may run until the next step, in ns.
    pub next_ns: u64,
    /// What it, and those below it, really cost: own CPU - hosted + network CPU, in ns.
    pub cost_ns: u64,
    /// How long the quota held it back, in ns, summed over its CPUs.
    pub throttled_ns: u64,
    /// What it owes, in ns: later quotas are smaller by that.
    pub debt_ns: u64,
    /// Whether threads of the kernel receive for it: what they do is in its own CPU, and their packets are not counted.
    pub by_threads: bool,
}

/// A cgroup whose quota is rewritten.
#[derive(Debug)]
struct Held {
    cgroup: CpuCgroup,
    /// Inodes of its folders, of the one with the quota and of the one in cgroup2; the latter is its id.
    inodes: [u64; 2],
    ledger: Ledger,
    was: Bandwidth,
    /// Its entry in the journal.
    entry: usize,
    usage_ns: u64,
    next_ns: u64,
    /// Of the interval that is not yet reported.
    cost_ns: i64,
    throttled_ns: u64,
    /// Whether those above left less than the last quota.
    is_cut: bool,
    /// Whether the kernel has no room for what its threads may run.
    is_crowded: bool,
    rest: Rest,
}

/// Enforces quotas as long as it lives; what it changed is restored when it ends.
pub struct Enforcer {
    meter: Meter,
    held: Vec<Held>,
    polled: Vec<Polled>,
    journal: Journal,
    /// Dropped after the journal, which restores.
    locks: Locks,
    accounts: Accounts,
    /// The time of the last step.
    at: Instant,
    followed: Instant,
    period: Duration,
    irqs_apart: bool,
    /// What is to be told.
    news: Vec<String>,
}

impl Enforcer {
    /// Begin to enforce: first what an earlier process left changed is restored, then each cgroup gets its first quota.
    ///
    /// No cgroup wanted means each that has a quota. `devices` are names of devices, as [`crate::threaded::Device::find`]
    /// takes them, with the path of the cgroup that their packets are for.
    ///
    /// # Errors
    /// What is missing, or cannot be changed; what was changed by then is restored.
    pub fn start(
        wanted: &[Wanted],
        devices: &[(String, String)],
        period: Duration,
        journal: &Path,
    ) -> Result<Enforcer, EnforceError> {
        // SAFETY: the call takes nothing and cannot fail.
        if unsafe { libc::geteuid() } != 0 {
            return Err(EnforceError::NotRoot);
        }
        let hierarchies = Hierarchies::find()?;
        let named = choice::named(&hierarchies, wanted)?;
        let locks = Locks::open(Path::new(LOCKS))?;
        let (journal, undone) = Journal::open(journal)?;
        let meter = Meter::start()?;
        let now = Instant::now();
        let mut enforcer = Enforcer {
            accounts: meter.tracer().accounts()?,
            meter,
            held: Vec::new(),
            polled: Vec::new(),
            journal,
            locks,
            at: now,
            followed: now,
            period: period.clamp(SHORTEST_PERIOD, LONGEST_PERIOD),
            irqs_apart: irqs_apart(),
            news: undone.iter().map(|undone| format!("left by an earlier run: {undone}")).collect(),
        };
        choice::check(&named, &enforcer.journal)?;
        let (mut cgroups, mut skipped) = (named, Vec::new());
        if wanted.is_empty() {
            (cgroups, skipped) = choice::all(&hierarchies, &enforcer.journal);
            // Some may go meanwhile.
            cgroups.retain(|(cgroup, _)| cgroup.inodes().is_ok());
            if cgroups.is_empty() && devices.is_empty() {
                return Err(EnforceError::Nothing(skipped));
            }
        }
        choice::check_devices(devices, &hierarchies, cgroups.iter().map(|(cgroup, _)| cgroup))?;
        // All of them before any is changed.
        for (cgroup, _) in &cgroups {
            enforcer.locks.lock(cgroup.name(), cgroup.inodes()?[0])?;
        }
        for (cgroup, quota) in cgroups {
            match enforcer.hold(&cgroup, quota) {
                // Others can still be enforced.
                Err(error @ (EnforceError::Quota(_) | EnforceError::NoQuota(_))) if wanted.is_empty() => {
                    skipped.push(not_enforced(&cgroup, &error))
                }
                done => done?,
            }
        }
        if enforcer.held.is_empty() {
            return Err(EnforceError::Nothing(skipped));
        }
        enforcer.news.extend(skipped);
        choice::check_devices(devices, &hierarchies, enforcer.held.iter().map(|held| &held.cgroup))?;
        for (device, cgroup) in devices {
            let polled = Polled::start(device, hierarchies.cgroup(cgroup)?, &mut enforcer.journal)?;
            enforcer.polled.push(polled);
        }
        enforcer.hold_threads();
        Ok(enforcer)
    }

    /// Hold threads before the first step: until then a flood would take a CPU, and its cgroup would pay for that for seconds.
    fn hold_threads(&self) {
        for polled in &self.polled {
            let held = self.held.iter().find(|held| held.cgroup.name() == polled.cgroup());
            let devices = self.polled.iter().filter(|other| other.cgroup() == polled.cgroup()).count() as u64;
            let first = held.map_or(0, |held| held.next_ns) / devices.max(1);
            // Whatever keeps the kernel from that, the first step says it.
            _ = polled.hold(first, nanoseconds(self.period));
        }
    }

    /// Write down what a cgroup's quota is, and give it the first one.
    fn hold(&mut self, cgroup: &CpuCgroup, quota: Option<u64>) -> Result<(), EnforceError> {
        let was = cgroup.read()?;
        let had = was.quota_us.map(|us| us * 1_000_000 / was.period_us.max(1) * 1000);
        let rate = quota.or(had).ok_or_else(|| EnforceError::NoQuota(cgroup.name().to_owned()))?;
        let inodes = cgroup.inodes()?;
        let mut ledger = Ledger::new(rate, 1_000_000_000);
        let first = Came { elapsed: nanoseconds(self.period), ..Came::default() };
        let next_ns = ledger.step(&first, most(first.elapsed));
        let (usage_ns, throttled_ns) = (cgroup.usage_ns()?, cgroup.throttled_ns());
        let entry = Entry::Quota {
            folder: cgroup.folder().to_owned(),
            inode: inodes[0],
            was,
            period_us: LONGEST_US,
            wrote_us: [next_ns / 1000; 2],
        };
        let entry = self.journal.add(entry)?;
        if let Err(error) = cgroup.write(&bandwidth(next_ns)) {
            self.journal.undo_one(entry);
            return Err(error.into());
        }
        let cgroup = cgroup.clone();
        let (cost_ns, is_cut, is_crowded) = (0, false, false);
        self.held.push(Held {
            cgroup,
            inodes,
            ledger,
            was,
            entry,
            usage_ns,
            next_ns,
            cost_ns,
            throttled_ns,
            is_cut,
            is_crowded,
            rest: Rest::default(),
        });
        Ok(())
    }

    /// Restore a cgroup's quota before the end, and say why.
    fn let_go(&mut self, held: &Held, why: &str) {
        let restored = match self.journal.undo_one(held.entry).map(|undone| undone.outcome) {
            Some(Outcome::Restored) => "; its quota is restored".to_owned(),
            Some(Outcome::PeriodRestored(to)) => format!("; with the period that it had it is {to}"),
            Some(Outcome::Cut(to)) => format!("; its quota is restored to {to}, as much as the cgroups above it leave"),
            Some(Outcome::Refused(error)) => format!("; its quota can NOT be restored now: {error}"),
            Some(Outcome::Gone | Outcome::ChangedByOthers(_)) | None => String::new(),
        };
        self.news.push(format!("{}: {why}{restored}", held.cgroup.name()));
    }

    /// Take in what came since the last step, and write each cgroup's next quota.
    ///
    /// # Errors When the accounts cannot be read or the journal cannot be written. What goes wrong with one cgroup ends its
    /// enforcement, and is news.
    pub fn step(&mut self) -> Result<(), EnforceError> {
        let accounts = self.meter.tracer().accounts()?;
        let now = Instant::now();
        let came = accounts.since(&self.accounts);
        let elapsed = nanoseconds(now - self.at);
        self.meter.forget(&accounts, &self.accounts);
        (self.accounts, self.at) = (accounts, now);
        let mut kept = Vec::with_capacity(self.held.len());
        for mut held in std::mem::take(&mut self.held) {
            let mut threads: Vec<_> =
                self.polled.iter_mut().filter(|polled| polled.cgroup() == held.cgroup.name()).collect();
            let step =
                Step { charges: &came.charges, elapsed, irqs_apart: self.irqs_apart, period: nanoseconds(self.period) };
            let (was_cut, was_crowded) = (held.is_cut, held.is_crowded);
            match held.step(&step, &mut threads, &mut self.journal) {
                Ok(None) => {
                    if held.is_cut && !was_cut {
                        let why = "the cgroups above it have less than its quota by now: it gets as much as they leave";
                        self.news.push(format!("{}: {why}", held.cgroup.name()));
                    }
                    if held.is_crowded && !was_crowded {
                        let why = "its threads receive for less than its quota: other deadlines leave the kernel no room; until it has some \
                                   its packets wait, or are dropped";
                        self.news.push(format!("{}: {why}", held.cgroup.name()));
                    }
                    kept.push(held);
                }
                Ok(Some(why)) => self.let_go(&held, &why),
                Err(EnforceError::Quota(error)) if error.is_gone() => {
                    self.news.push(format!("{}: the cgroup is gone", held.cgroup.name()));
                }
                Err(EnforceError::Quota(error)) => self.let_go(&held, &format!("no more enforced: {error}")),
                Err(error) => {
                    self.held = kept;
                    return Err(error);
                }
            }
        }
        self.held = kept;
        if now - self.followed >= FOLLOW {
            self.followed = now;
            for polled in &mut self.polled {
                match polled.follow(&mut self.journal) {
                    Ok(()) => {}
                    Err(ThreadedError::Journal(error)) => return Err(error.into()),
                    Err(error) => self.news.push(error.to_string()),
                }
            }
        }
        Ok(())
    }

    /// Return whether nothing is left to do.
    pub fn is_idle(&self) -> bool {
        self.held.is_empty() && self.polled.is_empty()
    }

    /// Return what came since the last report: of all cgroups' network work, and of those held to a quota. These are in both.
    ///
    /// # Errors
    /// When the accounts cannot be read.
    pub fn report(&mut self) -> Result<(Status, Vec<Enforced>), EnforceError> {
        let mut status = self.meter.read()?;
        let mut enforced = Vec::with_capacity(self.held.len());
        for held in &mut self.held {
            let throttled = held.cgroup.throttled_ns();
            enforced.push(Enforced {
                name: held.cgroup.name().to_owned(),
                id: held.id(),
                quota_ns: held.ledger.quota(),
                next_ns: held.next_ns,
                cost_ns: u64::try_from(std::mem::take(&mut held.cost_ns)).unwrap_or(0),
                throttled_ns: throttled.saturating_sub(held.throttled_ns),
                debt_ns: held.ledger.debt(),
                by_threads: self.polled.iter().any(|polled| polled.cgroup() == held.cgroup.name()),
            });
            held.throttled_ns = throttled;
            if !status.cgroups.iter().any(|row| row.id == Some(held.id())) {
                let cpu_ns = self.meter.own_cpu(held.id());
                status.cgroups.push(Row::without_network(held.cgroup.name(), held.id(), cpu_ns));
            }
        }
        Ok((status, enforced))
    }

    /// Return the CPU that a cgroup's own processes took in the interval that was reported last, in ns.
    pub fn own_cpu(&self, id: u64) -> Option<u64> {
        self.meter.own_cpu(id)
    }

    /// Return what is to be told since the last time.
    pub fn news(&mut self) -> Vec<String> {
        std::mem::take(&mut self.news)
    }

    /// End: restore all that was changed, and return what became of it.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub fn end(mut self) -> Result<Vec<Undone>, EnforceError> {
        Ok(self.journal.undo()?)
    }
}

/// What a step is about.
struct Step<'a> {
    charges: &'a BTreeMap<Account, Charge>,
    /// Since the one before, and what is meant to be until the next, in ns.
    elapsed: u64,
    period: u64,
    irqs_apart: bool,
}

impl Held {
    /// Return the cgroup's id.
    fn id(&self) -> u64 {
        self.inodes[1]
    }

    /// Say so if another cgroup has taken the name: what is known is of the one before, and nothing would restore the new one.
    fn is_another(&self) -> Result<Option<String>, QuotaError> {
        let is_another = self.cgroup.inodes()? != self.inodes;
        Ok(is_another.then(|| "no more enforced: the cgroup is gone, and another one has its name".to_owned()))
    }

    /// Take in what came, and write the next quota; says why if this is no more to be done.
    fn step(
        &mut self,
        step: &Step<'_>,
        threads: &mut [&mut Polled],
        journal: &mut Journal,
    ) -> Result<Option<String>, EnforceError> {
        if let Some(news) = self.is_another()? {
            return Ok(Some(news));
        }
        let usage = self.cgroup.usage_ns()?;
        let sum = |of: fn(&Charge) -> u64| -> u64 {
            self.cgroup.ids().iter().filter_map(|id| step.charges.get(&Account::Cgroup(*id))).map(of).sum()
        };
        let came = Came {
            elapsed: step.elapsed,
            own: usage.saturating_sub(self.usage_ns),
            charged: sum(|charge| charge.ns),
            // Where the kernel keeps softirqs apart, they are in nobody's CPU time, and nobody has anything to get back.
            hosted: if step.irqs_apart { 0 } else { sum(|charge| charge.hosted) },
        };
        self.usage_ns = usage;
        self.cost_ns += [came.own, came.charged].map(u64::cast_signed).iter().sum::<i64>() - came.hosted.cast_signed();
        let now = self.cgroup.read()?;
        let noted = journal.noted(self.entry).unwrap_or_default();
        if !is_ours(&now, &self.was, LONGEST_US, noted) || now.period_us != LONGEST_US {
            return Ok(Some(format!("no more enforced: somebody else changed the quota to {now}")));
        }
        self.next_ns = self.ledger.step(&came, most(came.elapsed));
        let rests = self.rest.goes_on(self.next_ns, self.ledger.balance(), came.elapsed);
        let took: Vec<u64> = threads.iter_mut().map(|polled| polled.took_ns()).collect();
        let took: u64 = took.iter().sum();
        let (processes, receiving) = if threads.is_empty() {
            (self.next_ns, 0)
        } else {
            divide(self.next_ns, came.own.saturating_sub(took), took)
        };
        if !rests {
            journal.note(self.entry, processes / 1000)?;
            // Not long before: it may have been made meanwhile.
            if let Some(news) = self.is_another()? {
                return Ok(Some(news));
            }
            self.write(&now, &bandwidth(processes), journal)?;
        }
        self.is_crowded = false;
        for polled in &*threads {
            match polled.hold(receiving / threads.len() as u64, step.period) {
                Ok(has_room) => self.is_crowded |= !has_room,
                Err(error) => {
                    return Ok(Some(format!(
                        "no more enforced: its threads cannot be held by SCHED_DEADLINE: {error}"
                    )));
                }
            }
        }
        Ok(None)
    }

    /// Write a quota; where the cgroups above have less, as much as they leave.
    fn write(&mut self, now: &Bandwidth, to: &Bandwidth, journal: &mut Journal) -> Result<(), EnforceError> {
        let refused = match self.cgroup.write(to) {
            Err(error) if error.is_out_of_proportion() => error,
            done => {
                self.is_cut = false;
                return Ok(done?);
            }
        };
        let less = self.cgroup.within_those_above(to).ok_or(refused)?;
        // The one that is there is known, too, until it is written.
        for quota in [now.quota_us, less.quota_us].into_iter().flatten() {
            journal.note(self.entry, quota)?;
        }
        self.cgroup.write(&less)?;
        (self.is_cut, self.next_ns) = (true, less.quota_us.unwrap_or(0) * 1000);
        Ok(())
    }
}

/// The quota of the next step. The kernel's period is the longest: the only refills are those by writing.
fn bandwidth(next_ns: u64) -> Bandwidth {
    Bandwidth { quota_us: Some(next_ns / 1000), period_us: LONGEST_US, burst_us: 0 }
}

/// Return the most that can be run until the next step, should that be late by as much again.
pub(crate) fn most(elapsed: u64) -> u64 {
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) as u64;
    (2 * elapsed).saturating_mul(cpus).max(LEAST.unsigned_abs())
}

/// Return whether this kernel keeps the time of interrupts apart from that of processes (`CONFIG_IRQ_TIME_ACCOUNTING`).
fn irqs_apart() -> bool {
    let symbols = std::fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    symbols.lines().any(|line| line.split([' ', '\t']).nth(2) == Some("irqtime_account_irq"))
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

//! A cgroup whose quota is rewritten each step, with the threads of the kernel that receive for it.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::below::Below;
use crate::charge::{Account, Charge};
use crate::device::Means;
use crate::early::{EarlyDrop, Place};
use crate::intake::part;
use crate::journal::{Entry, Journal, JournalError, Outcome, Undone};
use crate::ledger::{Came, LEAST, Ledger, divide};
use crate::news::News;
use crate::quota::{Bandwidth, CpuCgroup, Inodes, LONGEST_US, QuotaError};
use crate::rest::Rest;
use crate::threaded::{Claimed, Found, Polled, ThreadedError};
use crate::tracer::Tracer;
use crate::unenforced::EnforceError;

/// What came of a cgroup under a quota in an interval.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Enforced {
    /// Its path.
    pub name: String,
    /// Its id.
    pub id: u64,
    /// The quota, in ns of CPU a second.
    pub quota_ns: u64,
    /// What it may run until the next step, its processes and the threads that receive for it, in ns.
    pub next_ns: u64,
    /// What it, and those below it, really cost: own CPU - hosted + network CPU, in ns.
    pub cost_ns: u64,
    /// How long the quota held it back, in ns, summed over its CPUs.
    pub throttled_ns: u64,
    /// What it owes, in ns: later quotas are smaller by that.
    pub debt_ns: u64,
    /// Packets for it that were dropped before the stack had them, as its quota could not pay for them.
    pub dropped_early: u64,
    /// Whether threads of the kernel receive for it: what they do is in its own CPU, and their packets are not counted.
    pub by_threads: bool,
}

/// A cgroup whose quota is rewritten.
pub(crate) struct Held {
    cgroup: CpuCgroup,
    /// The quota that was asked for, in ns of CPU a second; `None`: its own.
    asked: Option<u64>,
    inodes: Inodes,
    /// Devices whose packets threads of the kernel receive in it.
    devices: Vec<Polled>,
    /// Those where packets are dropped that its quota cannot pay for.
    early: Vec<EarlyDrop>,
    ledger: Ledger,
    /// Its entry in the journal.
    entry: usize,
    usage_ns: u64,
    next_ns: u64,
    /// What its processes may run of that, and the threads that receive for it.
    divided: (u64, u64),
    /// Of the interval that is not yet reported.
    cost_ns: i64,
    dropped_early: u64,
    throttled_ns: u64,
    /// Whether those above left less than the last quota.
    is_cut: bool,
    /// Whether the kernel has no room for what its threads may run.
    is_crowded: bool,
    rest: Rest,
    /// Whose packets it pays for.
    below: Below,
}

/// What a step is about.
pub(crate) struct Step<'a> {
    pub(crate) charges: &'a BTreeMap<Account, Charge>,
    /// The ids of the cgroups that were charged, or worked for others.
    pub(crate) cgroups: &'a [u64],
    /// Since the one before, and what is meant to be until the next, in ns.
    pub(crate) elapsed: u64,
    pub(crate) period: u64,
    pub(crate) irqs_apart: bool,
}

/// Why a cgroup is no more held.
#[derive(Debug)]
pub(crate) enum Left {
    /// It is not there any more.
    Gone,
    /// Nor is it, but another one has its name: what is known is of the one before, and nothing would restore the new one.
    Anew,
    /// It is there, and gets back what it had.
    Because(String),
    /// Nothing can go on.
    Failed(EnforceError),
}

impl From<QuotaError> for Left {
    fn from(error: QuotaError) -> Left {
        if error.is_gone() { Left::Gone } else { Left::Because(format!("no more enforced: {error}")) }
    }
}

impl From<JournalError> for Left {
    fn from(error: JournalError) -> Left {
        Left::Failed(error.into())
    }
}

impl Held {
    /// Write down what a cgroup's quota is, and give it the first one; `quota` is in ns of CPU a second, `None` the one that it has.
    pub(crate) fn start(
        cgroup: &CpuCgroup,
        quota: Option<u64>,
        period: u64,
        journal: &mut Journal,
    ) -> Result<Held, EnforceError> {
        let was = cgroup.read()?;
        let had = was.quota_us.map(|us| us * 1_000_000 / was.period_us.max(1) * 1000);
        let rate = quota.or(had).ok_or_else(|| EnforceError::NoQuota(cgroup.name().to_owned()))?;
        let inodes = cgroup.inodes()?;
        let mut ledger = Ledger::new(rate, 1_000_000_000).keeping(was.burst_us.saturating_mul(1000));
        let next_ns = ledger.step(&Came { elapsed: period, ..Came::default() }, most(period));
        let (usage_ns, throttled_ns) = (cgroup.usage_ns()?, cgroup.throttled_ns());
        let entry = Entry::Quota {
            folder: cgroup.folder().to_owned(),
            inode: inodes.quota,
            was,
            period_us: LONGEST_US,
            wrote_us: [next_ns / 1000; 2],
        };
        let entry = journal.add(entry)?;
        if let Err(error) = cgroup.write(&bandwidth(next_ns)) {
            journal.undo_one(entry);
            return Err(error.into());
        }
        Ok(Held {
            cgroup: cgroup.clone(),
            asked: quota,
            inodes,
            devices: Vec::new(),
            early: Vec::new(),
            ledger,
            entry,
            usage_ns,
            next_ns,
            divided: (next_ns, 0),
            cost_ns: 0,
            dropped_early: 0,
            throttled_ns,
            is_cut: false,
            is_crowded: false,
            rest: Rest::default(),
            below: Below::default(),
        })
    }

    /// Let threads of the kernel receive a device's packets in this cgroup, held from now on: until the first step a flood would take
    /// a CPU, and the cgroup would pay for that for seconds.
    pub(crate) fn poll(
        &mut self,
        device: &str,
        period: u64,
        journal: &mut Journal,
        claimed: &mut Claimed,
    ) -> Result<(), ThreadedError> {
        self.devices.push(Polled::start(device, self.cgroup.clone(), journal, claimed)?);
        self.divided.1 = self.next_ns;
        let each = self.next_ns / self.devices.len() as u64;
        for device in &mut self.devices {
            // Whatever keeps the kernel from that, the first step says it.
            _ = device.hold(each, period);
        }
        Ok(())
    }

    /// Let a device's packets be dropped that the quota cannot pay for.
    pub(crate) fn drop_early(&mut self, device: &str, tracer: &mut Tracer) -> Result<Option<News>, EnforceError> {
        let early = EarlyDrop::start(device)?;
        if let Some(key) = early.key() {
            tracer.charge_device(key, Some(self.id()))?;
        }
        let news = (early.place() == Place::Stack).then(|| News::BehindTheDriver { device: early.name().to_owned() });
        self.early.push(early);
        Ok(news)
    }

    /// Return the cgroup's id.
    fn id(&self) -> u64 {
        self.inodes.unified
    }

    /// Return the inode of the folder with the quota.
    pub(crate) fn inode(&self) -> u64 {
        self.inodes.quota
    }

    /// Return the cgroup.
    pub(crate) fn cgroup(&self) -> &CpuCgroup {
        &self.cgroup
    }

    /// Return the quota that was asked for, in ns of CPU a second; `None`: its own.
    pub(crate) fn asked(&self) -> Option<u64> {
        self.asked
    }

    /// Return whether devices are held for it, too.
    pub(crate) fn has_devices(&self) -> bool {
        !self.devices.is_empty() || !self.early.is_empty()
    }

    /// Say so if another cgroup has taken the name.
    fn is_it(&self) -> Result<(), Left> {
        if self.cgroup.inodes()? == self.inodes { Ok(()) } else { Err(Left::Anew) }
    }

    /// Take in what came, and write the next quota.
    ///
    /// # Errors
    /// Why it is no more to be held.
    pub(crate) fn step(&mut self, step: &Step<'_>, journal: &mut Journal) -> Result<Vec<News>, Left> {
        self.is_it()?;
        let usage = self.cgroup.usage_ns()?;
        let charged = self.below.of(step.cgroups, || self.cgroup.ids());
        let charges: Vec<&Charge> = charged.filter_map(|id| step.charges.get(&Account::Cgroup(id))).collect();
        let sum = |of: fn(&Charge) -> u64| -> u64 { charges.iter().copied().map(of).sum() };
        let own = usage.saturating_sub(self.usage_ns);
        let took: u64 = self.devices.iter_mut().map(Polled::took_ns).sum();
        let is_all = |took: u64, had: u64| !self.devices.is_empty() && took + took / 16 >= had;
        let (processes_had, threads_had) = self.divided;
        let came = Came {
            elapsed: step.elapsed,
            own,
            charged: sum(|charge| charge.ns),
            // Where the kernel keeps softirqs apart, they are in nobody's CPU time, and nobody has anything to get back.
            hosted: if step.irqs_apart { 0 } else { sum(|charge| charge.hosted) },
            held_back: is_all(own.saturating_sub(took), processes_had) || is_all(took, threads_had),
        };
        self.usage_ns = usage;
        self.cost_ns += [came.own, came.charged].map(u64::cast_signed).iter().sum::<i64>() - came.hosted.cast_signed();
        let now = self.cgroup.read()?;
        // No write is under way here: any other quota is somebody else's, also one that was given before, or was there.
        let ours = journal.noted(self.entry).map(|[_, last]| bandwidth(last * 1000));
        if ours != Some(now) {
            return Err(Left::Because(format!("no more enforced: somebody else changed the quota to {now}")));
        }
        let had = self.next_ns;
        self.next_ns = self.ledger.step(&came, most(came.elapsed));
        let rests = self.rest.goes_on(self.next_ns, self.ledger.balance(), came.elapsed);
        let (processes, receiving) = if self.devices.is_empty() {
            (self.next_ns, 0)
        } else {
            divide(self.next_ns, own.saturating_sub(took), took)
        };
        self.divided = (processes, receiving);
        let (was_cut, was_crowded) = (self.is_cut, self.is_crowded);
        if !rests {
            journal.note(self.entry, processes / 1000)?;
            // Not long before: it may have been made meanwhile.
            self.is_it()?;
            self.write(&now, &bandwidth(processes), journal)?;
        }
        self.is_crowded = false;
        let each = receiving / (self.devices.len() as u64).max(1);
        for device in &mut self.devices {
            match device.hold(each, step.period) {
                Ok(has_room) => self.is_crowded |= !has_room,
                Err(error) => {
                    let why = format!("no more enforced: its threads cannot be held by SCHED_DEADLINE: {error}");
                    return Err(Left::Because(why));
                }
            }
        }
        self.drop_what_is_too_much(&came, had, step.period)?;
        let name = || self.cgroup.name().to_owned();
        let cut = (self.is_cut && !was_cut).then(|| News::Cut { cgroup: name() });
        let crowded = (self.is_crowded && !was_crowded).then(|| News::Crowded { cgroup: name() });
        Ok(cut.into_iter().chain(crowded).collect())
    }

    /// Let as many packets come until the next step as the quota pays for beside its processes, which could have run for `had` ns.
    ///
    /// The quota counts, not what may be run until the next step: packets of the last one are paid for in that already.
    fn drop_what_is_too_much(&mut self, came: &Came, had: u64, period: u64) -> Result<(), Left> {
        let in_a_period = |ns: u64| scaled(ns, period, came.elapsed);
        let may = scaled(self.ledger.quota(), period, self.ledger.period()).saturating_sub(self.ledger.debt());
        let packets = part(may, in_a_period(came.own.saturating_sub(came.hosted)), in_a_period(had));
        let devices = self.early.len() as u64;
        for early in &mut self.early {
            match early.step(in_a_period(came.charged) / devices, packets / devices) {
                // The stack counts what is dropped in it.
                Ok(dropped) if early.place() == Place::Driver => self.dropped_early += dropped,
                Ok(_) => {}
                Err(error) => {
                    let why = format!("no more enforced: {} {}: {error}", Means::EarlyDrop.option(), early.name());
                    return Err(Left::Because(why));
                }
            }
        }
        Ok(())
    }

    /// Return whether threads of its devices have ended since the last time: others may take their place, outside of the cgroup.
    pub(crate) fn has_lost_threads(&mut self) -> bool {
        let lost = self.devices.iter_mut().filter_map(|device| device.has_lost().then_some(()));
        lost.count() > 0
    }

    /// Put threads of its devices into the cgroup that are new.
    ///
    /// # Errors
    /// When the journal cannot be written. What goes wrong with a device is returned.
    pub(crate) fn follow(&mut self, journal: &mut Journal, claimed: &mut Claimed) -> Result<Vec<News>, EnforceError> {
        let mut news = Vec::new();
        for device in &mut self.devices {
            match device.follow(journal, claimed) {
                Ok(Found::AsBefore) => {}
                Ok(Found::SwitchedOn) => news.push(News::SwitchedOn { device: device.name() }),
                Ok(Found::Renamed(to)) => news.push(News::DeviceRenamed { device: device.name(), to }),
                Ok(Found::Gone) => news.push(News::DeviceGone { device: device.name() }),
                Err(ThreadedError::Journal(error)) => return Err(error.into()),
                Err(error) if device.is_news(&error) => news.push(News::Threads(error)),
                Err(_) => {}
            }
        }
        Ok(news)
    }

    /// Give back what it had, before the end of the run, and say what became of that.
    pub(crate) fn let_go(self, journal: &mut Journal, tracer: &mut Tracer) -> String {
        for key in self.early.iter().filter_map(EarlyDrop::key) {
            // Where the kernel refuses that, what is measured is as it was.
            _ = tracer.charge_device(key, None);
        }
        let quota = match journal.undo_one(self.entry).map(|undone| undone.outcome) {
            Some(Outcome::Restored) => "; its quota is restored".to_owned(),
            Some(Outcome::PeriodRestored(to)) => format!("; with the period that it had it is {to}"),
            Some(Outcome::Cut(to)) => format!("; its quota is restored to {to}, as much as the cgroups above it leave"),
            Some(Outcome::Refused(error)) => format!("; its quota can NOT be restored now: {error}"),
            Some(Outcome::Gone | Outcome::ChangedByOthers(_)) | None => String::new(),
        };
        // Threads that stayed would be held to what its last step left them.
        let undone = self.devices.into_iter().flat_map(|device| device.end(journal));
        undone.filter(Undone::is_refused).fold(quota, |said, undone| format!("{said}; {undone}"))
    }

    /// Return what came of it since the last report.
    pub(crate) fn report(&mut self) -> Enforced {
        let throttled = self.cgroup.throttled_ns();
        Enforced {
            name: self.cgroup.name().to_owned(),
            id: self.id(),
            quota_ns: self.ledger.quota(),
            next_ns: self.next_ns,
            cost_ns: u64::try_from(std::mem::take(&mut self.cost_ns)).unwrap_or(0),
            throttled_ns: throttled.saturating_sub(std::mem::replace(&mut self.throttled_ns, throttled)),
            debt_ns: self.ledger.debt(),
            dropped_early: std::mem::take(&mut self.dropped_early),
            by_threads: !self.devices.is_empty(),
        }
    }

    /// Write a quota; where the cgroups above have less, as much as they leave.
    fn write(&mut self, now: &Bandwidth, to: &Bandwidth, journal: &mut Journal) -> Result<(), Left> {
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
        let kept_back = to.quota_us.unwrap_or(0).saturating_sub(less.quota_us.unwrap_or(0)) * 1000;
        (self.is_cut, self.next_ns) = (true, self.next_ns.saturating_sub(kept_back));
        Ok(())
    }
}

/// Return what came in `of`, as it would be in `to`.
fn scaled(came: u64, to: u64, of: u64) -> u64 {
    u64::try_from(u128::from(came) * u128::from(to) / u128::from(of.max(1))).unwrap_or(u64::MAX)
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

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

use std::path::Path;
use std::time::{Duration, Instant};

use crate::awaited::Awaited;
use crate::charge::{Account, Accounts};
use crate::choice::{self, not_enforced};
use crate::device::{Device, DeviceError, Means, Port};
use crate::held::{Enforced, Held, Left, Step};
use crate::journal::{Journal, Undone};
use crate::locks::{DEVICE_LOCKS, LOCKS, Locks};
use crate::meter::nanoseconds;
use crate::news::News;
use crate::quota::Hierarchies;
use crate::threaded::Claimed;
use crate::unenforced::EnforceError;
use crate::{Interval, Meter, Row, Status};

/// How often new threads of a device are looked for, and cgroups that were gone.
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

/// Enforces quotas as long as it lives; what it changed is restored when it ends.
pub struct Enforcer {
    meter: Meter,
    held: Vec<Held>,
    /// Those that are gone.
    awaited: Vec<Awaited>,
    hierarchies: Hierarchies,
    journal: Journal,
    /// Dropped after the journal, which restores.
    locks: Locks,
    /// Of devices; which ones, with the inode of their cgroup.
    devices: Locks,
    places: Vec<(u64, u64)>,
    /// Threads of the kernel that receive for them.
    claimed: Claimed,
    accounts: Accounts,
    /// The time of the last step.
    at: Instant,
    followed: Instant,
    period: Duration,
    /// What is to be told.
    news: Vec<News>,
}

impl Enforcer {
    /// Begin to enforce: first what an earlier process left changed is restored, then each cgroup gets its first quota.
    ///
    /// No cgroup wanted means each that has a quota. `ports` are devices whose packets are for one of
    /// them.
    ///
    /// # Errors
    /// What is missing, or cannot be changed; what was changed by then is restored.
    pub fn start(
        wanted: &[Wanted],
        ports: &[Port],
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
            awaited: Vec::new(),
            hierarchies: hierarchies.clone(),
            journal,
            locks,
            devices: Locks::open(Path::new(DEVICE_LOCKS))?,
            places: Vec::new(),
            claimed: Claimed::new(),
            at: now,
            followed: now,
            period: period.clamp(SHORTEST_PERIOD, LONGEST_PERIOD),
            news: undone.into_iter().map(News::LeftBefore).collect(),
        };
        choice::check(&named, &enforcer.journal)?;
        let (mut cgroups, mut skipped) = (named, Vec::new());
        if wanted.is_empty() {
            (cgroups, skipped) = choice::all(&hierarchies, &enforcer.journal);
            // Some may go meanwhile.
            cgroups.retain(|(cgroup, _)| cgroup.inodes().is_ok());
            if cgroups.is_empty() && ports.is_empty() {
                return Err(EnforceError::Nothing(skipped));
            }
        }
        choice::check_devices(ports, &hierarchies, cgroups.iter().map(|(cgroup, _)| cgroup))?;
        // All of them before any is changed.
        for (cgroup, _) in &cgroups {
            enforcer.locks.lock(cgroup.name(), cgroup.inodes()?.quota)?;
        }
        for (cgroup, quota) in cgroups {
            match Held::start(&cgroup, quota, nanoseconds(enforcer.period), &mut enforcer.journal) {
                // Others can still be enforced.
                Err(error @ (EnforceError::Quota(_) | EnforceError::NoQuota(_))) if wanted.is_empty() => {
                    skipped.push(not_enforced(&cgroup, &error));
                }
                held => enforcer.held.push(held?),
            }
        }
        if enforcer.held.is_empty() {
            return Err(EnforceError::Nothing(skipped));
        }
        enforcer.news.extend(skipped.into_iter().map(News::Skipped));
        choice::check_devices(ports, &hierarchies, enforcer.held.iter().map(Held::cgroup))?;
        for Port { device, cgroup, means } in ports {
            let receiver = hierarchies.cgroup(cgroup)?;
            let Some(held) = enforcer.held.iter_mut().find(|held| held.cgroup().folder() == receiver.folder()) else {
                // Checked above.
                continue;
            };
            let place = Device::find(device).and_then(|device| device.place());
            let refused = |error| DeviceError { option: means.option(), device: device.clone(), error };
            let place = place.map_err(refused)?;
            let period = nanoseconds(enforcer.period);
            match means {
                Means::Threads => {
                    enforcer.devices.lock(device, place)?;
                    held.poll(device, period, &mut enforcer.journal, &mut enforcer.claimed)?;
                }
                // The kernel lets one have a program there, whoever it is.
                Means::EarlyDrop => {
                    enforcer.news.extend(held.drop_early(device, enforcer.meter.tracer_mut())?);
                    enforcer.devices.lock(device, place)?;
                }
            }
            enforcer.places.push((held.inode(), place));
        }
        // What was before the quotas is nobody's to pay for, and no part of the first report.
        enforcer.meter.read()?;
        (enforcer.accounts, enforcer.at) = (enforcer.meter.tracer().accounts()?, Instant::now());
        Ok(enforcer)
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
        self.meter.forget(&accounts);
        (self.accounts, self.at) = (accounts, now);
        let follows = now - self.followed >= FOLLOW;
        if follows {
            self.followed = now;
        }
        let period = nanoseconds(self.period);
        let charged = came.charges.iter().filter(|(_, charge)| charge.ns > 0 || charge.hosted > 0);
        let cgroups: Vec<u64> = charged
            .filter_map(|(account, _)| match account {
                Account::Cgroup(id) => Some(*id),
                _ => None,
            })
            .collect();
        let step =
            Step { charges: &came.charges, cgroups: &cgroups, elapsed, irqs_apart: self.meter.irqs_apart(), period };
        let mut kept = Vec::with_capacity(self.held.len());
        for mut held in std::mem::take(&mut self.held) {
            let why = match held.step(&step, &mut self.journal) {
                Ok(news) => {
                    self.news.extend(news);
                    if held.has_lost_threads() || follows {
                        self.news.extend(held.follow(&mut self.journal, &mut self.claimed)?);
                    }
                    kept.push(held);
                    continue;
                }
                Err(Left::Failed(error)) => return Err(error),
                Err(why) => why,
            };
            if !matches!(why, Left::Because(_)) {
                self.awaited.push(Awaited::new(&held));
            }
            let why = match why {
                Left::Anew => "no more enforced: the cgroup is gone, and another one has its name".to_owned(),
                Left::Because(why) => why,
                _ => "the cgroup is gone; it is enforced again when it is back".to_owned(),
            };
            let (inode, cgroup) = (held.inode(), held.cgroup().name().to_owned());
            let restored = held.let_go(&mut self.journal, self.meter.tracer_mut());
            self.news.push(News::LetGo { cgroup, why, restored });
            self.locks.unlock(inode);
            self.places.retain(|(cgroup, place)| {
                if *cgroup == inode {
                    self.devices.unlock(*place);
                }
                *cgroup != inode
            });
        }
        self.held = kept;
        if follows {
            self.look_for_awaited()?;
        }
        Ok(())
    }

    fn look_for_awaited(&mut self) -> Result<(), EnforceError> {
        let period = nanoseconds(self.period);
        for mut awaited in std::mem::take(&mut self.awaited) {
            match awaited.look(&self.hierarchies, &self.locks, period, &mut self.journal) {
                Ok(None) => self.awaited.push(awaited),
                Ok(Some(held)) => {
                    let (cgroup, had_devices) = (awaited.name().to_owned(), awaited.had_devices);
                    self.news.push(News::Back { cgroup, had_devices });
                    self.held.push(held);
                }
                Err(error @ EnforceError::Journal(_)) => return Err(error),
                Err(error) => {
                    let name = awaited.name();
                    self.news.push(News::Skipped(format!("{name}: it is back, and not enforced: {error}")));
                }
            }
        }
        Ok(())
    }

    /// Return whether nothing is left to do, and nothing waited for.
    pub fn is_idle(&self) -> bool {
        self.held.is_empty() && self.awaited.is_empty()
    }

    /// Return what came since the last report: of all cgroups' network work, and of those held to a quota. These are in both.
    ///
    /// # Errors
    /// When the accounts cannot be read.
    pub fn report(&mut self) -> Result<(Status, Vec<Enforced>), EnforceError> {
        let mut status = self.meter.read()?;
        let mut enforced = Vec::with_capacity(self.held.len());
        for held in &mut self.held {
            let came = held.report();
            let at = status.cgroups.iter().position(|row| row.id == Some(came.id)).unwrap_or_else(|| {
                let own_cpu = self.meter.interval().own_cpu(came.id);
                status.cgroups.push(Row::without_network(&came.name, came.id, own_cpu));
                status.cgroups.len() - 1
            });
            if came.by_threads {
                status.cgroups[at].received_by_threads();
            }
            enforced.push(came);
        }
        Ok((status, enforced))
    }

    /// Return the cgroups of the interval that was reported last.
    pub fn interval(&self) -> &Interval {
        self.meter.interval()
    }

    /// Return what is to be told since the last time.
    pub fn news(&mut self) -> Vec<News> {
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

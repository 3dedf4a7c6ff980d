//! Threaded NAPI: a device whose packets a thread of the kernel receives, in the cgroup that they are for.
//!
//! The scheduler then charges the receiver for that work and holds it to the quota, and what comes meanwhile waits in the
//! device's ring, or is dropped there at no cost, as in Iron's hardware drop (Khalid's dissertation, section 2.2.2).
//! Where a quota does not hold threads of the kernel, a deadline does.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::io;
use std::mem::{Discriminant, discriminant};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::deadline;
use crate::device::{Device, DeviceError, Means};
use crate::journal::{Entry, Journal, JournalError, Outcome, Undone};
use crate::quota::CpuCgroup;
use crate::receivers::{Receivers, Thread, receivers, stat};

/// Whether threads receive for a device, in its folder.
const FILE: &str = "threaded";

/// What is wrong with a device whose packets threads are to receive.
#[derive(Debug)]
#[expect(missing_docs, reason = "the fields' names say it")]
pub enum ThreadedError {
    /// No such device or namespace; or its file cannot be used.
    Device(DeviceError),
    /// The driver does not do it.
    Unsupported { device: String },
    /// No thread is found that receives.
    NoThread { device: String },
    /// A thread cannot be moved.
    Unmoved { thread: u32, to: PathBuf, error: io::Error },
    /// The journal cannot be written.
    Journal(JournalError),
}

impl fmt::Display for ThreadedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ThreadedError::Device(error) if error.error.kind() == io::ErrorKind::NotFound => {
                write!(f, "{error}; its file `threaded` needs Linux 5.12 or newer")
            }
            ThreadedError::Device(error) => error.fmt(f),
            ThreadedError::Unsupported { device } => write!(
                f,
                "--napi {device}: the device does not receive by NAPI; for a veth turn that on with `ethtool -K DEV gro on`"
            ),
            ThreadedError::NoThread { device } => {
                write!(
                    f,
                    "--napi {device}: no kernel thread `napi/{device}-*`: is the device up? try `ip link set DEV up`"
                )
            }
            ThreadedError::Unmoved { thread, to, error } => {
                write!(f, "kernel thread {thread} cannot be put into {}: {error}", to.display())?;
                match error.raw_os_error() {
                    Some(libc::EBUSY) => {
                        write!(
                            f,
                            "; in cgroup2 one that gives controllers to those below takes no threads: name one below it"
                        )
                    }
                    _ => Ok(()),
                }
            }
            ThreadedError::Journal(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ThreadedError {}

impl ThreadedError {
    /// Return what the kernel says.
    fn errno(&self) -> Option<i32> {
        match self {
            ThreadedError::Device(DeviceError { error, .. }) | ThreadedError::Unmoved { error, .. } => {
                error.raw_os_error()
            }
            _ => None,
        }
    }
}

impl From<JournalError> for ThreadedError {
    fn from(error: JournalError) -> Self {
        ThreadedError::Journal(error)
    }
}

/// Return whether threads receive a device's packets.
fn threaded(device: &Device) -> io::Result<bool> {
    // Newer kernels have 2 besides, for threads that poll all the time.
    device.within(|folder| fs::read_to_string(folder.join(FILE))).map(|text| text.trim() != "0")
}

fn set(device: &Device, threaded: bool) -> io::Result<()> {
    device.within(|folder| fs::write(folder.join(FILE), if threaded { "1" } else { "0" }))
}

/// Give back what there was before.
pub(crate) fn restore(device: &Device, was: bool) -> Outcome {
    match threaded(device) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Outcome::Gone,
        Err(error) => Outcome::Refused(error.to_string()),
        Ok(now) if now == was => Outcome::Restored,
        Ok(_) => set(device, was).map_or_else(|error| Outcome::Refused(error.to_string()), |()| Outcome::Restored),
    }
}

/// Put a thread back into the cgroup that it was in.
pub(crate) fn put_back(pid: u32, began: u64, from: &Path, to: &Path) -> Outcome {
    if stat(pid).is_none_or(|(_, now)| now != began) {
        return Outcome::Gone;
    }
    if let Err(error) = deadline::release(pid) {
        return Outcome::Refused(error.to_string());
    }
    let number = pid.to_string();
    if !fs::read_to_string(to).is_ok_and(|threads| threads.lines().any(|line| line == number)) {
        return Outcome::ChangedByOthers("another cgroup".to_owned());
    }
    fs::write(from, number).map_or_else(|error| Outcome::Refused(error.to_string()), |()| Outcome::Restored)
}

/// Longest wait, at the start, for new threads to run for the first time; and in a step, which tries again a second later.
const FIRST_RUN: Duration = Duration::from_secs(1);
const FIRST_RUN_IN_STEP: Duration = Duration::from_millis(5);

/// Move a thread. The kernel refuses one that has not yet run (`no_cgroup_migration`), which a busy machine can delay.
fn moved(to: &Path, pid: u32, end: Instant) -> io::Result<()> {
    loop {
        match fs::write(to, pid.to_string()) {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) && Instant::now() < end => {
                thread::sleep(Duration::from_millis(1));
            }
            done => return done,
        }
    }
}

/// What was found of a device's threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nothing that is to be told.
    AsBefore,
    /// Somebody had switched them off: they receive again. Found the first time only, since who may do so may do it all the time.
    SwitchedOn,
    /// The device has this name by now. Its threads are known by its name, which may be that of others' in other namespaces: it is given
    /// back as it was.
    Renamed(String),
    /// The device is not there any more.
    Gone,
}

/// The threads that any device of this process has: names are per namespace, so what is new by its name may be another's.
pub(crate) type Claimed = BTreeSet<Thread>;

/// What has gone wrong, without of which thread: whoever may cause it may cause it all the time.
type Wrong = (Discriminant<ThreadedError>, Option<i32>);

/// A device whose receiving threads are kept in a cgroup.
#[derive(Debug)]
pub struct Polled {
    device: Device,
    /// Its number, by which it is known when somebody gives it another name.
    number: u32,
    /// It was told that they were switched off.
    is_told: bool,
    /// It is not followed any more.
    is_gone: bool,
    cgroup: CpuCgroup,
    /// Threads that are in the cgroup, and those of devices of the same name in other namespaces.
    known: BTreeSet<Thread>,
    /// Those that are in the cgroup.
    ours: Receivers,
    /// Those that had not yet run when they were to be moved.
    late: BTreeSet<Thread>,
    /// What has gone wrong by now, and was told.
    told: Vec<Wrong>,
    /// What of the journal is about it.
    entries: Vec<usize>,
}

impl Polled {
    /// Let threads receive a device's packets, and put them into a cgroup.
    ///
    /// # Errors
    /// When the device or the kernel cannot do that. What was changed is in the journal.
    pub(crate) fn start(
        device: &str,
        cgroup: CpuCgroup,
        journal: &mut Journal,
        claimed: &mut Claimed,
    ) -> Result<Polled, ThreadedError> {
        let failed = |error| {
            ThreadedError::Device(DeviceError { option: Means::Threads.option(), device: device.to_owned(), error })
        };
        let found = Device::find(device).map_err(failed)?;
        let (was, number) = (threaded(&found).map_err(failed)?, found.number().map_err(failed)?);
        // Names are per namespace, and the threads' are the same everywhere: those that were there are another's.
        let others = if was { BTreeSet::new() } else { receivers(&found.name) };
        let entries = vec![journal.add(Entry::Threaded { device: found.clone(), was })?];
        if !was {
            set(&found, true).map_err(|error| match error.raw_os_error() {
                Some(libc::EOPNOTSUPP) => ThreadedError::Unsupported { device: device.to_owned() },
                _ => failed(error),
            })?;
        }
        let mut polled = Polled {
            device: found,
            number,
            is_told: false,
            is_gone: false,
            cgroup,
            known: others,
            ours: Receivers::default(),
            late: BTreeSet::new(),
            told: Vec::new(),
            entries,
        };
        polled.look(FIRST_RUN, journal, claimed)?;
        if polled.ours.is_empty() {
            return Err(ThreadedError::NoThread { device: device.to_owned() });
        }
        Ok(polled)
    }

    /// Return whether a thread has ended since the last time, so that it is not left for later to look for others.
    pub(crate) fn has_lost(&mut self) -> bool {
        self.ours.has_lost()
    }

    /// Return the device's name.
    pub(crate) fn name(&self) -> String {
        self.device.to_string()
    }

    /// Put threads into the cgroup that are new: a device that goes down and up again has others. What somebody has switched off
    /// is switched on again.
    ///
    /// # Errors
    /// When one cannot be moved, or switched on again.
    pub(crate) fn follow(&mut self, journal: &mut Journal, claimed: &mut Claimed) -> Result<Found, ThreadedError> {
        if self.is_gone {
            return Ok(Found::AsBefore);
        }
        let name = self.name();
        let failed =
            |error| ThreadedError::Device(DeviceError { option: Means::Threads.option(), device: name, error });
        let Some(device) = self.device.by_number(self.number).map_err(failed.clone())? else {
            self.leave(claimed);
            return Ok(Found::Gone);
        };
        if device != self.device {
            self.leave(claimed);
            let was = self.entries.first().and_then(|entry| journal.was_threaded(*entry)).unwrap_or(false);
            set(&device, was).map_err(failed)?;
            return Ok(Found::Renamed(device.to_string()));
        }
        // Kernels differ in whether the threads end then.
        let is_off = !threaded(&device).map_err(failed.clone())?;
        if is_off && let Err(error) = set(&device, true) {
            // Those that have ended are not to be looked for in each step.
            self.forget_ended(&receivers(&self.device.name), claimed);
            return Err(failed(error));
        }
        self.look(FIRST_RUN_IN_STEP, journal, claimed)?;
        let is_news = is_off && !self.is_told;
        self.is_told |= is_off;
        Ok(if is_news { Found::SwitchedOn } else { Found::AsBefore })
    }

    /// Follow it no more: what is left of its threads is held no longer, and may be another's.
    fn leave(&mut self, claimed: &mut Claimed) {
        self.is_gone = true;
        for thread in self.ours.release() {
            claimed.remove(&thread);
        }
    }

    /// Return whether it is the first time that this goes wrong.
    pub(crate) fn is_news(&mut self, error: &ThreadedError) -> bool {
        let wrong = (discriminant(error), error.errno());
        let is_news = !self.told.contains(&wrong);
        if is_news {
            self.told.push(wrong);
        }
        is_news
    }

    fn forget_ended(&mut self, now: &BTreeSet<Thread>, claimed: &mut Claimed) {
        self.known.retain(|thread| now.contains(thread));
        self.late.retain(|thread| now.contains(thread));
        for thread in self.ours.keep(now) {
            claimed.remove(&thread);
        }
    }

    /// Take in the threads that there are by now. One that cannot be moved is tried again the next time; one that has yet to run for
    /// the first time is no error before that.
    fn look(&mut self, wait: Duration, journal: &mut Journal, claimed: &mut Claimed) -> Result<(), ThreadedError> {
        let now = receivers(&self.device.name);
        self.forget_ended(&now, claimed);
        let (end, mut done) = (Instant::now() + wait, Ok(()));
        for thread in now {
            if !self.known.insert(thread) || !claimed.insert(thread) {
                continue;
            }
            let Err(error) = self.take(thread, end, journal) else {
                self.ours.insert(thread);
                continue;
            };
            self.known.remove(&thread);
            claimed.remove(&thread);
            if matches!(error, ThreadedError::Journal(_)) {
                return Err(error);
            }
            let is_late = error.errno() == Some(libc::EINVAL) && wait < FIRST_RUN && self.late.insert(thread);
            if !is_late {
                done = done.and(Err(error));
            }
        }
        done
    }

    /// Give the device and its threads back before the end of the run, and say what became of them.
    pub fn end(self, journal: &mut Journal) -> Vec<Undone> {
        self.entries.iter().rev().filter_map(|entry| journal.undo_one(*entry)).collect()
    }

    /// Return how long the threads ran since the last time, in ns.
    pub fn took_ns(&mut self) -> u64 {
        self.ours.took_ns()
    }

    /// Let the threads together run for so long in each period, in ns. Returns whether the kernel has room for at least half of that.
    ///
    /// # Errors
    /// The kernel's, of the first one that it refuses.
    pub fn hold(&mut self, runtime: u64, period: u64) -> io::Result<bool> {
        self.ours.hold(runtime, period)
    }

    fn take(&mut self, (pid, began): Thread, end: Instant, journal: &mut Journal) -> Result<(), ThreadedError> {
        let memberships = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        for to in self.cgroup.thread_files() {
            let Some(from) = self.cgroup.thread_file_of(&to, &memberships) else { continue };
            // There since it was tried before.
            if from == to {
                continue;
            }
            let entry = Entry::Thread { pid, began, from, to: to.clone() };
            if !self.entries.iter().any(|number| journal.is_entry(*number, &entry)) {
                self.entries.push(journal.add(entry)?);
            }
            match moved(&to, pid, end) {
                // It ended meanwhile.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                moved => moved.map_err(|error| ThreadedError::Unmoved { thread: pid, to, error })?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_told_from_its_successor() {
        let (parent, began) = stat(std::process::id()).unwrap();
        assert!(parent > 0 && began > 0);
        assert_eq!(put_back(std::process::id(), began + 1, Path::new("/x"), Path::new("/y")), Outcome::Gone);
        let elsewhere = put_back(std::process::id(), began, Path::new("/x"), Path::new("/no/file"));
        assert_eq!(elsewhere, Outcome::ChangedByOthers("another cgroup".to_owned()));
    }
}

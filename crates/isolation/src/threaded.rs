//! Threaded NAPI: a device whose packets a thread of the kernel receives, in the cgroup that they are for.
//!
//! The scheduler then charges the receiver for that work and holds it to the quota, and what comes meanwhile waits in the
//! device's ring, or is dropped there at no cost, as in Iron's hardware drop (Khalid's dissertation, section 2.2.2).
//! Where a quota does not hold threads of the kernel, a deadline does.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::deadline;
use crate::device::{Device, DeviceError, Means};
use crate::journal::{Entry, Journal, JournalError, Outcome, Undone};
use crate::quota::CpuCgroup;

/// Whether threads receive for a device, in its folder.
const FILE: &str = "threaded";
/// The most of a thread's name that kernels before 5.17 tell.
const NAME: usize = 15;

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

/// A thread of the kernel: its number, and when it began, in ticks.
pub(crate) type Thread = (u32, u64);

/// Return the threads that receive for devices of a name.
pub(crate) fn receivers(device: &str) -> BTreeSet<Thread> {
    let prefix = format!("napi/{device}-");
    let numbers = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let receiver = |pid: u32| {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
        let (parent, began) = stat(pid)?;
        // A process may call itself so, too; the kernel's are children of kthreadd.
        (is_receiver(name.trim_end_matches('\n'), &prefix) && parent == 2).then_some((pid, began))
    };
    numbers.filter_map(receiver).collect()
}

fn is_receiver(name: &str, prefix: &str) -> bool {
    match name.strip_prefix(prefix) {
        Some(id) => id.bytes().all(|byte| byte.is_ascii_digit()),
        None => name.len() == NAME && prefix.starts_with(name),
    }
}

/// Return a process's parent, and when it began, in ticks.
fn stat(pid: u32) -> Option<(u32, u64)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before may have blanks and brackets.
    let mut words = stat.rsplit_once(')')?.1.split_whitespace();
    let parent = words.nth(1)?.parse().ok()?;
    Some((parent, words.nth(17)?.parse().ok()?))
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

/// Longest wait for a new thread to run for the first time.
const FIRST_RUN: Duration = Duration::from_secs(1);

/// Move a thread. The kernel refuses one that has not yet run (`no_cgroup_migration`), which a busy machine can delay.
fn moved(to: &Path, pid: u32) -> io::Result<()> {
    let end = Instant::now() + FIRST_RUN;
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

/// A device whose receiving threads are kept in a cgroup.
#[derive(Debug)]
pub struct Polled {
    device: Device,
    /// Its number, by which it is known when somebody gives it another name.
    number: u32,
    /// A thread has ended since they were looked for.
    is_lost: bool,
    /// It was told that they were switched off.
    is_told: bool,
    /// It is not followed any more.
    is_gone: bool,
    cgroup: CpuCgroup,
    /// Threads that are in the cgroup, and those of devices of the same name in other namespaces.
    known: BTreeSet<Thread>,
    /// Those that are in the cgroup, and how long each had run at the last step, in ns.
    ours: BTreeMap<Thread, u64>,
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
            is_lost: false,
            is_told: false,
            is_gone: false,
            cgroup,
            known: others,
            ours: BTreeMap::new(),
            entries,
        };
        polled.look(journal, claimed)?;
        if polled.ours.is_empty() {
            return Err(ThreadedError::NoThread { device: device.to_owned() });
        }
        Ok(polled)
    }

    /// Return whether a thread has ended since the last time, so that it is not left for later to look for others.
    pub(crate) fn has_lost(&mut self) -> bool {
        std::mem::take(&mut self.is_lost)
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
            self.is_gone = true;
            return Ok(Found::Gone);
        };
        if device != self.device {
            self.is_gone = true;
            let was = self.entries.first().and_then(|entry| journal.was_threaded(*entry)).unwrap_or(false);
            set(&device, was).map_err(failed)?;
            return Ok(Found::Renamed(device.to_string()));
        }
        // Kernels differ in whether the threads end then.
        let is_off = !threaded(&device).map_err(failed.clone())?;
        if is_off {
            set(&device, true).map_err(failed)?;
        }
        self.look(journal, claimed)?;
        let is_news = is_off && !self.is_told;
        self.is_told |= is_off;
        Ok(if is_news { Found::SwitchedOn } else { Found::AsBefore })
    }

    /// Take in the threads that there are by now.
    fn look(&mut self, journal: &mut Journal, claimed: &mut Claimed) -> Result<(), ThreadedError> {
        let now = receivers(&self.device.name);
        self.known.retain(|thread| now.contains(thread));
        self.ours.retain(|thread, _| {
            let is_there = now.contains(thread);
            if !is_there {
                claimed.remove(thread);
            }
            is_there
        });
        for thread in now {
            if self.known.insert(thread) && claimed.insert(thread) {
                self.take(thread, journal)?;
                self.ours.insert(thread, deadline::ran_ns(thread.0));
            }
        }
        Ok(())
    }

    /// Give the device and its threads back before the end of the run, and say what became of them.
    pub fn end(self, journal: &mut Journal) -> Vec<Undone> {
        self.entries.iter().rev().filter_map(|entry| journal.undo_one(*entry)).collect()
    }

    /// Return how long the threads ran since the last time, in ns.
    pub fn took_ns(&mut self) -> u64 {
        let took = |(&(pid, _), before): (&Thread, &mut u64)| {
            let now = deadline::ran_ns(pid).max(*before);
            now - std::mem::replace(before, now)
        };
        self.ours.iter_mut().map(took).sum()
    }

    /// Let the threads together run for so long in each period, in ns. Returns whether the kernel has room for at least half of that.
    ///
    /// # Errors
    /// The kernel's, of the first one that it refuses.
    pub fn hold(&mut self, runtime: u64, period: u64) -> io::Result<bool> {
        let each = runtime / (self.ours.len() as u64).max(1);
        let mut has_room = true;
        for (pid, _) in self.ours.keys() {
            match deadline::hold(*pid, each, period) {
                // It ended meanwhile.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => self.is_lost = true,
                granted => has_room &= granted?.is_none_or(|granted| granted >= each.min(period) / 2),
            }
        }
        Ok(has_room)
    }

    fn take(&mut self, (pid, began): Thread, journal: &mut Journal) -> Result<(), ThreadedError> {
        let memberships = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        for to in self.cgroup.thread_files() {
            let Some(from) = self.cgroup.thread_file_of(&to, &memberships) else { continue };
            self.entries.push(journal.add(Entry::Thread { pid, began, from, to: to.clone() })?);
            match moved(&to, pid) {
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
    fn receivers_are_known_by_their_names() {
        let is = |name| is_receiver(name, "napi/eth0-");
        assert!(is("napi/eth0-258") && !is("napi/eth0-x") && !is("napi/eth1-258") && !is("napi/eth0"));
        // Kernels before 5.17 cut names.
        assert!(is_receiver("napi/a-long-nam", "napi/a-long-name-"));
        assert!(!is_receiver("napi/a-long", "napi/a-long-name-"));
    }

    #[test]
    fn a_process_is_told_from_its_successor() {
        let (parent, began) = stat(std::process::id()).unwrap();
        assert!(parent > 0 && began > 0);
        assert_eq!(put_back(std::process::id(), began + 1, Path::new("/x"), Path::new("/y")), Outcome::Gone);
        let elsewhere = put_back(std::process::id(), began, Path::new("/x"), Path::new("/no/file"));
        assert_eq!(elsewhere, Outcome::ChangedByOthers("another cgroup".to_owned()));
    }
}

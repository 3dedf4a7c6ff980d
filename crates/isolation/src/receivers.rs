//! The threads of the kernel that receive for a device, and those of them that are in its cgroup.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;

use crate::deadline;

/// The most of a thread's name that kernels before 5.17 tell.
const NAME: usize = 15;

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
pub(crate) fn stat(pid: u32) -> Option<(u32, u64)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before may have blanks and brackets.
    let mut words = stat.rsplit_once(')')?.1.split_whitespace();
    let parent = words.nth(1)?.parse().ok()?;
    Some((parent, words.nth(17)?.parse().ok()?))
}

/// Return whether a thread is there, and not another process that has its number by now.
fn is_there((pid, began): Thread) -> bool {
    stat(pid).is_some_and(|(_, now)| now == began)
}

/// Threads that are in a cgroup, and how long each had run at the last step, in ns.
#[derive(Debug, Default)]
pub(crate) struct Receivers {
    threads: BTreeMap<Thread, u64>,
    /// One has ended since they were looked for.
    is_lost: bool,
}

impl Receivers {
    pub(crate) fn is_empty(&self) -> bool {
        self.threads.is_empty()
    }

    pub(crate) fn insert(&mut self, thread: Thread) {
        self.threads.insert(thread, deadline::ran_ns(thread.0));
    }

    /// Keep those that are among these, and return the others.
    pub(crate) fn keep(&mut self, among: &BTreeSet<Thread>) -> Vec<Thread> {
        let gone: Vec<Thread> = self.threads.keys().filter(|thread| !among.contains(thread)).copied().collect();
        self.threads.retain(|thread, _| among.contains(thread));
        gone
    }

    /// Let them run as before, leave them alone from then on, and return which they were.
    pub(crate) fn release(&mut self) -> Vec<Thread> {
        let threads: Vec<Thread> = std::mem::take(&mut self.threads).into_keys().collect();
        for thread in threads.iter().filter(|thread| is_there(**thread)) {
            // Where the kernel refuses that, the journal does it at the end.
            _ = deadline::release(thread.0);
        }
        threads
    }

    /// Return whether a thread has ended since the last time.
    pub(crate) fn has_lost(&mut self) -> bool {
        std::mem::take(&mut self.is_lost)
    }

    /// Return how long they ran since the last time, in ns.
    pub(crate) fn took_ns(&mut self) -> u64 {
        let mut sum = 0;
        for (thread, before) in &mut self.threads {
            // What another process ran that has the number now is its own.
            let now = if is_there(*thread) { deadline::ran_ns(thread.0).max(*before) } else { *before };
            sum += now - std::mem::replace(before, now);
        }
        sum
    }

    /// Let them together run for so long in each period, in ns. Returns whether the kernel has room for at least half of that.
    ///
    /// # Errors
    /// The kernel's, of the first one that it refuses.
    pub(crate) fn hold(&mut self, runtime: u64, period: u64) -> io::Result<bool> {
        let each = runtime / (self.threads.len() as u64).max(1);
        let mut has_room = true;
        for thread in self.threads.keys() {
            if !is_there(*thread) {
                self.is_lost = true;
                continue;
            }
            match deadline::hold(thread.0, each, period) {
                // It ended meanwhile.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => self.is_lost = true,
                granted => has_room &= granted?.is_none_or(|granted| granted >= each.min(period) / 2),
            }
        }
        Ok(has_room)
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
    fn another_process_that_has_a_threads_number_is_left_alone() {
        let mut child = std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        let (_, began) = stat(child.id()).unwrap();
        let mut receivers = Receivers::default();
        receivers.insert((child.id(), began + 1));
        // Busy until it has some time that could be taken for the thread's.
        while deadline::ran_ns(child.id()) < 50_000_000 {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let held = receivers.hold(1_000_000, 20_000_000);
        // SAFETY: the call takes a number and changes nothing.
        let policy = unsafe { libc::sched_getscheduler(child.id().cast_signed()) };
        let took = receivers.took_ns();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!((policy, took, held.unwrap()), (libc::SCHED_OTHER, 0, true));
        assert!(receivers.has_lost() && !receivers.has_lost());
        assert_eq!((receivers.release(), receivers.is_empty()), (vec![(child.id(), began + 1)], true));
    }
}

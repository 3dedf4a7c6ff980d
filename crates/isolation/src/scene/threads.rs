//! The CPU that threads of the kernel take to receive for containers: softirqs and processes are without it.

use std::collections::BTreeSet;
use std::fs;

use super::Scene;
use crate::receivers::receivers;

impl Scene {
    /// Return what the threads that receive for containers have taken since they began, in ns; 0 where there are none.
    pub(super) fn threads_ns(&self) -> u64 {
        // A thread's name may be cut, so that it fits several devices.
        let threads: BTreeSet<_> = self.containers.iter().flat_map(|one| receivers(&one.device)).collect();
        threads.into_iter().filter_map(|(thread, _)| taken_ns(thread)).sum()
    }
}

/// One that has just ended has taken no more.
fn taken_ns(thread: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{thread}/schedstat")).ok()?;
    text.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_read_of_who_is_there_only() {
        assert!(taken_ns(std::process::id()).unwrap() > 0);
        assert_eq!(taken_ns(u32::MAX), None);
    }
}

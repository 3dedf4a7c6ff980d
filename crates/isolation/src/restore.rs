//! How a quota is restored: if it is the one that was given, and as far as the kernel takes what was there before.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::folder::Folder;
use crate::journal::Outcome;
use crate::quota::{Bandwidth, QuotaError, SHORTEST_US};

/// What is known of a quota that was changed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Changed<'a> {
    /// The cgroup's folder, in the hierarchy of the cpu controller, and its inode.
    pub folder: &'a Path,
    pub inode: u64,
    /// What there was.
    pub was: &'a Bandwidth,
    /// The period that it was given instead, in us.
    pub period_us: u64,
    /// Quotas that it was given last, in us.
    pub wrote_us: [u64; 2],
}

impl Changed<'_> {
    /// Restore it.
    pub(crate) fn restore(&self) -> Outcome {
        let now = match self.now() {
            Ok(now) => now,
            Err(outcome) => return outcome,
        };
        if now == *self.was {
            return Outcome::Restored;
        }
        if is_ours(&now, self.was, self.period_us, self.wrote_us) {
            return self.write(self.was, Outcome::Restored);
        }
        // Who writes a quota means that of the period before, not of the one that it was given here.
        if now.period_us != self.period_us || now.period_us == self.was.period_us {
            return Outcome::ChangedByOthers(now.to_string());
        }
        let theirs = Bandwidth { period_us: self.was.period_us, ..now };
        self.write(&theirs, Outcome::PeriodRestored(theirs.to_string()))
    }

    /// Restore as much of it as the cgroups above leave, where they leave less than there was; `None` where that is not why it is refused.
    pub(crate) fn cut(&self) -> Option<Outcome> {
        let now = self.now().ok()?;
        if !is_ours(&now, self.was, self.period_us, self.wrote_us) {
            return None;
        }
        let less = Folder(self.folder).within_those_above(self.was)?;
        match self.write(&less, Outcome::Cut(less.to_string())) {
            Outcome::Refused(_) => None,
            outcome => Some(outcome),
        }
    }

    fn now(&self) -> Result<Bandwidth, Outcome> {
        if !fs::metadata(self.folder).is_ok_and(|metadata| metadata.ino() == self.inode) {
            return Err(Outcome::Gone);
        }
        Folder(self.folder).read().map_err(refused)
    }

    fn write(&self, to: &Bandwidth, done: Outcome) -> Outcome {
        Folder(self.folder).write(to).map_or_else(refused, |()| done)
    }
}

fn refused(error: QuotaError) -> Outcome {
    if error.is_gone() { Outcome::Gone } else { Outcome::Refused(error.to_string()) }
}

/// Return whether a quota is one that was given here, or one of the values on the way to it, which takes several files.
fn is_ours(now: &Bandwidth, was: &Bandwidth, period_us: u64, wrote_us: [u64; 2]) -> bool {
    // Earlier versions went by the shortest quota.
    let is_given = |us: u64| us == SHORTEST_US || wrote_us.contains(&us);
    let is_quota = now.quota_us.is_some_and(is_given) || now.quota_us == was.quota_us;
    is_quota && [period_us, was.period_us].contains(&now.period_us) && [0, was.burst_us].contains(&now.burst_us)
}

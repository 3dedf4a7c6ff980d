//! Cgroups that were held and are gone: a container that is restarted has one of the same name.

use crate::choice;
use crate::held::Held;
use crate::journal::Journal;
use crate::locks::Locks;
use crate::quota::{CpuCgroup, Hierarchies};
use crate::unenforced::EnforceError;

/// A cgroup that is held again when it is back.
pub(crate) struct Awaited {
    name: String,
    /// The quota that was asked for, in ns of CPU a second; `None`: the one that it has.
    quota: Option<u64>,
    /// Whether devices received for it: those of a container go with it.
    pub(crate) had_devices: bool,
    /// The inode of the one that was there at the last look.
    seen: Option<u64>,
}

impl Awaited {
    pub(crate) fn new(held: &Held) -> Awaited {
        let name = held.cgroup().name().to_owned();
        Awaited { name, quota: held.asked(), had_devices: held.has_devices(), seen: None }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Return the cgroup if it was there at the last look, too: who makes one gives it its quota soon after, and that is to be the one
    /// that it has.
    fn back(&mut self, hierarchies: &Hierarchies) -> Option<(CpuCgroup, u64)> {
        let cgroup = hierarchies.cgroup(&self.name).ok();
        let inode = cgroup.as_ref().and_then(|cgroup| cgroup.inodes().ok()).map(|inodes| inodes.quota);
        let was = std::mem::replace(&mut self.seen, inode);
        cgroup.zip(inode.filter(|inode| was == Some(*inode)))
    }

    /// Hold it again if it is there; `None`: it is not, or has no quota yet.
    ///
    /// # Errors
    /// Why it cannot be held.
    pub(crate) fn look(
        &mut self,
        hierarchies: &Hierarchies,
        locks: &Locks,
        period: u64,
        journal: &mut Journal,
    ) -> Result<Option<Held>, EnforceError> {
        let Some((cgroup, inode)) = self.back(hierarchies) else { return Ok(None) };
        choice::check(&[(cgroup.clone(), self.quota)], journal)?;
        locks.lock(cgroup.name(), inode)?;
        let held = Held::start(&cgroup, self.quota, period, journal);
        if held.is_err() {
            locks.unlock(inode);
        }
        match held {
            Ok(held) => Ok(Some(held)),
            Err(EnforceError::NoQuota(_)) => Ok(None),
            Err(EnforceError::Quota(error)) if error.is_gone() => Ok(None),
            Err(error) => Err(error),
        }
    }
}

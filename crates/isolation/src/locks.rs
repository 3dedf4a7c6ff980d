//! Who enforces the quota of which cgroup: one at a time, whatever its journal.
//!
//! A second run would take the quota of one period, which the first has written, for the cgroup's own, and restore that at its end.
//! A lock on the cgroup's folder would not do: whoever may read a folder may lock it, a tenant its own too, and would so evade its quota.
//! So there is a file that only root may open, and a cgroup is the byte of it at the place of its inode: nothing is left to clean
//! up, and the kernel gives locks back however a process ends.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The file, the same for all.
pub const LOCKS: &str = "/run/catena/isolate.lock";
/// The file for devices, by [`crate::device::Device::place`].
pub const DEVICE_LOCKS: &str = "/run/catena/isolate.devices.lock";
/// The highest place: the kernel adds lengths to it.
const LAST: u64 = u64::MAX >> 2;

/// Why a cgroup is not locked.
#[derive(Debug)]
#[expect(missing_docs, reason = "the fields' names say it")]
pub enum LockError {
    /// Another process enforces its quota.
    Held { cgroup: String },
    /// The file of locks cannot be used.
    Io { file: PathBuf, error: io::Error },
}

impl fmt::Display for LockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LockError::Held { cgroup } => {
                write!(f, "another `catena isolate enforce` holds {cgroup}: end it first, or name others for this one")
            }
            LockError::Io { file, error } => write!(
                f,
                "{}: {error}; expected a file that root can make and write, to see which cgroups others enforce",
                file.display()
            ),
        }
    }
}

impl std::error::Error for LockError {}

/// The cgroups that this process enforces.
#[derive(Debug)]
pub struct Locks {
    path: PathBuf,
    file: File,
}

impl Locks {
    /// Open the file, with no cgroup locked yet.
    ///
    /// # Errors
    /// When it cannot be made or opened.
    pub fn open(path: &Path) -> Result<Locks, LockError> {
        let failed = |error| LockError::Io { file: path.to_owned(), error };
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(libc::O_NOFOLLOW);
        Ok(Locks { path: path.to_owned(), file: options.open(path).map_err(failed)? })
    }

    /// Lock those of these cgroups that nobody has, while their quotas are restored: another run would take what is there until then for
    /// a cgroup's own. `None` where there is no file of locks; who can make none enforces nothing either.
    pub(crate) fn while_restored(path: &Path, inodes: impl Iterator<Item = u64>) -> Option<Locks> {
        let locks = Locks::open(path).ok()?;
        // One that another run has is restored all the same: that one sees it, and lets go.
        inodes.for_each(|inode| _ = locks.set(inode, libc::F_WRLCK));
        Some(locks)
    }

    /// Lock a cgroup by the inode of its folder, until this is dropped.
    ///
    /// # Errors
    /// When another has it.
    pub fn lock(&self, cgroup: &str, inode: u64) -> Result<(), LockError> {
        let Err(error) = self.set(inode, libc::F_WRLCK) else { return Ok(()) };
        match error.raw_os_error() {
            Some(libc::EAGAIN | libc::EACCES) => Err(LockError::Held { cgroup: cgroup.to_owned() }),
            _ => Err(LockError::Io { file: self.path.clone(), error }),
        }
    }

    /// Leave a cgroup to others.
    pub fn unlock(&self, inode: u64) {
        // The kernel has no reason to refuse that; if it did, the lock would go when this is dropped.
        _ = self.set(inode, libc::F_UNLCK);
    }

    fn set(&self, inode: u64, to: libc::c_int) -> io::Result<()> {
        // SAFETY: plain data, of which zeros are valid.
        let mut lock: libc::flock = unsafe { std::mem::zeroed() };
        (lock.l_type, lock.l_whence) = (to as libc::c_short, libc::SEEK_SET as libc::c_short);
        (lock.l_start, lock.l_len) = ((inode & LAST).cast_signed(), 1);
        // SAFETY: the descriptor is open, and the lock lives during the call. It is of the open file, not of the process: it goes
        // when the file is closed, and not when another one is.
        let done = unsafe { libc::fcntl(self.file.as_raw_fd(), libc::F_OFD_SETLK, &raw const lock) };
        if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cgroup_that_is_restored_is_nobodys_until_that_is_done() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("lock");
        let run = Locks::open(&file).unwrap();
        run.lock("/a", 7).unwrap();
        let restoring = Locks::while_restored(&file, [7, 8].into_iter());
        assert!(matches!(run.lock("/b", 8), Err(LockError::Held { .. })));
        drop(restoring);
        run.lock("/b", 8).unwrap();
        assert!(Locks::while_restored(&folder.path().join("lock/no"), [7].into_iter()).is_none());
    }

    #[test]
    fn one_at_a_time_has_a_cgroup() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("run/lock");
        let [first, second] = [(); 2].map(|()| Locks::open(&file).unwrap());
        first.lock("/a", 7).unwrap();
        let said = second.lock("/a", 7).unwrap_err().to_string();
        assert!(said.starts_with("another `catena isolate enforce` holds /a: "), "{said}");
        second.lock("/b", u64::MAX).unwrap();
        first.lock("/c", 8).unwrap();
        first.unlock(7);
        second.lock("/a", 7).unwrap();
        assert!(second.lock("/c", 8).is_err());
        drop(first);
        second.lock("/c", 8).unwrap();
        let left = fs::metadata(&file).unwrap();
        assert_eq!((left.len(), std::os::unix::fs::MetadataExt::mode(&left) & 0o777), (0, 0o600));
    }
}

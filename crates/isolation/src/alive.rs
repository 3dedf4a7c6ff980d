//! Whether a cgroup is still there, by its id alone.

use std::fs::File;
use std::io;
use std::mem::{offset_of, size_of};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::cgroups::unified;

/// What kernfs calls a handle that is an id (`FILEID_KERNFS` of `linux/exportfs.h`).
const KERNFS: i32 = 0xfe;

/// A handle of a file, as `open_by_handle_at` takes it.
#[repr(C)]
struct Handle {
    bytes: u32,
    kind: i32,
    id: u64,
}

/// The mount that cgroups' ids are of.
pub struct Alive {
    mount: File,
}

impl Alive {
    /// Open the mount; None: there is none, or it cannot be opened.
    pub fn new() -> Option<Alive> {
        File::open(unified()?).ok().map(|mount| Alive { mount })
    }

    /// Return whether a cgroup is gone for certain: what cannot be asked is not.
    pub fn is_gone(&self, id: u64) -> bool {
        const { assert!(offset_of!(Handle, id) == 8) };
        let handle = Handle { bytes: size_of::<u64>() as u32, kind: KERNFS, id };
        // SAFETY: the handle is as long as it says, and the call only reads it.
        let opened = unsafe {
            libc::syscall(
                libc::SYS_open_by_handle_at,
                self.mount.as_raw_fd(),
                &raw const handle,
                libc::O_PATH | libc::O_CLOEXEC,
            )
        };
        match i32::try_from(opened) {
            Ok(descriptor @ 0..) => {
                // SAFETY: the descriptor is new and nobody else's.
                drop(unsafe { OwnedFd::from_raw_fd(descriptor) });
                false
            }
            _ => io::Error::last_os_error().raw_os_error() == Some(libc::ESTALE),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn a_cgroup_is_there_until_it_is_removed() {
        let Some(mount) = unified() else {
            return catena_testing::skip_kernel("cgroup2 is not mounted");
        };
        let folder = mount.join(format!("catena-alive-{}", std::process::id()));
        if let Err(error) = std::fs::create_dir(&folder) {
            return catena_testing::skip(&format!("no cgroup: {error}"), "run the tests as root");
        }
        let (alive, id) = (Alive::new().unwrap(), std::fs::metadata(&folder).unwrap().ino());
        assert!(!alive.is_gone(id));
        std::fs::remove_dir(&folder).unwrap();
        assert!(alive.is_gone(id));
    }
}

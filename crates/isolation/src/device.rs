//! A network device, in whatever network namespace it is.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;

/// Where devices of a network namespace are seen.
const DEVICES: &str = "/sys/class/net";

/// What holds a device's packets to the quota of the cgroup that they are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Means {
    /// Threads of the kernel receive, in the cgroup.
    Threads,
    /// What the quota cannot pay for is dropped before the stack has it.
    EarlyDrop,
}

impl Means {
    /// Return the option that asks for it.
    pub fn option(self) -> &'static str {
        match self {
            Means::Threads => "--napi",
            Means::EarlyDrop => "--early-drop",
        }
    }
}

/// A device whose packets are one cgroup's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// The device, as [`Device::find`] takes it.
    pub device: String,
    /// The cgroup's path.
    pub cgroup: String,
    /// What holds it.
    pub means: Means,
}

/// What is wrong with a device.
#[derive(Debug)]
pub struct DeviceError {
    /// The option that names it.
    pub option: &'static str,
    /// Its name, as it was given.
    pub device: String,
    /// What the kernel says.
    pub error: io::Error,
}

impl fmt::Display for DeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {}: {}; expected a network device, of this network namespace, or as DEV@NAMESPACE, the name of a namespace or the \
             number of a process in it",
            self.option, self.device, self.error
        )
    }
}

impl std::error::Error for DeviceError {}

/// A network device, here or in another network namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Its name.
    pub name: String,
    /// The namespace's file and its inode, by which another that takes its place is known.
    pub namespace: Option<(PathBuf, u64)>,
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            None => f.write_str(&self.name),
            Some((path, _)) => write!(f, "{}@{}", self.name, path.display()),
        }
    }
}

impl Device {
    /// Find a device by `DEV` or `DEV@NAMESPACE`.
    ///
    /// # Errors
    /// When it is not there.
    pub fn find(text: &str) -> io::Result<Device> {
        let (name, namespace) = text.split_once('@').map_or((text, None), |(name, namespace)| (name, Some(namespace)));
        // As `dev_valid_name` in the kernel has it.
        let is_name =
            !["", ".", ".."].contains(&name) && !name.contains(['/', ':']) && !text.contains(char::is_control);
        if !is_name {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // A name that is there comes first: whoever means the process of that number sees the file's name.
        let namespace = namespace.map(|namespace| {
            let named = Path::new("/run/netns").join(namespace);
            match namespace.parse::<u32>() {
                Ok(pid) if !named.exists() => PathBuf::from(format!("/proc/{pid}/ns/net")),
                _ => named,
            }
        });
        let namespace =
            namespace.map(|path| Ok::<_, io::Error>((path.clone(), fs::metadata(path)?.ino()))).transpose()?;
        let device = Device { name: name.to_owned(), namespace };
        device.number()?;
        Ok(device)
    }

    /// Return whether it is the same device, however its namespace is named.
    pub(crate) fn is_same(&self, other: &Device) -> bool {
        self.name == other.name && self.namespace_inode() == other.namespace_inode()
    }

    pub(crate) fn namespace_column(&self) -> String {
        self.namespace.as_ref().map_or_else(|| "-".to_owned(), |(path, inode)| format!("{inode}:{}", path.display()))
    }

    pub(crate) fn from_columns(name: &str, namespace: &str) -> Option<Device> {
        let namespace = match namespace {
            "-" => None,
            other => {
                let (inode, path) = other.split_once(':')?;
                Some((path.into(), inode.parse().ok()?))
            }
        };
        Some(Device { name: name.to_owned(), namespace })
    }

    /// Return the number that it has in its namespace.
    pub(crate) fn number(&self) -> io::Result<u32> {
        let text = self.within(|folder| fs::read_to_string(folder.join("ifindex")))?;
        text.trim().parse().map_err(|_| io::ErrorKind::InvalidData.into())
    }

    /// Return the device that has this number in the same namespace by now: it may have another name. `None` where it is gone.
    pub(crate) fn by_number(&self, number: u32) -> io::Result<Option<Device>> {
        let name = self.within(|folder| {
            let number = number.to_string();
            let is_it =
                |folder: &Path| fs::read_to_string(folder.join("ifindex")).is_ok_and(|text| text.trim() == number);
            let all = fs::read_dir(folder.parent().unwrap_or(folder))?;
            let found = all.flatten().find(|entry| is_it(&entry.path()));
            Ok(found.and_then(|entry| entry.file_name().into_string().ok()))
        });
        match name {
            // The namespace has gone, and all of its devices.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            name => Ok(name?.map(|name| Device { name, namespace: self.namespace.clone() })),
        }
    }

    /// Return its place among locks: no other device has it.
    pub(crate) fn place(&self) -> io::Result<u64> {
        Ok(self.namespace_inode().unwrap_or(0) << 30 | u64::from(self.number()?))
    }

    /// Return the inode of its namespace.
    pub(crate) fn namespace_inode(&self) -> Option<u64> {
        self.namespace.as_ref().map(|(_, inode)| *inode).or_else(own_namespace)
    }

    /// Do something in the device's namespace, with its folder there.
    pub(crate) fn within<R: Send>(&self, work: impl FnOnce(&Path) -> io::Result<R> + Send) -> io::Result<R> {
        let folder = Path::new(DEVICES).join(&self.name);
        let Some((path, inode)) = &self.namespace else { return work(&folder) };
        let namespace = File::open(path)?;
        if namespace.metadata()?.ino() != *inode {
            return Err(io::ErrorKind::NotFound.into());
        }
        // The devices of this one are seen already.
        if own_namespace() == Some(*inode) {
            return work(&folder);
        }
        // A thread that ends with what it has changed of itself.
        thread::scope(|scope| {
            let entered = scope.spawn(|| enter(&namespace).and_then(|()| work(&folder)));
            entered.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

/// Return the inode of the network namespace that this thread is in.
fn own_namespace() -> Option<u64> {
    fs::metadata("/proc/thread-self/ns/net").ok().map(|metadata| metadata.ino())
}

/// Put this thread into a network namespace, and let it see that one's devices: which those are is fixed when sysfs is mounted.
pub(crate) fn enter(namespace: &File) -> io::Result<()> {
    let done = |code: libc::c_int| if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) };
    let (none, nothing) = (std::ptr::null::<libc::c_char>(), std::ptr::null::<libc::c_void>());
    // SAFETY: the descriptor is open; the call moves this thread alone.
    done(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) })?;
    // SAFETY: mounts and the working folder become this thread's own.
    done(unsafe { libc::unshare(libc::CLONE_NEWNS) })?;
    // SAFETY: the strings end with 0; the mounts of others stay as they are.
    done(unsafe { libc::mount(none, c"/".as_ptr(), none, libc::MS_REC | libc::MS_SLAVE, nothing) })?;
    // SAFETY: as above.
    done(unsafe { libc::mount(c"sysfs".as_ptr(), c"/sys".as_ptr(), c"sysfs".as_ptr(), 0, nothing) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_is_not_there_is_named() {
        // VLANs have a dot.
        assert_eq!(Device::find("no-such-dev.100").unwrap_err().kind(), io::ErrorKind::NotFound);
        for name in ["no-such-dev", "eth0@no-such-namespace", "../x", ""] {
            let error = Device::find(name).unwrap_err();
            let said = DeviceError { option: "--napi", device: name.to_owned(), error }.to_string();
            assert!(
                said.starts_with(&format!("--napi {name}: ")) && said.contains("expected a network device"),
                "{said}"
            );
        }
    }
}

//! The CPU quota of a cgroup, as the kernel keeps it in files: `cpu.max` of cgroup v2, or `cpu.cfs_quota_us` of v1.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use crate::cgroups::{mount, throttled, usage_v1, usage_v2};
use crate::folder::Folder;

/// The shortest quota and period that the kernel takes, in us (`min_cfs_quota_period` in `kernel/sched/core.c`).
pub const SHORTEST_US: u64 = 1_000;
/// The longest period (`max_cfs_quota_period`), in us.
pub const LONGEST_US: u64 = 1_000_000;

/// How much CPU a cgroup may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bandwidth {
    /// CPU time in each period, in us; `None`: as much as there is.
    pub quota_us: Option<u64>,
    /// The period, in us.
    pub period_us: u64,
    /// What may be saved up of earlier periods, in us; 0 also where the kernel has no such file.
    pub burst_us: u64,
}

impl fmt::Display for Bandwidth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.quota_us {
            None => write!(f, "no quota")?,
            Some(quota) => write!(f, "{quota} us in {} us", self.period_us)?,
        }
        if self.burst_us > 0 { write!(f, ", burst {} us", self.burst_us) } else { Ok(()) }
    }
}

/// What is wrong with a cgroup or its quota.
#[derive(Debug)]
#[expect(missing_docs, reason = "the fields' names say it")]
pub enum QuotaError {
    /// Neither version of cgroups has the cpu controller.
    NoController,
    /// There is no cgroup of this name in this folder.
    NoCgroup { name: String, folder: PathBuf },
    /// The root of all cgroups, or no name at all.
    NoName { name: String },
    /// A file cannot be read.
    Unreadable { file: PathBuf, error: io::Error },
    /// A file says what was not expected.
    Unexpected { file: PathBuf, found: String, expected: &'static str },
    /// The kernel does not take a value.
    Refused { file: PathBuf, value: String, error: io::Error },
}

impl QuotaError {
    /// Return whether the kernel takes the value beside no other quotas than those that there are.
    pub(crate) fn is_out_of_proportion(&self) -> bool {
        matches!(self, QuotaError::Refused { error, .. } if error.raw_os_error() == Some(libc::EINVAL))
    }

    /// Return whether the cgroup is gone.
    pub fn is_gone(&self) -> bool {
        let (QuotaError::Unreadable { error, .. } | QuotaError::Refused { error, .. }) = self else { return false };
        // ENODEV: the file was opened, and then the cgroup removed.
        error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ENODEV)
    }
}

impl fmt::Display for QuotaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QuotaError::NoController => write!(
                f,
                "no cpu controller: expected a mount of cgroup v1 with `cpu`, or of cgroup2 with `cpu` in cgroup.controllers; \
                 try `mount -t cgroup -o cpu none /sys/fs/cgroup/cpu`, or a kernel with CONFIG_CFS_BANDWIDTH"
            ),
            QuotaError::NoCgroup { name, folder } => write!(
                f,
                "{}: no such cgroup: expected the folder of `{name}`, and a quota in it; \
                 `catena isolate status` lists names; with cgroup v1 the cgroup must be in both hierarchies, under one path",
                folder.display()
            ),
            QuotaError::NoName { name } => {
                let what =
                    if name.is_empty() { "an empty name" } else { "the root of all cgroups, which has no quota" };
                write!(f, "`{name}`: {what}: expected a cgroup below the root, such as `/tenants/a`")
            }
            QuotaError::Unreadable { file, error } => write!(f, "{}: {error}", file.display()),
            QuotaError::Unexpected { file, found, expected } => {
                write!(f, "{}: found `{}`, expected {expected}", file.display(), found.trim())
            }
            QuotaError::Refused { file, value, error } => {
                write!(f, "{}: the kernel does not take `{value}`: {error}", file.display())?;
                match error.raw_os_error() {
                    Some(libc::EINVAL) if file.ends_with("cpu.cfs_quota_us") || file.ends_with("cpu.cfs_period_us") => {
                        write!(
                            f,
                            "; with cgroup v1 a cgroup may not have a larger part of a CPU than the one above it, and none below \
                             it may have a larger one"
                        )
                    }
                    Some(libc::EACCES | libc::EPERM | libc::EROFS) => {
                        write!(f, "; run as root, where the cgroup file system is writable")
                    }
                    _ => Ok(()),
                }
            }
        }
    }
}

impl std::error::Error for QuotaError {}

/// The file system of the cpu controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    V1,
    V2,
}

/// A cgroup whose quota can be read and written.
#[derive(Clone, Debug)]
pub struct CpuCgroup {
    name: String,
    version: Version,
    /// Its folder in the hierarchy of the cpu controller.
    folder: PathBuf,
    /// Its folder in cgroup2, by which packets are charged.
    unified: PathBuf,
    /// Its folder in the hierarchy of cpuacct, where that is mounted.
    accounting: Option<PathBuf>,
}

/// The mounts of cgroups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hierarchies {
    cpu: PathBuf,
    version: Version,
    unified: PathBuf,
    accounting: Option<PathBuf>,
}

impl Hierarchies {
    /// Find the mounts.
    ///
    /// # Errors
    /// When there is no cpu controller, or no cgroup2.
    pub fn find() -> Result<Hierarchies, QuotaError> {
        let file = PathBuf::from("/proc/self/mounts");
        let mounts = fs::read_to_string(&file).map_err(|error| QuotaError::Unreadable { file: file.clone(), error })?;
        let expected =
            "a mount of cgroup2, by which packets are charged: `mount -t cgroup2 none /sys/fs/cgroup/unified`";
        let unified = mount(&mounts, |kind, _| kind == "cgroup2").ok_or(QuotaError::Unexpected {
            file,
            found: "no cgroup2".to_owned(),
            expected,
        })?;
        let with = |wanted: &'static str| {
            mount(&mounts, |kind, options| kind == "cgroup" && options.split(',').any(|option| option == wanted))
        };
        let accounting = with("cpuacct");
        if let Some(cpu) = with("cpu") {
            return Ok(Hierarchies { cpu, version: Version::V1, unified, accounting });
        }
        let controllers = fs::read_to_string(unified.join("cgroup.controllers")).unwrap_or_default();
        if !controllers.split_whitespace().any(|name| name == "cpu") {
            return Err(QuotaError::NoController);
        }
        Ok(Hierarchies { cpu: unified.clone(), version: Version::V2, unified, accounting })
    }

    /// Return a cgroup by its path below the mount, such as `/system.slice`.
    ///
    /// # Errors
    /// When it is not there, or has no quota, as the root has none.
    pub fn cgroup(&self, name: &str) -> Result<CpuCgroup, QuotaError> {
        // One cgroup has one name, however it is written.
        let below: PathBuf =
            Path::new(name.trim_start_matches('/')).components().filter(|part| *part != Component::CurDir).collect();
        if below.as_os_str().is_empty() {
            return Err(QuotaError::NoName { name: name.to_owned() });
        }
        let cgroup = CpuCgroup {
            name: format!("/{}", below.display()).trim_end_matches('/').to_owned(),
            version: self.version,
            folder: self.cpu.join(&below),
            unified: self.unified.join(&below),
            accounting: self.accounting.as_ref().map(|mount| mount.join(&below)),
        };
        // No way out of the mount, and nothing that a line of the journal cannot hold.
        let is_inside = below.components().all(|part| matches!(part, Component::Normal(_)));
        let is_inside = is_inside && !name.contains(char::is_control);
        for folder in [&cgroup.unified, &cgroup.folder] {
            if !is_inside || !folder.is_dir() || !cgroup.quota_file().exists() {
                return Err(QuotaError::NoCgroup { name: name.to_owned(), folder: folder.clone() });
            }
        }
        Ok(cgroup)
    }

    /// Return the folders that a cgroup of this name has, the one in cgroup2 first.
    pub(crate) fn folders(&self, name: &str) -> Vec<PathBuf> {
        let mut folders = vec![self.unified.join(name)];
        folders.extend((self.cpu != self.unified).then(|| self.cpu.join(name)));
        folders
    }

    /// Return all cgroups that have a quota, and why others that have one cannot be held to it.
    pub fn with_quota(&self) -> (Vec<CpuCgroup>, Vec<String>) {
        let (mut found, mut skipped) = Default::default();
        self.walk(Path::new(""), &mut found, &mut skipped);
        (found, skipped)
    }

    fn walk(&self, below: &Path, found: &mut Vec<CpuCgroup>, skipped: &mut Vec<String>) {
        let folder = self.cpu.join(below);
        if Folder(&folder).read().is_ok_and(|bandwidth| bandwidth.quota_us.is_some()) {
            let name = below.to_str();
            match name.map(|name| self.cgroup(name)) {
                Some(Ok(cgroup)) => found.push(cgroup),
                // It went while it was read.
                _ if !folder.exists() => {}
                refused => {
                    let why = match name {
                        None => "its name is not valid UTF-8".to_owned(),
                        Some(name) if name.contains(char::is_control) => "its name has control characters".to_owned(),
                        Some(_) => refused.and_then(Result::err).map_or_else(String::new, |error| error.to_string()),
                    };
                    skipped.push(format!("/{} is not enforced: {why}", below.display()));
                }
            }
        }
        for folder in folders(&self.cpu.join(below)) {
            self.walk(&below.join(folder.file_name().unwrap_or_default()), found, skipped);
        }
    }
}

/// What tells a cgroup from another that has its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Inodes {
    /// Of the folder with the quota.
    pub(crate) quota: u64,
    /// Of the one in cgroup2: the cgroup's id.
    pub(crate) unified: u64,
}

impl CpuCgroup {
    /// Return its path below the mount.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Return its folder in the hierarchy of the cpu controller.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Return whether its quota must be a part of what the cgroup above it has, and those below it have parts of it: with cgroup v1.
    pub(crate) fn is_nested(&self) -> bool {
        self.version == Version::V1
    }

    /// Return its folder in cgroup2.
    pub fn unified(&self) -> &Path {
        &self.unified
    }

    /// Return the inodes of its folders: another cgroup that takes its name has others.
    ///
    /// # Errors
    /// When the cgroup is gone.
    pub(crate) fn inodes(&self) -> Result<Inodes, QuotaError> {
        let inode = |folder: &Path| match fs::metadata(folder) {
            Ok(metadata) => Ok(metadata.ino()),
            Err(error) => Err(QuotaError::Unreadable { file: folder.to_owned(), error }),
        };
        Ok(Inodes { quota: inode(&self.folder)?, unified: inode(&self.unified)? })
    }

    /// Return the quota.
    ///
    /// # Errors
    /// When the cgroup is gone, or its files say what they should not.
    pub fn read(&self) -> Result<Bandwidth, QuotaError> {
        Folder(&self.folder).read()
    }

    /// Change the quota.
    ///
    /// # Errors
    /// When the cgroup is gone, or the kernel does not take the value.
    pub fn write(&self, bandwidth: &Bandwidth) -> Result<(), QuotaError> {
        Folder(&self.folder).write(bandwidth)
    }

    /// Return as much of a quota as the cgroups above leave; `None` where they leave all of it.
    pub(crate) fn within_those_above(&self, to: &Bandwidth) -> Option<Bandwidth> {
        if self.is_nested() { Folder(&self.folder).within_those_above(to) } else { None }
    }

    /// Return the name of a cgroup below it that has a quota.
    pub(crate) fn quota_below(&self) -> Option<String> {
        let below = quota_below(&self.folder)?;
        let name = below.strip_prefix(&self.folder).unwrap_or(&below).display().to_string();
        Some(format!("{}/{name}", self.name))
    }

    /// Return the files that its threads are in: of the hierarchy with the quota, and of cgroup2, by which CPU time is counted.
    pub(crate) fn thread_files(&self) -> Vec<PathBuf> {
        let unified = self.unified.join("cgroup.procs");
        match self.version {
            Version::V1 => vec![self.folder.join("tasks"), unified],
            Version::V2 => vec![unified],
        }
    }

    /// Return the file that a thread is in, of the hierarchy that `like` is in, by its `/proc/PID/cgroup`.
    pub(crate) fn thread_file_of(&self, like: &Path, memberships: &str) -> Option<PathBuf> {
        let is_unified = like.starts_with(&self.unified);
        let path = memberships.lines().find_map(|line| {
            let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
            let is_it =
                if is_unified { controllers.is_empty() } else { controllers.split(',').any(|name| name == "cpu") };
            is_it.then_some(path)
        })?;
        let (folder, depth) =
            (if is_unified { &self.unified } else { &self.folder }, Path::new(&self.name).components().count());
        // The mount is as far above the cgroup as its path is long.
        let mount = folder.ancestors().nth(depth - 1)?;
        Some(mount.join(path.trim_start_matches('/')).join(like.file_name()?))
    }

    fn quota_file(&self) -> PathBuf {
        self.folder.join(if self.version == Version::V1 { "cpu.cfs_quota_us" } else { "cpu.max" })
    }

    /// Return the CPU time that its processes and those below it took since ever, in ns.
    ///
    /// # Errors
    /// When the cgroup is gone, or the kernel does not count.
    pub fn usage_ns(&self) -> Result<u64, QuotaError> {
        let usage = usage_v2(&self.unified).or_else(|| usage_v1(self.accounting.as_deref()?));
        usage.ok_or_else(|| {
            let file = self.unified.join("cpu.stat");
            match fs::read_to_string(&file) {
                Err(error) => QuotaError::Unreadable { file, error },
                Ok(found) => QuotaError::Unexpected { file, found, expected: "usage_usec and a number" },
            }
        })
    }

    /// Return how long the quota has held it back since ever, in ns: the sum over its CPUs.
    pub fn throttled_ns(&self) -> u64 {
        throttled(&self.folder).unwrap_or(0)
    }

    /// Return the ids, in cgroup2, of the cgroup and of all below it: whose packets its quota pays for.
    pub fn ids(&self) -> Vec<u64> {
        let mut ids = Vec::new();
        collect(&self.unified, &mut ids);
        ids
    }
}

fn collect(folder: &Path, ids: &mut Vec<u64>) {
    if let Ok(metadata) = fs::metadata(folder) {
        ids.push(metadata.ino());
        folders(folder).iter().for_each(|below| collect(below, ids));
    }
}

fn quota_below(folder: &Path) -> Option<PathBuf> {
    folders(folder).into_iter().find_map(|below| {
        let has = Folder(&below).read().is_ok_and(|bandwidth| bandwidth.quota_us.is_some());
        if has { Some(below) } else { quota_below(&below) }
    })
}

/// Return the folders in a folder; what goes while it is read is gone, no error.
fn folders(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path()).collect()
}

#[cfg(test)]
#[path = "quota_tests.rs"]
mod tests;

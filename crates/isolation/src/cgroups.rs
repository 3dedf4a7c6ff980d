//! The cgroups of this machine: names and CPU time by id.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A cgroup as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cgroup {
    /// Its path below the mount, such as `/system.slice`.
    pub path: String,
    /// The id of the one above it.
    pub parent: Option<u64>,
    /// CPU time of its processes and of all below it, in ns.
    pub cpu_ns: Option<u64>,
}

/// All cgroups at one time, by id: the inode of the folder in the cgroup2 file system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cgroups(BTreeMap<u64, Cgroup>);

impl Cgroups {
    /// Read the cgroups that `/proc/self/mounts` leads to; `None` where cgroup2 is not mounted.
    pub fn read() -> Option<Cgroups> {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let unified = mount(&mounts, |kind, _| kind == "cgroup2")?;
        let accounting = mount(&mounts, |kind, options| kind == "cgroup" && options.split(',').any(|o| o == "cpuacct"));
        let mut found = Cgroups::default();
        found.walk(&unified, Path::new(""), None, accounting.as_deref());
        Some(found)
    }

    /// Add a cgroup and all below it.
    fn walk(&mut self, mount: &Path, below: &Path, parent: Option<u64>, accounting: Option<&Path>) {
        let folder = mount.join(below);
        let Ok(metadata) = fs::metadata(&folder) else { return };
        let id = metadata.ino();
        let cpu_ns = usage_v2(&folder).or_else(|| usage_v1(&accounting?.join(below)));
        self.0.insert(id, Cgroup { path: format!("/{}", below.display()), parent, cpu_ns });
        // A folder that goes while it is read is gone, no error.
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                self.walk(mount, &below.join(entry.file_name()), Some(id), accounting);
            }
        }
    }

    /// Return a cgroup.
    pub fn get(&self, id: u64) -> Option<&Cgroup> {
        self.0.get(&id)
    }

    /// Return the CPU time that a cgroup's own processes took since `before`, without those of the cgroups below it, in ns.
    ///
    /// What a cgroup took that is gone by now is of the one above it.
    pub fn own_cpu_since(&self, before: &Cgroups, id: u64) -> Option<u64> {
        let took = |id: u64| {
            let began = before.get(id).and_then(|cgroup| cgroup.cpu_ns);
            Some(self.get(id)?.cpu_ns?.saturating_sub(began.unwrap_or(0)))
        };
        let below = self.0.iter().filter(|(_, cgroup)| cgroup.parent == Some(id));
        let below: u64 = below.filter_map(|(id, _)| took(*id)).sum();
        Some(took(id)?.saturating_sub(below))
    }
}

/// Return the first mount of a kind, with these options.
pub(crate) fn mount(mounts: &str, is_wanted: impl Fn(&str, &str) -> bool) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let mut words = line.split(' ').skip(1);
        let (path, kind, options) = (words.next()?, words.next()?, words.next()?);
        is_wanted(kind, options).then(|| PathBuf::from(path))
    })
}

/// Where cgroup2 is mounted.
pub(crate) fn unified() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    mount(&mounts, |kind, _| kind == "cgroup2")
}

pub(crate) fn usage_v2(folder: &Path) -> Option<u64> {
    let stat = fs::read_to_string(folder.join("cpu.stat")).ok()?;
    let usage = stat.lines().find_map(|line| line.strip_prefix("usage_usec "))?;
    Some(usage.trim().parse::<u64>().ok()? * 1000)
}

pub(crate) fn usage_v1(folder: &Path) -> Option<u64> {
    fs::read_to_string(folder.join("cpuacct.usage")).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cgroups(of: &[(u64, Option<u64>, Option<u64>)]) -> Cgroups {
        let cgroup = |(id, parent, cpu_ns)| (id, Cgroup { path: format!("/{id}"), parent, cpu_ns });
        Cgroups(of.iter().copied().map(cgroup).collect())
    }

    #[test]
    fn own_time_is_without_that_of_cgroups_below() {
        let before = cgroups(&[(1, None, Some(1000)), (2, Some(1), Some(300))]);
        let now = cgroups(&[(1, None, Some(1900)), (2, Some(1), Some(500)), (3, Some(2), Some(50)), (4, None, None)]);
        // A new one took all its time since; a grandchild's is part of the child's.
        assert_eq!(now.own_cpu_since(&before, 1), Some(700));
        assert_eq!(now.own_cpu_since(&before, 2), Some(150));
        assert_eq!(now.own_cpu_since(&before, 3), Some(50));
        assert_eq!((now.own_cpu_since(&before, 4), now.own_cpu_since(&before, 5)), (None, None));
    }

    #[test]
    fn mounts_are_found_by_kind_and_option() {
        let mounts =
            "cgroup /a/cpu cgroup rw,cpu 0 0\ncgroup /a/acct cgroup rw,cpuacct 0 0\ncgroup2 /a/u cgroup2 rw 0 0\n";
        assert_eq!(mount(mounts, |kind, _| kind == "cgroup2"), Some("/a/u".into()));
        assert_eq!(mount(mounts, |_, options| options.ends_with("cpuacct")), Some("/a/acct".into()));
        assert_eq!(mount(mounts, |kind, _| kind == "bpf"), None);
    }
}

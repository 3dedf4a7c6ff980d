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
    /// How long a quota has held it back since it was made, in ns: the sum over its CPUs. `None` without the cpu controller.
    pub throttled_ns: Option<u64>,
}

/// The cgroups at both ends of an interval.
#[derive(Clone, Debug, Default)]
pub struct Interval {
    before: Cgroups,
    now: Cgroups,
}

impl Interval {
    /// Make one.
    pub fn new(before: Cgroups, now: Cgroups) -> Interval {
        Interval { before, now }
    }

    /// Make the one that follows and ends now.
    pub(crate) fn go_on(&mut self, now: Cgroups) {
        self.before = std::mem::replace(&mut self.now, now);
    }

    /// Return a cgroup as it was at the end; one that is gone by then, as it was at the begin.
    pub fn get(&self, id: u64) -> Option<&Cgroup> {
        self.now.get(id).or_else(|| self.before.get(id))
    }

    /// Return whether a cgroup was gone at the end. Where cgroups cannot be read, nobody knows, and none is.
    pub fn is_gone(&self, id: u64) -> bool {
        !self.now.0.is_empty() && self.now.get(id).is_none()
    }

    /// Return the CPU that a cgroup's own processes took, in ns.
    pub fn own_cpu(&self, id: u64) -> Option<u64> {
        self.now.own_cpu_since(&self.before, id)
    }
}

/// All cgroups at one time, by id: the inode of the folder in the cgroup2 file system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cgroups(BTreeMap<u64, Cgroup>);

impl Cgroups {
    /// Read the cgroups that `/proc/self/mounts` leads to; `None` where cgroup2 is not mounted.
    pub fn read() -> Option<Cgroups> {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let of_v1 = |controller| {
            mount(&mounts, |kind, options| kind == "cgroup" && options.split(',').any(|option| option == controller))
        };
        let unified = mount(&mounts, |kind, _| kind == "cgroup2")?;
        let mounts = Mounts { unified, accounting: of_v1("cpuacct"), cpu: of_v1("cpu") };
        let mut found = Cgroups::default();
        found.walk(&mounts, Path::new(""), None);
        Some(found)
    }

    /// Add a cgroup and all below it.
    fn walk(&mut self, mounts: &Mounts, below: &Path, parent: Option<u64>) {
        let folder = mounts.unified.join(below);
        let Ok(metadata) = fs::metadata(&folder) else { return };
        let id = metadata.ino();
        let cpu_ns = usage_v2(&folder).or_else(|| usage_v1(&mounts.accounting.as_ref()?.join(below)));
        let throttled_ns = throttled(&folder).or_else(|| throttled(&mounts.cpu.as_ref()?.join(below)));
        self.0.insert(id, Cgroup { path: format!("/{}", below.display()), parent, cpu_ns, throttled_ns });
        // A folder that goes while it is read is gone, no error.
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                self.walk(mounts, &below.join(entry.file_name()), Some(id));
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

/// Where hierarchies are mounted: cgroup2, and controllers of cgroup v1 that are used.
struct Mounts {
    unified: PathBuf,
    accounting: Option<PathBuf>,
    cpu: Option<PathBuf>,
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

/// Return how long the quota of a folder of the cpu controller, of v2 or v1, has held its cgroup back, in ns.
pub(crate) fn throttled(folder: &Path) -> Option<u64> {
    let stat = fs::read_to_string(folder.join("cpu.stat")).ok()?;
    let number = |key| stat.lines().find_map(|line| line.strip_prefix(key)?.trim().parse::<u64>().ok());
    number("throttled_usec ").map(|us| us * 1000).or_else(|| number("throttled_time "))
}

pub(crate) fn usage_v1(folder: &Path) -> Option<u64> {
    fs::read_to_string(folder.join("cpuacct.usage")).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cgroups(of: &[(u64, Option<u64>, Option<u64>)]) -> Cgroups {
        let cgroup = |(id, parent, cpu_ns)| (id, Cgroup { path: format!("/{id}"), parent, cpu_ns, throttled_ns: None });
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
    fn an_interval_knows_who_is_gone() {
        let mut interval =
            Interval::new(cgroups(&[(1, None, Some(10)), (2, None, Some(5))]), cgroups(&[(1, None, Some(30))]));
        assert_eq!((interval.own_cpu(1), interval.own_cpu(2)), (Some(20), None));
        assert_eq!((interval.is_gone(1), interval.is_gone(2)), (false, true));
        assert_eq!(interval.get(2).map(|cgroup| &*cgroup.path), Some("/2"));
        // Nothing could be read: nobody is known to be gone.
        interval.go_on(Cgroups::default());
        assert!(!interval.is_gone(1) && interval.get(1).is_some() && interval.get(2).is_none());
    }

    #[test]
    fn held_back_is_read_in_both_versions() {
        let folder = tempfile::tempdir().expect("a folder");
        let of = |stat: &str| {
            fs::write(folder.path().join("cpu.stat"), stat).expect("a file");
            throttled(folder.path())
        };
        assert_eq!(of("usage_usec 9\nnr_throttled 4\nthrottled_usec 7\n"), Some(7_000));
        assert_eq!(of("nr_periods 1\nnr_throttled 4\nthrottled_time 7\n"), Some(7));
        // Without the controller there is only the usage.
        assert_eq!(of("usage_usec 9\n"), None);
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

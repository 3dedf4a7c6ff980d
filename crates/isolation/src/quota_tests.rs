//! Quotas in plain files, laid out as either version of cgroups has them.

use super::*;

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    files.iter().for_each(|(name, text)| fs::write(folder.path().join(name), text).unwrap());
    folder
}

fn says(folder: &tempfile::TempDir, file: &str) -> String {
    fs::read_to_string(folder.path().join(file)).unwrap()
}

#[test]
fn both_versions_are_read_and_written() {
    let v1 = folder(&[("cpu.cfs_quota_us", "-1\n"), ("cpu.cfs_period_us", "100000\n"), ("cpu.cfs_burst_us", "0\n")]);
    let v2 = folder(&[("cpu.max", "max 100000\n"), ("cpu.max.burst", "0\n")]);
    let to = Bandwidth { quota_us: Some(30_000), period_us: 50_000, burst_us: 10_000 };
    for place in [&v1, &v2] {
        let quota = Folder(place.path());
        assert_eq!(quota.read().unwrap(), Bandwidth { quota_us: None, period_us: 100_000, burst_us: 0 });
        quota.write(&to).unwrap();
        assert_eq!(quota.read().unwrap(), to);
    }
    assert_eq!((says(&v1, "cpu.cfs_quota_us"), says(&v2, "cpu.max")), ("30000".to_owned(), "30000 50000".to_owned()));
    assert_eq!(to.to_string(), "30000 us in 50000 us, burst 10000 us");
}

#[test]
fn what_is_not_expected_is_said_with_its_file() {
    let place = folder(&[("cpu.max", "much\n")]);
    let said = Folder(place.path()).read().unwrap_err().to_string();
    assert!(said.ends_with("cpu.max: found `much`, expected a quota or `max`, and a period, in us"), "{said}");
    let none = folder(&[]);
    let error = Folder(none.path()).read().unwrap_err();
    assert!(error.is_gone() && error.to_string().contains("cpu.cfs_quota_us: No such file"), "{error}");
}

#[test]
fn a_name_does_not_lead_out_of_the_mount() {
    let place = folder(&[("cpu.max", "max 100000\n")]);
    let mount = place.path().to_owned();
    let all = Hierarchies { cpu: mount.clone(), version: Version::V2, unified: mount.clone(), accounting: None };
    fs::create_dir(mount.join("a")).unwrap();
    fs::write(mount.join("a/cpu.max"), "20000 100000\n").unwrap();
    assert_eq!(all.cgroup("a").unwrap().name(), "/a");
    assert_eq!(all.cgroup("//a/.//").unwrap().name(), "/a");
    for name in ["/a/..", "../a", "/b"] {
        assert!(matches!(all.cgroup(name), Err(QuotaError::NoCgroup { .. })), "{name}");
    }
}

#[test]
fn all_with_a_quota_are_found_or_said_why_not() {
    use std::os::unix::ffi::OsStrExt;

    let place = tempfile::tempdir().unwrap();
    let [cpu, unified] = ["cpu", "unified"].map(|name| place.path().join(name));
    let made = |mount: &Path, name: &[u8]| {
        let folder = mount.join(std::ffi::OsStr::from_bytes(name));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("cpu.max"), "20000 100000\n").unwrap();
        folder
    };
    for name in [&b"a"[..], b"a/b", b"bad\xff", b"esc\x1b[31m", b"none"] {
        made(&unified, name);
        made(&cpu, name);
    }
    fs::write(cpu.join("none/cpu.max"), "max 100000\n").unwrap();
    made(&cpu, b"half");
    let all = Hierarchies { cpu, version: Version::V2, unified, accounting: None };
    let (found, mut skipped) = all.with_quota();
    let mut names: Vec<_> = found.iter().map(CpuCgroup::name).collect();
    names.sort_unstable();
    skipped.sort_unstable();
    assert_eq!(names, ["/a", "/a/b"]);
    assert_eq!(skipped[0], "/bad\u{fffd} is not enforced: its name is not valid UTF-8");
    assert_eq!(skipped[1], "/esc\x1b[31m is not enforced: its name has control characters");
    assert!(skipped[2].starts_with("/half is not enforced: ") && skipped[2].contains("unified/half: no such cgroup"));
    assert_eq!(skipped.len(), 3, "{skipped:?}");
}

#[test]
fn of_nested_cgroups_of_v1_the_inner_ones_are_enforced_and_a_leftover_is_not() {
    use crate::choice;
    use crate::journal::{Entry, Journal};

    let place = tempfile::tempdir().unwrap();
    let mounts = ["cpu", "unified"].map(|name| place.path().join(name));
    for (name, quota) in [("a", "30000"), ("a/b", "-1"), ("a/b/c", "20000"), ("d", "40000"), ("left", "3000")] {
        mounts.iter().for_each(|mount| fs::create_dir_all(mount.join(name)).unwrap());
        for (file, text) in [("cpu.cfs_quota_us", quota), ("cpu.cfs_period_us", "100000")] {
            fs::write(mounts[0].join(name).join(file), text).unwrap();
        }
    }
    let [cpu, unified] = mounts;
    let all = Hierarchies { cpu, version: Version::V1, unified, accounting: None };
    let (mut journal, _) = Journal::open(&place.path().join("journal")).unwrap();
    let left = all.cgroup("left").unwrap();
    let was = Bandwidth { quota_us: Some(30_000), period_us: 100_000, burst_us: 0 };
    let (folder, inode) = (left.folder().to_owned(), left.inodes().unwrap().quota);
    journal.add(Entry::Quota { folder, inode, was, period_us: 65_536, wrote_us: [3_000; 2] }).unwrap();
    // What nobody can write, and has a number.
    let file = left.folder().join("cpu.cfs_period_us");
    fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink("/proc/sys/kernel/ngroups_max", &file).unwrap();
    let (chosen, mut skipped) = choice::all(&all, &journal);
    let mut names: Vec<_> = chosen.iter().map(|(cgroup, _)| cgroup.name()).collect();
    names.sort_unstable();
    skipped.sort_unstable();
    assert_eq!(names, ["/a/b/c", "/d"]);
    assert!(
        skipped[0].starts_with("/a is not enforced: /a/b/c below it has a quota, too, and with cgroup v1"),
        "{skipped:?}"
    );
    assert!(skipped[1].starts_with("/left is not enforced: left by an earlier run: quota of "), "{skipped:?}");
    let by_name = |name| choice::check(&[(all.cgroup(name).unwrap(), None)], &journal).unwrap_err().to_string();
    let said = ["/a", "/left"].map(by_name);
    assert!(
        said[0].starts_with("/a: /a/b/c below it has a quota, too") && said[1].contains(": NOT restored: "),
        "{said:?}"
    );
    // With v2 quotas do not depend on each other.
    let all = Hierarchies { version: Version::V2, ..all };
    assert!(
        choice::check(&[(CpuCgroup { version: Version::V2, ..chosen[0].0.clone() }, None)], &journal).is_ok(),
        "{all:?}"
    );
}

#[test]
fn the_root_and_no_name_at_all_are_refused_with_words() {
    let mount = PathBuf::from("/no/such/mount");
    let all = Hierarchies { cpu: mount.clone(), version: Version::V2, unified: mount, accounting: None };
    let said = ["", "/", "//", "/./", "."].map(|name| all.cgroup(name).unwrap_err().to_string());
    assert_eq!(said[0], "``: an empty name: expected a cgroup below the root, such as `/tenants/a`");
    for (name, said) in ["/", "//", "/./", "."].iter().zip(&said[1..]) {
        assert!(
            said.starts_with(&format!("`{name}`: the root of all cgroups, which has no quota: expected")),
            "{said}"
        );
    }
}

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

//! `catena isolate enforce` without arguments, where the cgroups that there are cannot all be enforced.

use std::fs;

use super::*;

/// Cgroups below one of the test, the outer ones first; removed before it is.
struct Below<'a>(&'a Group, &'a [&'a str]);

impl Below<'_> {
    fn folders(&self, name: &str) -> Vec<PathBuf> {
        self.0.folders.iter().map(|folder| folder.join(name)).collect()
    }

    fn quotas(&self) -> Vec<String> {
        let read = |name: &&str| {
            let files = ["cpu.cfs_quota_us", "cpu.cfs_period_us"].map(|file| self.folders(name)[1].join(file));
            files.map(|file| fs::read_to_string(file).unwrap()).concat()
        };
        self.1.iter().map(read).collect()
    }
}

impl Drop for Below<'_> {
    fn drop(&mut self) {
        self.1.iter().rev().flat_map(|name| self.folders(name)).for_each(|folder| _ = fs::remove_dir(folder));
    }
}

#[test]
fn what_cannot_be_enforced_ends_nothing_for_the_others() {
    let Some(group) = Group::new() else { return };
    if group.folders.len() < 2 || !has("unshare") {
        return skip_kernel(
            "the quotas of nested cgroups depend on each other with cgroup v1 only, and unshare is needed",
        );
    }
    let below = Below(&group, &["a", "a/b", "c", "read-only"]);
    for (name, quota) in below.1.iter().zip([25_000, 20_000, 25_000, 25_000]) {
        below.folders(name).iter().for_each(|folder| fs::create_dir(folder).unwrap());
        fs::write(below.folders(name)[1].join("cpu.cfs_quota_us"), quota.to_string()).unwrap();
    }
    let quotas = below.quotas();
    let folder = tempfile::tempdir().unwrap();
    let [unified, cpu] = [0, 1].map(|number| group.folders[number].display());
    let [unified_mount, cpu_mount] = [0, 1].map(|number| group.folders[number].parent().unwrap().display());
    // In a mount namespace in which there are no other cgroups than these.
    let file = format!("{cpu}/read-only/cpu.cfs_period_us");
    let script = format!(
        "mount --bind {file} {file} && mount -o remount,bind,ro {file} && mount --rbind {cpu} {cpu_mount} && \
         mount --rbind {unified} {unified_mount} && \
         exec {CATENA} isolate enforce --journal {}/journal --interval 200ms --count 1",
        folder.path().display()
    );
    let output = Command::new("unshare").args(["-m", "sh", "-c", &script]).output().unwrap();
    let (printed, said) = (text(&output.stdout), text(&output.stderr));
    if said.contains("CAP_BPF") || said.contains("no BPF program") {
        return skip_kernel(&format!("nothing is enforced: {}", said.trim()));
    }
    let rows: Vec<&str> = printed.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(rows.contains(&"/a/b") && rows.contains(&"/c") && !rows.contains(&"/a"), "{printed}{said}");
    assert!(said.contains("catena: /a is not enforced: /a/b below it has a quota, too, and with cgroup v1"), "{said}");
    assert!(said.contains("catena: /read-only is not enforced: ") && said.contains("Read-only file system"), "{said}");
    assert_eq!((output.status.code(), below.quotas()), (Some(0), quotas), "{said}");
}

//! Threads of the kernel that receive, when a tenant does to its device what it may.

use std::fs;

use super::*;

/// How long what a tenant has done may take to be seen.
const SEEN: Duration = Duration::from_secs(3);

/// Enforce until something is so; returns what was told by then.
fn until(enforcer: &mut Enforcer, is_so: impl Fn() -> bool) -> String {
    let (end, mut said) = (Instant::now() + SEEN, Vec::new());
    loop {
        std::thread::sleep(PERIOD);
        enforcer.step().unwrap();
        said.extend(told(enforcer));
        if is_so() || Instant::now() >= end {
            return said.join("\n");
        }
    }
}

/// Return the cgroups of the threads of a device's name.
fn cgroups_of(device: &str) -> Vec<String> {
    let prefix = format!("napi/{device}-");
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let names = processes.filter_map(|entry| {
        let name = fs::read_to_string(entry.path().join("comm")).ok()?;
        name.starts_with(&prefix).then(|| fs::read_to_string(entry.path().join("cgroup")).unwrap_or_default())
    });
    names.collect()
}

/// Return whether threads of a device's name are in the cgroup, and none of them elsewhere.
fn are_held(device: &str, group: &Group) -> bool {
    let cgroups = cgroups_of(device);
    !cgroups.is_empty() && cgroups.iter().all(|cgroups| cgroups.contains(group.name()))
}

#[test]
fn a_tenant_that_switches_threads_off_is_held_and_one_that_renames_its_device_is_told() {
    let _alone = alone();
    let (Some(bed), Some(groups), Some(_)) = (Testbed::new(), Group::with_quotas(&[30]), tracer()) else { return };
    let Some(port) = port_of_threads(&bed, &groups[0]) else { return };
    let file = Kept(journal(groups[0].name()));
    let wanted = [Wanted { cgroup: groups[0].name().to_owned(), quota: None }];
    let mut enforcer = Enforcer::start(&wanted, std::slice::from_ref(&port), PERIOD, &file.0).unwrap();
    enforcer.step().unwrap();
    assert!(are_held("eth0", &groups[0]));

    bed.exec(Place::A, "echo 0 > /sys/class/net/eth0/threaded");
    let said = until(&mut enforcer, || are_held("eth0", &groups[0]));
    assert!(are_held("eth0", &groups[0]) && said.contains("switched its threads off"), "{said}");

    // A device that is down takes no threads, each second anew.
    bed.exec(Place::A, "echo 0 > /sys/class/net/eth0/threaded && ip link set eth0 down");
    let said = until(&mut enforcer, || false);
    assert_eq!(said.matches("Operation not supported").count(), 1, "{said}");
    bed.exec(Place::A, "ip link set eth0 up");
    let said = until(&mut enforcer, || are_held("eth0", &groups[0]));
    assert!(are_held("eth0", &groups[0]), "{said}");

    bed.exec(Place::A, "ip link set eth0 down && ip link set eth0 name other && ip link set other up");
    let said = until(&mut enforcer, || false);
    assert_eq!(said.matches("the device is other@").count(), 1, "{said}");
    // It is as it was: what it receives is in the accounts.
    assert_eq!(bed.exec(Place::A, "cat /sys/class/net/other/threaded").trim(), "0");
    let undone = enforcer.end().unwrap();
    assert!(undone.iter().all(|undone| matches!(undone.outcome, Outcome::Restored | Outcome::Gone)), "{undone:?}");

    bed.exec(Place::A, "ip link set other down && ip link set other name eth0 && ip link set eth0 up");
    let mut enforcer = Enforcer::start(&wanted, &[port], PERIOD, &file.0).unwrap();
    bed.exec(Place::A, "ip link del eth0");
    let said = until(&mut enforcer, || false);
    assert_eq!(said.matches("the device is gone").count(), 1, "{said}");
    enforcer.end().unwrap();
}

#[test]
fn devices_of_one_name_in_two_namespaces_have_their_own_threads() {
    let _alone = alone();
    let (Some(bed), Some(groups), Some(_)) = (Testbed::new(), Group::with_quotas(&[30, 40]), tracer()) else { return };
    let Some(first) = port_of_threads(&bed, &groups[0]) else { return };
    let Some(second) = port_at(&bed, Place::B, &groups[1]) else { return };
    let file = Kept(journal(groups[0].name()));
    let wanted: Vec<_> = groups.iter().map(|g| Wanted { cgroup: g.name().to_owned(), quota: None }).collect();
    let mut enforcer = Enforcer::start(&wanted, &[first, second], PERIOD, &file.0).unwrap();
    let of = |group: &Group| cgroups_of("eth0").iter().filter(|cgroups| cgroups.contains(group.name())).count();
    let at_first = [of(&groups[0]), of(&groups[1])];
    assert!(at_first.iter().all(|count| *count > 0), "{at_first:?}");
    let said = until(&mut enforcer, || false);
    assert_eq!([of(&groups[0]), of(&groups[1])], at_first, "{said}");
    enforcer.end().unwrap();
}

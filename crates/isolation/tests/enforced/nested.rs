//! Quotas that depend on those of cgroups above and below, and quotas that somebody else changes meanwhile.

use super::*;

const HEADING: &str = "catena isolate journal 1\n";

fn said(quota: u64, period: u64) -> String {
    format!("{quota}\n{period}\n")
}

/// Start to enforce cgroups of these names.
fn enforcer(names: &[&str], file: &Kept) -> Enforcer {
    let wanted: Vec<_> = names.iter().map(|name| Wanted { cgroup: (*name).to_owned(), quota: None }).collect();
    Enforcer::start(&wanted, &[], PERIOD, &file.0).unwrap()
}

#[test]
fn a_nested_cgroup_is_enforced_and_the_one_above_is_not() {
    let _alone = alone();
    let (Some(groups), Some(_)) = (Group::with_quotas(&[30]), tracer()) else { return };
    let Some(below) = groups[0].below(30) else { return };
    let file = Kept(journal(groups[0].name()));
    let [above, name] = [groups[0].name(), below.name()];
    for names in [&[above][..], &[above, name], &[name, above]] {
        let said = refused(names, &file);
        assert!(said.starts_with(&format!("{above}: {name} below it has a quota, too, and with cgroup v1")), "{said}");
    }
    assert_eq!((groups[0].quota(), below.quota()), (said(30_000, 100_000), said(30_000, 100_000)));
    let mut enforcer = enforcer(&[name], &file);
    std::thread::sleep(PERIOD);
    enforcer.step().unwrap();
    assert!(below.quota().ends_with("\n1000000\n") && told(&mut enforcer).is_empty());
    enforcer.end().unwrap();
    assert_eq!((groups[0].quota(), below.quota()), (said(30_000, 100_000), said(30_000, 100_000)));
}

#[test]
fn what_a_killed_run_left_of_nested_cgroups_is_restored_in_whatever_order() {
    let _alone = alone();
    let Some(groups) = Group::with_quotas(&[30]) else { return };
    let Some(below) = groups[0].below(20) else { return };
    let file = Kept(journal(groups[0].name()));
    for inner_first in [false, true] {
        below.set(2_000, 1_000_000).unwrap();
        groups[0].set(3_000, 1_000_000).unwrap();
        let [above, inner] = [groups[0].left(30_000, 3_000), below.left(20_000, 2_000)];
        let lines = if inner_first { inner + &above } else { above + &inner };
        fs::write(&file.0, format!("{HEADING}{lines}")).unwrap();
        fs::set_permissions(&file.0, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let (_journal, undone) = Journal::open(&file.0).unwrap();
        assert!(undone.iter().all(|undone| undone.outcome == Outcome::Restored), "{undone:?}");
        assert_eq!((groups[0].quota(), below.quota()), (said(30_000, 100_000), said(20_000, 100_000)));
    }
}

#[test]
fn who_lowers_the_cgroup_above_gets_less_restored_below() {
    let _alone = alone();
    let (Some(groups), Some(_)) = (Group::with_quotas(&[50]), tracer()) else { return };
    let Some(below) = groups[0].below(30) else { return };
    let file = Kept(journal(groups[0].name()));
    let mut enforcer = enforcer(&[below.name()], &file);
    groups[0].set(5_000, 100_000).unwrap();
    // Three periods late: its quota of 90 ms is more than the 5% above it.
    std::thread::sleep(3 * PERIOD);
    enforcer.step().unwrap();
    let news = told(&mut enforcer).join("\n");
    assert!(
        news.contains("the cgroups above it have less than its quota by now: it gets as much as they leave"),
        "{news}"
    );
    assert_eq!(below.quota(), said(50_000, 1_000_000));
    std::thread::sleep(PERIOD);
    enforcer.step().unwrap();
    assert!(!enforcer.is_idle());
    let undone = enforcer.end().unwrap();
    let least = "5000 us in 100000 us".to_owned();
    assert!(matches!(&undone[..], [one] if one.outcome == Outcome::Cut(least)), "{undone:?}");
    assert_eq!(below.quota(), said(5_000, 100_000));
    // Nothing is left to a later start.
    assert!(Journal::open(&file.0).unwrap().1.is_empty());
}

#[test]
fn who_writes_a_quota_meanwhile_has_it_of_his_period() {
    let _alone = alone();
    let (Some(groups), Some(_)) = (Group::with_quotas(&[30]), tracer()) else { return };
    if groups[0].quota() != said(30_000, 100_000) {
        return skip_kernel("a quota is written alone with cgroup v1 only");
    }
    let file = Kept(journal(groups[0].name()));
    let mut enforcer = enforcer(&[groups[0].name()], &file);
    groups[0].set_quota(20_000);
    std::thread::sleep(PERIOD);
    enforcer.step().unwrap();
    assert_eq!((groups[0].quota(), enforcer.is_idle()), (said(20_000, 100_000), true));
    let expected = "no more enforced: somebody else changed the quota to 20000 us in 1000000 us; with the period that it had it is \
                    20000 us in 100000 us";
    assert_eq!(told(&mut enforcer), [format!("{}: {expected}", groups[0].name())]);
    assert_eq!(enforcer.end().unwrap(), []);
    assert_eq!(groups[0].quota(), said(20_000, 100_000));
}

#[test]
fn who_writes_back_the_quota_that_there_was_has_it() {
    let _alone = alone();
    let (Some(groups), Some(_)) = (Group::with_quotas(&[30]), tracer()) else { return };
    if groups[0].quota() != said(30_000, 100_000) {
        return skip_kernel("a quota is written alone with cgroup v1 only");
    }
    let file = Kept(journal(groups[0].name()));
    let mut enforcer = enforcer(&[groups[0].name()], &file);
    // The first quota is the same: 30% of a period.
    std::thread::sleep(PERIOD);
    enforcer.step().unwrap();
    assert_ne!(groups[0].quota(), said(30_000, 1_000_000));
    groups[0].set_quota(30_000);
    std::thread::sleep(PERIOD);
    enforcer.step().unwrap();
    assert_eq!((groups[0].quota(), enforcer.is_idle()), (said(30_000, 100_000), true));
    let expected = "no more enforced: somebody else changed the quota to 30000 us in 1000000 us; its quota is restored";
    assert_eq!(told(&mut enforcer), [format!("{}: {expected}", groups[0].name())]);
    assert_eq!(enforcer.end().unwrap(), []);
}

#[test]
fn a_device_is_named_once_and_for_a_cgroup_that_is_enforced() {
    let _alone = alone();
    let (Some(groups), Some(_)) = (Group::with_quotas(&[30, 40]), tracer()) else { return };
    let (quota, file) = (groups[0].quota(), Kept(journal(groups[0].name())));
    let wanted = [Wanted { cgroup: groups[0].name().to_owned(), quota: None }];
    let refused = |devices: &[(&str, &str, Means)]| {
        let port = |&(device, cgroup, means): &(&str, &str, Means)| Port {
            device: device.to_owned(),
            cgroup: cgroup.to_owned(),
            means,
        };
        let ports: Vec<Port> = devices.iter().map(port).collect();
        match Enforcer::start(&wanted, &ports, PERIOD, &file.0) {
            Ok(_) => "it is not".to_owned(),
            Err(error) => error.to_string(),
        }
    };
    let [held, other] = [0, 1].map(|number| groups[number].name());
    let said = refused(&[("lo", other, Means::Threads)]);
    assert!(said.starts_with(&format!("--napi lo={other}: {other} is not enforced")), "{said}");
    let again = format!("lo@{}", std::process::id());
    for (means, option) in [(Means::Threads, "--napi"), (Means::EarlyDrop, "--early-drop")] {
        let said = refused(&[("lo", held, Means::Threads), (&again, held, means)]);
        assert!(said.starts_with(&format!("{option} {again}: the device is named twice")), "{said}");
        let said = refused(&[("no-such", held, means)]);
        assert!(said.starts_with(&format!("{option} no-such: No such file")), "{said}");
    }
    assert_eq!(groups[0].quota(), quota);
}

#[test]
fn a_cgroup_that_gets_one_with_a_quota_below_it_is_restored() {
    let _alone = alone();
    let (Some(groups), Some(_)) = (Group::with_quotas(&[30]), tracer()) else { return };
    let file = Kept(journal(groups[0].name()));
    let mut enforcer = enforcer(&[groups[0].name()], &file);
    // Less than the 3% that it has now.
    let Some(below) = groups[0].below(2) else { return };
    // One right after another gives hardly a quota, and less than below it.
    (0..5).for_each(|_| enforcer.step().unwrap());
    let news = told(&mut enforcer).join("\n");
    assert!(news.contains(": no more enforced: ") && news.ends_with("; its quota is restored"), "{news}");
    assert!(enforcer.is_idle());
    assert_eq!((groups[0].quota(), below.quota()), (said(30_000, 100_000), said(2_000, 100_000)));
    assert_eq!(enforcer.end().unwrap(), []);
}

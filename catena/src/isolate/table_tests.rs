//! Tables as a person reads them.

use super::*;

fn row(name: &str) -> Row {
    Row::without_network(name, 1, Some(0))
}

fn status(cgroups: Vec<Row>) -> Status {
    Status {
        interval_ns: 1,
        cgroups,
        unattributed: Vec::new(),
        softirq_ns: 0,
        receive_ns: 0,
        transmit_ns: 0,
        interrupt_ns: 0,
        outside_ns: None,
        outside_timer_ns: None,
        softirqs: 0,
        charged_ns: 0,
        gap: 0.0,
        missing: Vec::new(),
    }
}

#[test]
fn a_name_makes_no_row_of_its_own() {
    let forged = "/a\r/root  0.00%\n/b\x1b[1A";
    let table = table(&status(vec![row(forged), row(&format!("/{}", "x".repeat(250)))]), None);
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines[2].starts_with("/a\\r/root  0.00%\\n/b\\u{1b}[1A  "), "{table:?}");
    assert!(lines.len() == 5 && lines.iter().all(|line| !line.contains(char::is_control)), "{table:?}");
    assert!(lines[3].chars().count() < 130, "{table}");
}

#[test]
fn what_threads_receive_is_unknown_and_not_nothing() {
    let held = |name: &str, id, by_threads| Enforced {
        name: name.to_owned(),
        id,
        quota_ns: 300_000_000,
        next_ns: 0,
        cost_ns: 0,
        throttled_ns: 0,
        debt_ns: 0,
        dropped_early: if by_threads { 0 } else { 7 },
        by_threads,
    };
    let other = Row { id: Some(2), ..row("/b") };
    let unseen = Row { softirq_ns: None, packets: None, drops: None, ..row("/a") };
    let table = table(&status(vec![unseen, other]), Some(&[held("/a", 1, true), held("/b", 2, false)]));
    let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[2][..7], ["/a", "0.00%", "-", "0.00%", "-", "0", "-"]);
    assert_eq!(lines[3][..7], ["/b", "0.00%", "0.00%", "0.00%", "0", "0", "7"]);
    let why = "/a (--napi): kernel threads receive, whose time is part of own CPU and whose packets are not counted";
    assert_eq!(table.lines().nth(4), Some(why));
}

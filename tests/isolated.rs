//! `catena isolate status` as its user meets it, on real packets.

use std::net::UdpSocket;
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use catena_testing::namespace::{Place, Testbed, has};
use catena_testing::skip_kernel;

const CATENA: &str = env!("CARGO_BIN_EXE_catena");

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Run `catena isolate status` while packets come; `None`, with a message, where that is not possible.
fn status(words: &[&str]) -> Option<Output> {
    let bed = Testbed::new()?;
    let over = Arc::new(AtomicBool::new(false));
    let sender = bed.spawn(Place::A, {
        let over = over.clone();
        move || {
            let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
            let end = Instant::now() + Duration::from_secs(10);
            while !over.load(Relaxed) && Instant::now() < end {
                _ = receiver.send_to(b"packet", receiver.local_addr().unwrap());
                std::thread::sleep(Duration::from_micros(200));
            }
        }
    });
    let output = Command::new(CATENA).args(["isolate", "status"]).args(words).output().unwrap();
    over.store(true, Relaxed);
    sender.join().unwrap();
    if !output.status.success() {
        let why = text(&output.stderr);
        assert!(why.starts_with("catena: isolate status: "), "{why}");
        skip_kernel(&format!("no accounts: {}", why.trim()));
        return None;
    }
    Some(output)
}

#[test]
fn json_has_a_line_for_each_interval_whose_charges_add_up() {
    let Some(output) = status(&["--json", "--interval", "100ms", "--count", "3"]) else { return };
    let printed = text(&output.stdout);
    let lines: Vec<serde_json::Value> = printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 3, "{printed}");
    for line in lines {
        let number =
            |value: &serde_json::Value, key: &str| value[key].as_u64().unwrap_or_else(|| panic!("{key}: {value}"));
        let rows = [&line["cgroups"], &line["unattributed"]].map(|rows| rows.as_array().unwrap().clone()).concat();
        assert_eq!(rows.iter().map(|row| number(row, "softirq_ns")).sum::<u64>(), number(&line, "charged_ns"));
        let measured = number(&line, "softirq_ns");
        assert!(measured > 0 && number(&line, "charged_ns").abs_diff(measured) * 50 <= measured, "{line}");
        // The sender's own cgroup, whichever it is here.
        let charged = |row: &&serde_json::Value| number(row, "packets") > 50 && number(row, "softirq_ns") > 0;
        assert!(line["cgroups"].as_array().unwrap().iter().any(|row| charged(&row)), "{line}");
    }
}

#[test]
fn a_table_names_its_columns_and_says_what_was_measured() {
    let Some(output) = status(&["--interval", "100ms", "--count", "1"]) else { return };
    let printed = text(&output.stdout);
    let heading: Vec<&str> =
        printed.lines().next().unwrap().split("  ").map(str::trim).filter(|c| !c.is_empty()).collect();
    assert_eq!(heading, ["cgroup", "own CPU", "network CPU", "hosted", "packets", "sent", "drops"]);
    assert!(printed.lines().last().unwrap().starts_with("network softirqs "), "{printed}");
}

#[test]
fn what_is_missing_is_said_by_name() {
    // SAFETY: the call takes nothing and cannot fail.
    if !has("setpriv") || unsafe { libc::geteuid() } != 0 {
        return;
    }
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set", "-all", "--inh-caps", "-all", CATENA, "isolate", "status", "--count", "1"]);
    let output = command.output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    // A build without clang has no program, whatever the rights.
    let is_named = said.contains("missing capabilities CAP_BPF and CAP_PERFMON") || said.contains("install clang");
    assert!(is_named && output.stdout.is_empty(), "{said}");
    let output = Command::new(CATENA).args(["isolate", "status", "--interval", "1ms"]).output().unwrap();
    assert!(text(&output.stderr).contains("--interval: too short"), "{}", text(&output.stderr));
}

#[test]
fn what_cannot_be_enforced_is_said_by_name() {
    let enforce = |words: &[&str]| {
        let output = Command::new(CATENA).args(["isolate", "enforce"]).args(words).output().unwrap();
        (output.status.code(), text(&output.stderr))
    };
    let (code, said) = enforce(&["/a=30"]);
    assert!(code == Some(2) && said.contains("expected percent of one CPU"), "{said}");
    let (code, said) = enforce(&["--period", "1ms"]);
    assert!(code == Some(1) && said.contains("--period: from 10ms to 500ms"), "{said}");
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal").display().to_string();
    let (code, said) = enforce(&["/no-such-cgroup", "--journal", &journal]);
    assert!(code == Some(1) && said.starts_with("catena: isolate enforce: "), "{said}");
}

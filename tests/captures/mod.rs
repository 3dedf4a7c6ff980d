//! Chains over captures, judged packet by packet: by Wireshark, and by the arithmetic of checksums.
//!
//! Every packet that comes out is compared with the one that went in (`compare`), and must be no worse; every
//! packet that does not come out was dropped for a reason.

mod alike;
mod broken;
pub mod clocks;
mod compare;
mod faults;
mod instances;
mod merged;
/// Packets as lines of text, as in the tests of functions.
#[path = "../../functions/src/testing/notation.rs"]
pub mod notation;
/// In the release profile only: there is nothing to compare with otherwise.
#[cfg(not(debug_assertions))]
mod optimised;
mod order;
pub mod packets;
mod parts;
mod sum;
mod time;
mod traces;
mod translated;
mod trip;
mod wireshark;

use std::path::{Path, PathBuf};
use std::process::Command;

use compare::Between;
use wireshark::tshark;

/// Run the command, for some minutes at most; returns its report.
fn run(args: &[&str]) -> serde_json::Value {
    let command = ["--kill-after=5", "300", env!("CARGO_BIN_EXE_catena"), "run"];
    let output = Command::new("timeout").args(command).args(args).arg("--json").output();
    let output = output.expect("catena starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("the report is JSON")
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn number(report: &serde_json::Value, path: &str) -> u64 {
    report.pointer(path).and_then(serde_json::Value::as_u64).unwrap_or_else(|| panic!("no {path} in {report}"))
}

/// Hold the report to its own sums: packets in = packets out + drops, and every drop has its reason.
fn accounted(report: &serde_json::Value) {
    let [input, output, dropped] = ["/input/packets", "/output/packets", "/dropped"].map(|path| number(report, path));
    assert_eq!(input, output + dropped, "packets in = packets out + drops: {report}");
    let reasons = report["modules"].as_array().into_iter().flatten().filter_map(|m| m["drops"].as_object());
    let by_reason: u64 = reasons.flat_map(|drops| drops.values()).filter_map(serde_json::Value::as_u64).sum();
    assert_eq!(dropped, by_reason);
}

#[test]
fn the_example_passes_wireshark() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out.pcapng");
    let example = repository().join("examples");
    let path = |name: &str| example.join(name).display().to_string();
    let report = run(&[&path("edge.catena"), "--in", &path("edge.pcap.gz"), "--out", &out.display().to_string()]);
    accounted(&report);
    assert!(number(&report, "/output/packets") > 1000, "{report}");
    let input = packets::read(&example.join("edge.pcap.gz"));
    trip::judge(&input, &out, Between::Routers).hold();
    let Some(verdicts) = tshark(&out) else { return };
    assert!(verdicts.iter().all(|verdict| !verdict.is_malformed && !verdict.has_bad_checksum()));
}

#[test]
fn a_replay_gives_the_same_bytes() {
    let folder = tempfile::tempdir().expect("a folder");
    let example = repository().join("examples");
    let outputs = ["a.pcap", "b.pcap"].map(|name| folder.path().join(name));
    for out in &outputs {
        let path = |name: &str| example.join(name).display().to_string();
        run(&[&path("edge.catena"), "--in", &path("edge.pcap.gz"), "--out", &out.display().to_string(), "--seed", "9"]);
    }
    let bytes = outputs.map(|out| std::fs::read(out).expect("the capture was written"));
    assert!(bytes[0] == bytes[1], "two runs with one seed differ");
}

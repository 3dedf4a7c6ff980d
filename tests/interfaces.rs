//! Interfaces beside captures: a run ends with what has an end, in a network namespace that the test makes.

use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// A namespace with `q0` and `q1`, the two ends of one cable, and `asleep`, which is down.
pub struct Namespace(String);

impl Namespace {
    /// Make one; `None`, which is told, where that is not allowed.
    pub fn new() -> Option<Namespace> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("catena-i-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        // SAFETY: the call takes nothing and cannot fail.
        if unsafe { libc::geteuid() } != 0 || !ip(&["netns", "add", &name]) {
            catena_testing::skip("network namespaces need root", "run the tests as root, with iproute2");
            return None;
        }
        let namespace = Namespace(name.clone());
        // The kernel's own packets (neighbour discovery) are not meant; without IPv6 it sends none.
        let off = "for which in all default; do echo 1 > /proc/sys/net/ipv6/conf/$which/disable_ipv6; done";
        ip(&["netns", "exec", &name, "sh", "-c", off]);
        for words in [
            "link add q0 type veth peer name q1",
            "link set q0 up",
            "link set q1 up",
            "link add asleep type veth peer name other",
        ] {
            assert!(ip(&[&["-n", &name], &words.split(' ').collect::<Vec<_>>()[..]].concat()), "{words}");
        }
        Some(namespace)
    }

    /// Run a chain in it; returns what came of it, and how long that took.
    pub fn run(&self, folder: &tempfile::TempDir, chain: &str, args: &[&str]) -> (Output, Duration) {
        std::fs::write(folder.path().join("c.catena"), chain).expect("a chain");
        let begun = Instant::now();
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.0, "timeout", "-s", "KILL", "20", env!("CARGO_BIN_EXE_catena")]);
        // Else `timeout` cannot wait for its time.
        catena_testing::default_signals(&mut command);
        let output =
            command.args(["run", "c.catena"]).args(args).current_dir(folder.path()).output().expect("ip starts");
        (output, begun.elapsed())
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        ip(&["netns", "del", &self.0]);
    }
}

fn ip(words: &[&str]) -> bool {
    Command::new("ip").args(words).output().is_ok_and(|output| output.status.success())
}

const ONE_WAY: &str = "chain c { m = Monitor() in -> m -> out }\n";
const BOTH: &str = "chain c { m = Monitor() in <-> m <-> out }\n";

#[test]
fn an_interface_does_not_outlive_the_capture() {
    let Some(namespace) = Namespace::new() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let (made, _) = namespace.run(&folder, ONE_WAY, &["--in", "gen:count=100,size=60", "--out", "in.pcap"]);
    assert!(made.status.success());
    for workers in ["1", "2"] {
        for (chain, input) in [(ONE_WAY, "in.pcap"), (BOTH, "in.pcap"), (BOTH, "gen:count=100,size=60")] {
            let (ran, _) = namespace.run(&folder, chain, &["--in", input, "--out", "q1", "--workers", workers]);
            let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
            assert!(ran.status.success(), "{chain} {input} {workers}: {} {err}", ran.status);
            assert!(out.contains("100 out"), "{chain} {input} {workers}: {out}");
        }
    }
    // `--duration` waits for replies where a chain has a way for them, and only there.
    let (_, one_way) = namespace.run(&folder, ONE_WAY, &["--in", "in.pcap", "--out", "q1", "--duration", "8s"]);
    assert!(one_way < Duration::from_secs(8), "{one_way:?}");
    let (ran, both) = namespace.run(&folder, BOTH, &["--in", "in.pcap", "--out", "q1", "--duration", "2s"]);
    assert!(ran.status.success() && both >= Duration::from_secs(2), "{both:?}");
}

#[test]
fn an_interface_that_is_down_is_said() {
    let Some(namespace) = Namespace::new() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    for (args, said) in [
        (&["--in", "asleep", "--duration", "100ms"][..], true),
        (&["--in", "gen:count=1", "--out", "asleep", "--duration", "100ms"], true),
        (&["--in", "q0", "--out", "q1", "--duration", "100ms"], false),
    ] {
        let (ran, _) = namespace.run(&folder, ONE_WAY, args);
        let err = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(err.contains("catena: interface asleep is down"), said, "{args:?}: {err}");
    }
}

/// Whatever it is called: an interface that is both sides would take in what it sends.
#[test]
fn an_interface_is_the_same_by_its_other_name() {
    let Some(namespace) = Namespace::new() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    assert!(ip(&["-n", &namespace.0, "link", "property", "add", "dev", "q0", "altname", "uplink"]));
    let (output, _) = namespace.run(&folder, ONE_WAY, &["--in", "q0", "--out", "uplink", "--duration", "1s"]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("--in q0, --out uplink: one interface"), "{error}");
    let (output, _) = namespace.run(&folder, ONE_WAY, &["--in", "uplink", "--out", "q1", "--duration", "1s"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

//! The optimised command does what the one with all checks does, packet for packet: what a compiler loses when it
//! optimises shows here, and so does arithmetic that only debug builds watch.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::notation::craft;
use super::packets::{Packet, write};
use super::repository;
use super::traces::trace;
use crate::product;

/// Every function with state, both ways, with little room: what is given back is needed again.
const CHAIN: &str = r#"
class inside = "src net 10.0.0.0/8 or src net fd00::/8" back "dst net 198.51.100.0/24 or dst net 2001:db8:f::/64"
class servers = "dst host 203.0.113.10" back "src net 10.1.0.0/24"
chain homes for inside {
    acl = ACL(rules = ["deny tcp from any to any port 23", "permit any"])
    mon = Monitor(max_flows = 40)
    limit = Limiter(rate = 1Mbps, per = src)
    nat = NAT(pool = [198.51.100.1, 2001:db8:f::/126], ports = 1024-1535, block = 8, udp_timeout = 1s, filtering = address)
    in <-> acl <-> mon <-> nat <-> out
}
chain site for servers {
    lb = LB(vip = 203.0.113.10:80, backends = [10.1.0.1:8080, 10.1.0.2:8080], method = least_connections)
    in <-> Monitor() <-> lb <-> out
}
chain rest { in -> Monitor() -> out }
"#;

/// The command with all checks that tests were run with before, where somebody says so: to build it by itself, without what tests
/// need beside it, would compile half of it anew.
const CHECKED: &str = "CATENA_CHECKED";

/// The command built without and with optimisation; what is not there is built first.
fn commands() -> [PathBuf; 2] {
    let optimised = product::programs(&product::build()).last().expect("cargo names the program");
    if let Some(checked) = std::env::var_os(CHECKED) {
        return [checked.into(), optimised];
    }
    let output = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--package", "catena", "--message-format=json"])
        .current_dir(repository())
        // What looks at optimised code would have all built once more.
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .output()
        .expect("cargo, which runs this test, is there");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let plain = String::from_utf8_lossy(&output.stdout).into_owned();
    [product::programs(&plain).last().expect("cargo names the program"), optimised]
}

/// Return what a run makes of a source: its packets with their times, its drops and its gauges.
fn outcome(command: &Path, chain: &Path, args: &[&str], workers: &str) -> (Vec<u8>, Vec<u8>, Value) {
    let folder = tempfile::tempdir().expect("a folder");
    let [out, back] = ["out.pcap", "back.pcap"].map(|name| folder.path().join(name));
    let output = Command::new(command)
        .arg("run")
        .arg(chain)
        .args(args)
        .arg("--out")
        .arg(&out)
        .arg("--back-out")
        .arg(&back)
        .args(["--seed", "7", "--json", "--workers", workers])
        .output()
        .expect("catena starts");
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).expect("the report is JSON");
    let modules: Vec<Value> = report["modules"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|module| {
            serde_json::json!([module["name"], module["packets"], module["bytes"], module["drops"], module["gauges"]])
        })
        .collect();
    let bytes = |path: &Path| std::fs::read(path).expect("the output was written");
    (bytes(&out), bytes(&back), serde_json::json!([report["input"], report["output"], report["dropped"], modules]))
}

/// Random traffic from both sides: known and unknown flows, flags, fragments, and frames with a byte changed.
fn random_frames(seed: u64, is_back: bool) -> Vec<Packet> {
    let mut state = seed;
    let mut below = |n: u64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) % n
    };
    let mut time = 1_600_000_000_000_000_000;
    let mut frames = Vec::new();
    for _ in 0..6_000 {
        time += below(20_000_000) * if below(200) == 0 { 100 } else { 1 };
        let flags = ["S", "SA", "A", "FA", "R", "PA len 9"][below(6) as usize];
        let (host, port, far) = (1 + below(30), 4000 + below(40), 1 + below(5));
        let line = match (is_back, below(7)) {
            (false, 0) => format!("tcp 10.0.0.{host}:{port} > 192.0.2.{far}:80 {flags}"),
            (false, 1) => format!("udp [fd00::{host}]:{port} > [2001:db8::{far}]:53 len 12"),
            (false, 2) => format!("tcp 192.0.2.{host}:{port} > 203.0.113.10:80 {flags}"),
            (false, 3) => format!("icmp 10.0.0.{host} > 192.0.2.{far} echo {port}"),
            (false, 4) => format!("udp 10.0.0.{host}:{port} > 192.0.2.{far}:53 len 16 id {port} first"),
            (false, _) => format!("udp 10.0.0.{host}:{port} > 192.0.2.{far}:53 len 12"),
            (true, 0) => format!("tcp 192.0.2.{far}:80 > 198.51.100.1:{} {flags}", 1024 + below(512)),
            (true, 1) => format!("udp [2001:db8::{far}]:53 > [2001:db8:f::1]:{} len 3", 1024 + below(512)),
            (true, 2) => format!("tcp 10.1.0.{}:8080 > 192.0.2.{host}:{port} {flags}", 1 + below(2)),
            (true, 3) => format!("icmp 192.0.2.{far} > 198.51.100.1 reply {}", 1024 + below(512)),
            (true, _) => format!("udp 192.0.2.{far}:53 > 198.51.100.1:{} len 3", 1024 + below(512)),
        };
        let mut frame = craft(&line);
        if below(10) == 0 {
            let place = below(frame.len() as u64) as usize;
            frame[place] ^= 1 << below(8);
        }
        frames.push(Packet { time, frame, missing: 0 });
    }
    frames
}

#[test]
fn optimised_and_checked_do_the_same() {
    let [checked, optimised] = commands();
    let folder = tempfile::tempdir().expect("a folder");
    let chain = folder.path().join("all.catena");
    std::fs::write(&chain, CHAIN).expect("a chain file");
    let [there, back] = ["there.pcapng", "back.pcapng"].map(|name| folder.path().join(name));
    let text = |path: &Path| path.display().to_string();
    let example = repository().join("examples");
    // What the compiler lost was a block that comes back: short timeouts and many flows.
    let lost = "gen:flows=200,new=200/s,dist=fixed(3),rate=1kpps,duration=20s,src=10.0.0.0/24";
    let mut sources = vec![
        (chain.clone(), vec!["--in".to_owned(), lost.to_owned()]),
        (example.join("edge.catena"), vec!["--in".to_owned(), text(&example.join("edge.pcap.gz"))]),
    ];
    sources.extend(trace("mix.pcap.zst").map(|mix| (chain.clone(), vec!["--in".to_owned(), text(&mix)])));
    for (chain, args) in &sources {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        same(&checked, &optimised, chain, &args);
    }
    for seed in 0..4 {
        write(&there, &random_frames(2 * seed, false));
        write(&back, &random_frames(2 * seed + 1, true));
        same(&checked, &optimised, &chain, &["--in", &text(&there), "--back-in", &text(&back)]);
    }
}

/// Compare the outcomes of both, with one worker: with several, what leaves at once leaves in any order.
fn same(checked: &Path, optimised: &Path, chain: &Path, args: &[&str]) {
    let a = outcome(checked, chain, args, "1");
    let b = outcome(optimised, chain, args, "1");
    assert_eq!(a.2, b.2, "{args:?}");
    assert!(a.0 == b.0 && a.1 == b.1, "{args:?}: the packets differ");
    assert!(a.0.len() > 1000, "{args:?}: hardly anything came out");
}

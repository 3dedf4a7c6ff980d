//! What several workers write is what one writes, byte for byte.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use super::traces::trace;
use super::{accounted, number, run};

/// Chains whose functions do the same with a host's packets whatever other workers see, or do what hosts have in common in the
/// order of the packets: with classes, whose ways part and join, and with packets on their way back.
const CHAINS: [(&str, &str); 6] = [
    ("monitor", "chain c { m = Monitor() in <-> m <-> out }"),
    (
        "classes",
        "class some = \"udp\"\nclass rest = \"ip or ip6\"\n\
         chain a for some { in -> ACL(rules = [\"permit any\"]) -> Monitor() -> out }\n\
         chain b for rest { in -> Monitor() -> out }",
    ),
    ("limiter", "chain c { l = Limiter(rate = 20kpps, burst = 20, per = src, prefix6 = 128) in -> l -> out }"),
    (
        "four",
        "chain c { a = ACL(rules = [\"deny tcp from any to any port 22\", \"permit any\"]) p = PortScan()\n\
         l = LB(vip = 203.0.113.0/25, backends = [10.9.0.1, 10.9.0.2, 10.9.0.3], method = consistent_hash)\n\
         in -> a -> p -> l -> Monitor() -> out }",
    ),
    (
        "least",
        "chain c { l = LB(vip = 203.0.113.0/24, backends = [10.9.0.1, 10.9.0.2, 10.9.0.3, 10.9.0.4]) in <-> l <-> Monitor() <-> out }",
    ),
    ("pass", "chain c { in <-> out }"),
];

/// Play a chain over this many workers; returns what is written, and the report.
fn play(folder: &Path, input: &[&str], workers: usize) -> ([Vec<u8>; 2], serde_json::Value) {
    let path = |name: &str| folder.join(name).display().to_string();
    let (chain, out, back, workers) = (path("c.catena"), path("out.pcap"), path("back.pcap"), workers.to_string());
    let mut args = vec![&*chain, "--out", &*out, "--back-out", &*back, "--seed", "7", "--workers", &*workers];
    args.extend(input);
    let report = run(&args);
    accounted(&report);
    ([out, back].map(|file| std::fs::read(file).expect("the capture was written")), report)
}

fn one_writes_what_many_write(input: &[&str], chains: &[(&str, &str)]) {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, chain) in chains {
        std::fs::write(folder.path().join("c.catena"), chain).expect("a chain file");
        let (one, report) = play(folder.path(), input, 1);
        assert!(number(&report, "/output/packets") > number(&report, "/input/packets") / 10, "{name}: {report}");
        for workers in 2..=4 {
            let (many, other) = play(folder.path(), input, workers);
            assert_eq!(report["dropped"], other["dropped"], "{name}, {workers} workers");
            assert!(one == many, "{name}, {workers} workers: not the bytes that one worker writes");
        }
    }
}

#[test]
fn the_bytes_of_several_workers_are_those_of_one() {
    let there =
        "gen:flows=500,count=20000,proto=udp:3+tcp:2+icmp,ipv6=10%,order=random,rate=1Mpps,size=64..600,dport=20-90";
    let back =
        "gen:flows=300,count=9000,proto=udp+tcp,order=random,rate=400kpps,src=203.0.113.0/24,dst=100.64.0.0/10,seed=2";
    let folder = tempfile::tempdir().expect("a folder");
    let [chain, replies] = ["c.catena", "replies.pcap"].map(|name| folder.path().join(name).display().to_string());
    std::fs::write(&chain, "chain c { in -> out }").expect("a chain file");
    run(&[&chain, "--in", back, "--out", &replies]);
    one_writes_what_many_write(&["--in", there, "--back-in", &replies], &CHAINS);
}

/// A worker that has nothing to do holds up nobody, and nobody is waited for that has packets of its own.
#[test]
fn a_worker_without_packets_holds_up_no_other() {
    let one_host = "gen:flows=1,count=30000,rate=1Mpps";
    one_writes_what_many_write(&["--in", one_host], &CHAINS[..1]);
    let few = "gen:flows=3,count=5,rate=1kpps";
    one_writes_what_many_write(&["--in", few], &CHAINS[..1]);
}

#[test]
fn several_workers_write_real_traffic_as_one_does() {
    let Some(mix) = trace("mix.pcap.zst") else { return };
    one_writes_what_many_write(&["--in", &mix.display().to_string()], &CHAINS[..2]);
}

/// What is added to a capture while it is read is nobody's: else those would take their part of it that have not come to its end yet.
#[test]
fn a_capture_that_grows_ends_where_it_ended_at_the_start() {
    const PACKETS: u64 = 20_000;
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let [chain, input, pipe] = ["c.catena", "in.pcap", "out.pcap"].map(path);
    std::fs::write(&chain, "chain c { in -> Monitor() -> out }").expect("a chain file");
    run(&[&chain, "--in", &format!("gen:flows=500,count={PACKETS},rate=1Mpps"), "--out", &input]);
    let made = Command::new("mkfifo").arg(&pipe).status().expect("mkfifo starts");
    assert!(made.success());
    for workers in ["2", "4"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_catena"));
        command.args(["run", &chain, "--in", &input, "--out", &pipe, "--workers", workers, "--json"]);
        let running = command.stdout(Stdio::piped()).spawn().expect("catena starts");
        // The run waits for whoever reads this, and has opened what it reads.
        let mut out = std::fs::File::open(&pipe).expect("a pipe");
        let records = std::fs::read(&input).expect("a capture")[24..].to_vec();
        let mut file = std::fs::OpenOptions::new().append(true).open(&input).expect("a capture");
        file.write_all(&records[..records.len() / 4]).expect("the capture grows");
        let mut written = Vec::new();
        out.read_to_end(&mut written).expect("what is written");
        let ended = running.wait_with_output().expect("catena ends");
        assert!(ended.status.success(), "{workers} workers");
        let report: serde_json::Value = serde_json::from_slice(&ended.stdout).expect("a report");
        accounted(&report);
        file.set_len(24 + records.len() as u64).expect("the capture is as it was");
        assert_eq!([number(&report, "/input/packets"), number(&report, "/output/packets")], [PACKETS; 2]);
    }
}

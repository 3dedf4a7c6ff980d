//! Workers that share a function's objects do what one does.

use std::collections::BTreeMap;
use std::process::Command;

/// Return how many packets go to which of so many servers behind a balancer.
fn balanced(servers: u8, traffic: &str, workers: &str) -> BTreeMap<[u8; 4], usize> {
    let folder = tempfile::tempdir().expect("a folder");
    let backends: Vec<_> = (1..=servers).map(|n| format!("10.9.0.{n}:80")).collect();
    let chain = format!(
        "chain c {{\n    lb = LB(vip = [192.0.2.10:80], backends = [{}])\n    in <-> lb <-> out\n}}\n",
        backends.join(", "),
    );
    std::fs::write(folder.path().join("c.catena"), chain).expect("a chain file");
    let mut command = Command::new(env!("CARGO_BIN_EXE_catena"));
    command.current_dir(folder.path()).args(["run", "c.catena", "--out", "out.pcap", "--seed", "1", "--json"]);
    let flows = format!("gen:{traffic},dst=192.0.2.10,dport=80,seed=1");
    let output = command.args(["--in", &flows, "--workers", workers]).output().expect("catena starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("a report");
    let modules = report["modules"].as_array().expect("modules");
    let lb = modules.iter().find(|module| module["name"] == "lb").expect("the balancer");
    let gauge = |name: &str| {
        let gauges = lb["gauges"].as_array().expect("gauges");
        gauges.iter().find(|gauge| gauge["name"] == name).and_then(|gauge| gauge["value"].as_u64())
    };
    let counts = destinations(&std::fs::read(folder.path().join("out.pcap")).expect("a capture"));
    let all = counts.values().sum::<usize>() as u64;
    assert_eq!([gauge("connections"), gauge("opened")], [Some(all); 2], "of {workers} workers");
    counts
}

/// Return how many packets of a capture go to which IPv4 address.
fn destinations(pcap: &[u8]) -> BTreeMap<[u8; 4], usize> {
    let (mut counts, mut rest) = (BTreeMap::new(), &pcap[24..]);
    while let Some((head, more)) = rest.split_first_chunk::<16>() {
        let (frame, after) = more.split_at(u32::from_le_bytes(*head[8..].first_chunk().expect("a length")) as usize);
        *counts.entry(*frame[30..].first_chunk().expect("an address")).or_default() += 1;
        rest = after;
    }
    counts
}

/// Each worker by itself would begin with the first server.
#[test]
fn a_replay_chooses_the_server_with_the_fewest_connections_of_all_workers() {
    for workers in ["1", "2", "4"] {
        let counts = balanced(3, "count=200,flows=200", workers);
        let expected = [([10, 9, 0, 1], 67), ([10, 9, 0, 2], 67), ([10, 9, 0, 3], 66)];
        assert_eq!(counts, BTreeMap::from(expected), "of {workers} workers");
    }
}

/// What a worker knows of the others is as old as its last batch, so a new connection that comes while another worker opens some
/// may go to the same server. Those that come 5 ms apart seldom do, even where the machine is busy. Each worker by itself would
/// begin with the first server: two would use 16 of 30 for these flows.
#[test]
fn live_workers_choose_servers_that_none_of_them_has_chosen() {
    for (workers, at_least) in [("1", 30), ("2", 25), ("4", 20)] {
        let counts = balanced(30, "count=30,flows=30,rate=200pps,time=wall", workers);
        assert_eq!(counts.values().sum::<usize>(), 30, "of {workers} workers");
        assert!(counts.len() >= at_least, "{} servers of {workers} workers", counts.len());
    }
}

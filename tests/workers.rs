//! Workers that share a function's objects do what one does.

use std::collections::BTreeMap;
use std::process::Command;

const CHAIN: &str = r#"
chain c {
    lb = LB(vip = [192.0.2.10:80], backends = [10.9.0.1:80, 10.9.0.2:80, 10.9.0.3:80])
    in <-> lb <-> out
}
"#;

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
fn the_server_with_the_fewest_connections_of_all_workers_is_chosen() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("c.catena"), CHAIN).expect("a chain file");
    for workers in ["1", "2", "4"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_catena"));
        command.current_dir(folder.path()).args(["run", "c.catena", "--out", "out.pcap", "--seed", "1", "--json"]);
        command.args([
            "--in",
            "gen:count=200,flows=200,dst=192.0.2.10,dport=80,seed=1,time=wall",
            "--workers",
            workers,
        ]);
        let output = command.output().expect("catena starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("a report");
        let modules = report["modules"].as_array().expect("modules");
        let lb = modules.iter().find(|module| module["name"] == "lb").expect("the balancer");
        let gauge = |name: &str| {
            let gauges = lb["gauges"].as_array().expect("gauges");
            gauges.iter().find(|gauge| gauge["name"] == name).and_then(|gauge| gauge["value"].as_u64())
        };
        assert_eq!([gauge("connections"), gauge("opened")], [Some(200); 2], "of {workers} workers");
        let counts = destinations(&std::fs::read(folder.path().join("out.pcap")).expect("a capture"));
        let expected = [([10, 9, 0, 1], 67), ([10, 9, 0, 2], 67), ([10, 9, 0, 3], 66)];
        assert_eq!(counts, BTreeMap::from(expected), "of {workers} workers");
    }
}

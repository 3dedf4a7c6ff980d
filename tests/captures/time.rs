//! A capture with one packet whose time is wrong is worked on as if that time were right.

use std::path::Path;

use crate::notation::craft;
use crate::packets::{Packet, read, write};
use crate::{number, run};

const START: u64 = 1_800_000_000_000_000_000;
const SECOND: u64 = 1_000_000_000;
/// In February 2106.
const WRONG: u64 = 4_294_967_000 * SECOND;

/// A new client every 5 ms for 40 s.
fn clients() -> Vec<Packet> {
    let client = |n: u64| {
        let frame = craft(&format!("udp 10.{}.{}.{}:4000 > 192.0.2.10:53", n / 40_000, n / 200 % 200, n % 200 + 1));
        Packet { time: START + n * 5_000_000, frame, missing: 0 }
    };
    (0..8000).map(client).collect()
}

/// Run a chain over the packets; returns what came out, and how many times were corrected.
fn play(chain: &str, packets: &[Packet]) -> (Vec<Vec<u8>>, u64) {
    let folder = tempfile::tempdir().expect("a folder");
    let [file, input, output] = ["c.catena", "in.pcapng", "out.pcapng"].map(|name| folder.path().join(name));
    std::fs::write(&file, chain).expect("a chain file");
    write(&input, packets);
    let text = |path: &Path| path.display().to_string();
    let report = run(&[&text(&file), "--in", &text(&input), "--out", &text(&output), "--seed", "3"]);
    assert_eq!(number(&report, "/dropped"), 0, "{report}");
    let ports = report["ports"].as_array().expect("gauges of the ports");
    let corrected = ports.iter().filter(|gauge| gauge["name"] == "in: timestamps corrected");
    let corrected = corrected.filter_map(|gauge| gauge["value"].as_u64()).sum();
    let came = read(&output);
    assert!(came.is_sorted_by_key(|packet| packet.time));
    (came.into_iter().map(|packet| packet.frame).collect(), corrected)
}

fn one_wrong_time_changes_nothing(chain: &str) {
    let right = clients();
    let expected = play(chain, &right);
    assert_eq!(expected.1, 0);
    for at in [0, 1, 4000, right.len() - 1] {
        for time in [WRONG, 1] {
            // A first packet from the past is a capture with a gap; and of two packets of which the second is
            // earlier, either may be wrong.
            if at <= 1 && time == 1 {
                continue;
            }
            let mut packets = right.clone();
            packets[at].time = time;
            let came = play(chain, &packets);
            assert_eq!(came.1, 1, "packet {at} at {time}");
            assert!(came.0 == expected.0, "packet {at} at {time}");
        }
    }
}

#[test]
fn one_wrong_time_does_not_freeze_a_nat() {
    one_wrong_time_changes_nothing(
        "chain c { in -> NAT(pool = 198.51.100.1, ports = 1024-33791, udp_timeout = 1s) -> out }",
    );
}

#[test]
fn one_wrong_time_does_not_freeze_a_balancer() {
    one_wrong_time_changes_nothing(
        "chain c { in -> LB(vip = 192.0.2.10, backends = [10.9.0.1, 10.9.0.2], max_connections = 1000, udp = 1s) -> out }",
    );
}

//! A capture with one packet whose time is wrong is worked on as if that time were right.

use std::path::Path;

use super::notation::craft;
use super::packets::{Packet, read, write};
use super::{number, run};

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
        let soon = |seconds| right[at].time + seconds * SECOND;
        for time in [WRONG, 1, soon(3), soon(55)] {
            // A first packet from the past is a capture with a gap; and of two packets of which the second is
            // earlier, either may be wrong.
            if at <= 1 && time == 1 {
                continue;
            }
            // Nobody can tell of the last.
            if at == right.len() - 1 && time > 1 && time < WRONG {
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

#[test]
fn one_wrong_time_lets_no_reply_overtake_its_request() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let text = |name: &str| path(name).display().to_string();
    std::fs::write(path("c.catena"), "chain c { lb = LB(vip = 192.0.2.10, backends = [10.9.0.1]) in <-> lb <-> out }")
        .expect("a chain file");
    let packet = |n: u64, words: String, after: u64| Packet {
        time: START + n * 10_000_000 + after,
        frame: craft(&words),
        missing: 0,
    };
    let client = |n: u64| format!("10.1.{}.{}:4000", n / 200, n % 200 + 1);
    let replies: Vec<Packet> =
        (0..2000).map(|n| packet(n, format!("udp 10.9.0.1:53 > {}", client(n)), 1_000_000)).collect();
    write(&path("replies.pcapng"), &replies);
    for wrong in [0, 3 * SECOND, 55 * SECOND] {
        let mut requests: Vec<Packet> =
            (0..2000).map(|n| packet(n, format!("udp {} > 192.0.2.10:53", client(n)), 0)).collect();
        requests[1000].time += wrong;
        write(&path("requests.pcapng"), &requests);
        let (chain, requests, replies) = (text("c.catena"), text("requests.pcapng"), text("replies.pcapng"));
        let (out, back) = (text("out.pcapng"), text("back.pcapng"));
        run(&[&chain, "--in", &requests, "--back-in", &replies, "--out", &out, "--back-out", &back, "--seed", "1"]);
        let vip = [192, 0, 2, 10];
        let served = read(&path("back.pcapng")).iter().filter(|packet| packet.frame[26..30] == vip).count();
        assert_eq!(served, 2000, "replies that leave with the virtual address, with a request {wrong} ns ahead");
    }
}

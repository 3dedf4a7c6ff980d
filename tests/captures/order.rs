//! Requests and replies from two captures, over one worker and over several: no reply overtakes its request, and
//! the same seed gives the same packets.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::notation::craft;
use super::packets::{Packet, read, write};
use super::parts::put_right;
use super::{accounted, number, run};

const START: u64 = 1_800_000_000_000_000_000;
const CLIENTS: u64 = 300;
const ROUNDS: u64 = 20;
/// ns from one request to the next, and from a request to its reply.
const STEP: u64 = 10_000;
const REPLY: u64 = 3_000;

const LB: &str = "chain c { lb = LB(vip = 192.0.2.10:53, backends = [10.9.0.1, 10.9.0.2, 10.9.0.3], \
                  method = consistent_hash) in <-> lb <-> out }";
/// The same by the number of connections, which workers share.
const LEAST: &str =
    "chain c { lb = LB(vip = 192.0.2.10:53, backends = [10.9.0.1, 10.9.0.2, 10.9.0.3]) in <-> lb <-> out }";
const NAT: &str = "chain c { nat = NAT(pool = 198.51.100.0/26, filtering = address_port) in <-> nat <-> out }";

/// Where a frame's number is: the payload of a UDP datagram over IPv4.
const NUMBER: std::ops::Range<usize> = 42..50;

/// Requests of many clients by turns, each with its number in the payload.
fn requests() -> Vec<Packet> {
    let request = |number: u64| {
        let client = number % CLIENTS;
        let (high, low) = (client / 200, client % 200 + 1);
        let mut frame = craft(&format!("udp 10.1.{high}.{low}:{} > 192.0.2.10:53 nosum len 8", 2000 + client));
        frame[NUMBER].copy_from_slice(&number.to_be_bytes());
        // Nobody may fragment it: else a NAT would give each an identification of its own.
        frame[20] |= 0x40;
        put_right(&mut frame, "IPv4");
        Packet { time: START + number * STEP, frame, missing: 0 }
    };
    (0..CLIENTS * ROUNDS).map(request).collect()
}

/// The reply to a request as it arrived outside.
fn reply(request: &Packet) -> Packet {
    let mut frame = request.frame.clone();
    for (a, b, len) in [(0, 6, 6), (26, 30, 4), (34, 36, 2)] {
        let (a, b) = (a..a + len, b..b + len);
        frame[a.clone()].copy_from_slice(&request.frame[b.clone()]);
        frame[b].copy_from_slice(&request.frame[a]);
    }
    Packet { time: request.time + REPLY, frame, missing: 0 }
}

/// The packets that came out by both sides, by client and in their order.
type Flows = [BTreeMap<u64, Vec<Packet>>; 2];

fn flows(packets: Vec<Packet>) -> BTreeMap<u64, Vec<Packet>> {
    let mut flows: BTreeMap<u64, Vec<Packet>> = BTreeMap::new();
    for packet in packets {
        let number = u64::from_be_bytes(packet.frame[NUMBER].try_into().expect("eight bytes"));
        flows.entry(number % CLIENTS).or_default().push(packet);
    }
    flows
}

struct Place {
    folder: tempfile::TempDir,
    chain: PathBuf,
}

impl Place {
    fn new(chain: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("c.catena");
        std::fs::write(&path, chain).expect("a chain file");
        let place = Place { folder, chain: path };
        write(&place.path("requests.pcapng"), &requests());
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn run(&self, workers: usize, more: &[&Path]) -> serde_json::Value {
        let text = |path: &Path| path.display().to_string();
        let workers = workers.to_string();
        let (chain, input, out) =
            (text(&self.chain), text(&self.path("requests.pcapng")), text(&self.path("out.pcapng")));
        let mut args = vec![&*chain, "--in", &*input, "--out", &*out, "--seed", "5", "--workers", &*workers];
        let more: Vec<String> = more.iter().map(|path| text(path)).collect();
        args.extend(["--back-in", "--back-out"].into_iter().zip(&more).flat_map(|(name, path)| [name, &**path]));
        run(&args)
    }

    /// Run with the replies that these many workers will see; their requests come first.
    fn trip(&self, workers: usize) -> Flows {
        let (replies, back) = (self.path("replies.pcapng"), self.path("back.pcapng"));
        let report = self.run(workers, &[&replies, &back]);
        accounted(&report);
        assert_eq!(number(&report, "/dropped"), 0, "{report}");
        [flows(read(&self.path("out.pcapng"))), flows(read(&back))]
    }

    fn answer(&self, workers: usize) {
        let report = self.run(workers, &[]);
        assert_eq!(number(&report, "/dropped"), 0, "{report}");
        let mut replies: Vec<Packet> = read(&self.path("out.pcapng")).iter().map(reply).collect();
        replies.sort_by_key(|reply| reply.time);
        assert_eq!(replies.len() as u64, CLIENTS * ROUNDS);
        write(&self.path("replies.pcapng"), &replies);
    }
}

/// Blank a frame's ends and the checksum over them.
fn without_ends(mut flows: BTreeMap<u64, Vec<Packet>>) -> BTreeMap<u64, Vec<Packet>> {
    for packet in flows.values_mut().flatten() {
        packet.frame[24..38].fill(0);
    }
    flows
}

/// Play a chain over one worker and over several; `ends` says whether the packets leave with the same addresses.
fn one_worker_against_many(chain: &str, ends: bool) {
    let place = Place::new(chain);
    place.answer(1);
    let one = place.trip(1);
    for flow in one.iter().flat_map(BTreeMap::values) {
        assert_eq!(flow.len() as u64, ROUNDS);
        assert!(flow.is_sorted_by_key(|packet| packet.time));
        assert!(flow.iter().all(|packet| flow[0].frame[..NUMBER.start] == packet.frame[..NUMBER.start]));
    }
    // What the client sees comes from where it sent to.
    assert!(one[1].values().flatten().all(|packet| packet.frame[26..30] == [192, 0, 2, 10]));
    for workers in [2, 4] {
        place.answer(workers);
        let first = place.trip(workers);
        for _ in 0..4 {
            assert!(place.trip(workers) == first, "{workers} workers: two runs with one seed differ");
        }
        let [out, back] = first;
        assert!(back == one[1], "{workers} workers: what comes back is not what one worker gives");
        if ends {
            assert!(out == one[0], "{workers} workers: what leaves is not what one worker gives");
        } else {
            assert!(without_ends(out) == without_ends(one[0].clone()), "{workers} workers: not what one worker gives");
        }
    }
}

#[test]
fn no_reply_reaches_a_balancer_before_its_request() {
    one_worker_against_many(LB, true);
    one_worker_against_many(LEAST, true);
}

#[test]
fn no_reply_reaches_a_nat_before_its_request() {
    one_worker_against_many(NAT, false);
}

/// Workers that read no port have the packets' time as well: what is over by it is forgotten, at the same packet each
/// time.
#[test]
fn what_expires_does_so_on_every_worker() {
    let folder = tempfile::tempdir().expect("a folder");
    let chain = folder.path().join("c.catena");
    std::fs::write(
        &chain,
        "chain c { in -> LB(vip = 192.0.2.10, backends = [10.9.0.1], max_connections = 1000, udp = 1s) -> out }",
    )
    .expect("a chain file");
    // A new client every 5 ms for 30 s: 6,000 connections, of which some 250 are not over.
    let client = |n: u64| {
        let frame = craft(&format!("udp 10.{}.{}.{}:4000 > 192.0.2.10:53", n / 40_000, n / 200 % 200, n % 200 + 1));
        Packet { time: START + n * 5_000_000, frame, missing: 0 }
    };
    let input = folder.path().join("in.pcapng");
    write(&input, &(0..6000).map(client).collect::<Vec<_>>());
    let text = |path: &Path| path.display().to_string();
    let left: Vec<u64> = ["1", "2", "4", "4"]
        .into_iter()
        .map(|workers| {
            let report =
                run(&[&text(&chain), "--in", &text(&input), "--out", "null", "--seed", "1", "--workers", workers]);
            assert_eq!(number(&report, "/dropped"), 0, "{workers} workers: {report}");
            let modules = report["modules"].as_array().expect("modules").iter();
            let gauges = modules.flat_map(|module| module["gauges"].as_array().expect("gauges"));
            gauges.filter(|g| g["name"] == "connections").filter_map(|g| g["value"].as_u64()).sum()
        })
        .collect();
    assert!(left.iter().all(|left| (200..500).contains(left)), "{left:?}");
    assert_eq!(left[2], left[3]);
}

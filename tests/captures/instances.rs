//! A NAT of several workers: what comes from outside finds the worker that has its mapping.

use std::path::Path;

use super::notation::craft;
use super::packets::{Packet, read, write};
use super::{number, run};

/// When the first packet comes, in ns since 1970.
const START: u64 = 1_600_000_000_000_000_000;
const HOSTS: u64 = 40;
const CHAIN: &str = "chain c { in <-> NAT(pool = [198.51.100.0/30, 2001:db8:f::/124]) <-> out }\n";

/// Make packets of lines, 1 us apart.
fn packets(lines: impl Iterator<Item = String>, from: u64) -> Vec<Packet> {
    let timed = |(at, line): (u64, String)| Packet { time: from + at * 1000, frame: craft(&line), missing: 0 };
    (0..).zip(lines).map(timed).collect()
}

/// Return the source of a UDP packet in the notation of packets, and its address alone.
fn source(frame: &[u8]) -> (String, String) {
    let port = |at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
    if frame[12..14] == [8, 0] {
        let address = std::net::Ipv4Addr::from(*frame[26..].first_chunk::<4>().expect("an address"));
        (format!("{address}:{}", port(34)), address.to_string())
    } else {
        let address = std::net::Ipv6Addr::from(*frame[22..].first_chunk::<16>().expect("an address"));
        (format!("[{address}]:{}", port(54)), address.to_string())
    }
}

/// Each worker has its own blocks of ports, and later fragments have no port to go by.
#[test]
fn all_fragments_of_an_answer_come_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let [chain, there, answers, out, back] =
        ["c.catena", "there.pcap", "answers.pcap", "out.pcap", "back.pcap"].map(path);
    std::fs::write(&chain, CHAIN).expect("a chain file");
    let requests = (1..=HOSTS).flat_map(|host| {
        [
            format!("udp 10.0.0.{host}:4000 > 192.0.2.9:53 len 12"),
            format!("udp [fd00:0:0:{host:x}::1]:4000 > [2001:db8::9]:53 len 12"),
        ]
    });
    write(Path::new(&there), &packets(requests, START));
    for workers in ["1", "2", "3", "4"] {
        let seed = ["--seed", "5", "--workers", workers];
        run(&[&[&*chain, "--in", &there, "--out", &out], &seed[..]].concat());
        let ids = 1u16..;
        let lines = ids.zip(read(Path::new(&out))).flat_map(|(id, packet)| {
            let (to, address) = source(&packet.frame);
            let (from, host) =
                if to.starts_with('[') { ("[2001:db8::9]:53", "2001:db8::9") } else { ("192.0.2.9:53", "192.0.2.9") };
            [
                format!("udp {from} > {to} len 120 id {id} first"),
                format!("ip {host} > {address} proto 17 id {id} later 128 len 8"),
            ]
        });
        write(Path::new(&answers), &packets(lines, START + 1_000_000_000));
        let ways = ["--in", &there, "--back-in", &answers, "--out", &out, "--back-out", &back];
        let report = run(&[&[&*chain], &ways[..], &seed].concat());
        assert_eq!(number(&report, "/dropped"), 0, "of {workers} workers: {report}");
        let back = read(Path::new(&back));
        assert_eq!(back.len() as u64, 4 * HOSTS);
        // The host whose answer it is stands in the same place of both fragments.
        let to = |packet: &Packet| {
            if packet.frame[12..14] == [8, 0] { packet.frame[30..34].to_vec() } else { packet.frame[38..54].to_vec() }
        };
        for (pair, host) in back.chunks(4).zip(1u8..) {
            let ends: Vec<Vec<u8>> = pair.iter().map(to).collect();
            assert_eq!(ends[..2], [vec![10, 0, 0, host], vec![10, 0, 0, host]], "of {workers} workers");
            assert!(ends[2] == ends[3] && ends[2][7] == host, "of {workers} workers: {ends:?}");
        }
    }
}

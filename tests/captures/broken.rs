//! Packets of every kind that a NAT translates, whole and broken in every way that keeps them readable, there and back.

use super::compare::{Between, compare};
use super::notation::craft;
use super::packets::{Packet, read, write};
use super::parts::{Parts, put_right};
use super::trip::{drops, there_and_back};
use super::{number, run};

/// When the packets come, in ns since 1970: some time in 2020.
const START: u64 = 1_600_000_000_000_000_000;

/// A NAT of both families for what comes from inside; the rest passes.
const CHAIN: &str = r#"
class inside = "src net 10.0.0.0/8 or src net fd00::/8" back "dst net 198.51.100.0/24 or dst net 2001:db8:f::/64"
chain homes for inside {
    acl = ACL(rules = ["deny tcp from any to any port 23", "permit any"])
    nat = NAT(pool = [198.51.100.0/28, 2001:db8:f::/124])
    in <-> acl <-> nat <-> out
}
chain rest { in -> out }
"#;

/// The packets, in the notation of functions' tests; the errors and later fragments follow what they are about.
const KINDS: [&str; 23] = [
    "tcp 10.0.0.1:4000 > 192.0.2.9:80 S",
    "tcp 10.0.0.1:4000 > 192.0.2.9:80 PA len 11",
    "tcp 10.0.0.1:4000 > 192.0.2.9:23 S",
    "udp 10.0.0.2:5000 > 192.0.2.9:53 len 12",
    "udp 10.0.0.2:5000 > 192.0.2.9:53 len 13",
    "udp 10.0.0.2:5000 > 192.0.2.9:53 nosum len 5",
    "icmp 10.0.0.3 > 192.0.2.9 echo 7 len 9",
    "icmp 10.0.0.2 > 192.0.2.9 unreachable { udp 192.0.2.9:53 > 10.0.0.2:5000 len 20 }",
    "icmp 10.0.0.2 > 192.0.2.9 unreachable { udp 192.0.2.9:53 > 10.0.0.2:5000 nosum len 20 }",
    "icmp 10.0.0.1 > 192.0.2.9 exceeded { tcp 192.0.2.9:80 > 10.0.0.1:4000 A }",
    "icmp 10.0.0.3 > 192.0.2.9 unreachable { icmp 192.0.2.9 > 10.0.0.3 reply 7 }",
    "udp 10.0.0.4:4000 > 192.0.2.9:53 len 16 id 5 first",
    "ip 10.0.0.4 > 192.0.2.9 proto 17 id 5 later 24 len 8",
    "ip 10.0.0.5 > 192.0.2.9 proto 47 len 20",
    "udp 192.0.2.7:4000 > 192.0.2.9:53 len 4",
    "arp",
    "tcp [fd00::1]:4000 > [2001:db8::9]:80 PA len 11",
    "udp [fd00::2]:5000 > [2001:db8::9]:53 len 12",
    "icmp fd00::3 > 2001:db8::9 echo 7 len 9",
    "icmp fd00::2 > 2001:db8::9 unreachable { udp [2001:db8::9]:53 > [fd00::2]:5000 len 20 }",
    "icmp fd00::3 > 2001:db8::9 exceeded { icmp 2001:db8::9 > fd00::3 reply 7 }",
    "udp [fd00::4]:4000 > [2001:db8::9]:53 len 120 id 5 first",
    "ip fd00::4 > 2001:db8::9 proto 17 id 5 later 128 len 8",
];

/// Return a packet as it is, and broken.
fn broken(frame: &[u8]) -> Vec<Packet> {
    let packet = |frame: Vec<u8>, missing| Packet { time: 0, frame, missing };
    let mut variants = vec![packet(frame.to_vec(), 0)];
    for sum in Parts::of(frame).sums {
        let check = u16::from_be_bytes([frame[sum.place], frame[sum.place + 1]]);
        // A bit, a byte, what a card was to fill in, and both zeros.
        for wrong in [check ^ 0x0400, check ^ 0x00ff, 0x1234, 0x0000, 0xffff] {
            let mut frame = frame.to_vec();
            frame[sum.place..sum.place + 2].copy_from_slice(&wrong.to_be_bytes());
            variants.push(packet(frame, 0));
        }
    }
    let mut damaged = frame.to_vec();
    *damaged.last_mut().expect("a byte") ^= 0x10;
    let padded = [frame, &[0xaa; 7]].concat();
    // Cut within the packet, and within the padding.
    let cut = frame[..frame.len() - 3].to_vec();
    variants.extend([packet(damaged, 0), packet(padded.clone(), 0), packet(padded, 4), packet(cut, 3)]);
    variants
}

/// Give packets times, 1 us apart.
fn timed(mut packets: Vec<Packet>) -> Vec<Packet> {
    packets.iter_mut().zip(0..).for_each(|(packet, i)| packet.time = START + i * 1000);
    packets
}

#[test]
fn broken_packets_are_no_more_and_no_less_broken_behind_a_nat() {
    let folder = tempfile::tempdir().expect("a folder");
    let [chain, capture] = ["nat.catena", "in.pcapng"].map(|name| folder.path().join(name));
    std::fs::write(&chain, CHAIN).expect("a chain file");
    let input = timed(KINDS.iter().flat_map(|line| broken(&craft(line))).collect());
    write(&capture, &input);
    let trip = there_and_back(folder.path(), &chain, &capture, &input);
    trip.hold();
    println!("{:?}", drops(&trip.report));
    // What may not pass are connections to port 23, GRE, and packets that are shorter than they say: no class is theirs.
    let dropped = KINDS.iter().map(|line| match line.contains(":23 ") || line.contains("proto 47") {
        true => broken(&craft(line)).len(),
        false => 1,
    });
    assert_eq!(trip.there.dropped, dropped.sum::<usize>());
    // Of a packet and its answer every way to be broken was seen.
    assert!(trip.there.wrong > 200 && trip.there.cut > 20, "{}", trip.there.wrong);
    assert!(trip.back.wrong > 200 && trip.back.changed == trip.answers, "{} of {}", trip.back.changed, trip.answers);
}

#[test]
fn every_value_of_a_checksum_is_updated_rightly() {
    let folder = tempfile::tempdir().expect("a folder");
    let [chain, capture, out] = ["nat.catena", "in.pcapng", "out.pcapng"].map(|name| folder.path().join(name));
    std::fs::write(&chain, CHAIN).expect("a chain file");
    let mut packets = Vec::new();
    for (line, name) in [
        ("udp 10.0.0.2:5000 > 192.0.2.9:53 len 2", "UDP"),
        ("tcp 10.0.0.1:4000 > 192.0.2.9:80 PA len 2", "TCP"),
        ("icmp 10.0.0.3 > 192.0.2.9 echo 7 len 2", "ICMP"),
    ] {
        for payload in 0..=u16::MAX {
            let mut frame = craft(line);
            let last = frame.len() - 2;
            frame[last..].copy_from_slice(&payload.to_be_bytes());
            put_right(&mut frame, name);
            packets.push(Packet { time: 0, frame, missing: 0 });
        }
    }
    let input = timed(packets);
    write(&capture, &input);
    let [chain, capture, to] = [&chain, &capture, &out].map(|path| path.display().to_string());
    let report = run(&[&chain, "--in", &capture, "--out", &to]);
    assert_eq!(number(&report, "/dropped"), 0);
    let result = compare(&input, &read(&out), Between::Translators);
    result.hold();
    assert_eq!((result.changed, result.wrong), (input.len(), 0));
}

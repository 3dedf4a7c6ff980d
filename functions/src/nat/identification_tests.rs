//! NAT against a receiver that reassembles: datagrams of hosts that share an external address stay apart.

use std::collections::{HashMap, HashSet};

use catena_packet::wire::{Layers, Net, ipv4, ipv6, ipv6ext, parse};
use catena_state::Share;
use proptest::prelude::*;

use super::*;
use crate::Value;
use crate::acl::tests::fragments::reassembly::{Fragment, Overlap, Reassembly};
use crate::testing::engines::{Late, tests};
use crate::testing::{Fate, Harness, START, build, craft, describe};

const UDP: u8 = 17;

/// One external address of a family.
fn args(v6: bool) -> Args {
    let address = if v6 { "2001:db8:99::1" } else { "198.51.100.1" };
    Args::default().with("pool", Value::Address(address.parse().unwrap()))
}

/// The address of a family whose last byte is `host`: of the server if that is 0.
fn address(v6: bool, host: u8) -> Vec<u8> {
    let net = if host == 0 { 50 } else { 1 };
    match v6 {
        true => [&[0x20, 1, 0xd, 0xb8, 0, net, 0][..], &[0; 8], &[host]].concat(),
        false => vec![10, net, 0, host],
    }
}

/// A part of an IP payload to the server: `offset` in bytes, and whether more follow.
fn frame(v6: bool, host: u8, ident: u16, (offset, more): (usize, bool), data: &[u8]) -> Vec<u8> {
    let mut frame = vec![2; 12];
    if v6 {
        let place = (offset as u16 | u16::from(more)).to_be_bytes();
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
        frame.extend((8 + data.len() as u16).to_be_bytes());
        frame.extend([44, 64]);
        frame.extend([address(true, host), address(true, 0)].concat());
        frame.extend([UDP, 0, place[0], place[1], 0, 0]);
        frame.extend(ident.to_be_bytes());
        frame.extend(data);
    } else {
        frame.extend([8, 0]);
        let mut packet = ipv4::Packet::new_unchecked(vec![0; 20 + data.len()]);
        packet.set_header_len(20);
        packet.set_total_len(20 + data.len() as u16);
        packet.set_ident(ident);
        packet.set_fragment(false, more, offset as u16);
        packet.set_ttl(64);
        packet.set_proto(UDP);
        packet.set_src(<[u8; 4]>::try_from(address(false, host)).unwrap().into());
        packet.set_dst(<[u8; 4]>::try_from(address(false, 0)).unwrap().into());
        packet.payload_mut().copy_from_slice(data);
        packet.fill_checksum();
        frame.extend(packet.into_inner());
    }
    frame
}

/// A datagram of UDP without a checksum, whose every byte tells of `mark`.
fn datagram(port: u16, mark: u8, length: u16) -> Vec<u8> {
    let header = [port.to_be_bytes(), [0, 53], (8 + length).to_be_bytes(), [0, 0]].concat();
    [header, vec![mark; usize::from(length)]].concat()
}

/// Cut an IP payload at the given offsets.
fn cut(v6: bool, host: u8, ident: u16, data: &[u8], cuts: &[usize]) -> Vec<Vec<u8>> {
    let ends = cuts.iter().copied().chain([data.len()]);
    let starts = [0].into_iter().chain(cuts.iter().copied());
    starts.zip(ends).map(|(start, end)| frame(v6, host, ident, (start, end < data.len()), &data[start..end])).collect()
}

/// What a frame says of itself.
struct Read {
    /// The words by which its receiver tells datagrams apart (RFC 791 §3.2, RFC 8200 §4.5), and its identification.
    datagram: (Vec<u8>, u8),
    ident: u32,
    fragment: Fragment,
}

fn read(frame: &[u8]) -> Read {
    let layers = parse(frame).expect("NAT sends what can be read");
    let l3 = usize::from(layers.l3);
    let data = |from: usize| frame[from..layers.end(frame).unwrap()].to_vec();
    if layers.net == Net::Ipv4 {
        let packet = ipv4::Packet::new_unchecked(&frame[l3..]);
        assert!(packet.verify_checksum(), "{}", describe(frame));
        let (offset, more) = (usize::from(packet.fragment_offset()), packet.more_fragments());
        let fragment = Fragment { offset, more, next: packet.proto(), data: data(l3 + 20) };
        let datagram = (frame[l3 + 12..l3 + 20].to_vec(), packet.proto());
        return Read { datagram, ident: packet.ident().into(), fragment };
    }
    let packet = ipv6::Packet::new_unchecked(&frame[l3..]);
    let chain = packet.extensions().unwrap();
    let part = chain.fragment.unwrap_or(ipv6ext::Fragment { offset: 0, more: false, ident: 0 });
    let fragment = Fragment {
        offset: part.offset.into(),
        more: part.more,
        next: chain.proto,
        data: data(l3 + 40 + chain.fragmented),
    };
    Read { datagram: (frame[l3 + 8..l3 + 40].to_vec(), 0), ident: part.ident, fragment }
}

/// Reassemble frames as their receiver does; returns the datagrams, in order.
fn receive(overlap: Overlap, frames: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut started: HashMap<_, Reassembly> = HashMap::new();
    let mut whole: Vec<_> = frames
        .iter()
        .map(|frame| read(frame))
        .filter_map(|Read { datagram, ident, fragment }| {
            started.entry((datagram, ident)).or_insert_with(|| Reassembly::new(overlap)).take(&fragment)
        })
        .map(|(_, data)| data)
        .collect();
    whole.sort();
    whole
}

fn pass(harness: &mut Harness, frame: &[u8]) -> Vec<u8> {
    match harness.send_one(0, START, frame) {
        Fate::Out(0, bytes) => bytes,
        fate => panic!("{}: {fate:?}", describe(frame)),
    }
}

/// Deal the frames of several senders, each in its own order, as `turns` says.
fn deal<T>(senders: Vec<Vec<T>>, turns: &[usize]) -> Vec<T> {
    let mut senders: Vec<_> = senders.into_iter().map(|frames| frames.into_iter().peekable()).collect();
    let mut dealt = Vec::new();
    for turn in turns.iter().copied().cycle() {
        senders.retain_mut(|frames| frames.peek().is_some());
        if senders.is_empty() {
            break;
        }
        let count = senders.len();
        dealt.extend(senders[turn % count].next());
    }
    dealt
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Every host sends as many datagrams, with the same identifications, at the same time to one server.
    #[test]
    fn fragments_of_hosts_that_share_an_address_stay_apart(
        v6: bool,
        hosts in 2..6u8,
        datagrams in 1..4u8,
        cuts in prop::sample::subsequence(vec![128, 136, 200, 256, 304], 1..5),
        turns in prop::collection::vec(0..8usize, 1..40),
    ) {
        let mut harness = Harness::of(&DESCRIPTOR, &args(v6));
        let (mut senders, mut expected) = (Vec::new(), Vec::new());
        for host in 1..=hosts {
            // The external port: a packet before all others tells it.
            let port = u16::from_be_bytes(
                read(&pass(&mut harness, &frame(v6, host, 9, (0, false), &datagram(4000, 0, 0)))).fragment.data[..2].try_into().unwrap(),
            );
            let mark = |number: u8| host << 4 | number;
            let frames = (0..datagrams)
                .flat_map(|number| cut(v6, host, number.into(), &datagram(4000, mark(number), 400), &cuts));
            senders.push(frames.collect());
            expected.extend((0..datagrams).map(|number| datagram(port, mark(number), 400)));
        }
        expected.sort();
        let out: Vec<_> = deal(senders, &turns).iter().map(|frame| pass(&mut harness, frame)).collect();
        for overlap in Overlap::ALL {
            prop_assert_eq!(&receive(overlap, &out), &expected, "{:?}", overlap);
        }
        harness.end();
    }

    /// A router behind NAT cuts what is too long for its link.
    #[test]
    fn datagrams_that_are_cut_later_stay_apart(
        hosts in 2..6u8,
        filtering: bool,
        turns in prop::collection::vec(0..8usize, 1..40),
    ) {
        let word = if filtering { "address" } else { "independent" };
        let mut harness = Harness::of(&DESCRIPTOR, &args(false).with("filtering", Value::Word(word.into())));
        let mut sent = Vec::new();
        let routed = (1..=hosts).map(|host| {
            let out = read(&pass(&mut harness, &frame(false, host, 7, (0, false), &datagram(4000, host, 100))));
            let data = out.fragment.data;
            sent.push(data.clone());
            // All have the same source by now: whatever it is.
            cut(false, 9, out.ident as u16, &data, &[8, 64])
        });
        let arrives = deal(routed.collect(), &turns);
        sent.sort();
        for overlap in Overlap::ALL {
            prop_assert_eq!(&receive(overlap, &arrives), &sent, "{:?}", overlap);
        }
        harness.end();
    }
}

/// Send a packet that a line describes, and return its identification outside.
fn identified(harness: &mut Harness, line: &str) -> u32 {
    match harness.send_one(0, START, &craft(line)) {
        Fate::Out(_, bytes) => {
            assert!(!describe(&bytes).contains('!'), "{}", describe(&bytes));
            read(&bytes).ident
        }
        Fate::Dropped(reason) => panic!("{line}: {reason}"),
    }
}

#[test]
fn an_identification_comes_again_after_65536_packets_to_the_same_destination() {
    for filtering in ["independent", "address_port"] {
        let args = args(false).with("filtering", Value::Word(filtering.into()));
        let mut harness = Harness::of(&DESCRIPTOR, &args);
        let mut seen = HashSet::new();
        for i in 0..65_536 {
            // Of some hosts, whole and in fragments, as many go elsewhere.
            let (host, rest) = (1 + i % 50, if i % 3 == 0 { " len 16 id 7 first" } else { " id 7" });
            let ident = identified(&mut harness, &format!("udp 10.0.0.{host}:4000 > 192.0.2.9:53{rest}"));
            assert!(seen.insert(ident), "{ident} again after {i} packets");
            identified(&mut harness, &format!("udp 10.0.0.{host}:4000 > 192.0.2.{}:53 id 7", 10 + i % 200));
        }
        harness.end();
    }
}

#[test]
fn whatever_goes_out_has_an_identification_of_its_own() {
    let mut harness = Harness::of(&DESCRIPTOR, &args(false));
    // An inside host that hairpins reach.
    let server = match harness.send_one(0, START, &craft("udp 10.0.0.9:9 > 192.0.2.9:53")) {
        Fate::Out(0, bytes) => describe(&bytes).split(' ').nth(1).unwrap().to_owned(),
        fate => panic!("{fate:?}"),
    };
    for rest in [
        "udp HOST:4000 > 192.0.2.9:53 id 7",
        "udp HOST:4000 > 192.0.2.9:53 nosum id 7",
        "tcp HOST:4000 > 192.0.2.9:80 S id 7",
        "icmp HOST > 192.0.2.9 echo 77 id 7",
        "icmp HOST > 192.0.2.9 unreachable { udp 192.0.2.9:53 > HOST:4000 }",
        "udp HOST:4000 > 192.0.2.9:53 len 16 id 7 first",
        &format!("udp HOST:4000 > {server} id 7"),
        &format!("udp HOST:4000 > {server} len 16 id 7 first"),
    ] {
        let [a, b] = ["10.0.0.1", "10.0.0.2"].map(|host| identified(&mut harness, &rest.replace("HOST", host)));
        assert_ne!(a, b, "{rest}");
    }
    harness.end();
    let mut harness = Harness::of(&DESCRIPTOR, &args(true));
    let line = "udp [HOST]:4000 > [2001:db8:9::1]:53 len 120 id 7 first";
    let [a, b] = ["2001:db8:1::1", "2001:db8:1::2"].map(|host| identified(&mut harness, &line.replace("HOST", host)));
    assert_ne!(a, b);
    harness.end();
}

#[test]
fn what_nobody_fragments_keeps_its_identification() {
    // RFC 6864 §4: "atomic" are IPv4 packets with DF and neither MF nor an offset, RFC 6946: IPv6 fragments of the
    // whole.
    let mut harness = Harness::of(&DESCRIPTOR, &args(false));
    for (line, ident) in [("udp 10.0.0.1:4000 > 192.0.2.9:53", 7), ("tcp 10.0.0.1:4000 > 192.0.2.9:80 S", 0)] {
        let mut frame = craft(line);
        let mut packet = ipv4::Packet::new_unchecked(&mut frame[14..]);
        packet.set_ident(ident);
        packet.set_fragment(true, false, 0);
        packet.fill_checksum();
        for _ in 0..3 {
            assert_eq!(read(&pass(&mut harness, &frame)).ident, u32::from(ident));
        }
        // With DF, but a fragment all the same.
        let mut packet = ipv4::Packet::new_unchecked(&mut frame[14..]);
        packet.set_fragment(true, true, 0);
        packet.fill_checksum();
        if line.starts_with("udp") {
            let [a, b] = [(); 2].map(|()| read(&pass(&mut harness, &frame)).ident);
            assert_ne!(a, b);
        }
    }
    harness.end();
    let mut harness = Harness::of(&DESCRIPTOR, &args(true));
    let atomic = frame(true, 1, 7, (0, false), &datagram(4000, 1, 8));
    assert!(!parse(&atomic).unwrap().has(Layers::FRAGMENT));
    assert_eq!(read(&pass(&mut harness, &atomic)).ident, 7);
    harness.end();
}

#[test]
fn a_checksum_that_was_wrong_stays_wrong() {
    let mut harness = Harness::of(&DESCRIPTOR, &args(false));
    for line in ["udp 10.0.0.1:4000 > 192.0.2.9:53 id 7", "udp 10.0.0.1:4000 > 192.0.2.9:53 len 16 id 7 first"] {
        let mut frame = craft(line);
        frame[24] ^= 1;
        assert!(describe(&pass(&mut harness, &frame)).ends_with(" !ip"));
    }
    harness.end();
}

#[test]
fn instances_share_no_identifications() {
    for count in [2, 3, 5] {
        let mut seen = HashMap::new();
        for index in 0..count {
            let mut harness = Harness::new(build(&DESCRIPTOR, &args(false), Share { index, count }).unwrap(), 2);
            for _ in 0..20_000 {
                let ident = identified(&mut harness, "udp 10.0.0.1:4000 > 192.0.2.9:53 id 7");
                assert_eq!(*seen.entry(ident).or_insert(index), index, "{ident} of {count} instances");
            }
            harness.end();
        }
    }
}

#[test]
fn what_comes_from_outside_keeps_its_identification() {
    // Its source stays, and that tells it from others.
    let mut harness = Harness::of(&DESCRIPTOR, &args(false));
    identified(&mut harness, "udp 10.0.0.1:4000 > 192.0.2.9:53");
    for (line, back) in [
        (
            "udp 192.0.2.9:53 > 198.51.100.1:1024 len 16 id 7 first",
            "udp 192.0.2.9:53 > 10.0.0.1:4000 len 16 id 7 first",
        ),
        (
            "ip 192.0.2.9 > 198.51.100.1 proto 17 len 8 id 7 later 24",
            "ip 192.0.2.9 > 10.0.0.1 proto 17 len 8 id 7 later 24",
        ),
    ] {
        match harness.send_one(1, START, &craft(line)) {
            Fate::Out(1, bytes) => assert_eq!(describe(&bytes), back),
            fate => panic!("{line}: {fate:?}"),
        }
    }
    harness.end();
}

pub(super) const LATE: Late = Late {
    source: include_str!("identification_tests.rs"),
    quick: tests![
        whatever_goes_out_has_an_identification_of_its_own,
        what_nobody_fragments_keeps_its_identification,
        a_checksum_that_was_wrong_stays_wrong,
        what_comes_from_outside_keeps_its_identification,
    ],
    slow: tests![fragments_of_hosts_that_share_an_address_stay_apart, datagrams_that_are_cut_later_stay_apart,],
    apart: &[
        // Seconds each; of waiting they have nothing that others have not.
        "an_identification_comes_again_after_65536_packets_to_the_same_destination",
        "instances_share_no_identifications",
    ],
};

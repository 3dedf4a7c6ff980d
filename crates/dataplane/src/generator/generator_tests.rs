//! Every packet is well-formed, and the traffic is what was asked for.

use std::collections::{HashMap, HashSet};

use catena_packet::wire::number::{ethertype, proto};
use catena_packet::wire::{FlowKey, Net, ipv4, ipv6, parse, tcp, udp};
use catena_packet::{Depot, Packet};

use super::*;

/// Pull `count` packets (fewer where the traffic ends) and look at each.
pub(super) fn each(text: &str, count: usize, mut look: impl FnMut(&Packet)) -> Generator {
    let spec: Spec = text.parse().unwrap_or_else(|error| panic!("{error}"));
    let depot = Depot::map(1024, 256).unwrap();
    let mut cx = Context::new(&depot, 1);
    let mut generator = Generator::new(&spec).unwrap();
    let mut batch = Batch::new();
    let mut seen = 0;
    while seen < count {
        let pulled = generator.pull(&mut cx, &mut batch);
        assert!(!batch.is_empty() || pulled == Pulled::Done, "{text}: idle in virtual time");
        for packet in batch.iter().take(count - seen) {
            assert!(packet.meta().arrival <= cx.now());
            look(packet);
            seen += 1;
        }
        cx.pool().put_batch(&mut batch);
        if pulled == Pulled::Done {
            break;
        }
    }
    generator
}

pub(super) fn frames(text: &str, count: usize) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    each(text, count, |packet| frames.push(packet.data().to_vec()));
    frames
}

/// RFC 1071 §1 as it is written: 16-bit words one by one. Right data, checksum included, give 0xffff.
fn slow_sum(parts: &[&[u8]]) -> u16 {
    let data = parts.concat();
    let mut total = 0u32;
    for pair in data.chunks(2) {
        total += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
        total = (total & 0xffff) + (total >> 16);
    }
    total as u16
}

/// Check one frame with nothing of the code that wrote it.
pub(super) fn check(frame: &[u8]) {
    let layers = parse(frame).expect("a frame that parses");
    let l4 = usize::from(layers.l4);
    let (end, pseudo) = match layers.net {
        Net::Ipv4 => {
            assert_eq!(frame[12..14], ethertype::IPV4.to_be_bytes());
            let ip = ipv4::Packet::new_checked(&frame[14..]).unwrap();
            assert_eq!((slow_sum(&[ip.header()]), ip.ttl()), (0xffff, 64));
            let length = ip.total_len() - 20;
            (14 + usize::from(ip.total_len()), [&frame[26..34], &[0, ip.proto()], &length.to_be_bytes()].concat())
        }
        Net::Ipv6 => {
            assert_eq!(frame[12..14], ethertype::IPV6.to_be_bytes());
            let ip = ipv6::Packet::new_checked(&frame[14..]).unwrap();
            assert_eq!(ip.hop_limit(), 64);
            let length = u32::from(ip.payload_len()).to_be_bytes();
            (54 + usize::from(ip.payload_len()), [&frame[22..54], &length, &[0, 0, 0, ip.next_header()]].concat())
        }
        other => panic!("{other:?}"),
    };
    let upper = &frame[l4..end];
    assert!(frame[end..].iter().all(|byte| *byte == 0), "padding is zero");
    match layers.proto {
        proto::ICMP => {
            assert_eq!((slow_sum(&[upper]), upper[0], layers.net), (0xffff, 8, Net::Ipv4));
        }
        proto::ICMPV6 => assert_eq!((slow_sum(&[&pseudo, upper]), upper[0]), (0xffff, 128)),
        proto::UDP => {
            assert_ne!(udp::Packet::new_checked(upper).unwrap().checksum(), 0);
            assert_eq!(slow_sum(&[&pseudo, upper]), 0xffff);
        }
        proto::TCP => {
            let segment = tcp::Packet::new_checked(upper).unwrap();
            assert!(segment.options().all(|option| option.is_ok()));
            assert_eq!(slow_sum(&[&pseudo, upper]), 0xffff);
        }
        other => panic!("protocol {other}"),
    }
}

/// Specifications that reach all ways through the generator.
const ALL: [&str; 14] = [
    "gen:flows=100",
    "gen:flows=100,size=60,order=random",
    "gen:flows=7,size=65,proto=udp+tcp+icmp,ipv6=50%",
    "gen:flows=100,size=64,proto=udp+tcp+icmp,ipv6=50%",
    "gen:flows=100,size=61,proto=tcp",
    "gen:flows=1,size=1514,proto=udp+tcp+icmp",
    "gen:flows=100,size=9216,proto=udp+tcp+icmp,ipv6=50%",
    "gen:flows=100,size=60..9216,proto=udp+tcp+icmp,ipv6=50%",
    "gen:flows=100,size=imix,proto=udp+tcp+icmp,ipv6=50%,order=random",
    "gen:flows=100,size=60..200,proto=tcp,tcp=sessions,ipv6=50%,dist=geometric(5)",
    "gen:flows=100,proto=udp+tcp+icmp,tcp=client,ipv6=50%,dist=pareto(1.3,2),new=100k/s",
    "gen:flows=50,dist=fixed(1),new=1000/s,rate=1Mpps,proto=udp+icmp",
    "gen:flows=50,new=1M/s,rate=1Gbps,size=imix,order=random",
    "gen:flows=5000,src=10.0.0.1,sport=1-100,dport=7-9,dst=10.1.0.0/27,dist=fixed(3)",
];

#[test]
fn every_packet_is_well_formed() {
    for text in ALL {
        let mut count = 0;
        each(text, 4000, |packet| {
            check(packet.data());
            count += 1;
        });
        assert_eq!(count, 4000, "{text}");
    }
}

#[test]
fn the_same_seed_gives_the_same_packets() {
    for text in ALL {
        let seeded = |seed| frames(&format!("{text},seed={seed}"), 1000);
        assert_eq!(seeded(5), seeded(5), "{text}");
        assert_ne!(seeded(5), seeded(6), "{text}");
    }
}

#[test]
fn times_do_not_depend_on_how_packets_are_taken() {
    let spec: Spec = "gen:flows=10,rate=3Mpps,new=1M/s,size=imix,proto=tcp,tcp=sessions".parse().unwrap();
    let take = |small: usize| {
        let depot = Depot::map(if small > 0 { 128 } else { 512 }, 0).unwrap();
        let mut cx = Context::new(&depot, 1);
        // Without enough buffers pulls come back short.
        let held: Vec<_> = (0..small).map(|_| cx.pool().take(64).unwrap()).collect();
        let (mut generator, mut batch, mut all) = (Generator::new(&spec).unwrap(), Batch::new(), Vec::new());
        while all.len() < 3000 {
            generator.pull(&mut cx, &mut batch);
            all.extend(batch.iter().map(|packet| (packet.meta().arrival, packet.data().to_vec())));
            cx.pool().put_batch(&mut batch);
        }
        drop(held);
        all.truncate(3000);
        all
    };
    assert_eq!(take(0), take(121));
}

/// The number of different flows among packets.
fn flows(frames: &[Vec<u8>]) -> usize {
    let key = |frame: &Vec<u8>| FlowKey::read(frame, &parse(frame).unwrap()).unwrap();
    frames.iter().map(key).collect::<HashSet<_>>().len()
}

#[test]
fn there_are_as_many_flows_as_asked_for() {
    assert_eq!(flows(&frames("gen:flows=1", 100)), 1);
    assert_eq!(flows(&frames("gen:flows=3000", 3000)), 3000);
    assert_eq!(flows(&frames("gen:flows=3000", 6000)), 3000);
    assert_eq!(flows(&frames("gen:flows=3000,proto=udp+tcp,ipv6=30%,size=imix", 3000)), 3000);
    assert_eq!(flows(&frames("gen:flows=300,order=random", 6000)), 300);
    assert_eq!(flows(&frames("gen:flows=300,order=random,size=imix", 6000)), 300);
    // Scarce addresses: every 5-tuple there is, each once.
    assert_eq!(flows(&frames("gen:flows=960,src=10.0.0.1,sport=1-10,dport=7-9,dst=10.1.0.0/27", 960)), 960);
    // Each flow of one packet: another flow every time.
    assert_eq!(flows(&frames("gen:flows=10,dist=fixed(1)", 5000)), 5000);
}

#[test]
fn living_flows_never_share_a_tuple() {
    // 64 tuples for 20 places: each tuple comes again soon, but never while it is in use.
    let frames = frames("gen:flows=20,src=10.0.0.0/29,sport=1-8,dst=10.1.0.1,dist=geometric(4)", 20_000);
    for round in frames.chunks(20) {
        assert_eq!(flows(round), 20);
    }
}

#[test]
fn addresses_and_ports_lie_in_their_ranges() {
    let text = "gen:flows=4000,src=10.64.0.0/12,dst=192.0.2.128/25,sport=5000-5999,dport=53-54,size=imix";
    let mut dsts = HashSet::new();
    for frame in frames(text, 4000) {
        let key = FlowKey::read(&frame, &parse(&frame).unwrap()).unwrap();
        let FlowKey::V4(key) = key else { panic!("{key:?}") };
        assert_eq!((key.src >> 20, key.dst >> 7), (0x0a4, 0xc000_0280 >> 7));
        assert!((5000..6000).contains(&key.sport) && (53..55).contains(&key.dport));
        dsts.insert((key.dst, key.dport));
    }
    assert_eq!(dsts.len(), 256);
}

#[test]
fn protocols_and_families_are_mixed_as_asked() {
    let mut counts = HashMap::new();
    for frame in frames("gen:flows=10k,proto=udp:3+tcp:6+icmp:1,ipv6=20%", 10_000) {
        let layers = parse(&frame).unwrap();
        let proto = if layers.proto == proto::ICMPV6 { proto::ICMP } else { layers.proto };
        *counts.entry((layers.net, proto)).or_insert(0u32) += 1;
    }
    let wanted = [(proto::UDP, 30), (proto::TCP, 60), (proto::ICMP, 10)];
    for (proto, percent) in wanted {
        for (net, share) in [(Net::Ipv4, 80), (Net::Ipv6, 20)] {
            let (count, wanted) = (counts[&(net, proto)], percent * share);
            assert!(count.abs_diff(wanted) <= 20, "{net:?} {proto}: {count}, wanted {wanted}");
        }
    }
}

#[test]
fn packets_are_as_long_as_asked() {
    assert!(frames("gen:size=777,flows=10", 100).iter().all(|frame| frame.len() == 777));
    let lengths: HashSet<usize> = frames("gen:size=60..69,flows=10", 2000).iter().map(Vec::len).collect();
    assert_eq!(lengths, (60..70).collect());
    // No shorter than the headers: Ethernet 14, IPv6 40, TCP 20.
    let short = frames("gen:size=60,flows=100,proto=udp+tcp,ipv6=100%", 100);
    let lengths: HashSet<usize> = short.iter().map(Vec::len).collect();
    assert_eq!(lengths, [62, 74].into());
}

#[test]
fn flows_begin_at_the_rate_asked_for() {
    // 100,000 packets at 1 Mpps are 0.1 s (or more, where the flows are too short to fill them).
    for text in ["", ",dist=geometric(10)", ",dist=pareto(1.3,10)", ",proto=tcp,tcp=sessions,dist=fixed(5)"] {
        let mut ns = 0;
        let traffic = format!("gen:flows=1000,new=50k/s,rate=1Mpps{text}");
        let generator = each(&traffic, 100_000, |packet| ns = packet.meta().arrival - START);
        assert!(ns >= 99_000_000);
        // A displaced session has yet to say goodbye.
        let wanted = 1000 + ns * 50_000 / 1_000_000_000;
        assert!((wanted - 150..=wanted).contains(&generator.flows()), "{text}: {} flows", generator.flows());
    }
}

#[test]
fn far_more_new_flows_than_packets_do_not_stall() {
    let mut last = 0;
    let generator = each("gen:flows=100,new=1000M/s,rate=1pps,count=100", 100, |packet| last = packet.meta().arrival);
    assert_eq!(last, START + 99_000_000_000);
    assert!(generator.flows() <= 100 * 102);
}

#[test]
fn virtual_time_follows_the_rate() {
    let end = |text: &str, count| {
        let mut last = 0;
        each(text, count, |packet| last = packet.meta().arrival - START);
        last
    };
    assert_eq!(end("gen:rate=1Mpps", 100_001), 100_000_000);
    assert!(end("gen:rate=3Mpps", 300_001).abs_diff(100_000_000) <= 1);
    assert!(end("gen:rate=3pps,size=imix", 31).abs_diff(10_000_000_000) <= 1);
    // 8 · 125 bytes are 1,000 bits.
    assert_eq!(end("gen:rate=1Gbps,size=125", 100_001), 100_000_000);
    let mut bytes = 0;
    let ns = end("gen:rate=1Gbps,size=imix", 100_000);
    each("gen:rate=1Gbps,size=imix", 99_999, |packet| bytes += packet.len() as u64);
    assert!((bytes * 8).abs_diff(ns) < 10, "{bytes} bytes in {ns} ns");
    // With nothing to send, time goes on to the next flow.
    assert_eq!(end("gen:flows=1,dist=fixed(1),new=10/s", 11), 1_000_000_000);
}

#[test]
fn traffic_ends_when_it_should() {
    for size in ["64", "imix"] {
        let count = |text: &str| frames(&format!("gen:size={size},{text}"), usize::MAX).len();
        assert_eq!(count("count=100"), 100);
        assert_eq!(count("count=0"), 0);
        assert_eq!(count("rate=1Mpps,duration=1ms"), 1000);
        assert_eq!(count("rate=1Mpps,duration=1s,count=77"), 77);
    }
}

#[test]
fn on_the_wall_packets_wait_for_their_time() {
    for size in ["64", "64..65"] {
        let spec: Spec = format!("gen:size={size},time=wall,rate=1Mpps,duration=1ms").parse().unwrap();
        let depot = Depot::map(256, 0).unwrap();
        let mut cx = Context::new(&depot, 1);
        let (mut generator, mut batch, mut counts) = (Generator::new(&spec).unwrap(), Batch::new(), Vec::new());
        for now in [0, 0, 500, 1_000, 10_500, 1_000_000, 1_000_000] {
            cx.set_now(START + now);
            let pulled = generator.pull(&mut cx, &mut batch);
            counts.push((batch.len(), pulled));
            cx.pool().put_batch(&mut batch);
        }
        let (more, idle) = (Pulled::More, Pulled::Idle);
        assert_eq!(counts, [(1, more), (0, idle), (0, idle), (1, more), (9, more), (32, more), (32, more)]);
        let mut rest = 0;
        while generator.pull(&mut cx, &mut batch) != Pulled::Done {
            rest += batch.len();
            cx.pool().put_batch(&mut batch);
        }
        assert_eq!(11 + 64 + rest + batch.len(), 1000);
    }
}

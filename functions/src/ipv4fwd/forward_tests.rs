//! Packets in, packets out: by hand where a reader should see them, and against a naive router.

use proptest::prelude::*;

use super::*;
use crate::config::Value;
use crate::testing::{Fate, Harness, craft, golden};

const ROUTES: &str = "\
    10.0.0.0/8            via 192.0.2.1\n\
    10.1.0.0/16           via 192.0.2.2 gate 1\n\
    10.1.2.0/24           192.0.2.3 gate 2 mac 02:00:00:00:00:33\n\
    blackhole 10.1.3.0/24\n\
    2001:db8::/32         via fe80::1\n\
    2001:db8:1::/48       gate 7\n\
    unreachable 2001:db8:2::/48\n";

fn args() -> Args {
    let file = Value::File { path: "edge.routes".into(), text: ROUTES.into() };
    let neighbours = ["192.0.2.1", "fe80::1"].map(|a| (a.to_owned(), Value::Text("02:00:00:00:00:11".into())));
    Args::default().with("routes", file).with("neighbours", Value::Record(neighbours.into()))
}

fn taken() -> Vec<String> {
    ["1", "2", "7"].map(String::from).into()
}

fn harness(args: &Args) -> Harness {
    Harness::new(Box::new(IPv4Fwd::new(args, &taken()).unwrap_or_else(|error| panic!("{error}"))), 16)
}

#[test]
fn the_longest_prefix_decides() {
    let mut harness = harness(&args());
    golden(
        &mut harness,
        "\
# by prefix, the normal way and by gates 1 and 2
0s 0: udp 192.0.2.7:4000 > 10.9.9.9:53 len 12
  -> 0: udp 192.0.2.7:4000 > 10.9.9.9:53 len 12
0s 0: tcp 192.0.2.7:4000 > 10.1.9.9:80 S
  -> 2: tcp 192.0.2.7:4000 > 10.1.9.9:80 S
0s 0: icmp 192.0.2.7 > 10.1.2.9 echo 7
  -> 4: icmp 192.0.2.7 > 10.1.2.9 echo 7
0s 0: ip 192.0.2.7 > 10.1.2.9 proto 17 len 8 id 5 later 24
  -> 4: ip 192.0.2.7 > 10.1.2.9 proto 17 len 8 id 5 later 24
# the way back has gates of its own
0s 1: udp 192.0.2.7:4000 > 10.9.9.9:53
  -> 1: udp 192.0.2.7:4000 > 10.9.9.9:53
0s 1: udp 192.0.2.7:4000 > 10.1.9.9:53
  -> 3: udp 192.0.2.7:4000 > 10.1.9.9:53
# nowhere
0s 0: udp 192.0.2.7:4000 > 10.1.3.9:53
  -> drop: discarded by a route
0s 0: udp 192.0.2.7:4000 > 11.0.0.1:53
  -> drop: no route
# IPv6
0s 0: udp [2001:db8::7]:4000 > [2001:db8:9::1]:53
  -> 0: udp [2001:db8::7]:4000 > [2001:db8:9::1]:53
0s 0: tcp [2001:db8::7]:4000 > [2001:db8:1::1]:80 S
  -> 14: tcp [2001:db8::7]:4000 > [2001:db8:1::1]:80 S
0s 1: tcp [2001:db8::7]:4000 > [2001:db8:1::1]:80 S
  -> 15: tcp [2001:db8::7]:4000 > [2001:db8:1::1]:80 S
0s 0: udp [2001:db8::7]:4000 > [2001:db8:2::1]:53
  -> drop: discarded by a route
0s 0: udp [2001:db8::7]:4000 > [2001:db9::1]:53
  -> drop: no route
# what is not IP is none of ours
0s 0: arp
  -> 0: arp
0s 1: arp
  -> 1: arp
",
    );
    assert_eq!(harness.gauges().into_iter().collect::<Vec<_>>(), [("IPv4 routes", 4), ("IPv6 routes", 3)]);
    harness.end();
}

/// The frame as it came out of gate 0.
fn out(fate: Fate) -> Vec<u8> {
    match fate {
        Fate::Out(0, frame) => frame,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_hop_is_spent_and_the_stations_change() {
    let sent = craft("udp 192.0.2.7:4000 > 10.9.9.9:53 len 4");
    // Only the destination's station is known.
    let frame = out(harness(&args()).send_one(0, 1, &sent));
    assert_eq!(frame[..6], [2, 0, 0, 0, 0, 0x11]);
    assert_eq!(frame[6..14], sent[6..14]);
    assert_eq!((sent[22], frame[22]), (64, 63));
    assert_eq!(u16::from_be_bytes([sent[24], sent[25]]) + 0x100, u16::from_be_bytes([frame[24], frame[25]]));
    assert_eq!((&sent[14..22], &sent[26..]), (&frame[14..22], &frame[26..]));
    // Our own too, and the TTL stays.
    let args = args().with("mac", Value::Text("02:00:00:00:00:fe".into())).with("ttl", Value::Bool(false));
    let frame = out(harness(&args).send_one(0, 1, &sent));
    assert_eq!(frame[..12], [2, 0, 0, 0, 0, 0x11, 2, 0, 0, 0, 0, 0xfe]);
    assert_eq!(frame[12..], sent[12..]);
    // A station in the route itself; none for this one.
    let mut harness = harness(&args);
    let Fate::Out(4, frame) = harness.send_one(0, 1, &craft("udp 192.0.2.7:1 > 10.1.2.3:2")) else { panic!() };
    assert_eq!(frame[..12], [2, 0, 0, 0, 0, 0x33, 2, 0, 0, 0, 0, 0xfe]);
    let sent = craft("udp 192.0.2.7:1 > 10.1.9.3:2");
    assert_eq!(harness.send_one(0, 1, &sent), Fate::Out(2, sent));
    harness.end();
}

#[test]
fn expired_packets_and_bad_checksums_are_dropped_and_counted() {
    let with_ttl = |line: &str, ttl: u8| {
        let mut frame = craft(line);
        if frame[12..14] == [8, 0] {
            frame[22] = ttl;
            ipv4::Packet::new_unchecked(&mut frame[14..]).fill_checksum();
        } else {
            frame[21] = ttl;
        }
        frame
    };
    let (four, six) = ("udp 192.0.2.7:1 > 10.9.9.9:2", "udp [2001:db8::7]:1 > [2001:db8::9]:2");
    let mut strict = harness(&args());
    for (line, ttl) in [(four, 0), (four, 1), (six, 0), (six, 1)] {
        assert_eq!(strict.send_one(0, 1, &with_ttl(line, ttl)), Fate::Dropped("TTL expired"));
    }
    assert_eq!(out(strict.send_one(0, 1, &with_ttl(four, 2)))[22], 1);
    assert_eq!(out(strict.send_one(0, 1, &with_ttl(six, 2)))[21], 1);
    let mut broken = craft(four);
    broken[24] ^= 0x10;
    assert_eq!(strict.send_one(0, 1, &broken), Fate::Dropped("bad IPv4 header checksum"));
    assert_eq!(strict.drops()["TTL expired"], 4);
    strict.end();
    // Where it is not verified, it is as wrong afterwards as it was before.
    let mut lax = harness(&args().with("checksum", Value::Bool(false)));
    let mut frame = out(lax.send_one(0, 1, &broken));
    frame[24] ^= 0x10;
    assert!(checksum::verify_ipv4_checksum(&frame[14..34]));
    let mut lax = harness(&args().with("ttl", Value::Bool(false)));
    assert_eq!(out(lax.send_one(0, 1, &with_ttl(four, 0)))[22], 0);
}

#[test]
fn neighbour_discovery_stays_on_its_link() {
    let mut harness = harness(&args());
    // A neighbour solicitation, as a host sends it to a group that no route covers.
    let mut frame = craft("icmp fe80::7 > ff02::1:ff00:1 echo 0 len 16");
    (frame[21], frame[54]) = (255, 135);
    assert_eq!(harness.send_one(0, 1, &frame), Fate::Out(0, frame.clone()));
    assert_eq!(harness.send_one(1, 1, &frame), Fate::Out(1, frame.clone()));
    frame[21] = 254;
    assert_eq!(harness.send_one(0, 1, &frame), Fate::Dropped("no route"), "it came from elsewhere");
    harness.end();
}

#[test]
fn routes_are_swapped_between_batches() {
    let mut harness = harness(&args());
    let frame = craft("udp 192.0.2.7:1 > 11.0.0.1:2");
    assert_eq!(harness.send_one(0, 1, &frame), Fate::Dropped("no route"));
    let more = args().with("routes", Value::Text("default 192.0.2.1".into()));
    let old = harness.module::<IPv4Fwd>().swap(Arc::new(Table::new(&more, &taken()).unwrap()));
    assert!(matches!(harness.send_one(0, 1, &frame), Fate::Out(0, _)));
    harness.module::<IPv4Fwd>().swap(old);
    assert_eq!(harness.send_one(0, 1, &frame), Fate::Dropped("no route"));
}

/// A packet of the property test.
#[derive(Clone, Debug)]
struct Sent {
    tags: usize,
    dst: u128,
    ipv6: bool,
    ttl: u8,
    option_words: u8,
    spoiled: Option<u8>,
}

impl Sent {
    fn frame(&self) -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
        (0..self.tags).for_each(|_| frame.extend([0x81, 0, 0, 5]));
        if self.ipv6 {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 8, 17, self.ttl]);
            frame.extend([0x20; 16]);
            frame.extend(self.dst.to_be_bytes());
        } else {
            let header = 20 + 4 * self.option_words;
            frame.extend([8, 0, 0x40 | (header / 4), 0, 0, header + 8, 0, 1, 0, 0, self.ttl, 17, 0, 0, 192, 0, 2, 1]);
            frame.extend((self.dst as u32).to_be_bytes());
            frame.extend(std::iter::repeat_n(1, 4 * usize::from(self.option_words)));
            let l3 = frame.len() - usize::from(header);
            ipv4::Packet::new_unchecked(&mut frame[l3..]).fill_checksum();
            if let Some(bit) = self.spoiled {
                frame[l3 + 10 + usize::from(bit / 8)] ^= 1 << (bit % 8);
            }
        }
        frame.extend([0, 1, 0, 2, 0, 8, 0, 0]);
        frame
    }
}

/// A route of the property test.
#[derive(Clone, Debug)]
struct Way {
    ipv6: bool,
    addr: u128,
    len: u8,
    gate: Option<u16>,
    mac: Option<u8>,
}

impl Way {
    fn bits(&self) -> u8 {
        if self.ipv6 { 128 } else { 32 }
    }

    fn covers(&self, dst: u128, ipv6: bool) -> bool {
        let shift = u32::from(self.bits() - self.len);
        ipv6 == self.ipv6 && (dst ^ self.addr).checked_shr(shift).unwrap_or(0) == 0
    }

    fn line(&self) -> String {
        let addr = self.addr.checked_shr(u32::from(self.bits() - self.len)).unwrap_or(0);
        let addr = addr.checked_shl(u32::from(self.bits() - self.len)).unwrap_or(0);
        let prefix = if self.ipv6 {
            format!("{}/{}", std::net::Ipv6Addr::from_bits(addr), self.len)
        } else {
            format!("{}/{}", std::net::Ipv4Addr::from_bits(addr as u32), self.len)
        };
        match (self.gate, self.mac) {
            (None, _) => format!("blackhole {prefix}"),
            (Some(gate), None) => format!("{prefix} gate {gate}"),
            (Some(gate), Some(mac)) => format!("{prefix} gate {gate} mac 02:00:00:00:01:{mac:02x}"),
        }
    }
}

/// Addresses that share long prefixes, and some that share none.
fn address() -> impl Strategy<Value = u128> {
    (any::<u128>(), 0u32..7, any::<u16>()).prop_map(|(any, kind, low)| match kind {
        0 => any,
        1 | 2 => u128::from(low & 0x1ff) | u128::from(low >> 13) << 29,
        3 | 4 => u128::from(low & 0x1ff) << 16 | u128::from(low >> 13) << 29,
        _ => u128::from(low & 0x1ff) << 64 | u128::from(low >> 13) << 125,
    })
}

fn way() -> impl Strategy<Value = Way> {
    let gate = prop::option::weighted(0.8, prop::sample::select(vec![0u16, 1, 2, 7]));
    (any::<bool>(), address(), any::<u8>(), gate, any::<Option<u8>>()).prop_map(|(ipv6, addr, len, gate, mac)| {
        let (addr, bits) = if ipv6 { (addr, 128) } else { (u128::from(addr as u32), 32) };
        Way { ipv6, addr, len: len % (bits + 1), gate, mac }
    })
}

fn sent() -> impl Strategy<Value = Sent> {
    let ttl = prop_oneof![0u8..3, any::<u8>()];
    let spoiled = prop::option::weighted(0.1, 0u8..16);
    (0usize..3, address(), any::<bool>(), ttl, 0u8..=10, spoiled).prop_map(|(tags, dst, ipv6, ttl, words, spoiled)| {
        let dst = if ipv6 { dst } else { u128::from(dst as u32) };
        Sent { tags, dst, ipv6, ttl, option_words: words, spoiled }
    })
}

/// What a router that knows no cleverness does: scan all routes, sum the whole header.
fn naive(ways: &[Way], sent: &Sent, direction: u16) -> Fate {
    if !sent.ipv6 && sent.spoiled.is_some() {
        return Fate::Dropped("bad IPv4 header checksum");
    }
    let covering = ways.iter().filter(|way| way.covers(sent.dst, sent.ipv6));
    let Some(way) = covering.max_by_key(|way| way.len) else { return Fate::Dropped("no route") };
    let Some(gate) = way.gate else { return Fate::Dropped("discarded by a route") };
    if sent.ttl <= 1 {
        return Fate::Dropped("TTL expired");
    }
    let mut frame = Sent { ttl: sent.ttl - 1, ..sent.clone() }.frame();
    if let Some(mac) = way.mac {
        frame[..12].copy_from_slice(&[2, 0, 0, 0, 1, mac, 2, 0, 0, 0, 0, 0xfe]);
    }
    Fate::Out(2 * gate + direction, frame)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn a_naive_router_does_the_same(
        ways in prop::collection::vec(way(), 1..40),
        packets in prop::collection::vec(sent(), 1..100),
        direction in 0u16..2,
    ) {
        // One way a prefix.
        let mut once: Vec<Way> = Vec::new();
        for way in ways {
            if !once.iter().any(|other| other.len == way.len && other.covers(way.addr, way.ipv6)) {
                once.push(way);
            }
        }
        let routes = once.iter().map(|way| Value::Text(way.line())).collect();
        let args = Args::default().with("routes", Value::List(routes)).with("mac", Value::Text("02:00:00:00:00:fe".into()));
        let mut harness = harness(&args);
        let expected: Vec<Fate> = packets.iter().map(|sent| naive(&once, sent, direction)).collect();
        // One batch after another, and what each is dropped for in sum.
        let frames: Vec<_> = packets.iter().map(|sent| (1, sent.frame())).collect();
        let came = harness.send(direction, &frames);
        let mut out = came.into_iter().peekable();
        let mut drops = std::collections::BTreeMap::new();
        for (i, fate) in expected.into_iter().enumerate() {
            let is_there = out.peek().is_some_and(|(index, ..)| *index == i);
            let here = if is_there { out.next() } else { None };
            match fate {
                Fate::Dropped(reason) => {
                    *drops.entry(reason).or_insert(0) += 1;
                    prop_assert_eq!(here, None);
                }
                Fate::Out(gate, frame) => prop_assert_eq!(here, Some((i, gate, frame))),
            }
        }
        prop_assert_eq!(harness.drops(), drops);
        harness.end();
    }
}

//! NAT against a NAT of hash maps that does nothing but keep the rules, under random traffic.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};

use proptest::prelude::*;

use super::*;
use crate::Value;
use crate::shares::LEAST;
use crate::testing::engines::{Late, tests};
use crate::testing::{Fate, Harness, SECOND, START, craft, describe};

const FLAGS: [&str; 6] = ["S", "SA", "A", "FA", "R", "."];
const PORTS: (u16, u16) = (1024, 1055);
const BLOCK: u16 = 8;

/// An endpoint: 0 for UDP, 1 for TCP, 2 for ICMP queries.
type End = (usize, SocketAddr);

/// Who is inside: an endpoint in a VLAN, 0 for none.
type Inside = (End, u16);

#[derive(Clone, Debug)]
struct Mapped {
    external: SocketAddr,
    last: u64,
    tcp: Tcp,
    sent: HashMap<(IpAddr, u16), Sent>,
}

/// When a remote endpoint was last sent to, and what has become of that.
#[derive(Clone, Copy, Debug)]
struct Sent {
    last: u64,
    tcp: Tcp,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Tcp {
    Opening,
    /// By the outside.
    Answered,
    Established,
    /// By the inside.
    Ended,
    /// The outside says so.
    SaidToEnd,
}

impl Tcp {
    fn after(self, flags: &str, outside: bool) -> Tcp {
        let [syn, ack, end] = [flags.contains('S'), flags.contains('A'), flags.contains(['F', 'R'])];
        match (self, outside) {
            (_, false) if end => Tcp::Ended,
            (Tcp::Ended, false) if syn => Tcp::Opening,
            (Tcp::Opening, true) if ack && !end => Tcp::Answered,
            (Tcp::Answered, false) if ack && !syn => Tcp::Established,
            (Tcp::SaidToEnd, true) if syn && ack && !end => Tcp::Established,
            (Tcp::Established, true) if end => Tcp::SaidToEnd,
            (tcp, _) => tcp,
        }
    }

    fn is_over(self, kind: usize, last: u64, now: u64) -> bool {
        let tcp = if matches!(self, Tcp::Established | Tcp::SaidToEnd) { 7440 } else { 240 };
        now.saturating_sub(last) >= [300, tcp, 60][kind] * SECOND
    }
}

/// Who is counted: an address of IPv4, a /64 of IPv6, each in its VLAN.
fn host_of(((_, endpoint), vlan): Inside) -> (IpAddr, u16) {
    let address = match endpoint.ip() {
        address @ IpAddr::V4(_) => address,
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() & !u128::from(u64::MAX)).into()),
    };
    (address, vlan)
}

/// The rules.
struct Model {
    limit: usize,
    filtering: &'static str,
    pool: Vec<IpAddr>,
    now: u64,
    map: HashMap<Inside, Mapped>,
}

impl Model {
    fn expire(&mut self) {
        let now = self.now;
        self.map.retain(|((kind, _), _), m| !m.tcp.is_over(*kind, m.last, now));
    }

    fn remote(&self, remote: SocketAddr, kind: usize) -> (IpAddr, u16) {
        (remote.ip(), if self.filtering == "address_port" && kind < 2 { remote.port() } else { 0 })
    }

    fn block(external: SocketAddr) -> (IpAddr, u16) {
        (external.ip(), (external.port() - PORTS.0) / BLOCK)
    }

    /// Why this host may be refused a port, if it may.
    fn refused(&self, inside: Inside) -> Option<&'static str> {
        let own = self.map.iter().filter(|(e, _)| host_of(**e) == host_of(inside));
        let own: Vec<SocketAddr> = own.map(|(_, m)| m.external).collect();
        if self.limit > 0 && own.len() >= self.limit {
            return Some("host has as many ports as it may");
        }
        let own_blocks: HashSet<_> = own.iter().map(|e| Self::block(*e)).collect();
        if own.len() < own_blocks.len() * usize::from(BLOCK) {
            return None;
        }
        let used: HashSet<_> = self.map.values().map(|m| Self::block(m.external)).collect();
        let count = (PORTS.1 - PORTS.0 + 1) / BLOCK;
        let free = |address: &IpAddr| (0..count).any(|n| !used.contains(&(*address, n)));
        let there_is = match own.first() {
            Some(external) if external.is_ipv4() => free(&external.ip()),
            _ => self.pool.iter().any(free),
        };
        (!there_is).then_some("no port left")
    }

    /// Return whether a mapping goes when there is no room for another.
    fn may_make_room(&self) -> bool {
        self.map.values().any(|m| m.tcp == Tcp::SaidToEnd && self.now.saturating_sub(m.last) >= 240 * SECOND)
    }
}

fn line((kind, src): End, dst: SocketAddr, flags: &str, reply: bool) -> String {
    match kind {
        0 => format!("udp {src} > {dst} len 3"),
        1 => format!("tcp {src} > {dst} {flags}"),
        _ if reply => format!("icmp {} > {} reply {}", src.ip(), dst.ip(), dst.port()),
        _ => format!("icmp {} > {} echo {}", src.ip(), dst.ip(), src.port()),
    }
}

/// The same in a VLAN.
fn tagged(vlan: u16, line: String) -> String {
    if vlan == 0 { line } else { format!("tag 8100:{vlan} {{ {line} }}") }
}

#[derive(Clone, Debug)]
struct Event {
    kind: usize,
    vlan: u16,
    host: u16,
    port: u16,
    remote: u16,
    flags: usize,
    inbound: bool,
    wait: i64,
}

fn event() -> impl Strategy<Value = Event> {
    let wait = prop_oneof![8 => Just(0), 3 => 0..100i64, 1 => 100..9000i64, 1 => -50..0i64];
    let vlan = prop_oneof![4 => Just(0), 1 => 1..3u16];
    (0..3usize, vlan, 0..8u16, 0..14u16, 0..6u16, 0..6usize, prop::bool::weighted(0.4), wait).prop_map(
        |(kind, vlan, host, port, remote, flags, inbound, wait)| Event {
            kind,
            vlan,
            host,
            port,
            remote,
            flags,
            inbound,
            wait,
        },
    )
}

fn address(v6: bool, net: u16, host: u16) -> IpAddr {
    if v6 { IpAddr::from([0x2001, 0xdb8, net, 0, 0, 0, 0, host]) } else { IpAddr::from([10, net as u8, 0, host as u8]) }
}

fn check(events: &[Event], v6: bool, limit: usize, filtering: &'static str) {
    let pool: Vec<IpAddr> = (1..=3).map(|host| address(v6, 99, host)).collect();
    let args = Args::default()
        .with("pool", Value::AddressRange(pool[0], pool[2]))
        .with("ports", Value::Range(PORTS.0.into(), PORTS.1.into()))
        .with("block", Value::Integer(BLOCK.into()))
        .with("max_per_host", Value::Integer(limit as i64))
        .with("filtering", Value::Word(filtering.to_owned()));
    let mut harness = Harness::of(&DESCRIPTOR, &args);
    let before = harness.gauges();
    let mut model = Model { limit, filtering, pool, now: 0, map: HashMap::new() };
    // Whether the model knows which mappings there are.
    let (mut time, mut is_known) = (START, true);
    for event in events {
        // What is over is so for a hundredth of a second at least: by then it is forgotten.
        time = time.saturating_add_signed(event.wait * SECOND as i64) + SECOND / 100;
        // A packet that comes late is looked at in its own time; what was over before it came is forgotten.
        model.now = model.now.max(time);
        model.expire();
        harness.tick(model.now);
        let (now, latest) = (time, model.now);
        let (kind, flags) = (event.kind, FLAGS[event.flags]);
        let remote = SocketAddr::new(address(v6, 50, event.remote / 2), 80 + event.remote % 2);
        if event.inbound {
            let external = SocketAddr::new(
                *model.pool.get(usize::from(event.host) % 4).unwrap_or(&address(v6, 99, 4)),
                PORTS.0 - 1 + event.port,
            );
            let sent = tagged(event.vlan, line((kind, remote), external, flags, true));
            let allowed = model.remote(remote, kind);
            let fate = harness.send_one(1, time, &craft(&sent));
            let filtering = model.filtering;
            let found = model.map.iter_mut().find(|(((k, _), _), m)| *k == kind && m.external == external);
            let expected = match found {
                None => Err("no mapping"),
                Some(((_, vlan), _)) if *vlan != event.vlan => Err("VLAN that is not that of the mapping"),
                Some((_, m))
                    if filtering != "independent"
                        && m.sent
                            .get(&allowed)
                            .is_none_or(|session| session.tcp.is_over(kind, session.last, latest)) =>
                {
                    Err("filtered: nothing was sent there")
                }
                Some(((inside, vlan), m)) => {
                    if let Some(session) = m.sent.get_mut(&allowed) {
                        session.tcp = session.tcp.after(flags, true);
                    }
                    m.tcp = m.tcp.after(flags, true);
                    Ok(tagged(*vlan, line((kind, remote), inside.1, flags, true)))
                }
            };
            match (fate, expected) {
                (Fate::Out(1, bytes), Ok(line)) => assert_eq!(describe(&bytes), line),
                (Fate::Dropped(reason), Err(why)) => assert_eq!(reason, why, "{sent}"),
                (fate, expected) => panic!("{sent}: expected {expected:?}, got {fate:?}"),
            }
            continue;
        }
        // Two hosts of IPv6 have a subnet together.
        let end =
            (kind, SocketAddr::new(address(v6, if v6 { event.host / 2 } else { 0 }, event.host), 5000 + event.port));
        let (inside, vlan) = ((end, event.vlan), event.vlan);
        let sent = tagged(vlan, line(end, remote, flags, false));
        let fate = harness.send_one(0, time, &craft(&sent));
        let refused = if model.map.contains_key(&inside) { None } else { model.refused(inside) };
        let bytes = match (fate, refused) {
            (Fate::Out(0, bytes), None) => bytes,
            (Fate::Out(0, _), Some(_)) if model.may_make_room() => {
                // Which of these has gone, of several, is the table's own business.
                is_known = false;
                break;
            }
            (Fate::Dropped(reason), Some(why)) => {
                assert_eq!(reason, why, "{sent}");
                continue;
            }
            (Fate::Dropped("host has as many sessions as it may"), None) => {
                // How many of them are forgotten already is the table's own business.
                let is_own =
                    |other: &&Event| if v6 { other.host / 2 == event.host / 2 } else { other.host == event.host };
                let own =
                    events.iter().filter(|other| is_own(other) && !other.inbound && other.vlan == event.vlan).count();
                assert!(own > LEAST, "{sent}: refused after {own}");
                continue;
            }
            (fate, refused) => panic!("{sent}: expected refusal {refused:?}, got {fate:?}"),
        };
        let text = describe(&bytes);
        if !model.map.contains_key(&inside) {
            // Any external endpoint will do that is of the pool, unused, and on the host's address.
            let words: Vec<&str> = text.split(' ').skip(if vlan == 0 { 0 } else { 3 }).collect();
            let external = match kind {
                2 => SocketAddr::new(words[1].parse().unwrap(), words[5].parse().unwrap()),
                _ => words[1].parse().unwrap(),
            };
            assert!(model.pool.contains(&external.ip()) && (PORTS.0..=PORTS.1).contains(&external.port()));
            assert!(model.map.values().all(|m| m.external != external), "{external} serves two");
            let same_host = |other: &Inside| host_of(*other) == host_of(inside);
            for (other, mapped) in &model.map {
                let is_paired = v6 || mapped.external.ip() == external.ip();
                assert!(!same_host(other) || is_paired, "a host on two addresses");
                let shared = Model::block(mapped.external) == Model::block(external);
                assert!(!shared || same_host(other), "a block of two hosts");
            }
            let mapped = Mapped { external, last: now, tcp: Tcp::Opening, sent: HashMap::new() };
            model.map.insert(inside, mapped);
        }
        let remembered = model.remote(remote, kind);
        let mapped = model.map.get_mut(&inside).unwrap();
        mapped.last = mapped.last.max(now);
        mapped.tcp = mapped.tcp.after(flags, false);
        let session = mapped.sent.entry(remembered).or_insert(Sent { last: now, tcp: Tcp::Opening });
        if session.tcp.is_over(kind, session.last, latest) {
            *session = Sent { last: now, tcp: Tcp::Opening };
        }
        *session = Sent { last: session.last.max(now), tcp: session.tcp.after(flags, false) };
        assert_eq!(text, tagged(vlan, line((kind, mapped.external), remote, flags, false)));
    }
    model.expire();
    harness.tick(model.now);
    if is_known {
        assert_eq!(harness.gauges()["mappings"], model.map.len() as u64);
    }
    // All is given back in the end.
    harness.tick(model.now + 8000 * SECOND);
    let after = harness.gauges();
    for gauge in ["mappings", "hosts", "free blocks"] {
        assert_eq!(after[gauge], before[gauge], "{gauge}");
    }
    harness.end();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn keeps_the_rules(
        events in prop::collection::vec(event(), 1..400),
        v6: bool,
        limit in prop_oneof![Just(0), 1..12usize],
        filtering in prop::sample::select(vec!["independent", "address", "address_port"]),
    ) {
        check(&events, v6, limit, filtering);
    }

    #[test]
    fn hostile_bytes_end_in_counted_drops(
        frames in prop::collection::vec((0..5usize, prop::collection::vec((0..90usize, any::<u8>()), 0..4), 14..100usize, 0..2u16), 1..100),
    ) {
        let lines = [
            "icmp 10.0.0.1 > 192.0.2.9 unreachable { udp 192.0.2.9:53 > 10.0.0.1:4000 len 40 }",
            "tcp 10.0.0.1:4000 > 198.51.100.1:1024 S len 9",
            "udp 10.0.0.1:4000 > 192.0.2.9:53 len 16 id 5 first",
            "udp [2001:db8::1]:4000 > [2001:db8::2]:53 len 16 id 5 first",
            "icmp 2001:db8:99::1 > 2001:db8::2 unreachable { udp [2001:db8::2]:53 > [2001:db8::1]:4000 len 4 }",
        ];
        let pool = ["198.51.100.0", "2001:db8:99::"].map(|a| Value::Prefix(a.parse().unwrap(), if a.contains(':') { 126 } else { 30 }));
        let mut harness = Harness::of(&DESCRIPTOR, &Args::default().with("pool", Value::List(pool.into())));
        let mut out = 0;
        let count = frames.len();
        for (which, changes, length, gate) in frames {
            let mut frame = craft(lines[which]);
            for (place, byte) in changes {
                if let Some(slot) = frame.get_mut(place) {
                    *slot = byte;
                }
            }
            frame.truncate(length);
            out += harness.send(gate, &[(START, frame)]).len();
        }
        prop_assert_eq!(count as u64, out as u64 + harness.drops().values().sum::<u64>());
        harness.end();
    }
}

pub(super) const LATE: Late = Late {
    source: include_str!("model_tests.rs"),
    quick: &[],
    slow: tests![keeps_the_rules, hostile_bytes_end_in_counted_drops,],
    apart: &[],
};

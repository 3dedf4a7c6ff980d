//! NAT under attack: what one host, one packet or one flood can do to the others.

use super::*;
use crate::Value;
use crate::testing::engines::{Late, tests};
use crate::testing::{Fate, Harness, SECOND, START, craft, describe};

fn args(pool: &str, length: u8) -> Args {
    Args::default().with("pool", Value::Prefix(pool.parse().unwrap(), length))
}

fn seconds(n: u64) -> Value {
    Value::Duration(n * SECOND)
}

/// Send one packet at a time in s.
fn send(harness: &mut Harness, gate: u16, time: u64, line: &str) -> Fate {
    harness.send_one(gate, START + time * SECOND, &craft(line))
}

/// Return the external source that a packet left with.
fn left_as(fate: &Fate) -> String {
    let Fate::Out(0, bytes) = fate else { panic!("expected a packet outside, got {fate:?}") };
    describe(bytes).split(' ').nth(1).expect("a packet has a source").to_owned()
}

#[test]
fn blocks_come_back_however_often_they_are_lent() {
    // 64,512 ports in blocks of 64: all of them twelve times over, a second after each other.
    let args = args("198.51.100.1", 32).with("udp_timeout", seconds(1));
    let mut harness = Harness::of(&DESCRIPTOR, &args);
    let free = harness.gauges()["free blocks"];
    for time in 0..12 {
        for host in 0..1000 {
            let line = format!("udp 10.0.{}.{}:4000 > 192.0.2.9:53", host / 250, host % 250);
            let fate = send(&mut harness, 0, 2 * time, &line);
            assert!(matches!(fate, Fate::Out(0, _)), "host {host}, second {time}: {fate:?}");
        }
        harness.tick(START + (2 * time + 1) * SECOND);
    }
    harness.tick(START + 100 * SECOND);
    assert_eq!((harness.gauges()["mappings"], harness.gauges()["free blocks"]), (0, free));
}

/// What NAT may do with a packet by its addresses alone.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Reach {
    /// Its source becomes an external address.
    Translated,
    /// It stays on its link, and passes as it is.
    Link,
    Never,
}

/// Send a packet between two addresses through both gates, and hold that NAT does with it what it should.
fn reaches(harness: &mut Harness, from: &str, to: &str, expected: Reach) {
    let bracket = |address: &str| if address.contains(':') { format!("[{address}]") } else { address.to_owned() };
    let frame = craft(&format!("udp {}:5 > {}:5", bracket(from), bracket(to)));
    let never = Fate::Dropped("source or destination that must not leave its link");
    for gate in [0, 1] {
        let fate = harness.send_one(gate, START, &frame);
        let what = match &fate {
            Fate::Out(to, bytes) if *to == gate && *bytes == frame => Reach::Link,
            Fate::Out(0, _) if gate == 0 => Reach::Translated,
            // From outside only a mapping lets in what is to be translated.
            Fate::Dropped("no mapping") if gate == 1 => Reach::Translated,
            fate if *fate == never => Reach::Never,
            fate => panic!("{from} > {to}, gate {gate}: {fate:?}"),
        };
        assert_eq!(what, expected, "{from} > {to}, gate {gate}");
    }
}

#[test]
fn only_the_link_keeps_what_is_its_own() {
    let links = ["fe80::1", "febf::1", "::", "2001:db8:1::1"];
    let nowhere = ["::1", "ff02::1", "ff0e::9"];
    let mut harness = Harness::of(&DESCRIPTOR, &args("2001:db8:99::", 126));
    // Neighbour discovery (also from global sources: RFC 4861 §7.2.2) and multicast DNS stay on their link.
    for to in ["fe80::2", "ff02::1", "ff02::fb", "ff12::1234", "ff01::1"] {
        links.iter().for_each(|from| reaches(&mut harness, from, to, Reach::Link));
        nowhere.iter().for_each(|from| reaches(&mut harness, from, to, Reach::Never));
    }
    // RFC 4291 §2.5.6: what has a link-local source is never forwarded.
    for to in ["2001:db8:1::10", "ff0e::1", "ff05::2"] {
        ["fe80::666", "::"].iter().for_each(|from| reaches(&mut harness, from, to, Reach::Never));
        nowhere.iter().for_each(|from| reaches(&mut harness, from, to, Reach::Never));
        ["2001:db8:1::1", "fd00::1", "fec0::1"]
            .iter()
            .for_each(|from| reaches(&mut harness, from, to, Reach::Translated));
    }
    for to in ["::", "::1"] {
        ["fe80::1", "::", "::1", "2001:db8:1::1"].iter().for_each(|from| reaches(&mut harness, from, to, Reach::Never));
    }
    reaches(&mut harness, "fe80::666", "2001:db8:99::1", Reach::Never);
    harness.end();

    let nowhere = ["127.0.0.1", "224.0.0.9", "239.1.1.1", "240.0.0.1", "255.255.255.255"];
    let mut harness = Harness::of(&DESCRIPTOR, &args("198.51.100.0", 30));
    // DHCP, routers' hellos and multicast DNS; RFC 3927 §2.6.2 lets any source send to link-local addresses.
    for to in ["169.254.1.2", "255.255.255.255", "224.0.0.251"] {
        ["0.0.0.0", "169.254.1.1", "10.0.0.1"].iter().for_each(|from| reaches(&mut harness, from, to, Reach::Link));
        nowhere.iter().for_each(|from| reaches(&mut harness, from, to, Reach::Never));
    }
    for to in ["192.0.2.9", "224.0.1.1", "239.1.1.1"] {
        ["0.0.0.0", "169.254.1.1"].iter().for_each(|from| reaches(&mut harness, from, to, Reach::Never));
        nowhere.iter().for_each(|from| reaches(&mut harness, from, to, Reach::Never));
        reaches(&mut harness, "10.0.0.1", to, Reach::Translated);
    }
    for to in ["127.0.0.1", "0.0.0.0", "0.1.2.3"] {
        ["0.0.0.0", "127.0.0.1", "169.254.1.1", "10.0.0.1"]
            .iter()
            .for_each(|from| reaches(&mut harness, from, to, Reach::Never));
    }
    harness.end();
}

#[test]
fn one_host_cannot_silence_a_filtering_nat() {
    let args = args("198.51.100.1", 32).with("filtering", Value::Word("address_port".into()));
    let mut harness = Harness::of(&DESCRIPTOR, &args);
    let mut refused = 0;
    for i in 0..270_000u32 {
        let fate = send(
            &mut harness,
            0,
            0,
            &format!("udp 10.0.0.66:666 > 192.{}.{}.9:{}", i >> 8 & 127, i & 255, 1 + (i >> 15)),
        );
        refused += match fate {
            Fate::Dropped("host has as many sessions as it may") => 1,
            Fate::Out(0, _) => 0,
            other => panic!("{other:?}"),
        };
    }
    assert!(refused > 250_000, "its share is a small part, and what is refused is counted: {refused}");
    for host in 1..60 {
        let source = left_as(&send(&mut harness, 0, 1, &format!("udp 10.0.0.{host}:4000 > 192.0.2.9:53")));
        let answer = send(&mut harness, 1, 1, &format!("udp 192.0.2.9:53 > {source}"));
        assert!(matches!(answer, Fate::Out(1, _)), "host {host}: {answer:?}");
    }
    // UDP is forgotten by its own timeout: five minutes later the same host starts afresh.
    harness.tick(START + 302 * SECOND);
    for _ in 0..400 {
        harness.tick(START + 302 * SECOND);
    }
    assert!(matches!(send(&mut harness, 0, 302, "udp 10.0.0.66:666 > 203.0.113.1:1"), Fate::Out(0, _)));
    harness.end();
}

#[test]
fn timeouts_of_one_protocol_are_not_those_of_another() {
    let args =
        args("198.51.100.1", 32).with("filtering", Value::Word("address".into())).with("tcp_timeout", seconds(1));
    let mut harness = Harness::of(&DESCRIPTOR, &args);
    let source = left_as(&send(&mut harness, 0, 0, "udp 10.0.0.1:4000 > 192.0.2.9:53"));
    harness.tick(START + 100 * SECOND);
    let answer = send(&mut harness, 1, 100, &format!("udp 192.0.2.9:53 > {source}"));
    assert!(matches!(answer, Fate::Out(1, _)), "{answer:?}");
    harness.end();
}

#[test]
fn fragments_of_one_host_leave_room_for_others() {
    let mut harness = Harness::of(&DESCRIPTOR, &args("198.51.100.0", 30));
    for id in 0..20_000 {
        let first = format!("udp 10.0.0.66:666 > 192.0.2.9:53 len 16 id {} first", id % 65_536);
        assert!(matches!(send(&mut harness, 0, 0, &first), Fate::Out(0, _)));
    }
    for host in 1..60 {
        let first = format!("udp 10.0.0.{host}:4000 > 192.0.2.9:53 len 16 id 5 first");
        assert!(matches!(send(&mut harness, 0, 1, &first), Fate::Out(0, _)));
        let later = format!("ip 10.0.0.{host} > 192.0.2.9 proto 17 id 5 later 24 len 8");
        let fate = send(&mut harness, 0, 1, &later);
        assert!(matches!(fate, Fate::Out(0, _)), "host {host}: {fate:?}");
    }
    harness.end();
}

#[test]
fn after_a_jump_of_time_nothing_is_refused_for_what_is_over() {
    // Every port taken; two and a half hours later all are over, and no tick came between.
    let args = args("198.51.100.1", 32).with("ports", Value::Range(1024, 5119));
    let mut harness = Harness::of(&DESCRIPTOR, &args);
    for host in 0..64 {
        assert!(matches!(send(&mut harness, 0, 0, &format!("udp 10.0.0.{host}:4000 > 192.0.2.9:53")), Fate::Out(0, _)));
    }
    assert_eq!(send(&mut harness, 0, 0, "udp 10.0.1.1:4000 > 192.0.2.9:53"), Fate::Dropped("no port left"));
    for host in 0..64 {
        let fate = send(&mut harness, 0, 9000, &format!("udp 10.0.2.{host}:4000 > 192.0.2.9:53"));
        assert!(matches!(fate, Fate::Out(0, _)), "host {host}: {fate:?}");
    }
    harness.end();
}

/// One TCP connection of a host: by turns a gate, the flags, and whether it must pass. Returns the external source.
fn connect(harness: &mut Harness, time: u64, inside: &str, remote: &str, segments: &[(u16, &str)]) -> String {
    let mut external = String::new();
    for (gate, flags) in segments {
        let line = match gate {
            0 => format!("tcp {inside} > {remote} {flags}"),
            _ => format!("tcp {remote} > {external} {flags}"),
        };
        let fate = harness.send_one(*gate, time, &craft(&line));
        assert!(
            matches!(&fate, Fate::Out(to, _) if to == gate),
            "{line}, after {} s: {fate:?}",
            (time - START) / SECOND
        );
        if *gate == 0 {
            external = left_as(&fate);
        }
    }
    external
}

const OPEN: [(u16, &str); 3] = [(0, "S"), (1, "SA"), (0, "A")];
const FIN_BOTH_WAYS: [(u16, &str); 4] = [(0, "FA"), (1, "A"), (1, "FA"), (0, "A")];
const SERVER_CLOSES: [(u16, &str); 4] = [(1, "FA"), (0, "A"), (0, "FA"), (1, "A")];

#[test]
fn no_host_is_refused_for_connections_that_are_over() {
    // Three connections a second for an hour: 10,800, of which a host may have 8,064 sessions or 1,000 ports at a time.
    let filtered = args("198.51.100.1", 32).with("filtering", Value::Word("address_port".into()));
    let limited = args("198.51.100.1", 32).with("max_per_host", Value::Integer(1000));
    for (args, end) in [&FIN_BOTH_WAYS[..], &SERVER_CLOSES, &[(0, "R")], &[(1, "R")]]
        .into_iter()
        .flat_map(|end| [(&filtered, end), (&limited, end)])
    {
        let mut harness = Harness::of(&DESCRIPTOR, args);
        let segments = [&OPEN, end].concat();
        for i in 0..10_800u32 {
            let mut time = START + u64::from(i) * SECOND / 3;
            harness.tick(time);
            let inside = format!("10.0.0.1:{}", 1024 + i);
            if end[0] == (1, "R") {
                // A packet pays for looking at 512 entries only: a SYN may have to be sent again.
                let fate = harness.send_one(0, time, &craft(&format!("tcp {inside} > 192.0.2.9:443 S")));
                if matches!(fate, Fate::Dropped(_)) {
                    time += SECOND;
                }
            }
            connect(&mut harness, time, &inside, "192.0.2.9:443", &segments);
        }
        // What only the outside has ended is kept while there is room.
        let most = if end[0] != (1, "R") { 3 * 240 + 64 } else { 10_800 };
        assert!(harness.gauges()["mappings"] <= most, "{end:?}: {}", harness.gauges()["mappings"]);
        harness.end();
    }
}

#[test]
fn sessions_end_with_their_mapping() {
    let args = args("198.51.100.1", 32).with("filtering", Value::Word("address_port".into()));
    let mut harness = Harness::of(&DESCRIPTOR, &args);
    // From each of 180 ports a host talks to 60 servers; the end of one connection ends the mapping 240 s later.
    for port in 0..180 {
        let time = START + port * 40 * SECOND;
        harness.tick(time);
        let inside = format!("10.0.0.1:{}", 2000 + port);
        for server in 1..=60 {
            connect(&mut harness, time, &inside, &format!("192.0.2.{server}:443"), &OPEN);
        }
        connect(&mut harness, time, &inside, "192.0.2.60:443", &FIN_BOTH_WAYS);
    }
    harness.end();
    // Without a tick between, what is over is found when it is in the way.
    let mut harness = Harness::of(&DESCRIPTOR, &args);
    let fill = |harness: &mut Harness, time: u64| {
        for i in 0..8064 {
            let remote = format!("192.0.{}.{}:443", i / 250, i % 250);
            connect(harness, time, "10.0.0.1:2000", &remote, &OPEN);
        }
    };
    fill(&mut harness, START);
    let refused = send(&mut harness, 0, 1, "tcp 10.0.0.1:2000 > 198.18.0.1:443 S");
    assert_eq!(refused, Fate::Dropped("host has as many sessions as it may"));
    send(&mut harness, 0, 1, "tcp 10.0.0.1:2000 > 192.0.0.1:443 FA");
    // The mapping is over; sweeping for others finds it.
    for i in 0..600u64 {
        send(&mut harness, 0, 300 + i / 100, &format!("tcp 10.0.0.1:3000 > 198.18.{}.{}:443 S", i / 250, i % 250));
    }
    connect(&mut harness, START + 310 * SECOND, "10.0.0.1:3001", "203.0.113.1:443", &OPEN);
    harness.end();
}

#[test]
fn a_forged_end_ends_nothing_that_lives() {
    for filtering in ["independent", "address", "address_port"] {
        for flags in ["R", "RA", "FA"] {
            let args = args("198.51.100.1", 32)
                .with("filtering", Value::Word(filtering.into()))
                .with("ports", Value::Range(1024, 1087))
                .with("block", Value::Integer(1));
            let mut harness = Harness::of(&DESCRIPTOR, &args);
            let external = connect(&mut harness, START, "10.0.0.1:4000", "192.0.2.9:443", &OPEN);
            // With filters, who forges knows the server's address and port.
            let forger = if filtering == "independent" { "203.0.113.66:1" } else { "192.0.2.9:443" };
            for (time, times) in [(0, 3), (100, 3), (6000, 3)] {
                for _ in 0..times {
                    let fate = send(&mut harness, 1, time, &format!("tcp {forger} > {external} {flags}"));
                    assert!(matches!(fate, Fate::Out(1, _)), "{fate:?}");
                }
                harness.tick(START + time * SECOND);
            }
            // For two hours the server finds its client.
            harness.tick(START + 7400 * SECOND);
            let answer = send(&mut harness, 1, 7400, &format!("tcp 192.0.2.9:443 > {external} A"));
            assert!(matches!(answer, Fate::Out(1, _)), "{filtering}, {flags}: {answer:?}");
            // What the outside has ended goes when there is no room, but only after four minutes of silence.
            let now = 7400;
            send(&mut harness, 0, now, "tcp 10.0.0.1:4000 > 192.0.2.9:443 A");
            send(&mut harness, 1, now, &format!("tcp {forger} > {external} {flags}"));
            for host in 2..65 {
                connect(&mut harness, START + now * SECOND, &format!("10.0.0.{host}:4000"), "192.0.2.9:443", &OPEN);
            }
            let late = "tcp 10.0.1.1:4000 > 192.0.2.9:443 S";
            assert_eq!(send(&mut harness, 0, now + 239, late), Fate::Dropped("as many mappings as there may be"));
            let left = left_as(&send(&mut harness, 0, now + 241, late));
            assert_eq!(left, external, "the only port whose connection may be over");
            harness.end();
        }
    }
}

#[test]
fn one_host_at_its_limit_takes_no_ports_from_others() {
    let args = args("198.51.100.1", 32).with("max_per_host", Value::Integer(1));
    let mut harness = Harness::of(&DESCRIPTOR, &args);
    let other = connect(&mut harness, START, "10.0.0.1:4000", "192.0.2.9:443", &OPEN);
    connect(&mut harness, START, "10.0.0.2:4000", "192.0.2.9:443", &OPEN);
    // Somebody outside says that both are over.
    send(&mut harness, 1, 0, &format!("tcp 203.0.113.66:1 > {other} R"));
    assert_eq!(
        send(&mut harness, 0, 0, "udp 10.0.0.2:9 > 192.0.2.9:53"),
        Fate::Dropped("host has as many ports as it may")
    );
    for time in 300..400 {
        send(&mut harness, 0, time, "udp 10.0.0.2:9 > 192.0.2.9:53");
    }
    let answer = send(&mut harness, 1, 400, &format!("tcp 192.0.2.9:443 > {other} A"));
    assert!(matches!(answer, Fate::Out(1, _)), "{answer:?}");
    harness.end();
}

#[test]
fn an_answer_that_refuses_establishes_nothing() {
    let args = args("198.51.100.1", 32).with("filtering", Value::Word("address_port".into()));
    for (flags, error) in [("RA", false), ("F", false), ("", true)] {
        let mut harness = Harness::of(&DESCRIPTOR, &args);
        let external = left_as(&send(&mut harness, 0, 0, "tcp 10.0.0.1:4000 > 192.0.2.9:443 S"));
        let answer = match error {
            true => format!("icmp 192.0.2.254 > 198.51.100.1 unreachable {{ tcp {external} > 192.0.2.9:443 }}"),
            false => format!("tcp 192.0.2.9:443 > {external} {flags}"),
        };
        assert!(matches!(send(&mut harness, 1, 1, &answer), Fate::Out(1, _)), "{answer}");
        harness.tick(START + 241 * SECOND);
        assert_eq!(harness.gauges()["mappings"], 0, "{answer}");
        harness.end();
    }
}

#[test]
fn a_subnet_of_ipv6_is_one_host() {
    // 64,512 ports in 1,008 blocks. One machine sends from 2,000 addresses of its /64.
    let pool = args("2001:db8:99::", 64).with("pool", Value::Address("2001:db8:99::1".parse().unwrap()));
    let flood = |harness: &mut Harness, rest: &str| {
        let mut passed = 0;
        for i in 0..2000 {
            passed += match send(harness, 0, 0, &format!("udp [2001:db8:1::{i:x}]:4000 > [2001:db8:9::1]:53{rest}")) {
                Fate::Out(0, _) => 1,
                Fate::Dropped("host has as many ports as it may" | "host has as many sessions as it may") => 0,
                fate => panic!("{fate:?}"),
            };
        }
        passed
    };
    let mut harness = Harness::of(&DESCRIPTOR, &pool);
    assert_eq!(flood(&mut harness, ""), 2000);
    assert_eq!(harness.gauges()["free blocks"], 1008 - 2000_u64.div_ceil(64));
    assert_eq!(harness.gauges()["hosts"], 1);
    harness.end();
    let mut harness = Harness::of(&DESCRIPTOR, &pool.clone().with("max_per_host", Value::Integer(100)));
    assert_eq!(flood(&mut harness, ""), 100);
    assert!(matches!(send(&mut harness, 0, 0, "udp [2001:db8:2::1]:4 > [2001:db8:9::1]:53"), Fate::Out(0, _)));
    harness.end();
    // Its share of the sessions, with room for 4 x 2,000, is 250.
    let few = pool.clone().with("max_mappings", Value::Integer(2000)).with("filtering", Value::Word("address".into()));
    let mut harness = Harness::of(&DESCRIPTOR, &few);
    assert_eq!(flood(&mut harness, ""), 250);
    harness.end();
    // Its share of the datagrams that later fragments are awaited of is 256 of 8,192.
    let mut harness = Harness::of(&DESCRIPTOR, &pool);
    flood(&mut harness, " len 120 id 5 first");
    let followed = (0..2000).filter(|i| {
        let line = format!("ip 2001:db8:1::{i:x} > 2001:db8:9::1 proto 17 len 8 id 5 later 128");
        matches!(send(&mut harness, 0, 0, &line), Fate::Out(0, _))
    });
    assert_eq!(followed.count(), 256);
    harness.end();
}

#[test]
fn a_large_subnet_of_ipv6_may_use_several_external_addresses() {
    let pool = args("2001:db8:99::", 126).with("ports", Value::Range(1024, 1087)).with("block", Value::Integer(16));
    let mut harness = Harness::of(&DESCRIPTOR, &pool);
    // Three addresses of 64 ports each, less that of a neighbour.
    let neighbour = left_as(&send(&mut harness, 0, 0, "udp [2001:db8:2::1]:4 > [2001:db8:9::1]:53"));
    let mut used = std::collections::HashSet::from([neighbour]);
    for i in 0..3 * 64 - 16 {
        let fate = send(&mut harness, 0, 0, &format!("udp [2001:db8:1::{i:x}]:4 > [2001:db8:9::1]:53"));
        assert!(used.insert(left_as(&fate)), "{fate:?}");
    }
    let fate = send(&mut harness, 0, 0, "udp [2001:db8:1::1]:5 > [2001:db8:9::1]:53");
    assert_eq!(fate, Fate::Dropped("no port left"));
    harness.tick(START + 400 * SECOND);
    assert_eq!((harness.gauges()["hosts"], harness.gauges()["free blocks"]), (0, 12));
    harness.end();
}

#[test]
fn a_stranger_establishes_nothing() {
    // Hosts send SYNs that nobody answers; a stranger sends segments to every port, and the hosts refuse them.
    for filtering in ["independent", "address_port"] {
        let args = args("198.51.100.1", 32).with("filtering", Value::Word(filtering.into()));
        let mut harness = Harness::of(&DESCRIPTOR, &args);
        let stranger = if filtering == "independent" { "203.0.113.66:1" } else { "192.0.2.9:443" };
        for (port, flags, reply) in [(4000, "SA", ""), (4001, "A", ""), (4002, "SA", "R"), (4003, "A", "RA")] {
            let external = left_as(&send(&mut harness, 0, 0, &format!("tcp 10.0.0.1:{port} > 192.0.2.9:443 S")));
            let fate = send(&mut harness, 1, 0, &format!("tcp {stranger} > {external} {flags}"));
            assert!(matches!(fate, Fate::Out(1, _)), "{fate:?}");
            if !reply.is_empty() {
                send(&mut harness, 0, 0, &format!("tcp 10.0.0.1:{port} > {stranger} {reply}"));
            }
        }
        harness.tick(START + 241 * SECOND);
        assert_eq!(harness.gauges()["mappings"], 0, "{filtering}");
        harness.end();
    }
}

#[test]
fn fragments_that_are_over_are_found_before_others_are_lost() {
    let mut harness = Harness::of(&DESCRIPTOR, &args("198.51.100.0", 30));
    // One host's, and those of thirty others half a minute later; then the first host's are over, but nothing was idle.
    for (time, hosts) in [(0, 1..2), (25, 2..32), (31, 1..2)] {
        for (host, id) in hosts.flat_map(|host| (0..256).map(move |id| (host, id))) {
            let first = format!("udp 10.0.0.{host}:666 > 192.0.2.9:53 len 16 id {} first", 1000 * time + id);
            assert!(matches!(send(&mut harness, 0, time, &first), Fate::Out(0, _)));
        }
    }
    let later = |id: u64| format!("ip 10.0.0.1 > 192.0.2.9 proto 17 id {id} later 24 len 8");
    let followed = (31_000..31_256).filter(|id| matches!(send(&mut harness, 0, 31, &later(*id)), Fate::Out(0, _)));
    assert!(followed.count() > 250);
    harness.end();
}

/// A host that has its part, 256 datagrams, sends a first fragment again: the later ones follow the younger one.
#[test]
fn a_datagram_that_comes_again_takes_no_more_room() {
    let mut harness = Harness::of(&DESCRIPTOR, &args("198.51.100.0", 30));
    let identification = |fate| match fate {
        Fate::Out(_, frame) => frame[18..20].to_vec(),
        Fate::Dropped(why) => panic!("{why}"),
    };
    let first = |id: u64| format!("udp 10.0.0.1:666 > 192.0.2.9:53 len 16 id {id} first");
    let later = |id: u64| format!("ip 10.0.0.1 > 192.0.2.9 proto 17 id {id} later 24 len 8");
    (0..300).for_each(|id| _ = send(&mut harness, 0, 0, &first(id)));
    assert!(matches!(send(&mut harness, 0, 0, &later(299)), Fate::Dropped(_)));
    let again = identification(send(&mut harness, 0, 0, &first(7)));
    assert_eq!(identification(send(&mut harness, 0, 0, &later(7))), again);
    harness.end();
}

pub(super) const LATE: Late = Late {
    source: include_str!("hostile_tests.rs"),
    quick: tests![
        only_the_link_keeps_what_is_its_own,
        timeouts_of_one_protocol_are_not_those_of_another,
        after_a_jump_of_time_nothing_is_refused_for_what_is_over,
        one_host_at_its_limit_takes_no_ports_from_others,
        an_answer_that_refuses_establishes_nothing,
        a_large_subnet_of_ipv6_may_use_several_external_addresses,
        a_stranger_establishes_nothing,
        a_forged_end_ends_nothing_that_lives,
    ],
    slow: tests![
        blocks_come_back_however_often_they_are_lent,
        fragments_of_one_host_leave_room_for_others,
        sessions_end_with_their_mapping,
        a_subnet_of_ipv6_is_one_host,
        fragments_that_are_over_are_found_before_others_are_lost,
        a_datagram_that_comes_again_takes_no_more_room,
    ],
    apart: &[
        // Seconds each; of waiting they have nothing that others have not.
        "one_host_cannot_silence_a_filtering_nat",
        "no_host_is_refused_for_connections_that_are_over",
    ],
};

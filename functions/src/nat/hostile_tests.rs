//! NAT under attack: what one host, one packet or one flood can do to the others.

use super::*;
use crate::Value;
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

#[test]
fn only_the_link_keeps_what_is_its_own() {
    let mut harness = Harness::of(&DESCRIPTOR, &args("2001:db8:99::", 126));
    let unroutable = Fate::Dropped("source that must not leave its link");
    let passes = |fate: Fate, gate| assert!(matches!(&fate, Fate::Out(to, _) if *to == gate), "{fate:?}");
    // Neighbour discovery and multicast DNS stay on their link: they are not for NAT.
    for to in ["fe80::2", "ff02::1", "ff02::fb", "ff12::1234", "ff01::1"] {
        passes(send(&mut harness, 0, 0, &format!("udp [fe80::1]:546 > [{to}]:547")), 0);
        passes(send(&mut harness, 1, 0, &format!("udp [fe80::1]:546 > [{to}]:547")), 1);
    }
    // RFC 4291, section 2.5.6: what has a link-local source is never forwarded.
    for to in ["2001:db8:1::10", "ff0e::1", "ff05::2", "2001:db8:99::1"] {
        for gate in [0, 1] {
            for from in ["fe80::666", "::", "::1", "ff0e::9"] {
                assert_eq!(
                    send(&mut harness, gate, 0, &format!("udp [{from}]:5 > [{to}]:5")),
                    unroutable,
                    "{from} > {to}"
                );
            }
        }
    }
    // A private source leaves by an external address, to groups too.
    for to in ["2001:db8:1::10", "ff0e::1"] {
        let source = left_as(&send(&mut harness, 0, 0, &format!("udp [fd00::1]:5 > [{to}]:5")));
        assert!(source.starts_with("[2001:db8:99::"), "{source}");
    }
    let drops = harness.drops().values().sum::<u64>();
    assert_eq!(drops, 4 * 2 * 4);
    harness.end();
    let mut harness = Harness::of(&DESCRIPTOR, &args("198.51.100.0", 30));
    for from in ["169.254.1.1", "127.0.0.1", "0.0.0.0", "224.0.0.9", "255.255.255.255"] {
        for gate in [0, 1] {
            assert_eq!(send(&mut harness, gate, 0, &format!("udp {from}:5 > 192.0.2.9:5")), unroutable, "{from}");
        }
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

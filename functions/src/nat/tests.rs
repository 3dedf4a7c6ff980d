//! NAT against golden scripts, and what its configuration refuses.

use super::*;
use crate::Value;
use crate::testing::engines::{Late, on_team, tests};
use crate::testing::{Fate, Harness, SECOND, START, build, craft, describe, golden};
use catena_state::Share;

fn prefix(text: &str, length: u8) -> Value {
    Value::Prefix(text.parse().unwrap(), length)
}

#[test]
fn golden_scripts() {
    let args = Args::default().with("pool", prefix("198.51.100.0", 30));
    let mut harness = Harness::of(&DESCRIPTOR, &args);
    golden(&mut harness, include_str!("golden.txt"));
    harness.end();
    let pool = Value::List(vec![prefix("2001:db8:99::", 64), prefix("198.51.100.7", 32)]);
    let mut harness = Harness::of(&DESCRIPTOR, &Args::default().with("pool", pool));
    golden(&mut harness, include_str!("golden6.txt"));
    harness.end();
    let limited = args.with("max_per_host", Value::Integer(2)).with("filtering", Value::Word("address".into()));
    let limited = limited.with("ports", Value::Range(2000, 2007)).with("block", Value::Integer(4));
    let mut harness = Harness::of(&DESCRIPTOR, &limited.with("pool", prefix("198.51.100.7", 32)));
    golden(&mut harness, include_str!("limits.txt"));
    harness.end();
}

#[test]
fn instances_have_their_own_blocks() {
    let args = Args::default().with("pool", prefix("198.51.100.0", 31)).with("block", Value::Integer(16));
    for index in 0..3 {
        let mut harness = Harness::new(build(&DESCRIPTOR, &args, Share { index, count: 3 }).unwrap(), 2);
        for host in 1..100 {
            let frame = craft(&format!("udp 10.0.0.{host}:4000 > 192.0.2.9:53"));
            let Fate::Out(0, bytes) = harness.send_one(0, START, &frame) else { panic!("host {host} is refused") };
            let line = describe(&bytes);
            let source = line.split(' ').nth(1).unwrap();
            let port: u32 = source.split(':').nth(1).unwrap().parse().unwrap();
            assert_eq!((port - 1024) / 16 % 3, index);
        }
        harness.end();
    }
}

/// What comes back to a port goes to the worker whose block it is of, so each takes ports of its own blocks, also where all ports are
/// one object.
#[test]
fn workers_with_one_object_take_ports_of_their_own_blocks() {
    let args = Args::default().with("pool", prefix("198.51.100.0", 31)).with("block", Value::Integer(16));
    on_team(|| {
        let mut harness = Harness::of_both(&DESCRIPTOR, &args);
        for (host, worker) in (1..100).flat_map(|host| [(host, 0), (host, 1)]) {
            let frame = craft(&format!("udp 10.0.{}.{}:{} > 192.0.2.9:53", host / 3, host % 3 + 1, 4000 + worker));
            let Fate::Out(gate, bytes) = harness.send_one(2 * worker, START, &frame) else {
                panic!("host {host} is refused")
            };
            assert_eq!(gate, 2 * worker);
            let line = describe(&bytes);
            let source = line.split(' ').nth(1).unwrap();
            let port: u16 = source.split(':').nth(1).unwrap().parse().unwrap();
            assert_eq!((port - 1024) / 16 % 2, worker);
            let answer = craft(&format!("udp 192.0.2.9:53 > {source}"));
            let back = harness.send_one(2 * worker + 1, START, &answer);
            assert!(matches!(back, Fate::Out(gate, _) if gate == 2 * worker + 1), "{back:?}");
        }
        harness.end();
    });
}

/// The ports of both workers are all that there are, and what one gives back is its own again.
#[test]
fn workers_with_one_object_lend_all_ports_together() {
    let args = Args::default().with("pool", prefix("198.51.100.1", 32)).with("block", Value::Integer(2));
    let args = args.with("ports", Value::Range(2000, 2007));
    on_team(|| {
        let mut harness = Harness::of_both(&DESCRIPTOR, &args);
        for time in [START, START + 3_600 * SECOND] {
            harness.tick(time);
            for worker in [0, 1] {
                let frames = (0..6).map(|host| (time, craft(&format!("udp 10.0.{worker}.{host}:4000 > 192.0.2.9:53"))));
                // Two blocks of two ports, each for one host.
                assert_eq!(harness.send(2 * worker, &frames.collect::<Vec<_>>()).len(), 2, "worker {worker}");
            }
        }
        harness.end();
    });
}

#[test]
fn bad_configurations_are_named() {
    let error = |args: Args| build(&DESCRIPTOR, &args, Share::WHOLE).map(drop).unwrap_err().to_string();
    let pool = Args::default().with("pool", prefix("198.51.100.0", 24));
    assert_eq!(error(Args::default()), "`pool`: is required");
    let large = error(Args::default().with("pool", prefix("10.0.0.0", 8)));
    assert_eq!(large, "`pool`: a prefix of more than 65536 addresses (/16 is the largest)");
    let backwards = Value::AddressRange("10.0.0.2".parse().unwrap(), "10.0.0.1".parse().unwrap());
    assert!(error(Args::default().with("pool", backwards)).contains("ends before it begins"));
    assert!(error(pool.clone().with("ports", Value::Range(0, 10))).contains("1 to 65535"));
    assert!(error(pool.clone().with("ports", Value::Range(10, 20))).contains("more ports than an address"));
    assert!(error(pool.clone().with("block", Value::Integer(5000))).contains("from 0 to 1024"));
    assert!(error(pool.clone().with("udp_timeout", Value::Duration(0))).contains("no time"));
    let blocks = pool.with("pool", prefix("198.51.0.0", 16)).with("block", Value::Integer(1));
    assert!(error(blocks).contains("blocks of ports"));
}

#[test]
fn a_pool_has_addresses_that_packets_may_come_from() {
    for (entry, why) in [
        ("127.0.0.1", "has loopback addresses"),
        ("224.0.0.1", "has multicast addresses"),
        ("169.254.7.1", "has link-local addresses"),
        ("0.0.0.0", "has addresses of this network"),
        ("255.255.255.255", "has reserved addresses"),
        ("fe80::1", "has link-local addresses"),
        ("::1", "has the loopback address"),
        ("::", "has the unspecified address"),
        ("ff0e::1", "has multicast addresses"),
        ("169.254.0.0/16", "has link-local addresses"),
        ("::/64", "has the loopback address"),
        ("fe80::/64", "has link-local addresses"),
        // The last addresses there are.
        ("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ff00/120", "has multicast addresses"),
        ("126.255.255.255-127.0.0.1", "has loopback addresses"),
        ("223.255.255.255-224.0.0.0", "has multicast addresses"),
        ("fe7f:ffff:ffff:ffff:ffff:ffff:ffff:ffff-fe80::", "has link-local addresses"),
    ] {
        let value = match (entry.split_once('/'), entry.split_once('-')) {
            (Some((address, length)), _) => prefix(address, length.parse().unwrap()),
            (_, Some((first, last))) => Value::AddressRange(first.parse().unwrap(), last.parse().unwrap()),
            _ => Value::Address(entry.parse().unwrap()),
        };
        // Beside a good one too.
        let pool = Value::List(vec![prefix("198.51.100.7", 32), value]);
        let error = build(&DESCRIPTOR, &Args::default().with("pool", pool), Share::WHOLE).map(drop);
        let error = error.expect_err(entry).to_string();
        assert!(error.contains(why), "{entry}: {error}");
    }
    for good in ["126.255.255.255", "128.0.0.0", "169.253.255.255", "169.255.0.0", "223.255.255.255", "1.0.0.0", "::2"]
    {
        let args = Args::default().with("pool", Value::Address(good.parse().unwrap()));
        assert!(build(&DESCRIPTOR, &args, Share::WHOLE).is_ok(), "{good}");
    }
}

#[test]
fn vlans_have_mappings_of_their_own() {
    let mut harness = Harness::of(&DESCRIPTOR, &Args::default().with("pool", prefix("198.51.100.0", 30)));
    golden(&mut harness, include_str!("vlans.txt"));
    harness.end();
}

pub(super) const LATE: Late = Late {
    source: include_str!("tests.rs"),
    quick: tests![golden_scripts, vlans_have_mappings_of_their_own,],
    slow: tests![instances_have_their_own_blocks,],
    apart: &[
        // They are of a team.
        "workers_with_one_object_take_ports_of_their_own_blocks",
        "workers_with_one_object_lend_all_ports_together",
        // Nothing is built.
        "bad_configurations_are_named",
        "a_pool_has_addresses_that_packets_may_come_from",
    ],
};

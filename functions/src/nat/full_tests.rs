//! A NAT that refuses: each refusal has its reason, who is known passes, and little is looked at for it.

use super::*;
use crate::Value;
use crate::testing::engines::{Late, tests};
use crate::testing::{Fate, Harness, START, craft};

/// Ports that each of 256 hosts has.
const PORTS: u32 = 4;

fn from(host: u32, port: u32) -> Vec<u8> {
    craft(&format!("udp 10.{}.{}.{}:{port} > 192.0.2.9:53", host >> 16, host >> 8 & 255, host & 255))
}

/// Hold that what `refused` sends by number is refused for `reason` once there is no room, and nothing else is.
fn assert_refused(args: &Args, reason: &'static str, refused: impl Fn(u32) -> Vec<u8>) {
    let mut harness = Harness::of(&DESCRIPTOR, args);
    let known: Vec<_> = (0..256 * PORTS).map(|number| (START, from(number & 255, 1 + (number >> 8)))).collect();
    assert_eq!(harness.send_in_pieces(0, &known), known.len(), "{reason}");
    let (mut now, mut number) = (START, 0);
    while matches!(harness.send_one(0, now, &refused(number)), Fate::Out(..)) {
        number += 1;
    }
    let mappings = harness.gauges()["mappings"];
    crate::testing::looks::assert_few(|gap| {
        (now, number) = (now + gap, number % 60_000 + 1);
        assert_eq!(harness.send_one(0, now, &refused(number + 60_000)), Fate::Dropped(reason));
    });
    assert_eq!(harness.gauges()["mappings"], mappings, "{reason}");
    assert_eq!(harness.send_in_pieces(0, &known), known.len(), "{reason}: those who are known pass");
    harness.end();
}

/// One external address, with blocks of eight ports.
fn args() -> Args {
    Args::default().with("pool", Value::Prefix("198.51.100.1".parse().unwrap(), 32)).with("block", Value::Integer(8))
}

#[test]
fn hosts_without_a_block_are_refused() {
    assert_refused(&args(), "no port left", |number| from(256 + number, 1));
}

#[test]
fn hosts_at_their_limit_are_refused() {
    let args = args().with("max_per_host", Value::Integer(PORTS.into()));
    assert_refused(&args, "host has as many ports as it may", |number| from(number & 255, 100 + (number >> 8)));
}

#[test]
fn no_more_mappings_than_there_may_be() {
    let args = args().with("max_mappings", Value::Integer((256 * PORTS).into()));
    assert_refused(&args, "as many mappings as there may be", |number| from(number & 255, 100 + (number >> 8)));
}

#[test]
fn hosts_with_their_share_of_sessions_are_refused() {
    // One port to ever more destinations.
    let args = args().with("filtering", Value::Word("address_port".into()));
    assert_refused(&args, "host has as many sessions as it may", |number| {
        craft(&format!("udp 10.0.0.0:1 > 192.0.3.{}:{}", number & 255, 1 + (number >> 8)))
    });
}

pub(super) const LATE: Late = Late {
    source: include_str!("full_tests.rs"),
    quick: &[],
    // A thousand mappings each.
    slow: tests![
        hosts_without_a_block_are_refused,
        hosts_at_their_limit_are_refused,
        no_more_mappings_than_there_may_be,
        hosts_with_their_share_of_sessions_are_refused,
    ],
    apart: &[],
};

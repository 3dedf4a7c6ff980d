//! What passes and what does not: by hand where a reader should see it, and against the promise itself.

use std::collections::HashMap;

use catena_dataplane::Module;
use catena_state::Share;
use proptest::prelude::*;

use super::*;
use crate::config::Value;
use crate::limiter::DESCRIPTOR;
use crate::testing::engines::{Late, tests};
use crate::testing::{Fate, Harness, SECOND, START, build, build_taking, craft, golden};

fn limiter(args: &Args, taken: &[&str]) -> Result<Box<dyn Module>, ArgError> {
    build_taking(taken, &DESCRIPTOR, args, Share::WHOLE)
}

fn harness(args: &Args, taken: &[&str]) -> Harness {
    Harness::new(limiter(args, taken).unwrap_or_else(|error| panic!("{error}")), 4)
}

/// A packet a second, two at once.
fn one_a_second() -> Args {
    Args::default().with("rate", Value::PacketRate(1)).with("burst", Value::Integer(2))
}

fn per(per: &str) -> Args {
    one_a_second().with("per", Value::Word(per.into()))
}

#[test]
fn a_class_shares_one_bucket() {
    let mut harness = harness(&one_a_second(), &[]);
    golden(
        &mut harness,
        "\
# a burst of two, whoever they are from
0s 0: udp 10.0.0.1:4000 > 192.0.2.9:53
  -> 0: udp 10.0.0.1:4000 > 192.0.2.9:53
0s 0: arp
  -> 0: arp
0s 0: udp [2001:db8::1]:4000 > [2001:db8::2]:53
  -> drop: over the rate
# the way back has a bucket of its own
0s 1: udp 192.0.2.9:53 > 10.0.0.1:4000
  -> 1: udp 192.0.2.9:53 > 10.0.0.1:4000
# then one a second
0.999s 0: udp 10.0.0.2:4000 > 192.0.2.9:53
  -> drop: over the rate
1s 0: udp 10.0.0.2:4000 > 192.0.2.9:53
  -> 0: udp 10.0.0.2:4000 > 192.0.2.9:53
1s 0: udp 10.0.0.2:4000 > 192.0.2.9:53
  -> drop: over the rate
# a long pause fills no more than the burst
100s 0: udp 10.0.0.2:4000 > 192.0.2.9:53
  -> 0: udp 10.0.0.2:4000 > 192.0.2.9:53
100s 0: udp 10.0.0.2:4000 > 192.0.2.9:53
  -> 0: udp 10.0.0.2:4000 > 192.0.2.9:53
100s 0: udp 10.0.0.2:4000 > 192.0.2.9:53
  -> drop: over the rate
",
    );
    harness.end();
}

#[test]
fn every_source_has_its_own() {
    let mut harness = Harness::of(&DESCRIPTOR, &per("src"));
    golden(
        &mut harness,
        "\
0s 0: udp 10.0.0.1:4000 > 192.0.2.9:53
  -> 0: udp 10.0.0.1:4000 > 192.0.2.9:53
0s 0: tcp 10.0.0.1:4001 > 192.0.2.8:80 S
  -> 0: tcp 10.0.0.1:4001 > 192.0.2.8:80 S
0s 0: icmp 10.0.0.1 > 192.0.2.8 echo 1
  -> drop: over the rate
0s 0: udp 10.0.0.2:4000 > 192.0.2.9:53
  -> 0: udp 10.0.0.2:4000 > 192.0.2.9:53
# what is sent back to a source counts for it, apart from what it sends
0s 1: udp 192.0.2.9:53 > 10.0.0.1:4000
  -> 1: udp 192.0.2.9:53 > 10.0.0.1:4000
0s 1: udp 192.0.2.8:53 > 10.0.0.1:4000
  -> 1: udp 192.0.2.8:53 > 10.0.0.1:4000
0s 1: udp 192.0.2.7:53 > 10.0.0.1:4000
  -> drop: over the rate
# a /64 of IPv6 is one source
0s 0: udp [2001:db8::1]:4000 > [2001:db8:1::2]:53
  -> 0: udp [2001:db8::1]:4000 > [2001:db8:1::2]:53
0s 0: udp [2001:db8::ffff:1]:4000 > [2001:db8:1::2]:53
  -> 0: udp [2001:db8::ffff:1]:4000 > [2001:db8:1::2]:53
0s 0: udp [2001:db8::2]:4000 > [2001:db8:1::2]:53
  -> drop: over the rate
0s 0: udp [2001:db8:0:1::1]:4000 > [2001:db8:1::2]:53
  -> 0: udp [2001:db8:0:1::1]:4000 > [2001:db8:1::2]:53
# ARP passes
0s 0: arp
  -> 0: arp
",
    );
    assert_eq!(harness.gauges()["keys"], 5);
    harness.end();
}

/// Whose they are cannot be told: together they have what one source has, and take it from nobody.
#[test]
fn what_is_not_understood_shares_one_bucket() {
    for per_what in ["src", "dst", "flow"] {
        let mut harness = Harness::of(&DESCRIPTOR, &per(per_what));
        golden(
            &mut harness,
            "\
0s 0: mpls { udp 10.0.0.1:4000 > 192.0.2.9:53 }
  -> 0: other
0s 0: pppoe { udp 10.0.0.2:4000 > 192.0.2.9:53 }
  -> 0: other
0s 0: snap { udp 10.0.0.3:4000 > 192.0.2.9:53 }
  -> drop: over the rate
0s 0: lldp { udp 10.0.0.3:4000 > 192.0.2.9:53 }
  -> drop: over the rate
# behind a tag it is understood
0s 0: tag 9300 { udp 0.0.0.0:0 > 0.0.0.0:0 }
  -> 0: tag 9300:7 { udp 0.0.0.0:0 > 0.0.0.0:0 }
0s 0: arp
  -> 0: arp
0s 0: arp
  -> 0: arp
0s 0: arp
  -> 0: arp
0s 1: llc { udp 192.0.2.9:53 > 10.0.0.1:4000 }
  -> 1: other
1s 0: llc { udp 10.0.0.3:4000 > 192.0.2.9:53 }
  -> 0: other
",
        );
        assert_eq!(harness.gauges()["keys"], 3);
        harness.end();
    }
}

#[test]
fn destinations_prefixes_and_flows() {
    let line = |src: &str, dst: &str| craft(&format!("udp {src} > {dst}"));
    let passes = |args: &Args, lines: &[(u16, &str, &str)]| -> usize {
        let mut harness = harness(args, &[]);
        let fates = lines.iter().map(|(gate, src, dst)| harness.send_one(*gate, START, &line(src, dst)));
        fates.filter(|fate| matches!(fate, Fate::Out(..))).count()
    };
    let to_one = [(0, "10.0.0.1:1", "192.0.2.9:1"), (0, "10.0.0.2:1", "192.0.2.9:1"), (0, "10.0.0.3:1", "192.0.2.9:1")];
    assert_eq!((passes(&per("dst"), &to_one), passes(&per("src"), &to_one)), (2, 3));
    let back = [(1, "192.0.2.9:1", "10.0.0.1:1"), (1, "192.0.2.9:1", "10.0.0.2:1"), (1, "192.0.2.9:1", "10.0.0.3:1")];
    assert_eq!((passes(&per("dst"), &back), passes(&per("src"), &back)), (2, 3));
    let wide = |bits| per("src").with("prefix4", Value::Integer(bits));
    assert_eq!((passes(&wide(30), &to_one), passes(&wide(31), &to_one), passes(&wide(0), &to_one)), (2, 3, 2));
    let flows = [(0, "10.0.0.1:1", "192.0.2.9:1"), (0, "10.0.0.1:1", "192.0.2.9:1"), (0, "10.0.0.1:1", "192.0.2.9:1")];
    assert_eq!(passes(&per("flow"), &flows), 2);
    let ports = [(0, "10.0.0.1:1", "192.0.2.9:1"), (0, "10.0.0.1:2", "192.0.2.9:1"), (0, "10.0.0.1:1", "192.0.2.9:2")];
    assert_eq!((passes(&per("flow"), &ports), passes(&per("src"), &ports)), (3, 2));
    let six = [(0, "[2001:db8::1]:1", "[2001:db8::9]:1"), (0, "[2001:db8::1]:2", "[2001:db8::9]:1")].repeat(2);
    assert_eq!((passes(&per("flow"), &six), passes(&per("dst"), &six)), (4, 2));
}

#[test]
fn bytes_are_those_of_the_frame() {
    // 1,000 bytes a second, 100 at once; a frame of 14 + 20 + 8 bytes and its payload.
    let args = Args::default().with("rate", Value::BitRate(8000)).with("burst", Value::Size(100));
    let mut harness = harness(&args, &[]);
    golden(
        &mut harness,
        "\
0s 0: udp 10.0.0.1:4000 > 192.0.2.9:53 len 8
  -> 0: udp 10.0.0.1:4000 > 192.0.2.9:53 len 8
0s 0: udp 10.0.0.1:4000 > 192.0.2.9:53 len 9
  -> drop: over the rate
0s 0: udp 10.0.0.1:4000 > 192.0.2.9:53 len 8
  -> 0: udp 10.0.0.1:4000 > 192.0.2.9:53 len 8
0.041s 0: udp 10.0.0.1:4000 > 192.0.2.9:53
  -> drop: over the rate
0.042s 0: udp 10.0.0.1:4000 > 192.0.2.9:53
  -> 0: udp 10.0.0.1:4000 > 192.0.2.9:53
9s 0: udp 10.0.0.1:4000 > 192.0.2.9:53 len 59
  -> drop: longer than the burst
9s 0: udp 10.0.0.1:4000 > 192.0.2.9:53 len 58
  -> 0: udp 10.0.0.1:4000 > 192.0.2.9:53 len 58
",
    );
    harness.end();
}

#[test]
fn packets_over_the_rate_leave_by_their_gate_where_it_is_taken() {
    let mut harness = harness(&one_a_second(), &["exceed"]);
    golden(
        &mut harness,
        "\
0s 0: arp
  -> 0: arp
0s 0: arp
  -> 0: arp
0s 0: arp
  -> 2: arp
0s 1: arp
  -> 1: arp
0s 1: arp
  -> 1: arp
0s 1: arp
  -> 3: arp
",
    );
    harness.end();
}

#[test]
fn keys_are_bounded_and_full_buckets_make_room() {
    let mut harness = harness(&per("src").with("max_keys", Value::Integer(3)), &[]);
    let from = |host: u8| craft(&format!("udp 10.0.0.{host}:1 > 192.0.2.9:1"));
    for host in 0..3 {
        assert!(matches!(harness.send_one(0, START, &from(host)), Fate::Out(0, _)));
    }
    assert_eq!(harness.send_one(0, START, &from(3)), Fate::Dropped("no room for another key"));
    assert!(matches!(harness.send_one(0, START, &from(0)), Fate::Out(0, _)), "who is known goes on");
    // After a second the buckets of one packet are full, and after another they are forgotten, some milliseconds later at most.
    assert_eq!(harness.send_one(0, START + 2 * SECOND - 20_000, &from(3)), Fate::Dropped("no room for another key"));
    assert!(matches!(harness.send_one(0, START + 2 * SECOND + SECOND / 200, &from(3)), Fate::Out(0, _)));
    harness.tick(START + 3 * SECOND + SECOND / 200);
    assert_eq!(harness.gauges()["keys"], 1);
    harness.tick(START + 4 * SECOND + SECOND / 100);
    assert_eq!(harness.gauges()["keys"], 0);
    harness.end();
}

#[test]
fn wrong_arguments() {
    let says = |args: &Args| limiter(args, &[]).err().map(|error| error.to_string()).unwrap_or_default();
    assert_eq!(says(&Args::default()), "`rate`: is required");
    assert_eq!(says(&per("source")), "`per`: expected class, src, dst or flow, found `source`");
    assert_eq!(
        says(&per("flow").with("prefix6", Value::Integer(48))),
        "`prefix6`: means nothing with `per = flow` (set `per = src` or `per = dst`)"
    );
    assert_eq!(
        says(&per("src").with("prefix4", Value::Integer(33))),
        "`prefix4`: expected a whole number from 0 to 32"
    );
    assert_eq!(
        says(&per("src").with("max_keys", Value::Integer(0))),
        "`max_keys`: expected a whole number from 1 to 16777216"
    );
}

#[test]
fn instances_share_a_class_and_split_sources() {
    let args = |per: &str| {
        let args = Args::default().with("rate", Value::PacketRate(10)).with("burst", Value::Integer(10));
        args.with("per", Value::Word(per.into()))
    };
    let passed = |args: &Args, line: &str| {
        let module = build(&DESCRIPTOR, args, Share { index: 1, count: 5 }).unwrap_or_else(|e| panic!("{e}"));
        let frames = vec![(START, craft(line)); 32];
        Harness::new(module, 2).send(0, &frames).len()
    };
    let passes = |per: &str, line: &str| passed(&args(per), line);
    let (four, six) = ("udp 10.0.0.1:1 > 192.0.2.9:1", "udp [2001:db8::1]:1 > [2001:db8::9]:1");
    assert_eq!([passes("class", four), passes("dst", four), passes("dst", six)], [2, 2, 2]);
    assert_eq!([passes("src", four), passes("flow", four), passes("flow", six), passes("src", six)], [10; 4]);
    let wide = args("src").with("prefix6", Value::Integer(63));
    assert_eq!(passed(&wide, six), 2, "another instance may see the other /64");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    /// However sources mix, whatever is forgotten in between: in no window does a source send more than the
    /// burst and what the rate gives, and it never loses a packet that the exact bucket holds.
    #[test]
    fn no_source_passes_more_than_promised(
        kilobits in 1u64..2_000,
        burst in 42u64..5_000,
        sources in prop::sample::select(vec![1u64, 3, 40, 300]),
        packets in prop::collection::vec((any::<u16>(), 0u32..22, any::<u32>(), 0u16..1400, any::<bool>()), 1..300),
    ) {
        let rate = kilobits * 1000;
        let args = Args::default().with("rate", Value::BitRate(rate)).with("burst", Value::Size(burst));
        let mut harness = harness(&args.with("per", Value::Word("src".into())), &[]);
        let mut now = START;
        let mut frames = Vec::new();
        for (pick, zeroes, gap, len, ipv6) in packets {
            // From 0 ns to 4 s, most of them short.
            now += gap as u64 >> zeroes;
            let source = u64::from(pick) % sources;
            let line = match ipv6 {
                true => format!("udp [2001:db8:0:{source:x}::{pick:x}]:1 > [2001:db8::9]:1 len {len}"),
                false => format!("udp 10.0.{}.{}:1 > 192.0.2.9:{} len {len}", source / 256, source % 256, pick.max(1)),
            };
            frames.push(((source, ipv6), (now, craft(&line))));
        }
        let sent: Vec<_> = frames.iter().map(|(_, frame)| frame.clone()).collect();
        let passed: Vec<usize> = harness.send(0, &sent).into_iter().map(|(index, ..)| index).collect();
        // In billionths of a bit: what is in each source's bucket, and since when.
        let full = i128::from(burst) * 8 * i128::from(SECOND);
        let mut exact: HashMap<_, (i128, u64)> = HashMap::new();
        for (i, (key, (time, frame))) in frames.iter().enumerate() {
            let (level, since) = exact.entry(*key).or_insert((full, *time));
            *level = full.min(*level + i128::from(rate) * i128::from(time - *since));
            *since = *time;
            let cost = frame.len() as i128 * 8 * i128::from(SECOND);
            let passes = passed.binary_search(&i).is_ok();
            prop_assert_eq!(passes, cost <= *level, "packet {} of {:?}", i, key);
            *level -= if passes { cost } else { 0 };
        }
        prop_assert_eq!(passed.len() as u64 + harness.drops().values().sum::<u64>(), frames.len() as u64);
        harness.end();
    }
}

#[test]
fn no_room_for_another_key_costs_the_others_nothing() {
    let args = per("src").with("burst", Value::Integer(1_000_000)).with("max_keys", Value::Integer(1000));
    let mut harness = harness(&args, &[]);
    let (mut now, mut number) = (START, 0);
    let key =
        |number: u32| craft(&format!("udp {}:4000 > 192.0.2.9:53", std::net::Ipv4Addr::from_bits(10 << 24 | number)));
    // Every key takes ten seconds' rate, so that none is forgotten.
    let keys: Vec<_> = (0..1000).map(|number| (now, key(number))).collect();
    (0..10).for_each(|_| assert_eq!(harness.send(0, &keys).len(), 1000));
    let before = harness.drops();
    crate::testing::looks::assert_few(|gap| {
        (now, number) = (now + gap, number + 1);
        let fate = harness.send_one(0, now, &key(1000 + number));
        assert_eq!(fate, Fate::Dropped("no room for another key"));
    });
    assert_eq!((before.len(), harness.drops().len(), harness.gauges()["keys"]), (0, 1, 1000));
    assert_eq!(harness.send(0, &keys).len(), 1000, "those who are known pass");
    harness.end();
}

pub(in crate::limiter) const LATE: Late = Late {
    source: include_str!("limit_tests.rs"),
    quick: tests![
        a_class_shares_one_bucket,
        every_source_has_its_own,
        bytes_are_those_of_the_frame,
        packets_over_the_rate_leave_by_their_gate_where_it_is_taken,
        keys_are_bounded_and_full_buckets_make_room,
    ],
    slow: tests![
        what_is_not_understood_shares_one_bucket,
        destinations_prefixes_and_flows,
        no_source_passes_more_than_promised,
        no_room_for_another_key_costs_the_others_nothing,
    ],
    apart: &[
        // No packet is sent.
        "wrong_arguments",
        // Where all instances see a bucket, none has a part of it: `testing/together.rs`.
        "instances_share_a_class_and_split_sources",
    ],
};

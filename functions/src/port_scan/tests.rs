//! PortScan by hand, where a reader should see it, and against a model that keeps everything.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;
use crate::testing::agreement::agrees;
use crate::testing::engines::{SEEDS, on_delayed, on_every_engine};
use crate::testing::{Fate, Harness, START, craft, golden};

fn harness() -> Harness {
    Harness::of(&DESCRIPTOR, &Args::default())
}

#[test]
fn four_refusals_tell_a_scanner() {
    on_every_engine(|| {
        let mut harness = harness();
        golden(
            &mut harness,
            "\
0s 0: tcp 10.0.0.1:4000 > 192.0.2.1:22 S
  -> 0: tcp 10.0.0.1:4000 > 192.0.2.1:22 S
0s 1: tcp 192.0.2.1:22 > 10.0.0.1:4000 RA
  -> 1: tcp 192.0.2.1:22 > 10.0.0.1:4000 RA
# another port of the same destination is no first connection
0s 0: tcp 10.0.0.1:4001 > 192.0.2.1:23 S
  -> 0: tcp 10.0.0.1:4001 > 192.0.2.1:23 S
0s 1: tcp 192.0.2.1:23 > 10.0.0.1:4001 RA
  -> 1: tcp 192.0.2.1:23 > 10.0.0.1:4001 RA
0s 0: tcp 10.0.0.1:4000 > 192.0.2.2:22 S
  -> 0: tcp 10.0.0.1:4000 > 192.0.2.2:22 S
0s 1: tcp 192.0.2.2:22 > 10.0.0.1:4000 RA
  -> 1: tcp 192.0.2.2:22 > 10.0.0.1:4000 RA
0s 0: tcp 10.0.0.1:4000 > 192.0.2.3:22 S
  -> 0: tcp 10.0.0.1:4000 > 192.0.2.3:22 S
0s 1: tcp 192.0.2.3:22 > 10.0.0.1:4000 RA
  -> 1: tcp 192.0.2.3:22 > 10.0.0.1:4000 RA
0s 0: tcp 10.0.0.1:4000 > 192.0.2.4:22 S
  -> 0: tcp 10.0.0.1:4000 > 192.0.2.4:22 S
0s 1: tcp 192.0.2.4:22 > 10.0.0.1:4000 RA
  -> 1: tcp 192.0.2.4:22 > 10.0.0.1:4000 RA
# that was the fourth
0s 0: tcp 10.0.0.1:4000 > 192.0.2.5:22 S
  -> drop: source scans ports
# connections that are there go on, and so does what is not TCP, and whoever else
0s 0: tcp 10.0.0.1:4000 > 192.0.2.9:80 A len 5
  -> 0: tcp 10.0.0.1:4000 > 192.0.2.9:80 A len 5
0s 0: udp 10.0.0.1:4000 > 192.0.2.5:53
  -> 0: udp 10.0.0.1:4000 > 192.0.2.5:53
0s 0: tcp 10.0.0.2:4000 > 192.0.2.5:22 S
  -> 0: tcp 10.0.0.2:4000 > 192.0.2.5:22 S
0s 0: arp
  -> 0: arp
# ten minutes later it may try again
599s 0: tcp 10.0.0.1:4000 > 192.0.2.6:22 S
  -> drop: source scans ports
600s 0: tcp 10.0.0.1:4000 > 192.0.2.6:22 S
  -> 0: tcp 10.0.0.1:4000 > 192.0.2.6:22 S
",
        );
        assert_eq!(harness.gauges()["scanners found"], 1);
        harness.end();
    });
}

/// Whoever is not answered has failed too, once the time is over; over IPv6 as well. Successes make up for it.
#[test]
fn silence_is_a_failure() {
    on_every_engine(|| {
        let mut harness = harness();
        let ask = |n: u64| craft(&format!("tcp [2001:db8::1]:4000 > [2001:db8:9::{n}]:22 S"));
        let answer = |n: u64| craft(&format!("tcp [2001:db8:9::{n}]:22 > [2001:db8::1]:4000 SA"));
        let passes = |harness: &mut Harness, gate, time, frame: &[u8]| {
            matches!(harness.send_one(gate, START + time, frame), Fate::Out(..))
        };
        for n in 1..=2 {
            assert!(passes(&mut harness, 0, 0, &ask(n)));
            assert!(passes(&mut harness, 1, 1, &answer(n)));
        }
        for n in 3..=8 {
            assert!(passes(&mut harness, 0, SECOND, &ask(n)), "{n}");
        }
        // A late answer changes nothing: six have failed, and two have succeeded.
        harness.tick(START + 5 * SECOND);
        assert!(passes(&mut harness, 1, 5 * SECOND, &answer(3)));
        assert!(!passes(&mut harness, 0, 5 * SECOND, &ask(9)));
        assert_eq!((harness.gauges()["sources"], harness.gauges()["contacts"]), (1, 8));
        // All of it is forgotten some time.
        harness.tick(START + 3600 * SECOND);
        harness.tick(START + 3600 * SECOND);
        assert_eq!((harness.gauges()["sources"], harness.gauges()["contacts"]), (0, 0));
        harness.end();
    });
}

#[test]
fn full_tables_refuse_nobody() {
    on_every_engine(|| {
        let args = Args::default().with("max_sources", Value::Integer(1)).with("max_contacts", Value::Integer(4));
        let mut harness = Harness::of(&DESCRIPTOR, &args);
        for n in 1..=6 {
            let (ask, refusal) =
                (format!("tcp 10.0.0.{n}:1 > 192.0.2.1:22 S"), format!("tcp 192.0.2.1:22 > 10.0.0.{n}:1 R"));
            assert!(matches!(harness.send_one(0, START, &craft(&ask)), Fate::Out(0, _)));
            assert!(matches!(harness.send_one(1, START, &craft(&refusal)), Fate::Out(1, _)));
        }
        // Two contacts and three sources found no place.
        assert_eq!(harness.gauges()["unwatched"], 2 + 3);
        harness.end();
    });
}

#[test]
fn late_state_changes_nothing() {
    agrees(&DESCRIPTOR, &Args::default());
}

#[test]
fn arguments_are_checked() {
    let wrong = |name: &str, value: Value| {
        let args = Args::default().with(name, value);
        crate::testing::build(&DESCRIPTOR, &args, Share::WHOLE).err().expect("it is refused").to_string()
    };
    assert!(wrong("scanner", Value::Percent(0.9)).contains("less than `benign`"));
    assert!(wrong("benign", Value::Percent(1.0)).contains("less than 100%"));
    assert!(wrong("false_alarms", Value::Percent(0.0)).contains("more than 0%"));
    assert!(wrong("timeout", Value::Duration(0)).contains("more than 0"));
    assert!(wrong("max_sources", Value::Integer(0)).contains("max_sources"));
}

/// The paper's test, in floating point, on all that ever happened.
#[derive(Default)]
struct Model {
    ratio: HashMap<u64, f64>,
    contacts: HashMap<(u64, u64), bool>,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Who is a scanner, and when, is as the paper's test says, whoever comes between; on late state too.
    #[test]
    fn it_is_the_papers_test(
        steps in prop::collection::vec((0u64..4, 0u64..40, any::<Option<bool>>()), 1..200),
        seed in 0..SEEDS,
    ) {
        let run = || {
            let mut harness = harness();
            let mut passed = Vec::new();
            for (n, (source, to, answer)) in steps.iter().enumerate() {
                let time = START + n as u64;
                let ask = craft(&format!("tcp 10.0.0.{source}:4000 > 192.0.2.{to}:22 S"));
                passed.push(matches!(harness.send_one(0, time, &ask), Fate::Out(..)));
                if let Some(accepts) = answer {
                    let flags = if *accepts { "SA" } else { "R" };
                    harness.send_one(1, time, &craft(&format!("tcp 192.0.2.{to}:22 > 10.0.0.{source}:4000 {flags}")));
                }
            }
            harness.end();
            passed
        };
        let mut model = Model::default();
        let expected: Vec<bool> = steps.iter().map(|(source, to, answer)| {
            let ratio = model.ratio.entry(*source).or_insert(1.0);
            let passes = *ratio < 99.0 - 1e-6;
            let is_open = model.contacts.get(&(*source, *to)).copied();
            if passes && is_open.is_none() {
                model.contacts.insert((*source, *to), true);
            }
            if let (true, Some(accepts), Some(open @ true)) = (*ratio < 99.0 - 1e-6, answer, model.contacts.get_mut(&(*source, *to))) {
                *open = false;
                *ratio *= if *accepts { 0.2 / 0.8 } else { 0.8 / 0.2 };
                if *ratio <= 1.0 / 99.0 + 1e-9 {
                    *ratio = 1.0;
                }
            }
            passes
        }).collect();
        prop_assert_eq!(&run(), &expected);
        prop_assert_eq!(&on_delayed(seed, run), &expected);
    }
}

//! A balancer that refuses: who is known passes, nobody is evicted, and little is looked at for those who are not.

use super::hostile::{TCP, bench, client, stranger, vip};
use super::*;
use catena_packet::random::SplitMix64;

const CONNECTIONS: u16 = 1000;

fn filled(mut bench: Bench) -> Bench {
    (0..CONNECTIONS).for_each(|i| _ = bench.connect(client(i)).unwrap());
    bench
}

/// Refuse many strangers for `reason`, while packets of every connection pass.
fn assert_refused(mut bench: Bench, reason: &str) {
    let mut random = SplitMix64::new(5);
    for i in 0..CONNECTIONS {
        bench.now += 3200;
        for _ in 0..10 {
            assert_eq!(bench.ask(TCP, stranger(&mut random), SYN), Err(reason));
        }
        assert!(bench.ask(TCP, client(i), ACK).is_ok(), "connection {i}");
        bench.balancer.tidy(bench.now, false);
    }
    assert_eq!((bench.gauge("connections"), bench.gauge("evicted")), (CONNECTIONS.into(), 0));
    assert_eq!(bench.loads().iter().sum::<i64>(), i64::from(CONNECTIONS));
}

#[test]
fn a_full_table_refuses_only_strangers() {
    on_engines(FEW, || {
        assert_refused(filled(bench(CONNECTIONS.into())), "connection table full");
    });
}

#[test]
fn a_full_table_refuses_only_strangers_at_many_addresses() {
    on_engines(FEW, || {
        let vips: Vec<String> = (1..=63).map(|n| format!("192.0.3.{n}:80")).chain([vip().to_string()]).collect();
        let args = args(&vips.join(" "), "10.0.0.1:8080 10.0.0.2:8080 10.0.0.3:8080");
        let most = Value::Integer(CONNECTIONS.into());
        assert_refused(filled(Bench::new(&args.with("max_connections", most))), "connection table full");
    });
}

#[test]
fn servers_that_are_down_keep_their_connections_and_get_no_others() {
    on_engines(FEW, || {
        let mut bench = filled(bench(CONNECTIONS.into()));
        (1..=3).for_each(|number| assert!(bench.balancer.set_backend(number, false)));
        assert_refused(bench, "no backend up");
    });
}

#[test]
fn a_refusal_looks_at_few_entries() {
    on_engines(FEW, || {
        let (mut bench, mut random) = (filled(bench(CONNECTIONS.into())), SplitMix64::new(5));
        crate::testing::looks::assert_few(|gap| {
            bench.now += gap;
            assert_eq!(bench.ask(TCP, stranger(&mut random), SYN), Err("connection table full"));
        });
    });
}

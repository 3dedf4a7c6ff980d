//! Which rate and burst come of which arguments, and what is said of wrong ones.

use super::*;
use crate::testing::engines::Late;

fn args(rate: Value, burst: Option<Value>) -> Args {
    let args = Args::default().with("rate", rate);
    burst.into_iter().fold(args, |args, burst| args.with("burst", burst))
}

fn burst(rate: Value, given: Option<Value>) -> u64 {
    Promise::new(&args(rate, given)).unwrap().burst
}

#[test]
fn bursts() {
    use Value::{BitRate, Duration, Integer, PacketRate, Size};
    assert_eq!(burst(BitRate(1_000_000_000), None), 12_500_000);
    assert_eq!(burst(BitRate(64_000), None), 3044);
    assert_eq!(burst(BitRate(u64::MAX), None), 1_152_921_504);
    assert_eq!(burst(BitRate(64_000), Some(Size(4_000))), 4_000);
    assert_eq!(burst(BitRate(64_000), Some(Duration(500_000_000))), 4_000);
    assert_eq!(burst(PacketRate(1_000), None), 100);
    assert_eq!(burst(PacketRate(3), None), 2);
    assert_eq!(burst(PacketRate(3), Some(Integer(7))), 7);
    assert_eq!(burst(PacketRate(3_000), Some(Duration(10_000_000))), 30);
}

#[test]
fn wrong_arguments() {
    use Value::{BitRate, Duration, Integer, PacketRate, Size};
    let says = |args: &Args| Promise::new(args).unwrap_err().to_string();
    assert_eq!(says(&Args::default()), "`rate`: is required");
    assert_eq!(says(&args(Integer(3), None)), "`rate`: expected bits or packets a second, such as 64kbps or 3Kpps");
    assert_eq!(says(&args(BitRate(0), None)), "`rate`: a rate of 0 lets nothing pass");
    assert_eq!(
        says(&args(BitRate(1), Some(Integer(3)))),
        "`burst`: expected a size or a time, as the rate is in bits a second (for example 64KB or 100ms)"
    );
    assert_eq!(
        says(&args(PacketRate(1), Some(Size(3)))),
        "`burst`: expected a number or a time, as the rate is in packets a second (for example 100 or 100ms)"
    );
    assert_eq!(
        says(&args(PacketRate(1), Some(Duration(1_000_000)))),
        "`burst`: a burst of 0 lets nothing pass: it comes to less than a byte or packet"
    );
    assert_eq!(says(&args(BitRate(1), Some(Size(u64::MAX)))), "`burst`: a burst is at most 1152921504 bytes");
    assert_eq!(says(&args(PacketRate(1), Some(Integer(i64::MAX)))), "`burst`: a burst is at most 9223372036 packets");
}

#[test]
fn instances_share_what_each_of_them_may_see() {
    let promise = Promise::new(&args(Value::BitRate(1_000_000), Some(Value::Size(10_000)))).unwrap();
    let part = |rate, burst| Rate::bits_per_second(rate, burst).unwrap();
    let of = |count| Share { index: 0, count };
    assert_eq!(promise.shared(of(4), [true, false]), Ok([part(1_000_000, 10_000), part(250_000, 2_500)]));
    assert_eq!(promise.shared(of(100), [true, false]), Ok([part(1_000_000, 10_000), part(10_000, 1_522)]));
    let few = Promise::new(&args(Value::PacketRate(3), Some(Value::Integer(2)))).unwrap();
    let one = Rate::packets_per_second(1, 1).unwrap();
    assert_eq!(few.shared(of(4), [false, false]), Ok([one, one]));
}

pub(in crate::limiter) const LATE: Late = Late {
    source: include_str!("promise_tests.rs"),
    quick: &[],
    slow: &[],
    apart: &[
        // Arguments are read, and nothing is built.
        "bursts",
        "wrong_arguments",
        "instances_share_what_each_of_them_may_see",
    ],
};

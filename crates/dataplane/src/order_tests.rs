//! What is told of how far workers have come. `own_tests.rs` carries packets by it.

use super::*;

#[test]
fn nobody_reads_further_than_what_has_left_allows() {
    let order = Order::new(2, 2);
    assert_eq!(order.reach(), (AHEAD, false));
    order.leave(0, 100 << 16);
    assert_eq!(order.reach(), (AHEAD, false), "the other way out is behind");
    order.leave(1, 100 << 16);
    assert_eq!(order.reach(), (AHEAD + 100, false));
    order.stop();
    order.leave(0, 300 << 16);
    assert_eq!(order.reach(), (AHEAD + 100, true));
    order.leave(1, 300 << 16);
    assert_eq!(order.reach(), (AHEAD + 100, true), "it stays so");
}

#[test]
fn what_waits_holds_up_what_leaves() {
    let order = Order::new(1, 1);
    order.take(0, Clock::last_of(9).bits());
    order.publish(0, Some(Clock::from_bits(4 << 16 | 1 << 8)));
    assert_eq!(Clock::from_bits(order.through()).count(), 4);
    assert!(order.through() < 4 << 16 | 1 << 8);
    order.publish(0, None);
    assert_eq!(order.through(), Clock::last_of(9).bits());
}

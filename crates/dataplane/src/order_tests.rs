//! However workers take turns, batches are the same, and packets leave in the order in which they were read.

use catena_packet::{BATCH, Depot};
use proptest::prelude::*;

use super::*;
use crate::module::Module;
use crate::queue::{QueueIn, queue};

/// What one worker has been given and holds: it lets a packet go late now and then, as one that waits for others.
struct Worker {
    number: usize,
    given: InWindows,
    held: Vec<Packet>,
    out: QueueIn,
    batches: Vec<Vec<u64>>,
    is_done: bool,
}

impl Worker {
    /// Take a batch and let go what is in hand, but for some packets if `keeps`.
    fn step(&mut self, cx: &mut Context, order: &Order, keeps: bool) {
        let mut batch = Batch::new();
        self.is_done |= self.given.pull(cx, &mut batch) == Pulled::Done;
        if !batch.is_empty() {
            self.batches.push(batch.iter().map(|packet| packet.meta().clock.count()).collect());
        }
        self.held.extend(batch.drain());
        let stays = |packet: &mut Packet| keeps && packet.meta().clock.count().is_multiple_of(5);
        let mut leaving = Batch::new();
        for packet in self.held.extract_if(.., |packet| !stays(packet)) {
            leaving.push(packet);
            if leaving.is_full() {
                self.out.process(cx, &mut leaving);
            }
        }
        self.out.process(cx, &mut leaving);
        order.publish(self.number, self.held.iter().map(|packet| packet.meta().clock).min());
    }
}

/// Carry packets, each of the worker that stands there, to the end; returns what left, and each worker's batches.
fn carry(owners: &[usize], workers: usize, turns: &[(usize, bool)]) -> (Vec<u64>, Vec<Vec<Vec<u64>>>) {
    let depot = Depot::map(8192, 0).expect("memory");
    let mut cx = Context::new(&depot, 0);
    let order = Order::new(workers + 1, 1);
    // Who reads has no packets of its own here.
    order.end(0);
    let (mut leaving, exit) = queue(8192, workers);
    let mut merge = Merge::new(exit, &order, 0);
    let mut into = Vec::new();
    let mut crew: Vec<Worker> = (1..=workers)
        .map(|number| {
            let (mut entrances, given) = queue(8192, 1);
            into.extend(entrances.pop());
            let given = InWindows::new(given, &order, number);
            let out = leaving.pop().expect("one for each");
            Worker { number, given, held: Vec::new(), out, batches: Vec::new(), is_done: false }
        })
        .collect();
    let (mut left, mut count, mut is_over) = (Vec::new(), 0u64, false);
    let mut rest = owners.iter();
    let mut turns = turns.iter().cycle();
    let mut most_ahead = 0;
    while !is_over {
        let Some(&(turn, keeps)) = turns.next() else { break };
        match turn.checked_sub(1) {
            None if !order.is_ahead(count) => {
                for owner in rest.by_ref().take(BATCH) {
                    count += 1;
                    let mut packet = cx.pool().take(60).expect("the test has enough buffers");
                    packet.meta_mut().clock = Clock::from_bits(count << 16 | 1 << 8);
                    let mut batch = Batch::new();
                    batch.push(packet);
                    into[owner % workers].process(&mut cx, &mut batch);
                }
                order.give(((count + 1) << 16) - 1);
                if rest.len() == 0 {
                    order.end_giving();
                }
            }
            Some(worker) if worker < workers => {
                let worker = &mut crew[worker];
                worker.step(&mut cx, &order, keeps);
                if worker.is_done {
                    worker.step(&mut cx, &order, false);
                    worker.out.room().close();
                    order.end(worker.number);
                }
            }
            _ => {
                let mut batch = Batch::new();
                is_over = merge.pull(&mut cx, &mut batch) == Pulled::Done;
                left.extend(batch.iter().map(|packet| packet.meta().clock.count()));
                cx.pool().put_batch(&mut batch);
            }
        }
        most_ahead = most_ahead.max(count - left.len() as u64);
    }
    assert!(most_ahead <= AHEAD + BATCH as u64, "{most_ahead} were read and had not left");
    let batches = crew.iter_mut().map(|worker| std::mem::take(&mut worker.batches)).collect();
    drop((crew, merge, into, cx));
    assert!(depot.all_home());
    (left, batches)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn packets_leave_as_they_were_read_and_batches_are_those_of_every_run(
        owners in prop::collection::vec(0usize..30, 0..9000),
        workers in 1usize..5,
        turns in prop::array::uniform2(prop::collection::vec((0usize..7, any::<bool>()), 1..60)),
    ) {
        // A worker that gets nearly nothing must not hold up the others for long.
        let owners: Vec<usize> = owners.iter().map(|owner| owner.saturating_sub(20) % workers).collect();
        let [(left, batches), (_, others)] = turns.map(|mut turns| {
            turns.extend((0..=workers + 1).map(|turn| (turn, false)));
            carry(&owners, workers, &turns)
        });
        prop_assert!(left.len() == owners.len() && left.is_sorted(), "{left:?}");
        prop_assert_eq!(&batches, &others);
        for batch in batches.iter().flatten() {
            prop_assert!(batch.first().map(|count| count / WINDOW) == batch.last().map(|count| count / WINDOW));
        }
    }
}

#[test]
fn a_reader_waits_for_those_who_are_behind() {
    let order = Order::new(2, 2);
    assert!(!order.is_ahead(AHEAD - 1) && order.is_ahead(AHEAD));
    order.left[0].set(100 << 16);
    assert!(order.is_ahead(AHEAD), "the other way out is behind");
    order.left[1].set(100 << 16);
    assert!(!order.is_ahead(AHEAD + 99) && order.is_ahead(AHEAD + 100));
}

#[test]
fn what_waits_holds_up_what_leaves() {
    let order = Order::new(1, 1);
    order.take(0, 9 << 16);
    order.publish(0, Some(Clock::from_bits(4 << 16 | 1 << 8)));
    assert_eq!(Clock::from_bits(order.through()).count(), 4);
    assert!(order.through() < 4 << 16 | 1 << 8);
    order.publish(0, None);
    assert_eq!(order.through(), 9 << 16);
}

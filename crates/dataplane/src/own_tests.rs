//! However workers take turns, batches are the same, and packets leave in the order in which they were read.

use catena_packet::clock::Roots;
use catena_packet::wire::Seed;
use catena_packet::{Clock, Depot};
use proptest::prelude::*;

use super::*;
use crate::module::Module;
use crate::order::{AHEAD, Merge};
use crate::port::in_turn;
use crate::queue::{QueueIn, queue};
use crate::slots::Slots;
use crate::steer::Whose;

/// Gives a side's packets: each has its time, the worker that it belongs to, and whether it is large.
struct Script {
    packets: std::vec::IntoIter<(u64, u8, bool)>,
    side: u8,
    /// Now and then, packets that one pull gives; a source may have fewer than asked for.
    few: bool,
}

impl Source for Script {
    fn pull(&mut self, cx: &mut Context, batch: &mut Batch) -> Pulled {
        let most = if self.few { 1 + self.packets.len() % BATCH } else { BATCH };
        for (time, owner, is_large) in self.packets.by_ref().take(most) {
            let mut packet = cx.pool().take(if is_large { SMALL_BYTES + 1 } else { 60 }).expect("enough buffers");
            packet.data_mut()[..60].copy_from_slice(&frame(self.side, owner));
            packet.meta_mut().arrival = time;
            packet.meta_mut().came_at(time);
            cx.set_now(time);
            batch.push(packet);
        }
        if self.packets.len() == 0 { Pulled::Done } else { Pulled::More }
    }
}

/// An IPv4 packet whose worker stands in the last byte of its source.
fn frame(side: u8, owner: u8) -> [u8; 60] {
    let mut frame = [0; 60];
    frame[12..16].copy_from_slice(&[8, 0, 0x45, 0]);
    frame[16..18].copy_from_slice(&[0, 46]);
    frame[22..24].copy_from_slice(&[64, 253]);
    frame[26..34].copy_from_slice(&[10, side, 0, owner, 192, 0, 2, 1]);
    frame
}

/// One worker: it lets a packet go late now and then, as one that waits for others.
struct Worker {
    own: Own,
    held: Vec<Packet>,
    out: QueueIn,
    batches: Vec<Vec<u64>>,
    is_done: bool,
    cx: Context,
}

impl Worker {
    /// Take a batch and let go what is in hand, but for some packets if `keeps`.
    fn step(&mut self, order: &Order, keeps: bool) {
        let Worker { own, held, out, batches, is_done, cx } = self;
        let mut batch = Batch::new();
        if !keeps || held.is_empty() {
            *is_done |= own.pull(cx, &mut batch) == Pulled::Done;
        }
        if !batch.is_empty() {
            batches.push(batch.iter().map(|packet| packet.meta().clock.count()).collect());
        }
        // No packet comes after a bound at a time that it was not before.
        assert!(batch.iter().all(|packet| packet.meta().time() + STEP > cx.now()), "a worker is ahead of its packets");
        held.extend(batch.drain());
        let stays = |packet: &mut Packet| keeps && packet.meta().clock.count().is_multiple_of(5);
        let mut leaving = Batch::new();
        for packet in held.extract_if(.., |packet| !stays(packet)) {
            leaving.push(packet);
            if leaving.is_full() {
                out.process(cx, &mut leaving);
            }
        }
        out.process(cx, &mut leaving);
        order.publish(own.worker(), held.iter().map(|packet| packet.meta().clock).min());
    }
}

type Sides = [Vec<(u64, u8, bool)>; 2];

/// What left, in order: clocks, times and sides; and each worker's batches.
type Carried = (Vec<(Clock, u64, u8)>, Vec<Vec<Vec<u64>>>);

/// Carry packets to the end, or to where it comes that is asked for after so many turns.
fn carry(sides: &Sides, workers: usize, turns: &[(usize, bool)], end: usize) -> Carried {
    // As large buffers are few, so that who takes too many is in another's way.
    let depot = Depot::map(8192 + 512 * workers, (workers + 1) * (Own::MOST_LARGE + 96)).expect("memory");
    let mut cx = Context::new(&depot, 0);
    let order = Order::new(workers, 1);
    let (mut leaving, exit) = queue(8192, workers);
    let mut merge = Merge::new(exit, &order, 0);
    let mut crew: Vec<Worker> = (0..workers)
        .map(|number| {
            let script = |side: usize| {
                let packets = sides[side].clone().into_iter();
                Box::new(Script { packets, side: side as u8, few: number == 1 }) as Box<dyn Source>
            };
            let mut roots = Roots::default();
            let inputs = (0u16..)
                .zip(in_turn([script(0), script(1)]))
                .map(|(side, source)| Input::new(Box::new(source), roots.one_more().expect("two are not many"), side));
            // On the way back whoever knows is asked; so does this test on both, as sides tell nothing here.
            let asked = Box::new(|packet: &Packet| Some(Whose::Worker(packet.data()[29].into())));
            let inputs: Vec<Input> = inputs.map(|input| Input { side: 1, ..input }).collect();
            let own = Own::new(
                inputs,
                Spread::new(&Slots::even(workers as u16), Seed::from_number(1), asked),
                &order,
                number,
            );
            let out = leaving.pop().expect("one for each");
            Worker { own, held: Vec::new(), out, batches: Vec::new(), is_done: false, cx: Context::new(&depot, 0) }
        })
        .collect();
    let (mut left, mut is_over, mut turn_number) = (Vec::new(), false, 0);
    let mut turns = turns.iter().cycle();
    while !is_over {
        let Some(&(turn, keeps)) = turns.next() else { break };
        turn_number += 1;
        if turn_number == end {
            order.stop();
        }
        if let Some(worker) = crew.get_mut(turn) {
            worker.step(&order, keeps);
            let count = worker.own.count;
            let gone = left.last().map_or(0, |(clock, ..): &(Clock, u64, u8)| clock.count());
            assert!(count <= gone + AHEAD, "{count} were read and {gone} had left");
            if worker.is_done {
                worker.step(&order, false);
                worker.out.room().close();
                order.end(worker.own.worker());
            }
        } else {
            let mut batch = Batch::new();
            is_over = merge.pull(&mut cx, &mut batch) == Pulled::Done;
            left.extend(batch.iter().map(|packet| {
                let meta = packet.meta();
                (meta.clock, meta.arrival, packet.data()[27])
            }));
            cx.pool().put_batch(&mut batch);
        }
    }
    let batches = crew.iter_mut().map(|worker| std::mem::take(&mut worker.batches)).collect();
    // Time is over for all, whoever had the last packet.
    let last = left.iter().map(|(_, time, _)| *time).max().unwrap_or(0);
    assert!(crew.iter().all(|worker| worker.cx.now() >= last), "{last}");
    drop((crew, merge, cx));
    assert!(depot.all_home());
    (left, batches)
}

fn sides(packets: &[(bool, u64, u8, bool)], workers: usize) -> Sides {
    let mut time = 1;
    let mut sides = Sides::default();
    for (side, step, owner, is_large) in packets {
        time += step * STEP / 4;
        // A worker that gets nearly nothing must not hold up the others for long.
        sides[usize::from(*side)].push((time, owner.saturating_sub(20) % workers as u8, *is_large));
    }
    sides
}

/// What one worker would let leave.
fn expected(sides: &Sides) -> Vec<(Clock, u64, u8)> {
    let all = (0u8..).zip(sides).flat_map(|(side, packets)| packets.iter().map(move |packet| (packet.0, side)));
    let mut all: Vec<_> = all.collect();
    all.sort();
    let numbered = |(count, (time, side)): (u64, (u64, u8))| {
        (Clock::from_bits(count << 16 | u64::from(side + 1) << 8), time, side)
    };
    (1u64..).zip(all).map(numbered).collect()
}

fn packets() -> impl Strategy<Value = Vec<(bool, u64, u8, bool)>> {
    let some = |most| prop::collection::vec((any::<bool>(), 0u64..3, 0u8..30, prop::bool::weighted(0.1)), 0..most);
    prop_oneof![some(9000), some(700)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn packets_leave_as_they_were_read_and_batches_are_those_of_every_run(
        packets in packets(),
        workers in 1usize..5,
        turns in prop::array::uniform2(prop::collection::vec((0usize..7, any::<bool>()), 1..60)),
    ) {
        let sides = sides(&packets, workers);
        let [(left, batches), (again, others)] = turns.map(|mut turns| {
            turns.extend((0..=workers + 1).map(|turn| (turn, false)));
            carry(&sides, workers, &turns, usize::MAX)
        });
        prop_assert_eq!(&left, &expected(&sides));
        prop_assert_eq!(left, again);
        prop_assert_eq!(&batches, &others);
    }

    #[test]
    fn all_end_at_the_same_packet(
        packets in packets(),
        workers in 1usize..5,
        mut turns in prop::collection::vec((0usize..7, any::<bool>()), 1..60),
        end in 0usize..600,
    ) {
        let sides = sides(&packets, workers);
        turns.extend((0..=workers + 1).map(|turn| (turn, false)));
        let (left, _) = carry(&sides, workers, &turns, end);
        let all = expected(&sides);
        prop_assert!(all.starts_with(&left), "{} of {} left, and not the first", left.len(), all.len());
    }

    #[test]
    fn large_packets_of_one_worker_leave_room_for_the_others(
        turns in prop::collection::vec((0usize..4, any::<bool>()), 1..60),
    ) {
        let mut turns = turns;
        turns.extend((0..4).map(|turn| (turn, false)));
        // Worker 1 has thousands before worker 0 has its first.
        let owner = |at: u64| if at < 3000 { 1 } else { (at % 2) as u8 };
        let one: Vec<_> = (0..5000).map(|at| (at, owner(at), true)).collect();
        let sides = [one, Vec::new()];
        let (left, _) = carry(&sides, 2, &turns, usize::MAX);
        prop_assert_eq!(left, expected(&sides));
    }
}

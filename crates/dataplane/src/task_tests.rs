//! Packets of two sides on their way to another worker: whoever is faster, they come in the order in which they
//! were read.

use std::sync::{Arc, Mutex};

use catena_packet::clock::Roots;
use catena_packet::wire::Seed;
use catena_packet::{BATCH, Clock, Depot, DepotHandle, Way};
use proptest::prelude::*;

use super::*;
use crate::module::Module;
use crate::pipeline::{Pipeline, Time};
use crate::port::in_turn;
use crate::queue::queue;
use crate::slots::Slots;
use crate::steer::{Spread, Steer};

/// Gives one side's packets: each is there at its time and has a client.
struct Script {
    packets: std::vec::IntoIter<(u64, u8)>,
    side: usize,
}

impl Source for Script {
    fn pull(&mut self, cx: &mut Context, batch: &mut Batch) -> Pulled {
        for (time, client) in self.packets.by_ref().take(BATCH) {
            let mut packet = cx.pool().take(60).expect("the test has enough buffers");
            packet.data_mut().copy_from_slice(&frame(self.side, client));
            packet.meta_mut().arrival = time;
            batch.push(packet);
        }
        if self.packets.len() == 0 { Pulled::Done } else { Pulled::More }
    }
}

/// An IPv4 packet of a client: from it on side 0, to it on side 1.
fn frame(side: usize, client: u8) -> [u8; 60] {
    let mut frame = [0; 60];
    frame[12..16].copy_from_slice(&[8, 0, 0x45, 0]);
    frame[16..18].copy_from_slice(&[0, 46]);
    frame[22..24].copy_from_slice(&[64, 253]);
    let (client, server) = ([10, 0, 0, client], [192, 0, 2, 1]);
    let ends = if side == 0 { [client, server] } else { [server, client] };
    frame[26..34].copy_from_slice(&ends.concat());
    frame
}

/// A batch that a worker saw: the gate, the worker's time, and the packets' times and clocks.
type Saw = (u16, u64, Vec<(u64, Clock)>);

type Seen = Arc<Mutex<Vec<Saw>>>;

struct Note(Seen);

impl Module for Note {
    fn process(&mut self, cx: &mut Context, batch: &mut Batch) {
        let times = batch.iter().map(|packet| (packet.meta().arrival, packet.meta().clock)).collect();
        self.0.lock().unwrap().push((cx.gate(), cx.now(), times));
        cx.pool().put_batch(batch);
    }
}

struct Pair {
    depot: DepotHandle,
    first: Pipeline,
    second: Pipeline,
    seen: [Seen; 2],
}

/// Two workers' pipelines: the first reads two sides, keeps its share and hands the rest to the second.
fn pair(sides: [Vec<(u64, u8)>; 2]) -> Pair {
    let seen = [Seen::default(), Seen::default()];
    let (mut first, mut second) = (Pipeline::new(Time::Packets), Pipeline::new(Time::Packets));
    let (mut entrances, exit) = queue(256, 1);
    let entrance = entrances.remove(0);
    let room = entrance.room();
    let own = first.graph.add("own", Box::new(Note(seen[0].clone())));
    let other = first.graph.add("to worker 1", Box::new(entrance));
    let mut number = 0..;
    let sources = sides.map(|packets| {
        let side = number.next().unwrap_or_default();
        Box::new(Script { packets: packets.into_iter(), side }) as Box<dyn Source>
    });
    let mut roots = Roots::default();
    for (side, source) in (0u16..).zip(in_turn(sources)) {
        let steer = first.graph.add(
            "spread",
            Box::new(Steer::new(Spread::new(&Slots::even(2), Seed::from_number(1), Box::new(|_| None)))),
        );
        first.graph.connect(steer, 0, Inlet { node: own, gate: side });
        first.graph.connect(steer, 1, other);
        let root = roots.one_more().expect("two are not many");
        let mut task = Task::new("side", Box::new(source), Inlet { node: steer, gate: side }).rooted(root);
        task.heed(room.clone());
        first.add_task(task);
    }
    let node = second.graph.add("share", Box::new(Note(seen[1].clone())));
    let inlets = [0, 1].map(|gate| Inlet { node, gate });
    second.add_task(Task::by_side("share", Box::new(exit), inlets.into(), true));
    Pair { depot: Depot::map(4096, 64).unwrap(), first, second, seen }
}

/// Run both by turns, so many steps of the second after each of the first; returns what they saw.
fn play(sides: &[Vec<(u64, u8)>; 2], turns: &[usize]) -> [Vec<Saw>; 2] {
    let Pair { depot, mut first, mut second, seen } = pair(sides.clone());
    let (mut cx, mut other) = (Context::new(&depot, 0), Context::new(&depot, 0));
    for &steps in turns.iter().cycle() {
        first.step(&mut cx);
        (0..steps).for_each(|_| _ = second.step(&mut other));
        if first.is_done() {
            break;
        }
    }
    assert!(first.graph.end(&mut cx).is_empty());
    while !second.is_done() {
        second.step(&mut other);
    }
    drop((first, second, cx, other));
    assert!(depot.all_home());
    seen.map(|seen| std::mem::take(&mut *seen.lock().unwrap()))
}

proptest! {
    #[test]
    fn no_packet_overtakes_one_of_the_other_side(
        mut sides in prop::array::uniform2(prop::collection::vec((1u64..2000, 0u8..40), 0..400)),
        turns in prop::collection::vec(0usize..4, 1..20),
    ) {
        prop_assume!(turns.iter().any(|steps| *steps > 0));
        sides.iter_mut().for_each(|side| side.sort_by_key(|(time, _)| *time));
        let seen = play(&sides, &turns);
        let mut expected: Vec<(u64, u16)> =
            (0u16..).zip(&sides).flat_map(|(side, packets)| packets.iter().map(move |p| (p.0, side))).collect();
        let mut came = Vec::new();
        for worker in &seen {
            let order: Vec<(u64, u16)> =
                worker.iter().flat_map(|(gate, _, times)| times.iter().map(|(time, _)| (*time, *gate))).collect();
            prop_assert!(order.is_sorted(), "not by times, side 0 first: {order:?}");
            let is_in_time = |(_, now, times): &Saw| times.last().is_some_and(|(last, _)| now >= last);
            prop_assert!(worker.iter().all(is_in_time));
            came.extend(order);
        }
        came.sort_unstable();
        expected.sort_unstable();
        prop_assert_eq!(came, expected);
    }

    #[test]
    fn clocks_are_those_of_the_sources_behind_queues_too(
        mut sides in prop::array::uniform2(prop::collection::vec((1u64..2000, 0u8..40), 0..400)),
    ) {
        sides.iter_mut().for_each(|side| side.sort_by_key(|(time, _)| *time));
        let seen = play(&sides, &[1]);
        let mut clocks: Vec<(Clock, u16, u64)> = seen
            .iter()
            .flatten()
            .flat_map(|(gate, _, packets)| packets.iter().map(|(time, clock)| (*clock, *gate, *time)))
            .collect();
        clocks.sort_unstable();
        let times = |(side, packets): (u16, &Vec<(u64, u8)>)| {
            packets.iter().map(|(time, _)| (*time, side)).collect::<Vec<_>>()
        };
        let mut expected: Vec<(u64, u16)> = (0u16..).zip(&sides).flat_map(times).collect();
        expected.sort();
        let numbered = |(count, (time, side)): (u64, (u64, u16))| {
            (Clock::from_bits(count << 16 | u64::from(side + 1) << 8), side, time)
        };
        prop_assert_eq!(clocks, (1u64..).zip(expected).map(numbered).collect::<Vec<_>>());
    }

    #[test]
    fn live_packets_of_a_batch_go_side_by_side(
        packets in prop::collection::vec((0u16..2, 0u8..40), 0..300),
    ) {
        let depot = Depot::map(4096, 64).expect("memory");
        let (seen, mut pipeline, mut cx) = (Seen::default(), Pipeline::new(Time::Wall), Context::new(&depot, 0));
        let (mut entrances, exit) = queue(512, 1);
        for (at, (side, client)) in (1u64..).zip(&packets) {
            let mut batch = Batch::new();
            let mut packet = cx.pool().take(60).expect("the test has enough buffers");
            packet.data_mut().copy_from_slice(&frame(usize::from(*side), *client));
            (packet.meta_mut().way, packet.meta_mut().arrival) = (Way::by(*side), at);
            batch.push(packet);
            entrances[0].process(&mut cx, &mut batch);
        }
        drop(entrances);
        let node = pipeline.graph.add("share", Box::new(Note(seen.clone())));
        let inlets = [0, 1].map(|gate| Inlet { node, gate });
        pipeline.add_task(Task::by_side("share", Box::new(exit), inlets.into(), false));
        while !pipeline.is_done() {
            pipeline.step(&mut cx);
        }
        let seen = std::mem::take(&mut *seen.lock().expect("nobody panicked"));
        prop_assert!(seen.len() <= 2 * packets.len().div_ceil(BATCH), "{} batches of {}", seen.len(), packets.len());
        for gate in 0..2 {
            let came = seen.iter().filter(|(of, ..)| *of == gate).flat_map(|(_, _, times)| times).map(|(at, _)| *at);
            let sent = (1u64..).zip(&packets).filter(|(_, (side, _))| *side == gate).map(|(at, _)| at);
            prop_assert_eq!(came.collect::<Vec<_>>(), sent.collect::<Vec<_>>());
        }
        drop((pipeline, cx));
        prop_assert!(depot.all_home());
    }
}

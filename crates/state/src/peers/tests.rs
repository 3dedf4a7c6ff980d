//! Workers of a team, one after the other and side by side.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::thread;

use proptest::prelude::*;

use super::*;
use crate::shared::{Op, Shared};
use crate::shared_map::{EntryOp, Place, SharedMap};
use crate::value::{Add, Counts, Get};
use crate::{Access, FlowMap, Intent, Scope, Stored};

const COUNTS: Declaration = Declaration::shared("counts", "numbers", Scope::Global, Access::ReadWrite);
const OTHERS: Declaration = Declaration::shared("others", "more numbers", Scope::Global, Access::ReadWrite);
const LINE: Declaration = Declaration::shared("line", "who came", Scope::Global, Access::ReadWrite);
const SUMS: Declaration = Declaration::shared_map("sums", "a sum of each", Scope::Source, Access::ReadWrite);
const FLOWS: Declaration =
    Declaration::flow_map("flows", "something of each flow", Scope::Connection, Access::ReadWrite);

/// Who came, in order.
#[derive(Stored)]
struct Line(Vec<u64>);

/// Join the line; answers how many were there.
#[derive(Clone, Copy, Plain)]
struct Join(u64);

crate::operations!("line": Line { 0 => Join });

impl Op<Line> for Join {
    type Reply = u64;

    fn apply(self, line: &mut Line) -> u64 {
        line.0.push(self.0);
        line.0.len() as u64 - 1
    }
}

#[derive(Clone, Copy, Debug, Plain)]
struct Sum(u64);

#[derive(Clone, Copy, Plain)]
struct More(u64);

crate::entry_operations!("sum": Sum { 0 => More });

impl Entry for Sum {
    type Rules = ();

    fn end(&self, (): &()) -> u64 {
        crate::FOREVER
    }
}

impl EntryOp<Sum> for More {
    type Reply = u64;

    fn apply(self, slot: &mut impl Place<Sum>) -> u64 {
        let before = slot.get().map_or(0, |sum| sum.0);
        _ = slot.insert(0, Sum(before + self.0));
        before + self.0
    }
}

/// A worker's objects.
struct Bench {
    engine: Peers,
    counts: PeersShared<Counts>,
    others: PeersShared<Counts>,
    line: PeersShared<Line>,
    sums: PeersSharedMap<u64, Sum>,
    flows: PeersMap<LocalMap<u64, u64>>,
}

fn team(workers: usize) -> Vec<Bench> {
    benches(workers, &Team::in_order(workers, Arc::new(|| u64::MAX - 1)))
}

fn benches(workers: usize, team: &Arc<Team>) -> Vec<Bench> {
    let make = |worker| {
        let mut engine = Peers::new(Seed::from_number(1), team, worker).expect("an order");
        engine.make_for("it");
        let [counts, others] = [COUNTS, OTHERS].map(|object| engine.shared(&object, Counts::new(2)));
        let line = engine.shared(&LINE, Line(Vec::new()));
        let sums = engine.shared_map(&SUMS, 100, ()).unwrap();
        let flows = engine.flow_map(&FLOWS, 100).unwrap();
        Bench { engine, counts, others, line, sums, flows }
    };
    (0..workers).map(make).collect()
}

fn begin(engine: &mut Peers) -> Tx {
    engine.begin(Tx::new(1, 0, 0))
}

#[test]
fn what_one_worker_tells_all_know() {
    let mut team = team(3);
    for _ in 0..2 {
        for bench in &mut team {
            let mut tx = begin(&mut bench.engine);
            bench.counts.send(&mut tx, Add::to(1, 5));
            bench.others.send(&mut tx, Add::to(0, 7));
            bench.engine.end(tx);
            bench.engine.poll();
        }
    }
    team.iter_mut().for_each(|bench| _ = bench.engine.poll());
    for bench in &team {
        assert_eq!([bench.counts.look(Get::at(1)), bench.others.look(Get::at(0))], [30, 42]);
        assert!(bench.engine.has_sent_all());
    }
}

#[test]
fn a_reply_is_there_once_the_owner_has_answered() {
    let mut team = team(2);
    let [owner, other] = &mut team[..] else { panic!("two workers") };
    // Of four objects the first is that of the first worker, the third too.
    let mut tx = begin(&mut other.engine);
    let (line, sum) = (other.line.want(&mut tx, Join(4)), other.sums.want(&mut tx, 9, More(3)));
    assert!(!other.engine.is_ready(&tx), "it was not sent off");
    owner.engine.poll();
    other.engine.poll();
    assert!(!other.engine.is_ready(&tx));
    other.engine.issue(&mut tx);
    other.engine.poll();
    assert!(!other.engine.is_ready(&tx));
    // Of one clock, the owner's own comes first.
    let mut own = begin(&mut owner.engine);
    let ticket = owner.line.want(&mut own, Join(3));
    owner.engine.issue(&mut own);
    owner.engine.poll();
    assert!(owner.engine.is_ready(&own));
    assert_eq!(owner.line.got(&mut own, &ticket), 0);
    owner.engine.end(own);
    other.engine.poll();
    assert!(other.engine.is_ready(&tx));
    assert_eq!(other.line.got(&mut tx, &line), 1);
    assert_eq!(other.sums.got(&mut tx, &sum), 3, "this is its own, and done when it is polled");
    other.engine.end(tx);
    let mut tx = begin(&mut owner.engine);
    let sum = owner.sums.want(&mut tx, 9, More(4));
    owner.engine.issue(&mut tx);
    owner.engine.poll();
    other.engine.poll();
    owner.engine.poll();
    assert_eq!(owner.sums.got(&mut tx, &sum), 7);
    owner.engine.end(tx);
}

#[test]
fn who_is_given_up_before_it_is_sent_off_has_done_nothing() {
    let mut team = team(2);
    let [owner, other] = &mut team[..] else { panic!("two workers") };
    for round in 0..3 {
        let mut tx = begin(&mut other.engine);
        other.line.want(&mut tx, Join(1));
        other.engine.end(tx);
        let mut tx = begin(&mut other.engine);
        let line = other.line.want(&mut tx, Join(2));
        other.engine.issue(&mut tx);
        owner.engine.poll();
        other.engine.poll();
        assert!(other.engine.is_ready(&tx));
        assert_eq!(other.line.got(&mut tx, &line), round);
        other.engine.end(tx);
    }
    assert_eq!(open_line(owner), [2, 2, 2]);
}

fn open_line(bench: &Bench) -> Vec<u64> {
    bench.line.look_at(|line| line.0.clone())
}

/// A ring is full long before.
#[test]
fn what_finds_no_room_comes_later_and_in_order() {
    let mut team = team(2);
    let [owner, other] = &mut team[..] else { panic!("two workers") };
    let mut waiting: Vec<_> = (0..5000)
        .map(|number| {
            let mut tx = begin(&mut other.engine);
            let ticket = other.line.want(&mut tx, Join(number));
            other.engine.issue(&mut tx);
            (tx, ticket)
        })
        .collect();
    assert!(!other.engine.has_sent_all());
    while waiting.iter().any(|(tx, _)| !other.engine.is_ready(tx)) {
        owner.engine.poll();
        other.engine.poll();
    }
    for (number, (mut tx, ticket)) in (0..).zip(waiting.drain(..)) {
        assert_eq!(other.line.got(&mut tx, &ticket), number);
        other.engine.end(tx);
    }
    assert_eq!(open_line(owner), (0..5000).collect::<Vec<_>>());
    assert!(other.engine.has_sent_all() && owner.engine.has_sent_all());
}

#[test]
fn packets_that_ask_for_one_entry_follow_each_other() {
    let mut team = team(1);
    let Bench { engine, flows, .. } = &mut team[0];
    let mut asks = |keys: &[u64]| {
        let mut tx = begin(engine);
        keys.iter().for_each(|key| _ = flows.want(&mut tx, *key, Intent::Change));
        tx
    };
    let [a, b, c] = [asks(&[1, 2]), asks(&[2, 3]), asks(&[4])];
    assert!(engine.follows(&b, &a) && !engine.follows(&c, &a) && !engine.follows(&c, &b));
}

/// Workers on threads of their own ask and tell as fast as they can.
#[test]
fn workers_side_by_side_lose_nothing() {
    const EACH: u64 = 20_000;
    let team = team(3);
    let done = Arc::new(AtomicUsize::new(0));
    let run = |(worker, mut bench): (u64, Bench)| {
        let done = Arc::clone(&done);
        thread::spawn(move || {
            let (mut waiting, mut replies) = (Vec::new(), Vec::new());
            let mut next = 0;
            while next < EACH || !waiting.is_empty() {
                if next < EACH && waiting.len() < 64 {
                    let mut tx = begin(&mut bench.engine);
                    let ticket = bench.line.want(&mut tx, Join(worker << 32 | next));
                    bench.engine.issue(&mut tx);
                    waiting.push((tx, ticket));
                    next += 1;
                }
                bench.engine.poll();
                while waiting.first().is_some_and(|(tx, _)| bench.engine.is_ready(tx)) {
                    let (mut tx, ticket) = waiting.remove(0);
                    replies.push(bench.line.got(&mut tx, &ticket));
                    bench.counts.send(&mut tx, Add::to(0, 1));
                    bench.others.send(&mut tx, Add::to(1, 1));
                    bench.engine.end(tx);
                }
            }
            // As at the end of a run: what was told last is on its way before others hear that this one has come so far.
            bench.engine.flush();
            while !bench.engine.has_sent_all() {
                bench.engine.poll();
            }
            done.fetch_add(1, std::sync::atomic::Ordering::AcqRel);
            while done.load(std::sync::atomic::Ordering::Acquire) < 3 {
                bench.engine.poll();
            }
            bench.engine.poll();
            (bench, replies)
        })
    };
    let threads: Vec<_> = (0u64..).zip(team).map(run).collect();
    let ended: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    let line = open_line(&ended[0].0);
    assert_eq!(line.len() as u64, 3 * EACH);
    let mut all: Vec<u64> = Vec::new();
    for (worker, (bench, replies)) in (0u64..).zip(&ended) {
        // Each was told its own place, and its places are in the order in which it asked.
        let own = (0..).map(|number| worker << 32 | number);
        replies.iter().zip(own).for_each(|(place, number)| assert_eq!(line[*place as usize], number));
        assert!(replies.is_sorted());
        all.extend(replies);
        assert_eq!([bench.counts.look(Get::at(0)), bench.others.look(Get::at(1))], [3 * EACH as i64; 2]);
    }
    all.sort_unstable();
    assert_eq!(all, (0..3 * EACH).collect::<Vec<_>>());
}

/// A packet that waits: for the sum of a key after so much more.
type Waiting = (Tx, u64, PeersAsked<More>, u64);

proptest! {
    /// Whatever is asked and told by whom, and whoever is polled when: replies are those of one worker who did all of it in the
    /// order in which the owner did, and each worker's own order is kept.
    #[test]
    fn operations_are_done_once_and_in_order(
        steps in prop::collection::vec((0usize..3, 0u8..4, 0u64..4, 1u64..10), 1..200),
    ) {
        let mut team = team(3);
        let mut waiting: [Vec<Waiting>; 3] = [(); 3].map(|()| Vec::new());
        let mut replies: Vec<(u64, u64, u64)> = Vec::new();
        let mut total = std::collections::BTreeMap::new();
        for (worker, action, key, more) in steps {
            let bench = &mut team[worker];
            if action == 0 {
                let mut tx = begin(&mut bench.engine);
                let ticket = bench.sums.want(&mut tx, key, More(more));
                bench.engine.issue(&mut tx);
                *total.entry(key).or_insert(0) += more;
                waiting[worker].push((tx, key, ticket, more));
            } else {
                bench.engine.poll();
            }
            while waiting[worker].first().is_some_and(|(tx, ..)| bench.engine.is_ready(tx)) {
                let (mut tx, key, ticket, more) = waiting[worker].remove(0);
                replies.push((key, bench.sums.got(&mut tx, &ticket), more));
                bench.engine.end(tx);
            }
        }
        for _ in 0..2 {
            team.iter_mut().for_each(|bench| _ = bench.engine.poll());
        }
        for (bench, waiting) in team.iter_mut().zip(&mut waiting) {
            bench.engine.poll();
            for (mut tx, key, ticket, more) in waiting.drain(..) {
                prop_assert!(bench.engine.is_ready(&tx));
                replies.push((key, bench.sums.got(&mut tx, &ticket), more));
                bench.engine.end(tx);
            }
        }
        // The sums of a key rise by what was added, from nothing to the total: each step once.
        replies.sort_unstable();
        for (key, total) in total {
            let mut before = 0;
            for (_, sum, more) in replies.iter().filter(|(of, ..)| *of == key) {
                prop_assert_eq!(*sum, before + more);
                before = *sum;
            }
            prop_assert_eq!(before, total);
        }
    }
}

proptest! {
    /// However workers take turns, and whoever owns the object: the next packet's operation is the next one.
    #[test]
    fn a_replay_does_what_is_asked_in_the_order_of_its_packets(
        owners in prop::collection::vec(0usize..3, 1..60),
        mut turns in prop::collection::vec(0usize..3, 1..40),
    ) {
        turns.extend(0..3);
        let through: Arc<[AtomicU64; 3]> = Arc::default();
        let horizon = Arc::clone(&through);
        let horizon = move || horizon.iter().map(|through| through.load(Relaxed)).min().unwrap_or(0);
        let mut team = benches(3, &Team::in_order(3, Arc::new(horizon)));
        let mut given: Vec<VecDeque<u64>> = vec![VecDeque::new(); 3];
        for (number, owner) in (0..).zip(&owners) {
            given[*owner].push_back(number);
        }
        let clock = |number: u64| (number + 1) << 16 | 1 << 8;
        let mut waiting: [Option<(Tx, PeersAsked<Join>)>; 3] = Default::default();
        let mut done = 0;
        for worker in turns.into_iter().cycle() {
            let Bench { engine, line, counts, .. } = &mut team[worker];
            let next = given[worker].front().copied();
            if let (Some(number), None) = (next, &waiting[worker]) {
                let mut tx = engine.begin(Tx::new(clock(number), 0, 0));
                let ticket = line.want(&mut tx, Join(number));
                engine.issue(&mut tx);
                waiting[worker] = Some((tx, ticket));
            }
            engine.poll();
            if let Some((mut tx, ticket)) = waiting[worker].take_if(|(tx, _)| engine.is_ready(tx)) {
                prop_assert_eq!(line.got(&mut tx, &ticket), given[worker].pop_front().expect("it was the first"));
                counts.send(&mut tx, Add::to(0, 1));
                engine.end(tx);
                engine.flush();
                done += 1;
            }
            let first = given[worker].front().map_or(u64::MAX, |number| clock(*number) - 1);
            through[worker].store(first, Relaxed);
            if done == owners.len() {
                break;
            }
        }
        team.iter_mut().for_each(|bench| _ = bench.engine.poll());
        let all: Vec<u64> = (0..owners.len() as u64).collect();
        prop_assert_eq!(open_line(&team[0]), all);
        prop_assert_eq!(team[1].counts.look(Get::at(0)), owners.len() as i64);
    }
}

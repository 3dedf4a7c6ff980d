//! The operations that every function may use do the same on every engine as on a plain model.

use std::sync::Arc;

use super::by_key::{Life, NO_ROOM, Number};
use super::*;
use crate::declare::{Access, Declaration, Scope};
use crate::delayed::Delayed;
use crate::engine::{Engine, Share};
use crate::local::Local;
use crate::peers::{Peers, Team};
use crate::shared::{Op, Shared};
use crate::shared_map::{EntryOp, SharedMap};
use crate::tx::Tx;
use catena_packet::wire::Seed;
use proptest::prelude::*;

const NUMBERS: Declaration = Declaration::shared("numbers", "numbers", Scope::Global, Access::ReadWrite);
const LINE: Declaration = Declaration::shared("line", "a list", Scope::Global, Access::ReadWrite);
const OF_KEYS: Declaration = Declaration::shared_map("of keys", "numbers", Scope::Source, Access::ReadWrite);
const WORK: Declaration = Declaration::shared("work", "loads", Scope::Global, Access::ReadWrite);

const COUNT: usize = 4;
const MOST: usize = 3;
/// Keys that have room, and how long an unused number lives: what is over is looked for some milliseconds later.
const ROOM: usize = 4;
const LIFE: u64 = 9_500_000_000;
const SECOND: u64 = 1_000_000_000;

/// What a packet asks for, and what follows.
type Step = (u8, u32, i64);

/// Objects on an engine, and packets that come one after the other.
struct Bench<E: Engine> {
    engine: E,
    numbers: E::Shared<Counts>,
    line: E::Shared<List>,
    work: E::Shared<Loads>,
    of_keys: E::SharedMap<u64, Number>,
    clock: u64,
}

impl<E: Engine> Bench<E> {
    fn new(mut engine: E) -> Self {
        engine.make_for("it");
        let numbers = engine.shared(&NUMBERS, Counts::new(COUNT));
        let line = engine.shared(&LINE, List::new(MOST, [100]));
        let work = engine.shared(&WORK, Loads::new(COUNT));
        let of_keys = engine.shared_map(&OF_KEYS, ROOM, Life::of_unused(LIFE)).expect("room");
        Bench { engine, numbers, line, work, of_keys, clock: 0 }
    }

    /// Let a packet ask for something, and wait for the reply.
    fn packet<T, R>(&mut self, ask: impl Fn(&mut Self, &mut Tx) -> T, take: impl Fn(&mut Self, &mut Tx, &T) -> R) -> R {
        self.clock += 1;
        let mut tx = self.engine.begin(Tx::new(self.clock, 0, 0));
        let ticket = ask(self, &mut tx);
        self.engine.issue(&mut tx);
        while !self.engine.is_ready(&tx) {
            self.engine.poll();
        }
        self.engine.step(&mut tx);
        let reply = take(self, &mut tx, &ticket);
        self.engine.commit(&mut tx);
        self.engine.end(tx);
        reply
    }

    /// Ask an object for an operation.
    fn ask<S: Shared<V>, V, O: Op<V>>(&mut self, object: impl Fn(&mut Self) -> &mut S, op: O) -> O::Reply {
        self.packet(|bench, tx| object(bench).want(tx, op), |bench, tx, ticket| object(bench).got(tx, ticket))
    }

    /// Ask for an operation on the number of a key.
    fn by_key<O: EntryOp<Number>>(&mut self, key: u64, op: O) -> O::Reply {
        self.packet(|bench, tx| bench.of_keys.want(tx, key, op), |bench, tx, ticket| bench.of_keys.got(tx, ticket))
    }

    /// Do a step on the number of a key, at a time; returns what was answered, as a number.
    fn step_by_key(&mut self, (which, key, n): Step, now: u64) -> Option<i64> {
        let key = key.into();
        match which {
            0 => {
                self.by_key(key, by_key::Add { n, now });
                None
            }
            1 => Some(self.by_key(key, by_key::Get { now })),
            2 => self.by_key(key, by_key::Set { n, now }),
            3 => Some(self.by_key(key, by_key::Take { now })),
            4 => self.by_key(key, by_key::Replace { old: n, new: n + 1, now }),
            _ => Some(self.by_key(key, by_key::Admit { n, most: 4, now }).into()),
        }
    }

    /// Do a step; returns what was answered, as a number.
    fn step(&mut self, (which, index, n): Step) -> Option<i64> {
        match which {
            0 => {
                self.ask(|bench| &mut bench.numbers, Add { index, n });
                None
            }
            1 => Some(self.ask(|bench| &mut bench.numbers, Get::at(index as usize))),
            2 => Some(self.ask(|bench| &mut bench.numbers, Set { index, n })),
            3 => Some(self.ask(|bench| &mut bench.numbers, Take { index })),
            4 => Some(self.ask(|bench| &mut bench.numbers, Replace { index, old: n, new: n + 1 })),
            5 => Some(self.ask(|bench| &mut bench.numbers, Admit { index, n, most: 4 }).into()),
            6 => self.ask(|bench| &mut bench.numbers, LeastAndAdd { n }).map(i64::from),
            7 => Some(self.ask(|bench| &mut bench.line, Push(n as u64)).into()),
            8 => self.ask(|bench| &mut bench.line, Pop).map(|n| n as i64),
            9 => Some(self.ask(|bench| &mut bench.line, Length) as i64),
            10 => {
                self.ask(|bench| &mut bench.work, SetUp { index, up: n > 0 });
                None
            }
            11 => {
                self.ask(|bench| &mut bench.work, Add { index, n });
                None
            }
            12 => Some(self.ask(|bench| &mut bench.work, Get::at(index as usize))),
            _ => self.ask(|bench| &mut bench.work, LeastAndAdd { n }).map(i64::from),
        }
    }
}

/// The same in plain words.
struct Model {
    numbers: [i64; COUNT],
    line: Vec<i64>,
    work: [(bool, i64); COUNT],
}

impl Model {
    fn step(&mut self, (which, index, n): Step) -> Option<i64> {
        let Model { numbers, line, work } = self;
        let at = index as usize;
        let is_there = at < COUNT;
        match which {
            0 if is_there => numbers[at] += n,
            0 => {}
            1 => return Some(if is_there { numbers[at] } else { 0 }),
            2..5 if !is_there => return Some(0),
            2..5 => {
                let before = numbers[at];
                numbers[at] = match which {
                    2 => n,
                    3 => 0,
                    _ if before == n => n + 1,
                    _ => before,
                };
                return Some(before);
            }
            5 => {
                let admits = is_there && numbers[at] + n <= 4;
                if admits {
                    numbers[at] += n;
                }
                return Some(admits.into());
            }
            6 => {
                let at = (0..COUNT).min_by_key(|at| (numbers[*at], *at))?;
                numbers[at] += n;
                return Some(at as i64);
            }
            7 => {
                let has_room = line.len() < MOST;
                if has_room {
                    line.push(n as u64 as i64);
                }
                return Some(has_room.into());
            }
            8 => return (!line.is_empty()).then(|| line.remove(0)),
            9 => return Some(line.len() as i64),
            10 if is_there => work[at].0 = n > 0,
            11 if is_there => work[at].1 += n,
            10 | 11 => {}
            12 => return Some(if is_there { work[at].1 } else { 0 }),
            _ => {
                let at = (0..COUNT).filter(|at| work[*at].0).min_by_key(|at| (work[*at].1, *at))?;
                work[at].1 += n;
                return Some(at as i64);
            }
        }
        None
    }
}

proptest! {
    #[test]
    fn standard_operations_do_the_same_on_every_engine(
        steps in prop::collection::vec((0u8..14, 0..COUNT as u32 + 1, -2i64..4), 1..60),
        seed in any::<u64>(),
    ) {
        let mut model = Model { numbers: [0; COUNT], line: vec![100], work: [(true, 0); COUNT] };
        let expected: Vec<_> = steps.iter().map(|step| model.step(*step)).collect();
        let hash = Seed::from_number(1);
        let mut local = Bench::new(Local::new(hash, Share::WHOLE));
        let mut late = Bench::new(Delayed::new(hash, Share::WHOLE, seed));
        let team = Team::in_order(1, Arc::new(|| u64::MAX - 1));
        let mut peers = Bench::new(Peers::new(hash, &team, 0).expect("an order"));
        for (step, expected) in steps.into_iter().zip(expected) {
            let came = [local.step(step), late.step(step), peers.step(step)];
            prop_assert_eq!(came, [expected; 3], "{:?}", step);
        }
    }

    /// Whether there is room for a new number shows that what is over is forgotten, and that what is taken goes.
    #[test]
    fn standard_operations_by_key_do_the_same_on_every_engine(
        steps in prop::collection::vec(((0u8..6, 0u32..7, -2i64..4), 0u64..5), 1..80),
        seed in any::<u64>(),
    ) {
        let mut model = OfKeys::default();
        let hash = Seed::from_number(1);
        let mut local = Bench::new(Local::new(hash, Share::WHOLE));
        let mut late = Bench::new(Delayed::new(hash, Share::WHOLE, seed));
        let team = Team::in_order(1, Arc::new(|| u64::MAX - 1));
        let mut peers = Bench::new(Peers::new(hash, &team, 0).expect("an order"));
        let mut now = 0;
        for (step, passed) in steps {
            now += passed * SECOND;
            let came = [local.step_by_key(step, now), late.step_by_key(step, now), peers.step_by_key(step, now)];
            prop_assert_eq!(came, [model.step(step, now); 3], "{:?} at {}", step, now);
        }
        let refused = [local.of_keys.tally(NO_ROOM), late.of_keys.tally(NO_ROOM), peers.of_keys.tally(NO_ROOM)];
        prop_assert_eq!(refused, [model.refused; 3]);
    }
}

/// A number for each key, and when it was last used, in plain words.
#[derive(Default)]
struct OfKeys {
    numbers: std::collections::HashMap<u32, (i64, u64)>,
    refused: u64,
}

impl OfKeys {
    fn step(&mut self, (which, key, n): Step, now: u64) -> Option<i64> {
        self.numbers.retain(|_, (_, last)| *last + LIFE > now);
        let before = self.numbers.get(&key).map_or(0, |number| number.0);
        let after = match which {
            0 => Some(before + n),
            1 | 3 => None,
            2 => Some(n),
            4 => (before == n).then_some(n + 1),
            _ => Some(before + n).filter(|sum| *sum <= 4),
        };
        if which == 3 {
            self.numbers.remove(&key);
        }
        let mut has_room = true;
        if let Some(after) = after {
            has_room = self.numbers.contains_key(&key) || self.numbers.len() < ROOM;
            if has_room {
                self.numbers.insert(key, (after, now));
            } else {
                self.refused += 1;
            }
        }
        match which {
            0 => None,
            5 => Some((has_room && after.is_some()).into()),
            _ => has_room.then_some(before),
        }
    }
}

//! The operations that every function may use do the same on every engine as on a plain model.

use std::sync::Arc;

use super::*;
use crate::declare::{Access, Declaration, Scope};
use crate::delayed::Delayed;
use crate::engine::{Engine, Share};
use crate::local::Local;
use crate::peers::{Peers, Team};
use crate::shared::{Op, Shared};
use crate::tx::Tx;
use catena_packet::wire::Seed;
use proptest::prelude::*;

const NUMBERS: Declaration = Declaration::shared("numbers", "numbers", Scope::Global, Access::ReadWrite);
const LINE: Declaration = Declaration::shared("line", "a list", Scope::Global, Access::ReadWrite);
const WORK: Declaration = Declaration::shared("work", "loads", Scope::Global, Access::ReadWrite);

const COUNT: usize = 4;
const MOST: usize = 3;

/// What a packet asks for, and what follows.
type Step = (u8, u32, i64);

/// Objects on an engine, and packets that come one after the other.
struct Bench<E: Engine> {
    engine: E,
    numbers: E::Shared<Counts>,
    line: E::Shared<List>,
    work: E::Shared<Loads>,
    clock: u64,
}

impl<E: Engine> Bench<E> {
    fn new(mut engine: E) -> Self {
        engine.make_for("it");
        let numbers = engine.shared(&NUMBERS, Counts::new(COUNT));
        let line = engine.shared(&LINE, List::new(MOST, [100]));
        let work = engine.shared(&WORK, Loads::new(COUNT));
        Bench { engine, numbers, line, work, clock: 0 }
    }

    /// Let a packet ask an object for an operation, and wait for the reply.
    fn ask<S: Shared<V>, V, O: Op<V>>(&mut self, object: impl Fn(&mut Self) -> &mut S, op: O) -> O::Reply {
        self.clock += 1;
        let mut tx = self.engine.begin(Tx::new(self.clock, 0, 0));
        let ticket = object(self).want(&mut tx, op);
        self.engine.issue(&mut tx);
        while !self.engine.is_ready(&tx) {
            self.engine.poll();
        }
        self.engine.step(&mut tx);
        let reply = object(self).got(&mut tx, &ticket);
        self.engine.commit(&mut tx);
        self.engine.end(tx);
        reply
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
}

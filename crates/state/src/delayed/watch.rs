//! What was asked for by whom, when it will be there, and whether a ticket may be used.

use std::collections::BTreeMap;
use std::panic::Location;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{AT_ONCE, Tx};

/// A result is there after at most so many polls, if nobody says otherwise.
const MOST_DELAY: u64 = 5;

/// The promise of a result: by whom it was asked for, and which one it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Promise {
    tx: Tx,
    step: u32,
    number: u64,
}

/// One operation that was asked for.
struct Asked {
    object: &'static str,
    /// Hash of the key; nothing where any entry will do.
    key: Option<u64>,
    number: u64,
    /// The poll after which the result is there.
    ready: u64,
    taken: bool,
}

/// A packet's operations.
#[derive(Default)]
struct Operations {
    /// Steps begun: 0 in *prepare*.
    step: u32,
    asked: Vec<Asked>,
}

/// All of it.
pub(super) struct Watch {
    random: u64,
    pub(super) most_delay: u64,
    polls: u64,
    next: u64,
    open: BTreeMap<u64, Operations>,
}

pub(super) fn lock(watch: &Mutex<Watch>) -> MutexGuard<'_, Watch> {
    // A panic for a function's violation leaves nothing half done.
    watch.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watch {
    pub(super) fn new(delays: u64) -> Self {
        Watch { random: delays, most_delay: MOST_DELAY, polls: 0, next: 1, open: BTreeMap::new() }
    }

    /// Return the next of a series of numbers (splitmix64).
    fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    pub(super) fn begin(&mut self) -> Tx {
        let number = self.number();
        self.open.insert(number, Operations::default());
        Tx(number)
    }

    pub(super) fn step(&mut self, tx: Tx) {
        if let Some(operations) = self.open.get_mut(&tx.0) {
            operations.step += 1;
        }
    }

    pub(super) fn end(&mut self, tx: Tx) {
        self.open.remove(&tx.0);
    }

    pub(super) fn poll(&mut self) {
        self.polls += 1;
    }

    pub(super) fn is_ready(&self, tx: Tx) -> bool {
        self.open.get(&tx.0).is_none_or(|operations| operations.asked.iter().all(|asked| asked.ready <= self.polls))
    }

    pub(super) fn follows(&self, tx: Tx, earlier: Tx) -> bool {
        let (Some(later), Some(earlier)) = (self.open.get(&tx.0), self.open.get(&earlier.0)) else { return false };
        later
            .asked
            .iter()
            .any(|later| earlier.asked.iter().any(|earlier| later.object == earlier.object && later.key == earlier.key))
    }

    /// Note what a packet asks for.
    #[track_caller]
    pub(super) fn ask(&mut self, tx: Tx, object: &'static str, key: Option<u64>) -> Promise {
        let number = self.number();
        let delay = if self.random().is_multiple_of(2) { 0 } else { self.random() % (self.most_delay + 1) };
        let ready = self.polls + delay;
        let Some(operations) = self.open.get_mut(&tx.0) else {
            if AT_ONCE.contains(&object) {
                return Promise { tx, step: 0, number };
            }
            panic!("{object}: asked for by a packet whose operations are over, at {}", Location::caller())
        };
        let step = operations.step;
        operations.asked.push(Asked { object, key, number, ready, taken: false });
        Promise { tx, step, number }
    }

    /// Look whether a ticket may be used by the operations of a packet; `takes` if it may be used only once.
    #[track_caller]
    pub(super) fn redeem(&mut self, tx: Tx, object: &'static str, promise: Promise, takes: bool) {
        let polls = self.polls;
        let step = self.open.get(&promise.tx.0).map(|operations| operations.step);
        if AT_ONCE.contains(&object) && step.is_none_or(|step| step == promise.step) {
            return;
        }
        let wrong = match self.open.get_mut(&promise.tx.0).filter(|_| promise.tx == tx) {
            None => Some("a ticket is used for another packet than the one it was asked for"),
            Some(operations) => match operations.asked.iter_mut().find(|asked| asked.number == promise.number) {
                _ if promise.step == operations.step => Some("a ticket is used in the step that asked for it"),
                _ if promise.step + 1 < operations.step => Some("a ticket is used after its step"),
                None => Some("nobody asked for this ticket"),
                Some(asked) if asked.ready > polls => Some("a ticket is used before its result is there"),
                Some(asked) if asked.taken => Some("a ticket is used twice"),
                Some(asked) => {
                    asked.taken = takes;
                    None
                }
            },
        };
        if let Some(wrong) = wrong {
            panic!("{object}: {wrong}, at {}", Location::caller());
        }
    }
}

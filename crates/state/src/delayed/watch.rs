//! What was asked for by whom, when it will be there, and whether a ticket may be used.

use std::collections::BTreeMap;
use std::panic::Location;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::holder::{Holder, Request};
use crate::declare::{Access, Declaration, Object};
use crate::tx::Tx;

/// A result is there after at most so many polls, if nobody says otherwise.
const MOST_DELAY: u64 = 5;
/// Every so many seeds the objects are on another thread.
const ELSEWHERE: u64 = 4;
/// The holder gets operations at the latest when there are so many.
const MOST_APPLIED: usize = 64;

/// The promise of a result: by whom it was asked for, and which one it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Promise {
    unit: u32,
    step: u32,
    number: u64,
}

/// An object that was made.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Made {
    /// The number of the function's instance whose it is.
    instance: usize,
    pub(super) declaration: Declaration,
}

impl std::fmt::Display for Made {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.declaration.fmt(f)
    }
}

/// What was asked for once.
struct Asked {
    object: Made,
    /// Hash of the key, if it has one.
    key: Option<u64>,
    /// Whether it is an operation, and not an entry. Once sent off, who holds the object orders it.
    is_operation: bool,
    number: u64,
    /// The poll after which the result is there; of an operation, once it was sent off.
    ready: Option<u64>,
    taken: bool,
    /// What is asked of an object's holder, until it is sent off.
    request: Option<(usize, Request)>,
}

impl Asked {
    /// Return whether one must wait for the other: for the same entry, or to be sent off after an operation on the same.
    fn follows(&self, earlier: &Asked) -> bool {
        let is_same = self.object == earlier.object && self.is_operation == earlier.is_operation;
        match self.is_operation {
            false => is_same && self.key == earlier.key,
            true => is_same && earlier.request.is_some() && may_meet(self.key, earlier.key),
        }
    }
}

/// Return whether operations on these keys of an object may be about the same; one without a key is about all of it.
fn may_meet(a: Option<u64>, b: Option<u64>) -> bool {
    a.is_none() || b.is_none() || a == b
}

/// An operation on its way.
struct Sent {
    object: Made,
    /// Its number, where somebody waits for the reply.
    number: Option<u64>,
    /// Hash of the key of the entry that it is about; nothing where it may be about all of the object.
    key: Option<u64>,
    /// The poll after which it is applied.
    due: u64,
    request: (usize, Request),
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
    /// The objects that were made.
    pub(super) objects: Vec<Made>,
    /// The names of functions' instances, the one that objects are made for last.
    instances: Vec<String>,
    open: BTreeMap<u32, Operations>,
    units: u32,
    /// The packet that is in *prepare*.
    in_prepare: Option<u32>,
    /// In the order in which they were sent off.
    sent: Vec<Sent>,
    /// What is applied next time that somebody must know what came of it, in this order; each with its number, where somebody waits.
    applied: Vec<(Option<u64>, (usize, Request))>,
    /// Replies that nobody has taken yet, by the operation's number.
    replies: BTreeMap<u64, Vec<u8>>,
    pub(super) holder: Holder,
}

pub(super) fn lock(watch: &Mutex<Watch>) -> MutexGuard<'_, Watch> {
    // A panic for a function's violation leaves nothing half done.
    watch.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watch {
    pub(super) fn new(delays: u64) -> Self {
        Watch {
            random: delays,
            most_delay: MOST_DELAY,
            polls: 0,
            next: 1,
            objects: Vec::new(),
            instances: vec![String::new()],
            open: BTreeMap::new(),
            units: 0,
            in_prepare: None,
            sent: Vec::new(),
            applied: Vec::new(),
            replies: BTreeMap::new(),
            holder: Holder::new(delays % ELSEWHERE == 1),
        }
    }

    /// Return the next of a series of numbers (splitmix64).
    fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Note an object that is made.
    #[track_caller]
    pub(super) fn make(&mut self, object: &Declaration, kind: Object) -> Made {
        let called = Location::caller();
        assert!(object.object == kind, "{object}: made as another kind of object than it is declared as, at {called}");
        let made = Made { instance: self.instances.len() - 1, declaration: *object };
        let is_same = |known: &Made| known.instance == made.instance && known.declaration.is_named_as(object);
        assert!(!self.objects.iter().any(is_same), "{object}: made twice, at {called}");
        self.objects.push(made);
        made
    }

    /// Make objects for this instance from now on.
    pub(super) fn make_for(&mut self, instance: &str) {
        assert!(self.instances.iter().all(|known| known != instance), "{instance}: two instances of this name");
        self.instances.push(instance.to_owned());
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    pub(super) fn begin(&mut self) -> u32 {
        self.units += 1;
        self.open.insert(self.units, Operations::default());
        self.in_prepare = Some(self.units);
        self.units
    }

    /// Note that a packet's *prepare* is over, if it was in it.
    fn end_prepare(&mut self, tx: &Tx) {
        self.in_prepare.take_if(|packet| *packet == tx.unit());
    }

    pub(super) fn step(&mut self, tx: &Tx) {
        self.end_prepare(tx);
        if let Some(operations) = self.open.get_mut(&tx.unit()) {
            operations.step += 1;
        }
    }

    pub(super) fn end(&mut self, tx: &Tx) {
        self.end_prepare(tx);
        let Some(operations) = self.open.remove(&tx.unit()) else { return };
        let is_left = |asked: &&Asked| asked.is_operation && asked.ready.is_some() && !asked.taken;
        if let Some(asked) = operations.asked.iter().find(is_left) {
            panic!("{}: nobody has taken the reply of an operation", asked.object);
        }
    }

    pub(super) fn poll(&mut self) {
        self.polls += 1;
        let polls = self.polls;
        self.apply(|sent| sent.due <= polls);
    }

    /// Apply all operations that are on their way.
    pub(super) fn settle(&mut self) {
        self.apply(|_| true);
        self.fetch();
    }

    /// Apply what is on its way. Nobody can tell when it is done, but by a reply: so it goes to the holder once one is looked at.
    fn apply(&mut self, when: impl Fn(&Sent) -> bool) {
        self.applied.extend(self.sent.extract_if(.., |sent| when(sent)).map(|sent| (sent.number, sent.request)));
        if self.applied.len() >= MOST_APPLIED {
            self.fetch();
        }
    }

    /// Let the holder do what is applied, and fetch the replies.
    fn fetch(&mut self) {
        let (numbers, requests): (Vec<_>, Vec<_>) = self.applied.drain(..).unzip();
        let replies = numbers.into_iter().zip(self.holder.answer(requests));
        self.replies.extend(replies.filter_map(|(number, reply)| Some((number?, reply))));
    }

    /// Ask the holder of an object something, after all operations on it that are on their way.
    pub(super) fn look(&mut self, object: Made, request: (usize, Request)) -> Vec<u8> {
        self.apply(|sent| sent.object == object);
        self.fetch();
        self.holder.answer(vec![request]).swap_remove(0)
    }

    fn delay(&mut self) -> u64 {
        if self.random().is_multiple_of(2) { 0 } else { self.random() % (self.most_delay + 1) }
    }

    /// Return the poll after which an operation that is sent off now is applied: not before those on the same that were sent off
    /// earlier.
    fn due(&mut self, object: Made, key: Option<u64>) -> u64 {
        let is_same = |sent: &&Sent| sent.object == object && may_meet(sent.key, key);
        let earlier = self.sent.iter().filter(is_same).map(|sent| sent.due).max();
        (self.polls + self.delay()).max(earlier.unwrap_or(0))
    }

    /// Send off what a packet has asked for.
    pub(super) fn issue(&mut self, tx: &Tx) {
        self.end_prepare(tx);
        let Some(mut operations) = self.open.remove(&tx.unit()) else { return };
        for asked in &mut operations.asked {
            let Some(request) = asked.request.take() else { continue };
            let due = self.due(asked.object, asked.key);
            self.sent.push(Sent { object: asked.object, number: Some(asked.number), key: asked.key, due, request });
            asked.ready = Some(due);
        }
        self.open.insert(tx.unit(), operations);
        let polls = self.polls;
        self.apply(|sent| sent.due <= polls);
    }

    /// Look whether a packet may change an object now: not in *prepare*, and not when its operations are over.
    #[track_caller]
    pub(super) fn change(&self, tx: &Tx, object: Made) {
        match self.open.get(&tx.unit()) {
            None => panic!("{object}: asked for by a packet whose operations are over, at {}", Location::caller()),
            Some(operations) if operations.step == 0 => {
                panic!("{object}: changed in prepare, at {}", Location::caller())
            }
            Some(_) => {}
        }
    }

    /// Look whether an object may be changed now by what is no packet's operation.
    #[track_caller]
    pub(super) fn change_alone(&self, object: Made) {
        if self.in_prepare.is_some() {
            panic!("{object}: changed in prepare, at {}", Location::caller());
        }
    }

    /// Send off an operation that nobody waits for.
    #[track_caller]
    pub(super) fn send(&mut self, tx: &Tx, object: Made, key: Option<u64>, request: (usize, Request)) {
        self.change(tx, object);
        let is_untaken = |asked: &Asked| {
            let is_same = asked.object == object && may_meet(asked.key, key);
            is_same && asked.is_operation && asked.ready.is_some() && !asked.taken
        };
        if self.open.get(&tx.unit()).is_some_and(|operations| operations.asked.iter().any(is_untaken)) {
            let at = Location::caller();
            panic!("{object}: told something before the reply to what was asked of it is taken, at {at}");
        }
        let due = self.due(object, key);
        self.sent.push(Sent { object, number: None, key, due, request });
    }

    /// Note an operation that a packet asks for, and what it is.
    #[track_caller]
    pub(super) fn ask_for(&mut self, tx: &Tx, object: Made, key: Option<u64>, request: (usize, Request)) -> Promise {
        if object.declaration.access == Access::WriteMostly {
            panic!("{object}: waited for, and declared as one that is written mostly, at {}", Location::caller());
        }
        self.ask_any(tx, object, key, Some(request))
    }

    pub(super) fn is_ready(&self, tx: &Tx) -> bool {
        self.open.get(&tx.unit()).is_none_or(|operations| {
            operations.asked.iter().all(|asked| asked.ready.is_some_and(|ready| ready <= self.polls))
        })
    }

    pub(super) fn follows(&self, tx: &Tx, earlier: &Tx) -> bool {
        let (Some(later), Some(earlier)) = (self.open.get(&tx.unit()), self.open.get(&earlier.unit())) else {
            return false;
        };
        later.asked.iter().any(|later| earlier.asked.iter().any(|earlier| later.follows(earlier)))
    }

    /// Note an entry that a packet asks for.
    #[track_caller]
    pub(super) fn ask(&mut self, tx: &Tx, object: Made, key: u64) -> Promise {
        self.ask_any(tx, object, Some(key), None)
    }

    #[track_caller]
    fn ask_any(&mut self, tx: &Tx, object: Made, key: Option<u64>, request: Option<(usize, Request)>) -> Promise {
        let (number, is_operation) = (self.number(), request.is_some());
        let ready = if is_operation { None } else { Some(self.polls + self.delay()) };
        let Some(operations) = self.open.get_mut(&tx.unit()) else {
            panic!("{object}: asked for by a packet whose operations are over, at {}", Location::caller())
        };
        let step = operations.step;
        operations.asked.push(Asked { object, key, is_operation, number, ready, taken: false, request });
        Promise { unit: tx.unit(), step, number }
    }

    /// Take the reply that a ticket stands for.
    #[track_caller]
    pub(super) fn take(&mut self, tx: &Tx, object: Made, promise: Promise) -> Vec<u8> {
        let number = self.redeem(tx, object, promise, true);
        if !self.replies.contains_key(&number) {
            self.fetch();
        }
        let reply = self.replies.remove(&number);
        reply.unwrap_or_else(|| unreachable!("{object}: an operation that is ready has been applied"))
    }

    /// Look whether a ticket may be used by the operations of a packet; `takes` if it may be used only once. Returns the number
    /// of what was asked for.
    #[track_caller]
    pub(super) fn redeem(&mut self, tx: &Tx, object: Made, promise: Promise, takes: bool) -> u64 {
        let polls = self.polls;
        let prepares = self.open.get(&tx.unit()).is_some_and(|operations| operations.step == 0);
        let wrong = match self.open.get_mut(&promise.unit).filter(|_| promise.unit == tx.unit()) {
            _ if prepares => Some("a ticket is used in prepare"),
            None => Some("a ticket is used for another packet than the one it was asked for"),
            Some(operations) => match operations.asked.iter_mut().find(|asked| asked.number == promise.number) {
                _ if promise.step == operations.step => Some("a ticket is used in the step that asked for it"),
                _ if promise.step + 1 < operations.step => Some("a ticket is used after its step"),
                None => Some("nobody asked for this ticket"),
                Some(asked) if asked.ready.is_none_or(|ready| ready > polls) => {
                    Some("a ticket is used before its result is there")
                }
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
        promise.number
    }
}

//! What was asked for by whom, when it will be there, and whether a ticket may be used.

use std::collections::{BTreeMap, HashMap};
use std::panic::Location;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::holder::{Call, Holder, Request};
use super::outlet::{Put, Sinks};
use crate::declare::{Access, Declaration, Object};
use crate::engine::Intent;
use crate::tx::{Name, Tx};

/// A result is there after at most so many polls, if nobody says otherwise.
const MOST_DELAY: u64 = 5;
/// What *prepare* must not do.
const ASKS_ELSE: &str = "prepare asks for something else when it is asked again";
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
    /// What for an entry is wanted; nothing where it is an operation. Once that is sent off, who holds the object orders it.
    intent: Option<Intent>,
    number: u64,
    /// The poll after which the result is there; of an operation, once it was sent off.
    ready: Option<u64>,
    taken: bool,
    /// What is asked of an object's holder, until it is sent off.
    call: Option<Call>,
}

impl Asked {
    fn is_operation(&self) -> bool {
        self.intent.is_none()
    }

    /// Return whether the same was asked for, by the same packet.
    fn is_same(&self, other: &Asked) -> bool {
        let is_same = self.object == other.object && self.key == other.key;
        is_same && self.intent == other.intent && self.call == other.call
    }

    /// Return whether one must wait for the other: for the same entry, or to be sent off after an operation on the same.
    fn follows(&self, earlier: &Asked) -> bool {
        let is_same = self.object == earlier.object && self.is_operation() == earlier.is_operation();
        match self.is_operation() {
            false => is_same && self.key == earlier.key,
            true => is_same && earlier.call.is_some() && may_meet(self.key, earlier.key),
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
    call: Call,
    /// Whether it was sent off before.
    is_copy: bool,
}

/// A packet's operations.
#[derive(Default)]
struct Operations {
    /// Steps begun: 0 in *prepare*.
    step: u32,
    asked: Vec<Asked>,
    /// What *prepare* has asked for when it was asked the last time.
    expected: Option<Vec<Asked>>,
    /// Whether anything was sent off.
    is_sent: bool,
    /// What it has put out.
    puts: Vec<Put>,
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
    /// Those that are committed and have not ended.
    committed: BTreeMap<u32, Operations>,
    units: u32,
    /// In the order in which they were sent off.
    sent: Vec<Sent>,
    /// What is applied as soon as somebody must know what came of it, in this order: each with its number, where somebody waits.
    applied: Vec<(Option<u64>, Call)>,
    /// Replies that nobody has taken yet, by the operation's number.
    replies: BTreeMap<u64, Vec<u8>>,
    /// Who has given names to operations, by its clock.
    owners: HashMap<u64, u32>,
    /// The clock of who was given up last in *prepare*, and what that asked for.
    given_up: Option<(u64, Vec<Asked>)>,
    /// The clocks of those that have ended, and of whom something may still be on its way to the holder.
    ended: Vec<u64>,
    pub(super) holder: Holder,
    pub(super) sinks: Sinks,
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
            committed: BTreeMap::new(),
            units: 0,
            sent: Vec::new(),
            applied: Vec::new(),
            replies: BTreeMap::new(),
            owners: HashMap::new(),
            given_up: None,
            ended: Vec::new(),
            holder: Holder::new(delays % ELSEWHERE == 1),
            sinks: Sinks::default(),
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

    pub(super) fn begin(&mut self, clock: u64) -> u32 {
        self.units += 1;
        let expected = self.given_up.take_if(|(given_up, _)| *given_up == clock).map(|(_, asked)| asked);
        self.open.insert(self.units, Operations { expected, ..Operations::default() });
        self.units
    }

    /// Note that a packet's *prepare* is over, if it was in it.
    fn end_prepare(&mut self, tx: &Tx) {
        let Some(operations) = self.open.get_mut(&tx.unit()) else { return };
        if let Some(missed) =
            operations.expected.take().and_then(|mut asked| asked.drain(operations.asked.len()..).next())
        {
            panic!("{}: {ASKS_ELSE}", missed.object);
        }
    }

    /// Name an operation. No other packet has given the name, nor will.
    #[track_caller]
    pub(super) fn name(&mut self, tx: &mut Tx, object: Made) -> Name {
        let (name, at) = (tx.name(), Location::caller());
        assert!(name.clock != 0, "{object}: two operations of one name, as clock 0 is no packet's, at {at}");
        let owner = *self.owners.entry(name.clock).or_insert(tx.unit());
        assert!(owner == tx.unit(), "{object}: two operations of one name, {name:?}, at {at}");
        name
    }

    pub(super) fn step(&mut self, tx: &Tx) {
        self.end_prepare(tx);
        if let Some(operations) = self.open.get_mut(&tx.unit()) {
            operations.step += 1;
        }
    }

    /// Keep what a packet puts out until it is committed.
    pub(super) fn put(&mut self, tx: &Tx, put: Put) {
        self.open.entry(tx.unit()).or_default().puts.push(put);
    }

    /// Bring what a packet has put out to where it goes: some of it twice, as who has lost the answer would do.
    pub(super) fn commit(&mut self, tx: &Tx) {
        let Some(mut operations) = self.open.remove(&tx.unit()) else { return };
        for put in operations.puts.drain(..) {
            self.sinks.deliver(&put);
            if self.random().is_multiple_of(8) {
                self.sinks.deliver(&put);
            }
        }
        self.committed.insert(tx.unit(), operations);
    }

    pub(super) fn end(&mut self, tx: &Tx) {
        self.end_prepare(tx);
        let operations = self.committed.remove(&tx.unit()).or_else(|| self.open.remove(&tx.unit()));
        let Some(operations) = operations else { return };
        let is_left = |asked: &&Asked| asked.is_operation() && asked.ready.is_some() && !asked.taken;
        if let Some(asked) = operations.asked.iter().find(is_left) {
            panic!("{}: nobody has taken the reply of an operation", asked.object);
        }
        if operations.is_sent {
            self.ended.push(tx.clock());
        } else if operations.step == 0 {
            // It has done nothing: who comes with its clock is the same packet once more.
            self.owners.remove(&tx.clock());
            self.given_up = Some((tx.clock(), operations.asked));
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
        self.applied.extend(self.sent.extract_if(.., |sent| when(sent)).map(|sent| (sent.number, sent.call)));
        if self.applied.len() >= MOST_APPLIED {
            self.fetch();
        }
    }

    /// Let the holder do what is applied, and fetch the replies.
    fn fetch(&mut self) {
        if self.applied.is_empty() {
            return;
        }
        let is_coming =
            |clock: u64| self.sent.iter().any(|sent| sent.call.name.is_some_and(|name| name.clock == clock));
        let over = self.ended.extract_if(.., |clock| !is_coming(*clock)).collect();
        let (numbers, calls): (Vec<_>, Vec<_>) = self.applied.drain(..).unzip();
        let replies = numbers.into_iter().zip(self.holder.answer(calls, over));
        self.replies.extend(replies.filter_map(|(number, reply)| Some((number?, reply))));
    }

    /// Ask the holder of an object something, after all operations on it that are on their way.
    pub(super) fn look(&mut self, object: Made, (number, request): (usize, Request)) -> Vec<u8> {
        self.apply(|sent| sent.object == object);
        self.fetch();
        self.holder.answer(vec![Call { object: number, name: None, request }], Vec::new()).swap_remove(0)
    }

    fn delay(&mut self) -> u64 {
        if self.random().is_multiple_of(2) { 0 } else { self.random() % (self.most_delay + 1) }
    }

    /// Return the poll after which an operation that is sent off now is applied: not before those on the same that were sent off
    /// earlier.
    fn due(&mut self, object: Made, key: Option<u64>) -> u64 {
        let is_same = |sent: &&Sent| !sent.is_copy && sent.object == object && may_meet(sent.key, key);
        let earlier = self.sent.iter().filter(is_same).map(|sent| sent.due).max();
        (self.polls + self.delay()).max(earlier.unwrap_or(0))
    }

    /// Send off an operation; returns the poll after which its reply is there. Some are sent off once more, as who has lost the
    /// reply would do: the copy comes at once or later, also after later operations.
    fn send_off(&mut self, object: Made, key: Option<u64>, number: Option<u64>, call: Call) -> u64 {
        let due = self.due(object, key);
        let again = due + self.delay();
        // By which of both the reply comes.
        let (first, copy) = match self.random() % 8 {
            0 => (number, Some(None)),
            1 => (None, Some(number)),
            _ => (number, None),
        };
        let sent = |number, due, is_copy| Sent { object, number, key, due, call: call.clone(), is_copy };
        self.sent.push(sent(first, due, false));
        self.sent.extend(copy.map(|number| sent(number, again, true)));
        if first == number { due } else { again }
    }

    /// Send off what a packet has asked for.
    pub(super) fn issue(&mut self, tx: &Tx) {
        self.end_prepare(tx);
        let Some(mut operations) = self.open.remove(&tx.unit()) else { return };
        for asked in &mut operations.asked {
            let Some(call) = asked.call.take() else { continue };
            asked.ready = Some(self.send_off(asked.object, asked.key, Some(asked.number), call));
            operations.is_sent = true;
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

    /// Send off an operation that nobody waits for.
    #[track_caller]
    pub(super) fn send(&mut self, tx: &mut Tx, object: Made, key: Option<u64>, (number, request): (usize, Request)) {
        self.change(tx, object);
        let call = Call { object: number, name: Some(self.name(tx, object)), request };
        let is_untaken = |asked: &Asked| {
            let is_same = asked.object == object && may_meet(asked.key, key);
            is_same && asked.is_operation() && asked.ready.is_some() && !asked.taken
        };
        if let Some(operations) = self.open.get_mut(&tx.unit()) {
            if operations.asked.iter().any(is_untaken) {
                let at = Location::caller();
                panic!("{object}: told something before the reply to what was asked of it is taken, at {at}");
            }
            operations.is_sent = true;
        }
        self.send_off(object, key, None, call);
    }

    /// Note an operation that a packet asks for, and what it is.
    #[track_caller]
    pub(super) fn ask_for(
        &mut self,
        tx: &mut Tx,
        object: Made,
        key: Option<u64>,
        (number, request): (usize, Request),
    ) -> Promise {
        if object.declaration.access == Access::WriteMostly {
            panic!("{object}: waited for, and declared as one that is written mostly, at {}", Location::caller());
        }
        let call = Call { object: number, name: Some(self.name(tx, object)), request };
        self.ask_any(tx, object, key, None, Some(call))
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
    pub(super) fn ask(&mut self, tx: &mut Tx, object: Made, key: u64, intent: Intent) -> Promise {
        self.name(tx, object);
        self.ask_any(tx, object, Some(key), Some(intent), None)
    }

    #[track_caller]
    fn ask_any(
        &mut self,
        tx: &Tx,
        object: Made,
        key: Option<u64>,
        intent: Option<Intent>,
        call: Option<Call>,
    ) -> Promise {
        let number = self.number();
        let ready = intent.map(|_| self.polls + self.delay());
        let Some(operations) = self.open.get_mut(&tx.unit()) else {
            panic!("{object}: asked for by a packet whose operations are over, at {}", Location::caller())
        };
        let step = operations.step;
        let asked = Asked { object, key, intent, number, ready, taken: false, call };
        if let Some(expected) = &operations.expected {
            let is_same = expected.get(operations.asked.len()).is_some_and(|expected| expected.is_same(&asked));
            assert!(is_same, "{object}: {ASKS_ELSE}, at {}", Location::caller());
        }
        operations.asked.push(asked);
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

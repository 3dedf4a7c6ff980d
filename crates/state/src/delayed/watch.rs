//! What was asked for by whom, when it will be there, and whether a ticket may be used.

use std::collections::HashMap;
use std::panic::{Location, resume_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};

use catena_packet::wire::FlowKey;

use super::asked::{Asked, Operations, Promise};
use super::crash::{Crashing, Lost};
use super::holder::{self, Call, Request};
use super::log::{Differs, Log, What};
use super::made::{ByNumber, HeldOne, Kind, Made, number_of};
use super::outlet::{Put, Sinks};
use super::post::{Post, may_meet};
use super::scopes::Scopes;
use super::uses::Uses;
use crate::declare::{Declaration, Object};
use crate::engine::Intent;
use crate::plain::bytes;
use crate::tx::{Name, Pass, Tx};

/// What *prepare* must not do.
const ASKS_ELSE: &str = "prepare asks for something else when it is asked again";
/// What no step must do.
const DOES_ELSE: &str = "something else is done when a packet is processed again";

/// An instance of a function, by its name.
struct Instance {
    name: String,
    /// Whether objects were made for it since it was lost.
    is_made: bool,
}

/// All of it.
pub(super) struct Watch {
    pub(super) post: Post,
    pub(super) crashing: Crashing,
    next: u64,
    /// All objects that were ever made, and those that were made since instances were lost.
    known: Vec<Made>,
    pub(super) objects: Vec<Made>,
    instances: Vec<Instance>,
    /// The number of the one that objects are made for.
    made_for: usize,
    pub(super) open: HashMap<u32, Operations, ByNumber>,
    /// Those that are committed and have not ended.
    committed: HashMap<u32, Operations, ByNumber>,
    units: u32,
    /// The packet that is in *prepare*.
    pub(super) in_prepare: Option<u32>,
    /// The packet that is in a step.
    pub(super) in_step: Option<u32>,
    /// Who has given names to operations, by its pass.
    owners: HashMap<Pass, u32>,
    /// What was done of packets that are on their way.
    log: Log,
    /// The pass of who was given up last in *prepare*.
    given_up: Option<Pass>,
    /// The shared objects' numbers where they are held, which outlive who made them.
    pub(super) held: Vec<HeldOne>,
    pub(super) sinks: Sinks,
    uses: Uses,
    pub(super) scopes: Scopes,
}

/// An operation that begins.
pub(super) struct Begun {
    pub(super) name: Name,
    /// The reply, where it was done before.
    pub(super) before: Option<Vec<u8>>,
    /// What it is, where it is to be noted.
    what: Option<What>,
}

pub(super) fn lock(watch: &Mutex<Watch>) -> MutexGuard<'_, Watch> {
    // A panic for a function's violation leaves nothing half done.
    watch.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watch {
    pub(super) fn new(delays: u64) -> Self {
        Watch {
            post: Post::new(delays),
            crashing: Crashing::new(delays),
            next: 1,
            known: Vec::new(),
            objects: Vec::new(),
            instances: vec![Instance { name: String::new(), is_made: false }],
            made_for: 0,
            open: HashMap::default(),
            committed: HashMap::default(),
            units: 0,
            in_prepare: None,
            in_step: None,
            owners: HashMap::new(),
            log: Log::default(),
            given_up: None,
            held: Vec::new(),
            sinks: Sinks::default(),
            uses: Uses::default(),
            scopes: Scopes::default(),
        }
    }

    /// Note an object that is made.
    #[track_caller]
    pub(super) fn make(&mut self, object: &Declaration, kind: Object) -> Made {
        let called = Location::caller();
        assert!(object.object == kind, "{object}: made as another kind of object than it is declared as, at {called}");
        let is_it = |known: &&Made| known.instance == self.made_for && known.declaration.is_named_as(object);
        let known = self.known.iter().find(is_it).copied();
        let made = known.unwrap_or(Made { number: self.known.len(), instance: self.made_for, declaration: *object });
        assert!(!self.objects.contains(&made), "{object}: made twice, at {called}");
        assert!(made.declaration == *object, "{object}: declared otherwise when it was made first, at {called}");
        if known.is_none() {
            self.known.push(made);
        }
        self.objects.push(made);
        made
    }

    /// Make objects for this instance from now on: those that it had, where it was lost.
    pub(super) fn make_for(&mut self, name: &str) {
        self.made_for = self.instances.iter().position(|known| known.name == name).unwrap_or_else(|| {
            self.instances.push(Instance { name: name.to_owned(), is_made: false });
            self.instances.len() - 1
        });
        let was_made = std::mem::replace(&mut self.instances[self.made_for].is_made, true);
        assert!(!was_made, "{name}: two instances of this name");
    }

    /// Return the number of a shared object where it is held; who makes it first gives it to hold.
    pub(super) fn held<X>(
        &mut self,
        object: Made,
        kind: Kind,
        first: impl FnOnce() -> Result<Box<dyn holder::Object>, X>,
    ) -> Result<usize, X> {
        if let Some(number) = number_of(&self.held, object, &kind) {
            return Ok(number);
        }
        let instance = &self.instances[object.instance].name;
        let number = self.post.holder.hold(instance, object, &kind, first)?;
        self.held.push(HeldOne { object, kind, number });
        Ok(number)
    }

    /// All instances are lost, and whatever they had begun. What was done is known.
    pub(super) fn begin_again(&mut self) {
        let lost = std::mem::take(&mut self.open);
        lost.values().for_each(|lost| _ = self.owners.remove(&lost.pass));
        self.post.forget_who_waits();
        (self.in_prepare, self.in_step) = (None, None);
        self.objects.clear();
        self.instances.iter_mut().for_each(|instance| instance.is_made = false);
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    pub(super) fn begin(&mut self, pass: Pass) -> u32 {
        self.units += 1;
        if let Some(given_up) = self.given_up.take().filter(|given_up| *given_up != pass) {
            self.log.forget(given_up);
        }
        self.open.insert(self.units, Operations { pass, ..Operations::default() });
        self.in_prepare = Some(self.units);
        self.units
    }

    fn is_in_prepare(&self, tx: &Tx) -> bool {
        self.open.get(&tx.unit()).is_some_and(|operations| operations.step == 0)
    }

    /// Note that a packet's *prepare* is over, if it was in it.
    fn end_prepare(&mut self, tx: &Tx) {
        self.in_prepare.take_if(|packet| *packet == tx.unit());
        self.in_step.take_if(|packet| *packet == tx.unit());
        if self.is_in_prepare(tx)
            && let Err(Differs(missed)) = self.log.prepared(tx.pass(), tx.operations())
        {
            panic!("{missed}: {ASKS_ELSE}");
        }
    }

    /// Name an operation. No other packet has given the name, nor will. The instance may be lost just before it.
    #[track_caller]
    fn name(&mut self, tx: &mut Tx, object: Made) -> Name {
        let (name, at) = (tx.name(), Location::caller());
        assert!(name.pass.clock != 0, "{object}: two operations of one name, as clock 0 is no packet's, at {at}");
        let owner = *self.owners.entry(name.pass).or_insert(tx.unit());
        assert!(owner == tx.unit(), "{object}: two operations of one name, {name:?}, at {at}");
        self.may_be_lost(name);
        name
    }

    /// Lose the instance, if it is time.
    fn may_be_lost(&mut self, name: Name) {
        if self.crashing.is_due(name, self.log.knows(name)) {
            resume_unwind(Box::new(Lost));
        }
    }

    /// Begin an operation, which may have been done before: then it must be the same.
    #[track_caller]
    pub(super) fn begin_one(&mut self, tx: &mut Tx, object: Made, what: impl FnOnce() -> What) -> Begun {
        let name = self.name(tx, object);
        let in_prepare = self.is_in_prepare(tx);
        if !in_prepare && !self.crashing.may_be() {
            return Begun { name, before: None, what: None };
        }
        let at = Location::caller();
        let is_more = in_prepare && self.log.is_more_than_prepared(name);
        assert!(!is_more, "{object}: {ASKS_ELSE}, at {at}");
        let what = what();
        match self.log.recall(name, object, &what) {
            Ok(before) => Begun { name, what: before.is_none().then_some(what), before },
            Err(_) if in_prepare => panic!("{object}: {ASKS_ELSE}, at {at}"),
            Err(_) => panic!("{object}: {DOES_ELSE}, at {at}"),
        }
    }

    /// Note the reply to an operation that was not done before.
    pub(super) fn note(&mut self, begun: Begun, object: Made, reply: Vec<u8>) {
        if let Some(what) = begun.what {
            self.log.note(begun.name, object, what, reply);
        }
    }

    /// Note how an entry is left that was in hand under this name; returns whether it must be written now.
    pub(super) fn leave(&mut self, name: Name, written: Option<Vec<u8>>) -> bool {
        self.log.leave(name, written).unwrap_or_else(|Differs(object)| panic!("{object}: {DOES_ELSE}"))
    }

    pub(super) fn step(&mut self, tx: &Tx) {
        self.end_prepare(tx);
        if let Some(operations) = self.open.get_mut(&tx.unit()) {
            operations.step += 1;
            self.in_step = operations.is_issued.then(|| tx.unit());
            if self.crashing.may_be() {
                self.log.step(tx.pass(), operations.step);
            }
        }
    }

    /// Note of which flow a packet is.
    pub(super) fn sees(&mut self, tx: &Tx, flow: FlowKey) {
        if let Some(operations) = self.open.get_mut(&tx.unit()) {
            operations.flow = Some(flow);
        }
    }

    /// Hold the use of a key's entry against the object's scope.
    #[track_caller]
    fn is_used(&mut self, tx: &Tx, object: Made, key: Option<u64>) {
        let flow = self.open.get(&tx.unit()).and_then(|operations| operations.flow.as_ref());
        if let (Some(flow), Some(key)) = (flow, key) {
            self.scopes.uses(object, key, flow);
        }
    }

    /// Keep what a packet puts out until it is committed.
    pub(super) fn put(&mut self, tx: &Tx, put: Put) {
        if let Some(operations) = self.open.get_mut(&tx.unit()) {
            operations.puts.push(put);
        }
    }

    /// Bring what a packet has put out to where it goes: some of it twice, as who has lost the answer would do. The instance may be
    /// lost just before that.
    pub(super) fn commit(&mut self, tx: &Tx) {
        self.in_step = None;
        self.may_be_lost(Name { pass: tx.pass(), index: tx.operations() });
        let Some(mut operations) = self.open.remove(&tx.unit()) else { return };
        if let Err(Differs(missed)) = self.log.end(tx.pass(), tx.operations()) {
            panic!("{missed}: {DOES_ELSE}");
        }
        for put in operations.puts.drain(..) {
            self.sinks.deliver(&put);
            if self.post.chance.is_one_in(8) {
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
        if let Some(asked) = operations.asked.iter().find(is_left).filter(|_| !self.post.is_gone()) {
            panic!("{}: nobody has taken the reply of an operation", asked.object);
        }
        if operations.is_sent {
            self.post.end(tx.pass());
        }
        if operations.step > 0 {
            self.log.forget(tx.pass());
        } else if !operations.is_sent {
            // It has done nothing: who comes with its clock is the same packet once more.
            self.owners.remove(&tx.pass());
            if let Some(before) = self.given_up.replace(tx.pass()).filter(|before| *before != tx.pass()) {
                self.log.forget(before);
            }
        }
    }

    /// Return whether a packet's next step had begun when its instance was lost: what it asks for until then was there.
    pub(super) fn has_stepped(&self, tx: &Tx) -> bool {
        self.open.get(&tx.unit()).is_some_and(|operations| self.log.steps(tx.pass()) > operations.step)
    }

    /// Send off what a packet has asked for.
    pub(super) fn issue(&mut self, tx: &Tx) {
        self.end_prepare(tx);
        let is_there = self.has_stepped(tx);
        let Some(mut operations) = self.open.remove(&tx.unit()) else { return };
        operations.is_issued = true;
        for asked in &mut operations.asked {
            let Some(call) = asked.call.take() else { continue };
            asked.ready = Some(if is_there {
                self.post.ask_again(asked.object, asked.key, asked.number, call)
            } else {
                self.post.send_off(asked.object, asked.key, Some(asked.number), call)
            });
            operations.is_sent = true;
        }
        self.open.insert(tx.unit(), operations);
        self.post.apply_due();
    }

    /// Send off an operation that nobody waits for.
    #[track_caller]
    pub(super) fn send(&mut self, tx: &mut Tx, object: Made, key: Option<u64>, (number, request): (usize, Request)) {
        self.change(tx, object);
        if !matches!(request, Request::Tidy { .. }) {
            self.uses.tell(object);
            self.is_used(tx, object, key);
        }
        let begun = self.begin_one(tx, object, || What::Shared(request.clone()));
        let call = Call { object: number, name: Some(begun.name), request };
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
        if begun.before.is_some() {
            self.post.send_again(object, key, call);
        } else {
            self.note(begun, object, Vec::new());
            self.post.send_off(object, key, None, call);
        }
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
        self.uses.ask(object);
        self.is_used(tx, object, key);
        let begun = self.begin_one(tx, object, || What::Shared(request.clone()));
        let call = Call { object: number, name: Some(begun.name), request };
        self.note(begun, object, Vec::new());
        self.ask_any(tx, object, key, None, Some(call))
    }

    pub(super) fn is_ready(&self, tx: &Tx) -> bool {
        self.open.get(&tx.unit()).is_none_or(|operations| {
            operations.asked.iter().all(|asked| asked.ready.is_some_and(|ready| ready <= self.post.polls))
        })
    }

    pub(super) fn follows(&self, tx: &Tx, earlier: &Tx) -> bool {
        let (Some(later), Some(earlier)) = (self.open.get(&tx.unit()), self.open.get(&earlier.unit())) else {
            return false;
        };
        later.asked.iter().any(|later| earlier.asked.iter().any(|earlier| later.follows(earlier)))
    }

    /// Note an entry that a packet asks for, and whether there is none yet.
    #[track_caller]
    pub(super) fn ask(&mut self, tx: &mut Tx, object: Made, key: u64, (intent, is_new): (Intent, bool)) -> Promise {
        if is_new {
            self.scopes.forget(object, key);
        }
        if intent == Intent::Create {
            self.is_used(tx, object, Some(key));
        }
        let what = || What::Entry("want", bytes(&(key, intent as u8)));
        let begun = self.begin_one(tx, object, what);
        self.note(begun, object, Vec::new());
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
        let is_there = self.has_stepped(tx);
        let ready = intent.map(|_| self.post.polls + if is_there { 0 } else { self.post.delay() });
        let Some(operations) = self.open.get_mut(&tx.unit()) else {
            panic!("{object}: asked for by a packet whose operations are over, at {}", Location::caller())
        };
        let step = operations.step;
        let asked = Asked { object, key, intent, number, ready, taken: false, call };
        operations.asked.push(asked);
        Promise { unit: tx.unit(), step, number }
    }

    /// Take the reply that a ticket stands for.
    #[track_caller]
    pub(super) fn take(&mut self, tx: &Tx, object: Made, promise: Promise) -> Vec<u8> {
        let number = self.redeem(tx, object, promise, true);
        self.is_in_turn(tx, object, number);
        let reply = self.post.take(number);
        reply.unwrap_or_else(|| unreachable!("{object}: an operation that is ready has been applied"))
    }

    /// Look whether replies are taken in the order in which they were asked for, of those that may be about the same. Where the object is
    /// near, an operation is applied when its reply is taken; elsewhere, in the order of the questions. Both must be the same.
    #[track_caller]
    fn is_in_turn(&self, tx: &Tx, object: Made, number: u64) {
        let Some(operations) = self.open.get(&tx.unit()) else { return };
        let mut before = operations.asked.iter().take_while(|asked| asked.number != number);
        let Some(this) = operations.asked.iter().find(|asked| asked.number == number) else { return };
        let is_left = |asked: &Asked| {
            let is_same = asked.object == object && may_meet(asked.key, this.key);
            is_same && asked.is_operation() && !asked.taken
        };
        if before.any(is_left) {
            panic!("{object}: replies are taken in another order than they were asked for, at {}", Location::caller());
        }
    }

    /// Look whether a ticket may be used by the operations of a packet; `takes` if it may be used only once. Returns the number
    /// of what was asked for.
    #[track_caller]
    pub(super) fn redeem(&mut self, tx: &Tx, object: Made, promise: Promise, takes: bool) -> u64 {
        let polls = self.post.polls;
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

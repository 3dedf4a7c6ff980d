//! Outlets: what a packet puts is kept until its operations are committed. Some of it comes twice then, and is taken once.

use std::any::Any;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::log::What;
use super::made::Made;
use super::watch::{Watch, lock};
use crate::outlet::{Outlet, Sink};
use crate::plain::{bytes, value};
use crate::tx::{Name, Tx};

/// A sink that knows what it has taken.
struct Once<S> {
    sink: S,
    taken: HashSet<Name>,
    object: Made,
}

impl<S: Sink> Once<S> {
    /// Take a record, unless it came before.
    fn take(&mut self, name: Name, record: &[u8]) {
        if self.taken.insert(name) {
            let record = value(record).unwrap_or_else(|| panic!("{}: a record of bytes that none has", self.object));
            self.sink.put(record);
        }
    }
}

type Place<S> = Arc<Mutex<Once<S>>>;

fn open<S>(place: &Place<S>) -> MutexGuard<'_, Once<S>> {
    place.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A sink of whatever records.
trait Taking: Any + Send {
    fn take(&self, name: Name, record: &[u8]);
}

impl<S: Sink> Taking for Place<S> {
    fn take(&self, name: Name, record: &[u8]) {
        open(self).take(name, record);
    }
}

/// A record on its way.
pub(super) struct Put {
    /// The number of its sink.
    sink: usize,
    name: Name,
    record: Vec<u8>,
}

/// The sinks of all outlets that were made. They outlive who made them.
#[derive(Default)]
pub(super) struct Sinks(Vec<(Made, Box<dyn Taking>)>);

impl Sinks {
    /// Return an object's sink and its number: the one that it had before, if it had one.
    fn of<S: Sink>(&mut self, object: Made, sink: S) -> (usize, Place<S>) {
        if let Some(number) = self.0.iter().position(|(known, _)| *known == object) {
            let known: &dyn Any = &*self.0[number].1;
            let place = known.downcast_ref::<Place<S>>();
            return (number, place.unwrap_or_else(|| panic!("{object}: made anew for another kind of sink")).clone());
        }
        let place = Arc::new(Mutex::new(Once { sink, taken: HashSet::new(), object }));
        self.0.push((object, Box::new(Arc::clone(&place))));
        (self.0.len() - 1, place)
    }

    /// Bring a record to its sink.
    pub(super) fn deliver(&self, put: &Put) {
        self.0[put.sink].1.take(put.name, &put.record);
    }
}

/// An outlet.
pub struct DelayedOutlet<S> {
    number: usize,
    place: Place<S>,
    object: Made,
    watch: Arc<Mutex<Watch>>,
}

impl<S: Sink> DelayedOutlet<S> {
    pub(super) fn new(sink: S, object: Made, watch: &Arc<Mutex<Watch>>) -> Self {
        let (number, place) = lock(watch).sinks.of(object, sink);
        DelayedOutlet { number, place, object, watch: Arc::clone(watch) }
    }
}

impl<S: Sink> Outlet<S> for DelayedOutlet<S> {
    #[track_caller]
    fn has_room(&mut self, tx: &mut Tx) -> bool {
        let mut watch = lock(&self.watch);
        watch.change(tx, self.object);
        let mut begun = watch.begin_one(tx, self.object, || What::Entry("has room", Vec::new()));
        if let Some(before) = begun.before.take() {
            return before == bytes(&true);
        }
        let has_room = open(&self.place).sink.has_room();
        watch.note(begun, self.object, bytes(&has_room));
        has_room
    }

    #[track_caller]
    fn put(&mut self, tx: &mut Tx, record: S::Record) {
        let mut watch = lock(&self.watch);
        watch.change(tx, self.object);
        let record = bytes(&record);
        let begun = watch.begin_one(tx, self.object, || What::Entry("put", record.clone()));
        // What was put before is lost with the instance: it is kept by this one now.
        let put = Put { sink: self.number, name: begun.name, record };
        if begun.before.is_none() {
            watch.note(begun, self.object, Vec::new());
        }
        watch.put(tx, put);
    }

    fn with<R>(&self, ask: impl FnOnce(&S) -> R) -> R {
        ask(&open(&self.place).sink)
    }

    #[track_caller]
    fn with_mut<R>(&mut self, ask: impl FnOnce(&mut S) -> R) -> R {
        lock(&self.watch).change_alone(self.object);
        ask(&mut open(&self.place).sink)
    }
}

#[cfg(test)]
#[path = "outlet_tests.rs"]
mod tests;

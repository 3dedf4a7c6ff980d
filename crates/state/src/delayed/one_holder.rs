//! One holder for several engines: instances in several places see the same objects.
//!
//! Each engine brings its operations on their way for itself, so those of one instance are late for another, and come in between.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::holder::{Call, Holder, Object};
use super::made::{Kind, Made};
use crate::declare::Declaration;
use crate::tx::Pass;

/// An object, as all engines know it.
struct Known {
    instance: String,
    declaration: Declaration,
    kind: Kind,
    /// The hash of its first value's bytes: as many counts, of the same room.
    first: u64,
    /// Its number where it is held.
    number: usize,
}

struct Held {
    holder: Holder,
    known: Vec<Known>,
    engines: u32,
}

/// Whoever holds the shared objects of several engines, or of one.
#[derive(Clone)]
pub struct OneHolder(Arc<Mutex<Held>>);

impl OneHolder {
    /// Make one without objects: on a thread of its own, if it is `elsewhere`.
    pub fn new(elsewhere: bool) -> Self {
        OneHolder(Arc::new(Mutex::new(Held { holder: Holder::new(elsewhere), known: Vec::new(), engines: 0 })))
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Return another engine's way to it.
    pub(super) fn way(&self) -> Way {
        let mut held = self.held();
        held.engines += 1;
        Way { engine: held.engines, holder: self.clone() }
    }
}

/// An engine's way to its holder.
pub(super) struct Way {
    /// Tells its operations from those of others: their packets' clocks may be the same.
    engine: u32,
    holder: OneHolder,
}

impl Way {
    /// Return the number of an instance's object: its first value is given to hold where nobody has done so, and held against that of
    /// the one that came first where somebody has.
    pub(super) fn hold<X>(
        &self,
        instance: &str,
        object: Made,
        kind: &Kind,
        first: impl FnOnce() -> Result<Box<dyn Object>, X>,
    ) -> Result<usize, X> {
        let value = first()?;
        let mut hasher = DefaultHasher::new();
        value.bytes().hash(&mut hasher);
        let (mut held, first) = (self.holder.held(), hasher.finish());
        let is_it = |known: &&Known| known.instance == instance && known.declaration.is_named_as(&object.declaration);
        if let Some(known) = held.known.iter().find(is_it) {
            assert!(known.declaration == object.declaration, "{object}: declared otherwise by another instance");
            assert!(known.kind == *kind, "{object}: made as {kind:?}, and as {:?} by another instance", known.kind);
            // What all of a map mean alike is in its kind; each hashes its keys as it likes.
            let is_same = kind.is_map() || known.first == first;
            assert!(is_same, "{object}: another instance has made it of another first value");
            return Ok(known.number);
        }
        let number = held.holder.hold(value);
        let (instance, kind) = (instance.to_owned(), kind.clone());
        held.known.push(Known { instance, declaration: object.declaration, kind, first, number });
        Ok(number)
    }

    /// Return whether no other engine's objects are there.
    pub(super) fn is_alone(&self) -> bool {
        self.holder.held().engines == 1
    }

    /// Let the holder do what is asked, in this order; returns the replies. Nothing will come any more of passes that are `over`.
    pub(super) fn answer(&self, calls: Vec<Call>, over: Vec<Pass>) -> Vec<Vec<u8>> {
        self.holder.held().holder.answer(self.engine, calls, over)
    }
}

#[cfg(test)]
mod tests {
    use catena_packet::wire::Seed;

    use super::OneHolder;
    use crate::declare::{Access, Declaration, Scope};
    use crate::delayed::Delayed;
    use crate::engine::{Engine, Share};
    use crate::shared::Shared;
    use crate::tx::Tx;
    use crate::value::{Add, Counts, Get};

    const SUMS: Declaration = Declaration::shared("sums", "numbers", Scope::Global, Access::WriteMostly);

    fn engines(seed: u64, holder: &OneHolder) -> [Delayed; 2] {
        [0, 1].map(|index| {
            let mut engine = Delayed::new(Seed::from_number(1), Share { index, count: 2 }, seed + u64::from(index));
            engine = engine.held_by(holder);
            engine.make_for("it");
            engine
        })
    }

    /// Packets of both have the same clocks; an operation of one is none of the other's.
    #[test]
    fn what_each_engine_tells_is_told_once_and_seen_by_all() {
        for seed in 0..100 {
            let mut engines = engines(seed, &OneHolder::new(seed % 4 == 1));
            let mut sums = engines.each_mut().map(|engine| engine.shared(&SUMS, Counts::new(1)));
            for clock in 1..=50 {
                for (engine, sums) in engines.iter_mut().zip(&mut sums) {
                    let mut tx = engine.begin(Tx::new(clock, 1, 0));
                    engine.issue(&mut tx);
                    engine.step(&mut tx);
                    sums.send(&mut tx, Add::to(0, 1));
                    engine.commit(&mut tx);
                    engine.end(tx);
                    engine.poll();
                }
            }
            engines.iter_mut().for_each(|engine| engine.close().unwrap());
            assert_eq!(sums.each_ref().map(|sums| sums.look(Get::at(0))), [100; 2], "seed {seed}");
        }
    }

    #[test]
    #[should_panic(expected = "sums: another instance has made it of another first value")]
    fn all_instances_make_an_object_of_the_same_first_value() {
        let mut engines = engines(1, &OneHolder::new(false));
        for (engine, count) in engines.iter_mut().zip([3, 4]) {
            engine.shared(&SUMS, Counts::new(count));
        }
    }
}

//! Outlets of one worker: nothing is done twice, so a record goes to its sink at once.

use crate::outlet::{Outlet, Sink};
use crate::tx::Tx;

/// An outlet to a sink in the worker's own memory.
#[derive(Debug)]
pub struct LocalOutlet<S>(S);

impl<S> LocalOutlet<S> {
    pub(super) fn new(sink: S) -> Self {
        LocalOutlet(sink)
    }
}

impl<S: Sink> Outlet<S> for LocalOutlet<S> {
    #[inline(always)]
    fn has_room(&mut self, _tx: &mut Tx) -> bool {
        self.0.has_room()
    }

    #[inline(always)]
    fn put(&mut self, _tx: &mut Tx, record: S::Record) {
        self.0.put(record);
    }

    #[inline(always)]
    fn with<R>(&self, ask: impl FnOnce(&S) -> R) -> R {
        ask(&self.0)
    }

    #[inline(always)]
    fn with_mut<R>(&mut self, ask: impl FnOnce(&mut S) -> R) -> R {
        ask(&mut self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Access, Declaration, Engine, Local, Scope, Share};
    use catena_packet::wire::Seed;

    /// Has room for two.
    impl Sink for Vec<u32> {
        type Record = u32;

        fn has_room(&mut self) -> bool {
            self.len() < 2
        }

        fn put(&mut self, record: u32) {
            self.push(record);
        }
    }

    #[test]
    fn records_are_put_at_once() {
        let mut engine = Local::new(Seed::from_number(1), Share::WHOLE);
        let declaration = Declaration::outlet("notes", "numbers");
        assert_eq!((declaration.scope, declaration.access), (Scope::Global, Access::WriteMostly));
        let mut outlet = engine.outlet(&declaration, Vec::new());
        let mut tx = engine.begin(Tx::new(1, 0, 0));
        for record in [7, 5] {
            assert!(outlet.has_room(&mut tx));
            outlet.put(&mut tx, record);
        }
        assert!(!outlet.has_room(&mut tx));
        assert_eq!(outlet.with(Vec::clone), [7, 5]);
        outlet.with_mut(Vec::clear);
        assert!(outlet.has_room(&mut tx));
        engine.commit(&mut tx);
        engine.end(tx);
    }
}

//! Shared objects of one worker: its own.

use crate::shared::{Held, Look, Op, Shared};
use crate::tx::Tx;

/// A shared object in the worker's own memory. Its ticket is the operation, applied when its reply is taken: then all
/// packets before are done.
#[derive(Debug)]
pub struct LocalShared<V>(V);

impl<V> LocalShared<V> {
    pub(super) fn new(value: V) -> Self {
        LocalShared(value)
    }
}

impl<V: Held> Shared<V> for LocalShared<V> {
    type Ticket<O: Op<V>> = O;

    #[inline(always)]
    fn want<O: Op<V>>(&mut self, _tx: &mut Tx, op: O) -> O {
        op
    }

    #[inline(always)]
    fn got<O: Op<V>>(&mut self, _tx: &mut Tx, ticket: &O) -> O::Reply {
        ticket.apply(&mut self.0)
    }

    #[inline(always)]
    fn send<O: Op<V, Reply = ()>>(&mut self, _tx: &mut Tx, op: O) {
        op.apply(&mut self.0);
    }

    #[inline(always)]
    fn bring(&self, bring: impl FnOnce(&V)) {
        bring(&self.0);
    }

    fn own(&mut self) -> Option<&mut V> {
        Some(&mut self.0)
    }

    #[inline(always)]
    fn look<L: Look<V>>(&self, look: L) -> L::Reply {
        look.look(&self.0)
    }
}

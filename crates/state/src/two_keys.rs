//! Maps whose entries have two keys.
//!
//! A flow is seen from two sides: a translator sees an inside endpoint on the way out and an external one on the way back, a balancer
//! a connection to a virtual address and one from a server. That is one entry with two keys, and not two entries that must tell each
//! other of all that happens. The first key is the entry's own, and everything in [`FlowMap`] goes by it. The other one is told by the
//! entry itself, and goes with it, whichever way the entry goes.

use crate::engine::{FlowMap, Full, Intent};
use crate::key::Key;
use crate::plain::Plain;
use crate::tx::Tx;

/// The other key of an entry. It stays the same as long as the entry is there.
pub trait Other<K, V>: Send + 'static {
    /// The other key.
    type Key: Key;

    /// Return the other key of an entry.
    fn of(key: &K, value: &V) -> Self::Key;
}

/// A map of per-flow entries with two keys. Of two entries with the same other key the younger one is found by it.
pub trait TwoKeyMap<K: Key, V: Plain, X: Other<K, V>>: FlowMap<K, V> {
    /// The promise of an entry by its other key.
    type OtherTicket: Copy + Send;

    /// Ask whose another key is, to do so much with that entry at most.
    fn want_other(&mut self, tx: &mut Tx, other: X::Key, intent: Intent) -> Self::OtherTicket;

    /// Bring near what the ticket points at. Only a hint.
    fn warm_other(&mut self, _ticket: &mut Self::OtherTicket) {}

    /// Return the other key that a ticket was asked with.
    fn other_key(ticket: &Self::OtherTicket) -> X::Key;

    /// Return the promise of the entry that has this other key, which was just asked for, if there is one.
    fn found(&mut self, tx: &mut Tx, ticket: &Self::OtherTicket, intent: Intent) -> Option<Self::Ticket>;

    /// Put an entry in whose keys both were asked for, as [`FlowMap::insert`] does, which is not for these maps: it knows one key.
    ///
    /// # Errors
    /// [`Full`] when the map holds as many entries as it may.
    fn insert_both(
        &mut self,
        tx: &mut Tx,
        tickets: (&Self::Ticket, &Self::OtherTicket),
        value: V,
        until: u64,
    ) -> Result<Self::Entry<'_>, Full>;
}

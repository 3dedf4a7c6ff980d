//! Outlets: the way of what a function tells the world, such as records of what it has counted.
//!
//! An instance of a function may be lost at any operation, made anew, and given its packets once more. What leaves it must not leave
//! again, so a step hands it over as data, under the operation's name (clock, index), and it happens once, after the packet's
//! operations are committed: [`Engine::commit`](crate::Engine::commit). Who hands it over again by the same name is not heard twice.

use crate::plain::Plain;
use crate::tx::Tx;

/// Where records go: a file, or a queue to who writes one. It outlives the instance of the function that puts them.
pub trait Sink: Send + 'static {
    /// What goes there.
    type Record: Plain;

    /// Return whether there is room for a record just now. It may wait for room, where no packet of live traffic waits for that.
    fn has_room(&mut self) -> bool;

    /// Take a record. Whoever put it may have asked for room a while ago: without any, the sink waits or counts the record as lost.
    fn put(&mut self, record: Self::Record);
}

/// A function's way to its sink.
pub trait Outlet<S: Sink>: Send {
    /// Ask whether there is room for a record: no promise, as others may be on their way. Not in *prepare*.
    fn has_room(&mut self, tx: &mut Tx) -> bool;

    /// Hand over a record, which goes to the sink once the operations of the packet or event are committed, in the order in which they
    /// were handed over; never if they are given up. Not in *prepare*.
    fn put(&mut self, tx: &mut Tx, record: S::Record);

    /// Look at the sink, for figures; never for a packet's fate.
    fn with<R>(&self, ask: impl FnOnce(&S) -> R) -> R;

    /// Open or close the sink, or tell it how to go on; nothing that a packet asks for.
    fn with_mut<R>(&mut self, ask: impl FnOnce(&mut S) -> R) -> R;
}

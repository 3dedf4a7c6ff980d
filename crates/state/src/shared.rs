//! Shared objects: what packets of many flows, and several instances, have in common. They are reached by operations alone.
//!
//! An operation is plain data. Whoever holds the object applies it, here or elsewhere, now or later, but those of one
//! flow in the order of its packets (CHC's offloaded operations: Khalid's dissertation, §3.3 and
//! Table 3.6). Nothing ever points into the object.

/// An operation on a shared object.
///
/// It is pure: what it does follows from the object and from itself. Time and randomness are members of it.
pub trait Op<V>: Copy + Send + 'static {
    /// What it answers; an operation that answers nothing is waited for by nobody.
    type Reply: Copy + Send + 'static;

    /// Apply it.
    fn apply(self, value: &mut V) -> Self::Reply;
}

/// A shared object.
pub trait Shared<V>: Send {
    /// The operations of one packet.
    type Tx: Copy + Send;
    /// The promise of a reply.
    type Ticket<O: Op<V>>: Copy + Send;

    /// Ask for an operation. It is applied before the packet's next step, if the packet gets so far; the reply is taken
    /// in that step.
    fn want<O: Op<V>>(&mut self, tx: Self::Tx, op: O) -> Self::Ticket<O>;

    /// Take the reply.
    fn got<O: Op<V>>(&mut self, tx: Self::Tx, ticket: Self::Ticket<O>) -> O::Reply;

    /// Ask for an operation that nobody waits for; not in *prepare*, which may be all there is of a packet.
    fn send<O: Op<V, Reply = ()>>(&mut self, tx: Self::Tx, op: O);

    /// Let what operations will look at be brought near, where the object is near at all. Only a hint.
    fn bring(&self, _bring: impl FnOnce(&V)) {}

    /// Look at what is known of the object, for tables and exports; never for a packet's fate.
    fn look<R>(&self, look: impl FnOnce(&V) -> R) -> R;
}

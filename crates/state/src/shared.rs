//! Shared objects: what packets of many flows, and several instances, have in common. They are reached by operations alone.
//!
//! An operation is plain data. Whoever holds the object applies it, here or elsewhere, now or later, but those of one
//! flow in the order of its packets (CHC's offloaded operations: Khalid's dissertation, §3.3 and
//! Table 3.6). Nothing that a function does with a packet points into the object. Which operations there are on a kind of object, and by which number each is
//! known to a holder elsewhere, is listed once, by [`operations!`](crate::operations).

use crate::plain::Plain;
use crate::stored::Stored;
use crate::tx::Tx;

/// What operations are applied to, when they come as bytes, and what has bytes itself. [`operations!`](crate::operations) writes it.
pub trait Held: Stored + Send + 'static {
    /// What kind of object it is, wherever it is held. Whose layout is another one has another name.
    const NAME: &'static str;

    /// Apply the operation with this number and these bytes, and append its reply's bytes to `reply`; `None`, and nothing
    /// done, where it is none.
    fn operate(&mut self, id: u16, op: &[u8], reply: &mut Vec<u8>) -> Option<()>;

    /// Whether several may be changed side by side and put together afterwards, as sums may.
    const ABSORBS: bool = false;

    /// Take in what was done to another one, which is as new then.
    fn absorb(&mut self, _other: &mut Self) {}
}

/// What has a number among the operations on a `V`. [`operations!`](crate::operations) gives it.
pub trait Numbered<V> {
    /// The number.
    const ID: u16;
}

/// An operation on a shared object.
///
/// It is pure: what it does follows from the object and from itself. Time and randomness are members of it. Its reply is plain data, and
/// nothing that points into the object:
///
/// ```compile_fail
/// # use catena_state::{Op, Plain, Stored, operations};
/// # #[derive(Stored)]
/// # struct Sum(u64);
/// # #[derive(Clone, Copy, Plain)]
/// # struct Get;
/// # operations!("sum": Sum { 0 => Get });
/// impl Op<Sum> for Get {
///     type Reply = &'static u64;
///
///     fn apply(self, sum: &mut Sum) -> &'static u64 {
///         unimplemented!()
///     }
/// }
/// ```
pub trait Op<V>: Numbered<V> + Plain {
    /// What it answers; an operation that answers nothing is waited for by nobody.
    type Reply: Plain;

    /// Apply it.
    fn apply(self, value: &mut V) -> Self::Reply;
}

/// A question about a shared object, which changes nothing. [`Shared::look`] answers what is known here, for tables and exports; a packet
/// whose fate depends on the answer asks it as an [operation](Op), and is answered in its turn.
pub trait Look<V>: Numbered<V> + Plain {
    /// The answer.
    type Reply: Plain;

    /// Look.
    fn look(self, value: &V) -> Self::Reply;
}

impl<V, L: Look<V>> Op<V> for L {
    type Reply = L::Reply;

    #[inline(always)]
    fn apply(self, value: &mut V) -> L::Reply {
        self.look(value)
    }
}

/// Name a kind of shared object, and list the operations on it, and the questions about it, each with a number that it keeps. `absorbs` names what puts
/// two objects together that were changed side by side ([`Held::absorb`]), where that is possible.
///
/// ```
/// use catena_state::{Look, Op, Plain, Stored, operations};
///
/// #[derive(Stored)]
/// struct Sum(u64);
///
/// /// Add a number; answers the sum.
/// #[derive(Clone, Copy, Plain)]
/// struct Add(u32);
///
/// /// What is the sum?
/// #[derive(Clone, Copy, Plain)]
/// struct Get;
///
/// operations!("sum": Sum { 0 => Add } looks { 1 => Get });
///
/// impl Op<Sum> for Add {
///     type Reply = u64;
///
///     fn apply(self, sum: &mut Sum) -> u64 {
///         sum.0 += u64::from(self.0);
///         sum.0
///     }
/// }
///
/// impl Look<Sum> for Get {
///     type Reply = u64;
///
///     fn look(self, sum: &Sum) -> u64 {
///         sum.0
///     }
/// }
/// ```
#[macro_export]
macro_rules! operations {
    (
        $name:literal: $value:ty { $($id:literal => $op:ty),* $(,)? }
        $(looks { $($look_id:literal => $look:ty),* $(,)? })?
        $(absorbs $absorb:path)?
    ) => {
        impl $crate::Held for $value {
            const NAME: &'static str = $name;

            $(
                const ABSORBS: bool = true;

                fn absorb(&mut self, other: &mut Self) {
                    $absorb(self, other);
                }
            )?

            fn operate(&mut self, id: u16, op: &[u8], reply: &mut Vec<u8>) -> Option<()> {
                match id {
                    $($id => {
                        let op: $op = $crate::plain::value(op)?;
                        $crate::Plain::write(&$crate::Op::apply(op, self), reply);
                    })*
                    $($($look_id => {
                        let look: $look = $crate::plain::value(op)?;
                        $crate::Plain::write(&$crate::Look::look(look, self), reply);
                    })*)?
                    _ => return None,
                }
                Some(())
            }
        }
        $(impl $crate::Numbered<$value> for $op {
            const ID: u16 = $id;
        })*
        $($(impl $crate::Numbered<$value> for $look {
            const ID: u16 = $look_id;
        })*)?
    };
}

/// A shared object.
pub trait Shared<V>: Send {
    /// The promise of a reply.
    type Ticket<O: Op<V>>: Copy + Send;

    /// Ask for an operation. It is applied before the packet's next step, if the packet gets so far; the reply is taken
    /// in that step.
    fn want<O: Op<V>>(&mut self, tx: &mut Tx, op: O) -> Self::Ticket<O>;

    /// Take the reply.
    fn got<O: Op<V>>(&mut self, tx: &mut Tx, ticket: &Self::Ticket<O>) -> O::Reply;

    /// Ask for an operation that nobody waits for; not in *prepare*, which may be all there is of a packet. Those that an instance tells
    /// one object are applied in the order in which they are told.
    fn send<O: Op<V, Reply = ()>>(&mut self, tx: &mut Tx, op: O);

    /// Let what operations will look at be brought near, where the object is near at all. Only a hint.
    fn bring(&self, _bring: impl FnOnce(&V)) {}

    /// Return the value, where this instance has it to itself: for what slots take with them ([`Mover`](crate::Mover)), and never
    /// for a packet.
    fn own(&mut self) -> Option<&mut V> {
        None
    }

    /// Look at what is known of the object, for tables and exports; never for a packet's fate.
    fn look<L: Look<V>>(&self, look: L) -> L::Reply;

    /// The same in the middle of a packet's operations, for what is told of it, as a log is: still not for its fate.
    fn glance<L: Look<V>>(&self, look: L) -> L::Reply {
        self.look(look)
    }
}

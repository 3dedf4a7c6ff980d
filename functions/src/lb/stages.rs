//! What is asked for a packet, step by step.

use catena_state::{Engine, Shared};

use super::admission::{Admission, Admit, AdmitFragments};
use super::family::Balance;
use super::side::Leaving;
use crate::function::{Held, Try};

/// The promise of an entry, by any of its keys.
pub(super) type Ticket<E, F> = <E as Engine>::Ticket<<F as Balance>::Key>;
/// The promise of an answer to an operation on [`Admission`].
pub(super) type Asked<E, O> = <<E as Engine>::Shared<Admission> as Shared<Admission>>::Ticket<O>;

/// What is asked for a packet: an entry, and what the stage says. What both IP versions have comes first, where it is at the same place.
#[repr(C)]
pub struct Want<E: Engine, F: Balance> {
    pub(super) stage: Stage,
    /// TCP's [`super::connection::EVENTS`] and [`super::connection::FIRST_FRAGMENT`].
    pub(super) special: u8,
    /// Whose ticket it is.
    pub(super) of: Of,
    pub(super) ticket: Ticket<E, F>,
}

/// What a packet's ticket is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    /// A connection, by its client's side.
    Client,
    /// A connection, by its server's side.
    Server,
    /// What becomes of a later fragment.
    Part,
}

/// What comes next for a packet. All plans of a batch lie side by side, so it is small.
#[derive(Clone, Copy)]
pub(super) enum Stage {
    /// The packet's own entry.
    Own,
    /// What is held aside for it.
    Held(Held),
    /// There is no room for its connection, which goes to the server at this place, if that is known: room may be made, and
    /// it may be asked for once more. Others may have left some, where this instance `lacks` what it had at the start.
    Full { place: Option<u16>, lacks: bool },
}

/// What comes next for a packet, where it is too much for a plan.
pub(super) enum Next<E: Engine, F: Balance> {
    /// Whether a new connection is let in.
    Admitted(Asked<E, Admit>, Try),
    /// A new connection's entry by both keys: by the client's it is the packet's ticket, by the server's the one here. And whether
    /// it is let in at this place, if it is not yet.
    Both(Ticket<E, F>, u16, Option<(Asked<E, Admit>, Try)>),
    /// The entry for the later fragments of the datagram that this packet begins, and whether there is room for it.
    Fragments(Asked<E, AdmitFragments>, Try, Datagram<F::Address>),
}

/// A datagram in fragments.
#[derive(Clone, Copy)]
pub(super) struct Datagram<A> {
    /// How its first fragment leaves, and the others.
    pub(super) leaving: Leaving<A>,
    /// Whether its server has answered the client.
    pub(super) is_answered: bool,
}

copied!(Want<E: Engine, F: Balance>);

#[cfg(test)]
mod tests {
    use catena_state::Local;

    use super::*;
    use crate::family::{V4, V6};

    /// Plans of a whole batch are made side by side: what only some packets need is held aside.
    #[test]
    fn most_packets_need_no_more() {
        assert!(size_of::<Want<Local, V4>>() <= 40 && size_of::<Want<Local, V6>>() <= 64);
    }
}

//! What *prepare* hands to *finish*: what was read of a packet, and the state that was asked for.

use catena_dataplane::module::Verdict;
use catena_state::{Engine, Shared};

use super::family::Translate;
use super::identifications::Ident;
use super::mapping::{External, Mapping};
use super::sessions::{Contact, NewSession};
use super::{fragments, sessions};
use crate::family::AddressOf;
use crate::function::{Held, Step, Try};
use crate::rewrite::{Change, Side};
use catena_state::value::ports::{Lease, Ports};

/// The mappings.
pub type Inside<E, F> = <E as Engine>::TwoKeyMap<<F as Translate>::Endpoint, Mapping<AddressOf<F>>, External<F>>;
/// The promise of a mapping.
pub type InsideTicket<E, F> = <E as Engine>::Ticket<<F as Translate>::Endpoint>;
/// The promise of a mapping by its external endpoint.
pub type ExternalTicket<E, F> = <E as Engine>::Ticket<<F as Translate>::Endpoint>;

/// The promise of a port.
pub type LeaseTicket<E> = <<E as Engine>::Shared<Ports> as Shared<Ports>>::Ticket<Lease>;

/// What comes next for a packet.
pub enum Phase<E: Engine, F: Translate> {
    /// Nothing.
    Done(Verdict),
    /// From inside, a whole TCP segment or UDP datagram that needs nothing but rewriting: its mapping.
    Plain(InsideTicket<E, F>),
    /// From inside: its mapping.
    Out(InsideTicket<E, F>),
    /// From outside: which mapping has the external endpoint.
    In(ExternalTicket<E, F>),
    /// A later fragment.
    Later,
    /// What is held aside for it.
    Held(Held),
}

/// What comes next for a packet, where it is too much for a plan: plans of a whole batch lie side by side, and each is
/// moved.
pub enum Next<E: Engine, F: Translate> {
    /// From inside, an endpoint without a mapping: a port for it.
    Leased(InsideTicket<E, F>, LeaseTicket<E>, Try),
    /// The same, with a port of an external address and what tells the lease from others: the places of its mapping.
    Mapped(InsideTicket<E, F>, ExternalTicket<E, F>, Source<F>, u8),
    /// From inside: the session of a packet whose mapping was found.
    Noted(F::Pair, sessions::Ticket<E, F>, Contact<F>, Change<F::Address>),
    /// The same, where there was no session: a place for it.
    Met(F::Pair, NewSession<E, F>, Contact<F>, Change<F::Address>, Try),
    /// A first fragment, in either direction, whose mapping was found: what becomes of its datagram, and on the way out its
    /// identification.
    First(F::Pair, fragments::First<E, F>, (F::Endpoint, Change<F::Address>), Ident<E>, Try),
    /// From inside, any other whose mapping was found: its identification.
    Leave(Ident<E>, Change<F::Address>),
    /// To one of our own external addresses, with this as its new source: whose that is.
    Hairpin(ExternalTicket<E, F>, Source<F>),
    /// From outside, or with a new source and identification if it is a hairpin: its mapping.
    Back(InsideTicket<E, F>, Source<F>, Ident<E>),
    /// The same, and the session of a packet that is filtered.
    Filtered(InsideTicket<E, F>, sessions::Ticket<E, F>, Source<F>, Ident<E>),
    /// To an external address that is another instance's, with this as its new source, and with an identification.
    Turn(Source<F>, Ident<E>),
    /// What became of the first of a later fragment.
    Part(fragments::Ticket<E, F>, Side),
}

/// The new source of a packet that goes out and comes back in; of one from outside nobody looks at it.
pub type Source<F> = (AddressOf<F>, u16);

/// What *prepare* found: the next phase, and what kind of packet it is.
pub struct Plan<E: Engine, F: Translate> {
    /// What comes next.
    pub phase: Phase<E, F>,
    /// What the packet carries.
    pub kind: Kind,
    /// To one of our own external addresses: after the way out comes the way back.
    pub hairpin: bool,
}

/// What *prepare* read.
#[derive(Clone, Copy)]
pub struct Request<F: Translate> {
    /// What to do with it.
    pub what: What,
    /// Inside endpoint of a packet from inside, external endpoint of a packet from outside.
    pub endpoint: F::Endpoint,
    /// What it carries.
    pub kind: Kind,
    /// Whether it is a whole TCP segment or UDP datagram.
    pub is_plain: bool,
    /// Whether it goes to one of our own external addresses.
    pub hairpin: bool,
}

/// What to do with a packet.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// From inside.
    Out,
    /// From outside.
    In,
    /// A later fragment.
    Later,
    /// Not ours.
    Pass,
    /// Cannot be translated.
    Refuse,
    /// Its source or destination must not leave its link.
    Unroutable,
    /// More VLANs than are told apart.
    TooDeep,
}

/// What a packet carries.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Carries the port or identifier itself.
    Plain,
    /// The same, and further fragments follow.
    FirstFragment,
    /// An ICMP error.
    Error,
}

copied!(Phase<E: Engine, F: Translate>, Plan<E: Engine, F: Translate>);

impl<E: Engine, F: Translate> Plan<E, F> {
    /// Go on with another phase.
    pub fn then(&mut self, phase: Phase<E, F>) -> Step {
        self.phase = phase;
        Step::Again
    }
}

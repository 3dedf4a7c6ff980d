//! What *prepare* hands to *finish*, and one step to the next: what was read of a packet, and the state that was asked for.

use catena_dataplane::module::Verdict;
use catena_packet::Packet;
use catena_state::{Engine, Shared, Tx};

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
/// moved. The names are those of what has come by then.
pub enum Next<E: Engine, F: Translate> {
    /// From inside, an endpoint without a mapping: a port for it.
    Leased { inside: InsideTicket<E, F>, lease: LeaseTicket<E>, which: Try },
    /// The same, with a port of an external address and what tells the lease from others: the places of its mapping.
    Mapped { here: InsideTicket<E, F>, there: ExternalTicket<E, F>, to: Source<F>, birth: u8 },
    /// From inside: the session of a packet whose mapping was found.
    Noted { meeting: Meeting<F>, session: sessions::Ticket<E, F> },
    /// The same, where there was no session: a place for it.
    Met { meeting: Meeting<F>, place: NewSession<E, F>, which: Try },
    /// From inside, any other whose mapping was found: its identification.
    Leave { change: Change<F::Address>, ident: Ident<E> },
    /// To one of our own external addresses, with this as its new source: whose that is.
    Hairpin { external: ExternalTicket<E, F>, source: Source<F> },
    /// The same, where it is another instance's.
    Turn(Arrival<E, F>),
    /// From outside, or a hairpin: its mapping, and its session where packets are filtered.
    Back { mapping: InsideTicket<E, F>, session: Option<sessions::Ticket<E, F>>, arrival: Arrival<E, F> },
    /// A first fragment, in either direction, whose mapping was found: a place for what becomes of its datagram.
    First { first: First<E, F>, place: fragments::NewPart<E, F>, which: Try },
    /// What became of the first of a later fragment.
    Part { part: fragments::Ticket<E, F>, side: Side },
}

/// A mapping, as a packet has used it.
pub struct Used<F: Translate> {
    /// Whose it is.
    pub inside: F::Endpoint,
    /// What it does to packets from inside.
    pub change: Change<F::Address>,
}

/// A packet from inside to somebody whom its sender may have spoken to before.
pub struct Meeting<F: Translate> {
    /// The key of their session.
    pub key: F::Pair,
    /// Who speaks, and what is said.
    pub contact: Contact<F>,
    /// The mapping that it has used.
    pub used: Used<F>,
}

/// A packet that comes in, or comes back in.
pub struct Arrival<E: Engine, F: Translate> {
    /// The new source of a hairpin; of a packet from outside nobody looks at it.
    pub source: Source<F>,
    /// The new identification of a hairpin.
    pub ident: Ident<E>,
}

/// A first fragment.
pub struct First<E: Engine, F: Translate> {
    /// The key of its datagram.
    pub key: F::Pair,
    /// The mapping that it has used.
    pub used: Used<F>,
    /// Its identification, on the way out.
    pub ident: Ident<E>,
}

/// An external address and port: of a packet that goes out, its new source.
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

/// A packet on its way, as each step is given it.
pub struct At<'a, E: Engine, F: Translate> {
    /// Its operations.
    pub tx: &'a mut Tx,
    /// Itself.
    pub packet: &'a mut Packet,
    /// Where its way goes on.
    pub plan: &'a mut Plan<E, F>,
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

copied!(Phase<E: Engine, F: Translate>, Plan<E: Engine, F: Translate>, Used<F: Translate>);

impl<E: Engine, F: Translate> Plan<E, F> {
    /// Go on with another phase.
    pub fn then(&mut self, phase: Phase<E, F>) -> Step {
        self.phase = phase;
        Step::Again
    }
}

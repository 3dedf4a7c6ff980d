//! How a connection opens.
//!
//! It is let in first ([`Admission`](super::admission::Admission)), then its entry is written. A hash
//! or its past may name its server: then all of that is asked for at once.

use catena_dataplane::module::Verdict;
use catena_packet::Packet;
use catena_packet::wire::icmp_identifier;
use catena_packet::wire::number::proto;
use catena_packet::wire::tcp::flag::{FIN, RST, SYN};
use catena_state::{Engine, FlowMap, Intent, Shared as _, TwoKeyMap, Tx};

use crate::function::{Step, Try};
use crate::rewrite::Change;

use super::admission::{Admit, Admitted, Release, To};
use super::balancer::{Event, NO_BACKEND, NO_CONNECTION, Shared, TABLE_FULL};
use super::connection::{Connection, FIRST_FRAGMENT, State};
use super::family::{Balance, Tuple};
use super::side::{Leaving, Map, Side, way_back};
use super::stages::{Asked, Datagram, Next, Stage, Ticket, Want};

/// That a connection is let in, asked for the first time or the last.
type Admission<E> = (Asked<E, Admit>, Try);

impl<E: Engine, F: Balance> Side<E, F> {
    /// A packet without an entry: it may open a connection.
    pub(super) fn unknown(
        &mut self,
        shared: &mut Shared<E>,
        tx: &mut Tx,
        packet: &mut Packet,
        want: &mut Want<E, F>,
    ) -> Step {
        let pass = Step::Done(Verdict::Gate(tx.gate));
        let tuple = F::tuple(&Map::<E, F>::key(&want.ticket)).0;
        if tx.gate == 1 || !self.servers.serves(&tuple) {
            return pass;
        }
        let is_icmp = matches!(tuple.proto, proto::ICMP | proto::ICMPV6);
        if is_icmp && icmp_identifier(packet.data(), &packet.layers()).is_none() {
            return pass;
        }
        if want.special & (FIN | RST) != 0 {
            return Step::Done(Verdict::Drop(NO_CONNECTION));
        }
        if self.servers.none_up() {
            return Step::Done(Verdict::Drop(NO_BACKEND));
        }
        self.admit(shared, tx, packet, want, None, (Try::First, None))
    }

    /// Ask for a new connection to be let in, to the server at `place` or one that is chosen; the ticket is that of its own
    /// entry. If it is let in `instead` of one that leaves, it gets that one's room.
    pub(super) fn admit(
        &mut self,
        shared: &mut Shared<E>,
        tx: &mut Tx,
        packet: &mut Packet,
        want: &mut Want<E, F>,
        place: Option<u16>,
        (which, instead): (Try, Option<Release>),
    ) -> Step {
        let to = place.map(To::Place).or_else(|| self.servers.choose(&Map::<E, F>::key(&want.ticket)));
        let Some(to) = to else {
            if let Some(release) = instead {
                shared.admission.send(tx, release);
            }
            return Step::Done(Verdict::Drop(NO_BACKEND));
        };
        let asked = shared.admission.want(tx, Admit { is_v6: F::IS_V6, to, instance: shared.instance, instead });
        match to {
            // Where nothing is late, a connection opens without a word in between.
            To::Least if !E::WAITS => self.admitted(shared, tx, packet, want, asked, which),
            To::Least => self.then(shared, tx, packet, want, Next::Admitted(asked, which)),
            To::Place(place) => self.want_both(shared, tx, packet, want, (place, Some((asked, which)))),
        }
    }

    /// Go on with a connection that was let in, or refused.
    pub(super) fn admitted(
        &mut self,
        shared: &mut Shared<E>,
        tx: &mut Tx,
        packet: &mut Packet,
        want: &mut Want<E, F>,
        asked: Asked<E, Admit>,
        which: Try,
    ) -> Step {
        match shared.let_in::<F>(tx, &asked) {
            Admitted::To(place) => self.want_both(shared, tx, packet, want, (place, None)),
            refused => want.refuse(refused, None, which),
        }
    }

    /// Ask for the entry of a connection to the server at `place`, by both keys.
    fn want_both(
        &mut self,
        shared: &mut Shared<E>,
        tx: &mut Tx,
        packet: &mut Packet,
        want: &mut Want<E, F>,
        (place, asked): (u16, Option<Admission<E>>),
    ) -> Step {
        let key = Map::<E, F>::key(&want.ticket);
        let to = self.target(&F::tuple(&key).0, place);
        want.ticket = self.connections.want_again(tx, &want.ticket, Intent::Create);
        let back = self.connections.want_other(tx, way_back::<F>(&key, to), Intent::Create);
        if !E::WAITS {
            return self.open(shared, tx, packet, want, (&back, place), asked);
        }
        self.then(shared, tx, packet, want, Next::Both(back, place, asked))
    }

    /// Write the entry of a connection to the server at `place`, which was let in, or is if `asked` says so, and send its
    /// packet.
    pub(super) fn open(
        &mut self,
        shared: &mut Shared<E>,
        tx: &mut Tx,
        packet: &mut Packet,
        want: &mut Want<E, F>,
        (back, place): (&Ticket<E, F>, u16),
        asked: Option<(Asked<E, Admit>, Try)>,
    ) -> Step {
        if let Some((asked, which)) = asked {
            let answer = shared.let_in::<F>(tx, &asked);
            if answer != Admitted::To(place) {
                return want.refuse(answer, Some(place), which);
            }
        }
        let key = Map::<E, F>::key(&want.ticket);
        let tuple = F::tuple(&key).0;
        let (from, to) = ((tuple.dst, tuple.dport), self.target(&tuple, place));
        let (server, rewrite) = (self.servers.at(place).number, Change::new::<F>(from, to));
        let mut own = Connection { rewrite, due: 0, proof: 0, place, server, state: State::new(State::COUNTED) };
        own.note(want.began(), tx.now, tuple.proto, &shared.timeouts);
        let until = own.end(tuple.proto, &shared.timeouts);
        if self.connections.insert_both(tx, (&want.ticket, back), own, until).is_err() {
            let release = shared.release::<F>(Some(place));
            shared.admission.send(tx, release);
            return Step::Done(Verdict::Drop(TABLE_FULL));
        }
        self.connections.mark(tx, &want.ticket, true);
        shared.note(tx, Event::Opened);
        if want.special & FIRST_FRAGMENT != 0 {
            let datagram = Datagram { leaving: Leaving { from, to, server }, is_answered: false };
            return self.ask_fragments(shared, tx, packet, want, &tuple, datagram, Try::First);
        }
        Step::Done(shared.send::<F>(tx, packet, server, &rewrite))
    }

    /// Return where packets of a connection to the server at `place` go.
    fn target(&self, tuple: &Tuple<F::Address>, place: u16) -> (F::Address, u16) {
        let server = self.servers.at(place);
        let has_port = matches!(tuple.proto, proto::TCP | proto::UDP);
        (server.address, server.port.filter(|_| has_port).unwrap_or(tuple.dport))
    }
}

impl<E: Engine, F: Balance> Want<E, F> {
    /// Return what the first packet says of its connection, as bits of [`State`].
    fn began(&self) -> u16 {
        if self.special & SYN != 0 { State::BEGAN } else { 0 }
    }

    /// Refuse a connection that was not let in, to the server at `place` if that is known; if it was asked for once, room may
    /// be made.
    fn refuse(&mut self, answer: Admitted, place: Option<u16>, which: Try) -> Step {
        if answer == Admitted::NoneUp {
            return Step::Done(Verdict::Drop(NO_BACKEND));
        }
        if which == Try::First {
            self.stage = Stage::Full { place, lacks: answer == Admitted::Lacking };
        }
        Step::Done(Verdict::Drop(TABLE_FULL))
    }
}

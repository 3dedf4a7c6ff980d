//! How a connection opens.
//!
//! Its own entry is written in the step that learns its server, the way back in the next one. So between two steps nothing
//! is held that the table does not hold: whatever becomes of the entry meanwhile, the server's count goes with it.

use catena_dataplane::module::Verdict;
use catena_packet::Packet;
use catena_packet::wire::icmp_identifier;
use catena_packet::wire::number::proto;
use catena_packet::wire::tcp::flag::{FIN, RST, SYN};
use catena_state::{Engine, FlowMap};

use crate::function::{At, Step};

use super::balancer::{NO_BACKEND, NO_CONNECTION, NO_FIRST, Shared, TABLE_FULL};
use super::connection::{Connection, FIRST_FRAGMENT, State};
use super::family::{Class, Family, Tuple};
use super::servers::Chosen;
use super::side::{Leaving, Map, Side, Stage, Want, forget_way_back, other_way, rewrite};

impl<E: Engine, F: Family> Side<E, F> {
    /// A packet without an entry: it may open a connection.
    pub(super) fn unknown(
        &mut self,
        shared: &mut Shared<E>,
        at: At<E::Tx>,
        packet: &Packet,
        want: &mut Want<E, F>,
    ) -> Step {
        let pass = Step::Done(Verdict::Gate(at.gate));
        let (tuple, class) = F::tuple(&Map::<E, F>::key(&want.ticket));
        if class.is_fragment() && !class.is_back() && self.servers.serves_address(tuple.dst) {
            return Step::Done(Verdict::Drop(NO_FIRST));
        }
        if class != Class::FORWARD || !self.servers.serves(&tuple) {
            return pass;
        }
        let is_icmp = matches!(tuple.proto, proto::ICMP | proto::ICMPV6);
        if is_icmp && icmp_identifier(packet.data(), &packet.layers()).is_none() {
            return pass;
        }
        if want.special & (FIN | RST) != 0 {
            return Step::Done(Verdict::Drop(NO_CONNECTION));
        }
        if !self.servers.none_up() && shared.connections >= shared.most {
            return Step::Done(Verdict::Drop(TABLE_FULL));
        }
        self.choose(shared, at, want)
    }

    /// Find the server of a new connection.
    pub(super) fn choose(&mut self, shared: &mut Shared<E>, at: At<E::Tx>, want: &mut Want<E, F>) -> Step {
        if self.servers.none_up() {
            return Step::Done(Verdict::Drop(NO_BACKEND));
        }
        let key = Map::<E, F>::key(&want.ticket);
        match self.servers.choose(at.tx, &key) {
            Chosen::Place(place) => self.open(shared, at, want, place),
            // Its own entry once more. Where nothing is late the ticket serves again, and is not hashed again.
            Chosen::Ask(ticket) if E::WAITS => {
                let (tuple, class) = F::tuple(&key);
                self.ask(at.tx, want, &tuple, class, Stage::Least(ticket))
            }
            Chosen::Ask(ticket) => {
                want.stage = Stage::Least(ticket);
                Step::Again
            }
            Chosen::None => Step::Done(Verdict::Drop(NO_BACKEND)),
        }
    }

    /// Open a connection to the server at `place`, which already counts it; the ticket is that of its own entry. Where the
    /// table is full nothing has changed, and it may be tried again.
    pub(super) fn open(&mut self, shared: &mut Shared<E>, at: At<E::Tx>, want: &mut Want<E, F>, place: usize) -> Step {
        want.stage = Stage::Placed(place as u16);
        let full = Step::Done(Verdict::Drop(TABLE_FULL));
        let (tuple, class) = F::tuple(&Map::<E, F>::key(&want.ticket));
        let to = self.target(&tuple, place);
        let mut own = self.entry((tuple.dst, tuple.dport), to, place, State::COUNTED);
        own.note(want.began(), at.now, tuple.proto, class, &shared.timeouts);
        let [out, ways_back] = &mut self.maps;
        match out.get(at.tx, &want.ticket) {
            Some(old) => {
                forget_way_back::<E, F>(ways_back, at.tx, &tuple, (old.rewrite.address, old.rewrite.port));
                if old.abandon() {
                    self.servers.release(at.tx, old.place);
                }
            }
            // Others may have taken the room since this packet found some.
            None if shared.connections >= shared.most => return full,
            None => {}
        }
        let before = out.len();
        if out.insert(at.tx, &want.ticket, own).is_err() {
            return full;
        }
        out.mark(at.tx, &want.ticket, true);
        shared.connections += out.len() - before;
        let stage = Stage::Back { place: place as u16, port: tuple.dport, address: tuple.dst };
        self.ask(at.tx, want, &other_way(&tuple, class, to), class.other_way(), stage)
    }

    /// Take back what a packet has that is refused since the table is full.
    pub(super) fn refuse(&mut self, at: At<E::Tx>, want: &Want<E, F>) {
        if let Stage::Placed(place) = want.stage {
            self.servers.release(at.tx, place);
        }
    }

    /// Write the way back of a connection to the server at `place`, whose client sent to `was`.
    pub(super) fn open_back(
        &mut self,
        shared: &mut Shared<E>,
        at: At<E::Tx>,
        packet: &mut Packet,
        want: &mut Want<E, F>,
        place: usize,
        was: (F::Address, u16),
    ) -> Step {
        let (there, class) = F::tuple(&Map::<E, F>::key(&want.ticket));
        let tuple = other_way(&there, class, was);
        let mut back = self.entry((there.src, there.sport), was, place, 0);
        back.note(want.began(), at.now, there.proto, class, &shared.timeouts);
        if self.maps[1].insert(at.tx, &want.ticket, back).is_err() {
            return self.ask(at.tx, want, &tuple, class.other_way(), Stage::Undo);
        }
        shared.opened += 1;
        if E::WAITS {
            return self.ask(at.tx, want, &tuple, class.other_way(), Stage::Opened(place as u16));
        }
        self.leave_opened(shared, at, packet, want, &tuple, place)
    }

    /// Both entries were written. If the own one went before the way back was there, the way back goes as well.
    pub(super) fn opened(
        &mut self,
        shared: &mut Shared<E>,
        at: At<E::Tx>,
        packet: &mut Packet,
        want: &mut Want<E, F>,
        place: usize,
    ) -> Step {
        let (tuple, _) = F::tuple(&Map::<E, F>::key(&want.ticket));
        let to = self.target(&tuple, place);
        let [out, ways_back] = &mut self.maps;
        if out.get(at.tx, &want.ticket).is_none() {
            forget_way_back::<E, F>(ways_back, at.tx, &tuple, to);
        }
        self.leave_opened(shared, at, packet, want, &tuple, place)
    }

    fn leave_opened(
        &mut self,
        shared: &mut Shared<E>,
        at: At<E::Tx>,
        packet: &mut Packet,
        want: &mut Want<E, F>,
        tuple: &Tuple<F::Address>,
        place: usize,
    ) -> Step {
        let (from, to) = ((tuple.dst, tuple.dport), self.target(tuple, place));
        let leaving = Leaving { from, to, server: self.servers.at(place).number };
        if want.special & FIRST_FRAGMENT != 0 {
            return self.ask_fragments(shared, at, packet, want, tuple, leaving, (place as u16, false));
        }
        leaving.leave::<E, F>(shared, at, packet)
    }

    /// Take the own entry out again, as its way back found no room.
    pub(super) fn undo(&mut self, shared: &mut Shared<E>, at: At<E::Tx>, want: &Want<E, F>) -> Step {
        if let Some(mut own) = self.maps[0].remove(at.tx, &want.ticket) {
            shared.connections -= 1;
            if own.abandon() {
                self.servers.release(at.tx, own.place);
            }
        }
        Step::Done(Verdict::Drop(TABLE_FULL))
    }

    /// Return where packets of a connection to the server at `place` go.
    fn target(&self, tuple: &Tuple<F::Address>, place: usize) -> (F::Address, u16) {
        let server = self.servers.at(place);
        let has_port = matches!(tuple.proto, proto::TCP | proto::UDP);
        (server.address, server.port.filter(|_| has_port).unwrap_or(tuple.dport))
    }

    fn entry(
        &self,
        from: (F::Address, u16),
        to: (F::Address, u16),
        place: usize,
        state: u16,
    ) -> Connection<F::Address> {
        let (server, rewrite) = (self.servers.at(place).number, rewrite::<F>(from, to));
        Connection { rewrite, due: 0, proof: 0, place: place as u16, server, state: State::new(state) }
    }
}

impl<E: Engine, F: Family> Want<E, F> {
    /// Return what the first packet says of its connection, as bits of [`State`].
    fn began(&self) -> u16 {
        if self.special & SYN != 0 { State::BEGAN } else { 0 }
    }
}

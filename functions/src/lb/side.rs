//! The table and the servers of one IP version, and what a packet does there.

use catena_dataplane::module::Verdict;
use catena_packet::Packet;
use catena_packet::wire::checksum::Delta;
use catena_packet::wire::number::proto;
use catena_packet::wire::tcp::flag::{FIN, RST, SYN};
use catena_packet::wire::{Layers, icmp_identifier};
use catena_state::{Engine, FlowMap, NoMemory, Ranking};

use crate::function::{At, Step};

use super::balancer::{MOST_FRAGMENTED, NO_BACKEND, NO_CONNECTION, NO_FIRST, Shared, TABLE_FULL};
use super::connection::{Connection, EVENTS, FIRST_FRAGMENT, State};
use super::family::{Class, Family, Rewrite, Tuple};
use super::proof::{News, proves};
use super::servers::{Chosen, Servers};
use super::settings::Settings;

pub(super) type Map<E, F> = <E as Engine>::FlowMap<<F as Family>::Key, Connection<<F as Family>::Address>>;
type Ticket<E, F> = <Map<E, F> as FlowMap<<F as Family>::Key, Connection<<F as Family>::Address>>>::Ticket;
type RankTicket<E> = <<E as Engine>::Ranking as Ranking>::Ticket;

/// The table and the servers of one IP version.
pub(super) struct Side<E: Engine, F: Family> {
    /// Of the way out, and of the way back: apart, so that the entries of traffic one way lie side by side.
    pub(super) maps: [Map<E, F>; 2],
    pub(super) servers: Servers<E, F>,
}

/// What is asked for a packet.
pub struct Want<E: Engine, F: Family> {
    ticket: Ticket<E, F>,
    stage: Stage<RankTicket<E>, F::Address>,
    /// TCP's [`EVENTS`] and [`FIRST_FRAGMENT`].
    special: u8,
    /// Whose ticket it is: 0 for the way out, 1 for the way back.
    way: u8,
}

#[derive(Clone, Copy)]
enum Stage<R, A> {
    /// The packet's own entry.
    Own,
    /// The least loaded server, for a new connection.
    Least(R),
    /// The entry of the other direction, which must know of this packet. The packet is rewritten; before, this
    /// was its address and port on the side that was.
    Other { bits: u16, proof: u32, was: (A, u16) },
}

impl<E: Engine, F: Family> Copy for Want<E, F> {}
impl<E: Engine, F: Family> Clone for Want<E, F> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<E: Engine, F: Family> Side<E, F> {
    pub(super) fn new(engine: &mut E, settings: &Settings, most: usize) -> Result<Self, NoMemory> {
        let is_used = settings.vips.iter().any(|vip| F::address(vip.ip).is_some());
        // Every way back belongs to a way out, and goes with it; what room there is more keeps look-ups short.
        let capacity = if is_used { 2 * most + MOST_FRAGMENTED } else { 1 };
        let maps = [engine.flow_map("mapping", capacity)?, engine.flow_map("mapping back", capacity)?];
        Ok(Side { maps, servers: Servers::new(engine, settings) })
    }

    /// Read a packet's key, and what else its entry must know of it.
    #[inline(always)]
    pub(super) fn read(gate: u16, packet: &Packet, layers: &Layers) -> Option<(F::Key, u8)> {
        let (frame, class) = (packet.data(), Class::of_gate(gate));
        if layers.has(Layers::FRAGMENT) {
            return Self::read_fragment(frame, layers, class);
        }
        Some((F::read(frame, layers, class)?, tcp_events(frame, layers)))
    }

    #[cold]
    fn read_fragment(frame: &[u8], layers: &Layers, class: Class) -> Option<(F::Key, u8)> {
        let first = if layers.has(Layers::LATER) { 0 } else { FIRST_FRAGMENT };
        Some((F::read_fragment(frame, layers, class)?, tcp_events(frame, layers) | first))
    }

    /// Ask for the entry of a key.
    #[inline(always)]
    pub(super) fn want(&mut self, tx: E::Tx, gate: u16, (key, special): (F::Key, u8)) -> Want<E, F> {
        Want { ticket: self.maps[way(gate)].want(tx, key), stage: Stage::Own, special, way: way(gate) as u8 }
    }

    /// Bring the entry near.
    #[inline(always)]
    pub(super) fn warm(&mut self, want: &mut Want<E, F>) {
        self.maps[usize::from(want.way & 1)].warm(&mut want.ticket);
    }

    /// Use the entry of a connection that nothing happens to, and decide.
    #[inline(always)]
    pub(super) fn finish_known(
        &mut self,
        shared: &mut Shared<E>,
        at: At<E::Tx>,
        packet: &mut Packet,
        want: &mut Want<E, F>,
    ) -> Option<Verdict> {
        if let Stage::Own = want.stage
            && want.special == 0
            && let Some(own) = self.maps[way(at.gate)].get(at.tx, &want.ticket)
            && own.state.has(State::QUIET)
            && at.now <= own.due
            && !self.servers.must_move(own.place)
        {
            return Some(shared.send::<F>(at, packet, own, at.gate == 1));
        }
        None
    }

    /// Whatever changes the table, and packets that are none of the balancer's. Where the table is full nothing has
    /// changed, and it may be tried again.
    pub(super) fn finish_rare(
        &mut self,
        shared: &mut Shared<E>,
        at: At<E::Tx>,
        packet: &mut Packet,
        want: &mut Want<E, F>,
    ) -> Step {
        shared.tx = Some(at.tx);
        match want.stage {
            Stage::Own if self.maps[way(at.gate)].get(at.tx, &want.ticket).is_some() => {
                self.known(shared, at, packet, want)
            }
            Stage::Own => self.unknown(shared, at, packet, want),
            Stage::Least(ticket) => match self.servers.chosen(at.tx, ticket) {
                Some(place) => self.open(shared, at, packet, want, place),
                None => Step::Done(Verdict::Drop(NO_BACKEND)),
            },
            Stage::Other { bits, proof, was } => self.tell_other(shared, at, packet, want, News { bits, proof }, was),
        }
    }

    /// A packet of a connection that something happens to.
    fn known(&mut self, shared: &mut Shared<E>, at: At<E::Tx>, packet: &mut Packet, want: &mut Want<E, F>) -> Step {
        let pass = Step::Done(Verdict::Gate(at.gate));
        let (tuple, class) = F::tuple(&Map::<E, F>::key(&want.ticket));
        let Some(own) = self.maps[way(at.gate)].get(at.tx, &want.ticket) else { return pass };
        if class.is_fragment() {
            own.note(0, at.now, tuple.proto, class, &shared.timeouts);
            return Step::Done(shared.send::<F>(at, packet, own, class.is_back()));
        }
        let moves = self.servers.must_move(own.place);
        if class == Class::FORWARD && (moves || want.special & SYN != 0 && own.state.has(State::CLOSED)) {
            // A false RST and SYN must not take a connection from its server, which knows what to do with a SYN of
            // one that lives (RFC 5961 §4).
            let is_kept = own.state.has(State::CUT) && self.servers.is_up(own.place);
            if !is_kept {
                if !moves && self.servers.none_up() {
                    return Step::Done(Verdict::Drop(NO_BACKEND));
                }
                if own.abandon() {
                    if moves {
                        shared.moved += 1;
                    }
                    self.servers.release(at.tx, own.place);
                    self.maps[0].mark(at.tx, &want.ticket, true);
                }
                return self.choose(shared, at, packet, want);
            }
            if !own.state.has(State::SETTLED) {
                let place = own.place;
                self.servers.retain(at.tx, place);
                return self.open(shared, at, packet, want, usize::from(place));
            }
        }
        if want.special & FIRST_FRAGMENT != 0 {
            own.due = 0;
        }
        let before = own.state;
        let news = News::read(own, packet, want.special, tuple.proto, class);
        let touched = own.note(news.here(), at.now, tuple.proto, class, &shared.timeouts);
        if own.released() {
            self.servers.release(at.tx, own.place);
        }
        let goes_first = own.state.goes_first();
        let is_marked = class.is_back() || before.goes_first() == goes_first;
        let verdict = shared.send::<F>(at, packet, own, class.is_back());
        let (bits, rewrite) = (own.state.seen_from_there() | news.there(), own.rewrite);
        if !is_marked {
            self.maps[0].mark(at.tx, &want.ticket, goes_first);
        }
        if !touched && want.special & FIRST_FRAGMENT == 0 && news.there() == 0 {
            return Step::Done(verdict);
        }
        let was = if class.is_back() { (tuple.src, tuple.sport) } else { (tuple.dst, tuple.dport) };
        let other = other_way(&tuple, class, &rewrite);
        let there = 1 - way(at.gate);
        let ticket = self.maps[there].want(at.tx, F::key(&other, class.other_way()));
        *want = Want { ticket, stage: Stage::Other { bits, proof: news.proof, was }, way: there as u8, ..*want };
        Step::Again
    }

    /// Let the entry of the other direction know of a packet that was just sent on.
    fn tell_other(
        &mut self,
        shared: &mut Shared<E>,
        at: At<E::Tx>,
        packet: &Packet,
        want: &mut Want<E, F>,
        news: News,
        was: (F::Address, u16),
    ) -> Step {
        let done = Step::Done(Verdict::Gate(at.gate));
        let (there, class) = F::tuple(&Map::<E, F>::key(&want.ticket));
        let Some(other) = self.maps[1 - way(at.gate)].get(at.tx, &want.ticket) else { return done };
        // Another connection of the same client may have taken its place.
        if (other.rewrite.address, other.rewrite.port) != was {
            return done;
        }
        let before = other.state.goes_first();
        // Both become due at once, so that neither is forgotten while the other is used.
        other.due = 0;
        other.note(news.bits, at.now, there.proto, class, &shared.timeouts);
        if news.bits & State::AWAITS != 0 {
            other.proof = news.proof;
        }
        if news.bits & State::ANEW != 0 {
            shared.opened += 1;
        }
        if other.released() {
            self.servers.release(at.tx, other.place);
        } else if !class.is_back() && other.revived() {
            self.servers.retain(at.tx, other.place);
        }
        let other = *other;
        let goes_first = other.state.goes_first();
        if !class.is_back() && (goes_first != before || !proves(there.proto)) {
            // The server's answer to what has no proof: to the end of the line.
            self.maps[0].mark(at.tx, &want.ticket, false);
            self.maps[0].mark(at.tx, &want.ticket, goes_first);
        }
        if want.special & FIRST_FRAGMENT != 0 {
            let back = class.other_way().is_back();
            let address = if back { there.dst } else { there.src };
            let (src, dst) = if back { (was.0, there.src) } else { (there.dst, was.0) };
            let tuple = Tuple { src, dst, sport: 0, dport: 0, proto: there.proto };
            self.await_fragments(shared, at, packet, tuple, class.other_way(), address, other);
        }
        done
    }

    /// A packet without an entry: it may open a connection.
    fn unknown(&mut self, shared: &mut Shared<E>, at: At<E::Tx>, packet: &mut Packet, want: &mut Want<E, F>) -> Step {
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
        self.choose(shared, at, packet, want)
    }

    fn choose(&mut self, shared: &mut Shared<E>, at: At<E::Tx>, packet: &mut Packet, want: &mut Want<E, F>) -> Step {
        if self.servers.none_up() {
            return Step::Done(Verdict::Drop(NO_BACKEND));
        }
        match self.servers.choose(at.tx, &Map::<E, F>::key(&want.ticket)) {
            Chosen::Place(place) => self.open(shared, at, packet, want, place),
            Chosen::Ask(ticket) => {
                want.stage = Stage::Least(ticket);
                Step::Again
            }
            Chosen::None => Step::Done(Verdict::Drop(NO_BACKEND)),
        }
    }

    /// Open a connection to the server at `place`, which already counts it.
    fn open(
        &mut self,
        shared: &mut Shared<E>,
        at: At<E::Tx>,
        packet: &mut Packet,
        want: &mut Want<E, F>,
        place: usize,
    ) -> Step {
        let (tuple, class) = F::tuple(&Map::<E, F>::key(&want.ticket));
        let server = self.servers.at(place);
        let has_port = matches!(tuple.proto, proto::TCP | proto::UDP);
        let port = server.port.filter(|_| has_port).unwrap_or(tuple.dport);
        let address = server.address;
        let mut own = Connection {
            rewrite: rewrite::<F>((tuple.dst, tuple.dport), (address, port)),
            due: 0,
            proof: 0,
            place: place as u16,
            server: server.number,
            state: State::new(State::COUNTED),
        };
        let began = if want.special & SYN != 0 { State::BEGAN } else { 0 };
        own.note(began, at.now, tuple.proto, class, &shared.timeouts);
        let mut back = Connection {
            rewrite: rewrite::<F>((address, port), (tuple.dst, tuple.dport)),
            state: State::new(0),
            ..own
        };
        back.note(began, at.now, tuple.proto, class.other_way(), &shared.timeouts);
        let other = F::key(&other_way(&tuple, class, &own.rewrite), class.other_way());
        let [out, ways_back] = &mut self.maps;
        if let Some(old) = out.get(at.tx, &want.ticket) {
            forget_way_back::<E, F>(ways_back, at.tx, &tuple, &old.rewrite);
        }
        let before = out.len();
        let inserted = out.insert(at.tx, &want.ticket, own).is_ok();
        out.mark(at.tx, &want.ticket, true);
        shared.connections += out.len() - before;
        let other = ways_back.want(at.tx, other);
        if !inserted || ways_back.insert(at.tx, &other, back).is_err() {
            if out.remove(at.tx, &want.ticket).is_some() {
                shared.connections -= 1;
            }
            self.servers.release(at.tx, own.place);
            return Step::Done(Verdict::Drop(TABLE_FULL));
        }
        shared.opened += 1;
        let verdict = shared.send::<F>(at, packet, &own, false);
        if want.special & FIRST_FRAGMENT != 0 {
            self.await_fragments(shared, at, packet, tuple, class, address, own);
        }
        Step::Done(verdict)
    }
}

/// The way out or the way back, as an index.
#[inline(always)]
fn way(gate: u16) -> usize {
    usize::from(gate == 1)
}

/// Take out the way back of a connection that goes, unless it is that of a younger one by now.
pub(super) fn forget_way_back<E: Engine, F: Family>(
    ways_back: &mut Map<E, F>,
    tx: E::Tx,
    tuple: &Tuple<F::Address>,
    rewrite: &Rewrite<F::Address>,
) {
    let ticket = ways_back.want(tx, F::key(&other_way(tuple, Class::FORWARD, rewrite), Class::BACK));
    let is_own = |back: &mut Connection<_>| (back.rewrite.address, back.rewrite.port) == (tuple.dst, tuple.dport);
    if ways_back.get(tx, &ticket).is_some_and(is_own) {
        ways_back.remove(tx, &ticket);
    }
}

pub(super) fn rewrite<F: Family>(from: (F::Address, u16), to: (F::Address, u16)) -> Rewrite<F::Address> {
    let network = F::delta(from.0, to.0);
    let transport = network.and(Delta::new().change16(from.1, to.1));
    Rewrite { address: to.0, network: network.into(), transport: transport.into(), port: to.1 }
}

/// Return the other direction's tuple, as packets bring it.
fn other_way<A: Copy>(tuple: &Tuple<A>, class: Class, rewrite: &Rewrite<A>) -> Tuple<A> {
    let Tuple { src, dst, sport, dport, proto } = *tuple;
    if class.is_back() {
        Tuple { src: dst, dst: rewrite.address, sport: dport, dport: rewrite.port, proto }
    } else {
        Tuple { src: rewrite.address, dst: src, sport: rewrite.port, dport: sport, proto }
    }
}

/// Read the TCP flags that change a connection; none for other protocols.
#[inline(always)]
fn tcp_events(frame: &[u8], layers: &Layers) -> u8 {
    let is_tcp = layers.proto == proto::TCP && layers.has(Layers::PORTS);
    let flags = *frame.get(usize::from(layers.l4) + 13).unwrap_or(&0);
    if is_tcp { flags & EVENTS } else { 0 }
}

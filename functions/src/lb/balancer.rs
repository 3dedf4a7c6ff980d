//! The balancer's work on a packet, in two steps.

use catena_dataplane::attribute::Slot;
use catena_dataplane::module::{Reason, Verdict};
use catena_packet::Packet;
use catena_packet::wire::checksum::Delta;
use catena_packet::wire::number::proto;
use catena_packet::wire::tcp::flag::{FIN, RST, SYN};
use catena_packet::wire::{Layers, Net, icmp_identifier};
use catena_state::{Counters, Engine, FlowMap, Ranking};

use crate::function::{At, Function, Step};

use super::connection::{Connection, EVENTS, FIRST_FRAGMENT, State, Timeouts, bits_of};
use super::family::{Class, Family, Rewrite, Tuple, V4, V6};
use super::servers::{Chosen, Servers};
use super::settings::{Backend, Settings};

pub(super) const REASONS: &[&str] =
    &["no backend up", "connection table full", "segment of no connection", "fragment without its first"];
pub(super) const NO_BACKEND: Reason = Reason(0);
pub(super) const TABLE_FULL: Reason = Reason(1);
pub(super) const NO_CONNECTION: Reason = Reason(2);
pub(super) const NO_FIRST: Reason = Reason(3);

/// Most datagrams at a time whose later fragments are awaited.
const MOST_FRAGMENTED: usize = 4096;
/// Entries looked at after a batch, and about every millisecond, for each IP version.
const SWEEP: usize = 3;
const SWEEP_IDLE: usize = 256;

/// A server as an operator sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackendInfo {
    /// Its number: its place in the list `backends`, from 1, as in the attribute `backend`.
    pub number: u16,
    /// Whether new connections may get it.
    pub up: bool,
    /// Active connections.
    pub connections: i64,
    /// Bytes of all packets to and from it.
    pub bytes: i64,
}

/// The layer-4 load balancer.
pub struct Balancer<E: Engine> {
    v4: Side<E, V4>,
    v6: Side<E, V6>,
    common: Common<E>,
}

/// What both IP versions share.
struct Common<E: Engine> {
    bytes: E::Counters,
    slot: Slot,
    timeouts: Timeouts,
    backends: Vec<Backend>,
    most: usize,
    connections: usize,
    fragmented: usize,
    opened: u64,
    moved: u64,
    /// The last packet's unit of operations: what expires after it is undone in its name.
    tx: Option<E::Tx>,
}

type Map<E, F> = <E as Engine>::FlowMap<<F as Family>::Key, Connection<<F as Family>::Address>>;
type Ticket<E, F> = <Map<E, F> as FlowMap<<F as Family>::Key, Connection<<F as Family>::Address>>>::Ticket;
type RankTicket<E> = <<E as Engine>::Ranking as Ranking>::Ticket;

/// The table and the servers of one IP version.
struct Side<E: Engine, F: Family> {
    map: Map<E, F>,
    servers: Servers<E, F>,
}

/// What *prepare* hands to *finish*.
pub enum Plan<E: Engine> {
    /// Nothing to do: not IP.
    Pass,
    /// IPv4.
    V4(Want<E, V4>),
    /// IPv6.
    V6(Want<E, V6>),
}

/// What is asked for a packet.
pub struct Want<E: Engine, F: Family> {
    ticket: Ticket<E, F>,
    stage: Stage<RankTicket<E>, F::Address>,
    /// TCP's [`EVENTS`] and [`FIRST_FRAGMENT`].
    special: u8,
}

#[derive(Clone, Copy)]
enum Stage<R, A> {
    /// The packet's own entry.
    Own,
    /// The least loaded server, for a new connection.
    Least(R),
    /// The entry of the other direction, which must know of this packet. The packet is rewritten; before, this
    /// was its address and port on the side that was.
    Other { bits: u8, was: (A, u16) },
}

impl<E: Engine, F: Family> Copy for Want<E, F> {}
impl<E: Engine, F: Family> Clone for Want<E, F> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<E: Engine> Copy for Plan<E> {}
impl<E: Engine> Clone for Plan<E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E: Engine> Balancer<E> {
    pub(super) fn new(engine: &mut E, settings: Settings, slot: Slot) -> Self {
        let most = settings.max_connections.div_ceil(engine.share().count.max(1) as usize);
        let (v4, v6) = (Side::new(engine, &settings, most), Side::new(engine, &settings, most));
        let common = Common {
            bytes: engine.counters("bytes", settings.backends.len()),
            slot,
            timeouts: settings.timeouts,
            backends: settings.backends,
            most,
            connections: 0,
            fragmented: 0,
            opened: 0,
            moved: 0,
            tx: None,
        };
        Balancer { v4, v6, common }
    }

    /// Say whether a backend, by its number from 1, is up. Takes some ms with consistent hashing.
    ///
    /// Returns whether there is a backend of this number.
    pub fn set_backend(&mut self, number: u16, up: bool) -> bool {
        let Some(index) = number.checked_sub(1) else { return false };
        self.v4.servers.set_up(index, up) || self.v6.servers.set_up(index, up)
    }

    /// Return the number of the backend at an address and port, from 1.
    pub fn backend(&self, ip: std::net::IpAddr, port: Option<u16>) -> Option<u16> {
        let index = self.common.backends.iter().position(|b| (b.ip, b.port) == (ip, port))?;
        Some(index as u16 + 1)
    }

    /// Go through the backends, those of IPv4 first.
    pub fn backends(&self) -> impl Iterator<Item = BackendInfo> + '_ {
        self.v4.servers.iter().chain(self.v6.servers.iter()).map(|(index, up, connections)| {
            let bytes = self.common.bytes.read(usize::from(index));
            BackendInfo { number: index + 1, up, connections, bytes }
        })
    }
}

impl<E: Engine> Function<E> for Balancer<E>
where
    E::Tx: Send,
{
    type Plan = Plan<E>;

    #[inline(always)]
    fn prepare(&mut self, at: At<E::Tx>, packet: &Packet) -> Plan<E> {
        let layers = packet.layers();
        match layers.net {
            Net::Ipv4 => self.v4.prepare(at, packet, &layers).map_or(Plan::Pass, Plan::V4),
            Net::Ipv6 => self.v6.prepare(at, packet, &layers).map_or(Plan::Pass, Plan::V6),
            Net::Arp | Net::Other => Plan::Pass,
        }
    }

    #[inline(always)]
    fn warm(&mut self, plan: &mut Plan<E>) {
        match plan {
            Plan::Pass => {}
            Plan::V4(want) => self.v4.map.warm(&mut want.ticket),
            Plan::V6(want) => self.v6.map.warm(&mut want.ticket),
        }
    }

    #[inline(always)]
    fn finish(&mut self, at: At<E::Tx>, packet: &mut Packet, plan: Plan<E>) -> Step<Plan<E>> {
        match plan {
            Plan::Pass => Step::Done(Verdict::Gate(at.gate)),
            Plan::V4(want) => again(self.v4.finish(&mut self.common, at, packet, want), Plan::V4),
            Plan::V6(want) => again(self.v6.finish(&mut self.common, at, packet, want), Plan::V6),
        }
    }

    fn tidy(&mut self, now: u64, idle: bool) {
        let Some(tx) = self.common.tx else { return };
        let count = if idle { SWEEP_IDLE } else { SWEEP };
        self.v4.tidy(&mut self.common, tx, now, count);
        self.v6.tidy(&mut self.common, tx, now, count);
    }

    fn reasons(&self) -> &'static [&'static str] {
        REASONS
    }

    fn gauges(&self, tell: &mut dyn FnMut(&'static str, u64)) {
        tell("connections", self.common.connections as u64);
        tell("opened", self.common.opened);
        tell("moved", self.common.moved);
        tell("backends up", self.backends().filter(|b| b.up).count() as u64);
    }
}

#[inline(always)]
fn again<W, P>(step: Step<W>, plan: impl FnOnce(W) -> P) -> Step<P> {
    match step {
        Step::Done(verdict) => Step::Done(verdict),
        Step::Again(want) => Step::Again(plan(want)),
    }
}

impl<E: Engine> Common<E> {
    /// Rewrite a packet and send it on.
    #[inline(always)]
    fn send<F: Family>(
        &mut self,
        at: At<E::Tx>,
        packet: &mut Packet,
        to: &Connection<F::Address>,
        back: bool,
    ) -> Verdict {
        let layers = packet.layers();
        self.bytes.add(at.tx, usize::from(to.server), packet.len() as i64);
        self.slot.set(packet, to.server + 1);
        to.rewrite.apply::<F>(packet.data_mut(), &layers, back);
        Verdict::Gate(at.gate)
    }
}

impl<E: Engine, F: Family> Side<E, F> {
    fn new(engine: &mut E, settings: &Settings, most: usize) -> Self {
        let is_used = settings.vips.iter().any(|vip| F::address(vip.ip).is_some());
        // An entry each way; as many again for ways back that connections have left behind.
        let capacity = if is_used { 3 * most + MOST_FRAGMENTED } else { 1 };
        let map = engine.flow_map("mapping", capacity);
        Side { map, servers: Servers::new(engine, settings) }
    }

    #[inline(always)]
    fn prepare(&mut self, at: At<E::Tx>, packet: &Packet, layers: &Layers) -> Option<Want<E, F>> {
        let (frame, class) = (packet.data(), Class::of_gate(at.gate));
        let mut special = tcp_events(frame, layers);
        let key = if layers.has(Layers::FRAGMENT) {
            if !layers.has(Layers::LATER) {
                special |= FIRST_FRAGMENT;
            }
            F::read_fragment(frame, layers, class)?
        } else {
            F::read(frame, layers, class)?
        };
        Some(Want { ticket: self.map.want(at.tx, key), stage: Stage::Own, special })
    }

    #[inline(always)]
    fn finish(
        &mut self,
        common: &mut Common<E>,
        at: At<E::Tx>,
        packet: &mut Packet,
        want: Want<E, F>,
    ) -> Step<Want<E, F>> {
        if let Stage::Own = want.stage
            && want.special == 0
            && let Some(own) = self.map.get(at.tx, &want.ticket)
            && own.state.has(State::SETTLED)
            && at.now <= own.due
            && !self.servers.must_move(own.place)
        {
            return Step::Done(common.send::<F>(at, packet, own, at.gate == 1));
        }
        self.finish_rare(common, at, packet, want)
    }

    /// Whatever changes the table, and packets that are none of the balancer's.
    #[inline(never)]
    fn finish_rare(
        &mut self,
        common: &mut Common<E>,
        at: At<E::Tx>,
        packet: &mut Packet,
        want: Want<E, F>,
    ) -> Step<Want<E, F>> {
        common.tx = Some(at.tx);
        match want.stage {
            Stage::Own if self.map.get(at.tx, &want.ticket).is_some() => self.known(common, at, packet, want),
            Stage::Own => self.unknown(common, at, packet, want),
            Stage::Least(ticket) => match self.servers.chosen(at.tx, ticket) {
                Some(place) => self.open(common, at, packet, want, place),
                None => Step::Done(Verdict::Drop(NO_BACKEND)),
            },
            Stage::Other { bits, was } => self.tell_other(common, at, packet, want, bits, was),
        }
    }

    /// A packet of a connection that something happens to.
    fn known(
        &mut self,
        common: &mut Common<E>,
        at: At<E::Tx>,
        packet: &mut Packet,
        want: Want<E, F>,
    ) -> Step<Want<E, F>> {
        let pass = Step::Done(Verdict::Gate(at.gate));
        let (tuple, class) = F::tuple(&Map::<E, F>::key(&want.ticket));
        let Some(own) = self.map.get(at.tx, &want.ticket) else { return pass };
        if class.is_fragment() {
            own.note(0, at.now, tuple.proto, class, &common.timeouts);
            return Step::Done(common.send::<F>(at, packet, own, class.is_back()));
        }
        let moves = self.servers.must_move(own.place);
        let reopens = want.special & SYN != 0 && own.state.has(State::CLOSED);
        if class == Class::FORWARD && (moves || reopens) {
            if own.abandon() {
                common.moved += u64::from(moves);
                self.servers.release(at.tx, own.place);
            }
            return self.choose(common, at, packet, want);
        }
        let touched = own.note(bits_of(want.special), at.now, tuple.proto, class, &common.timeouts);
        if own.released() {
            self.servers.release(at.tx, own.place);
        }
        let verdict = common.send::<F>(at, packet, own, class.is_back());
        if !touched && want.special & FIRST_FRAGMENT == 0 {
            return Step::Done(verdict);
        }
        let was = if class.is_back() { (tuple.src, tuple.sport) } else { (tuple.dst, tuple.dport) };
        let bits = own.state.seen_from_there();
        let other = other_way(&tuple, class, &own.rewrite);
        let ticket = self.map.want(at.tx, F::key(&other, class.other_way()));
        Step::Again(Want { ticket, stage: Stage::Other { bits, was }, special: want.special })
    }

    /// Let the entry of the other direction know of a packet that was just sent on.
    fn tell_other(
        &mut self,
        common: &mut Common<E>,
        at: At<E::Tx>,
        packet: &Packet,
        want: Want<E, F>,
        bits: u8,
        was: (F::Address, u16),
    ) -> Step<Want<E, F>> {
        let done = Step::Done(Verdict::Gate(at.gate));
        let (there, class) = F::tuple(&Map::<E, F>::key(&want.ticket));
        let Some(other) = self.map.get(at.tx, &want.ticket) else { return done };
        // Another connection of the same client may have taken its place.
        if (other.rewrite.address, other.rewrite.port) != was {
            return done;
        }
        other.note(bits, at.now, there.proto, class, &common.timeouts);
        if other.released() {
            self.servers.release(at.tx, other.place);
        }
        if want.special & FIRST_FRAGMENT != 0 {
            let (other, back) = (*other, class.other_way().is_back());
            let address = if back { there.dst } else { there.src };
            let (src, dst) = if back { (was.0, there.src) } else { (there.dst, was.0) };
            let tuple = Tuple { src, dst, sport: 0, dport: 0, proto: there.proto };
            self.await_fragments(common, at, packet, tuple, class.other_way(), address, other);
        }
        done
    }

    /// A packet without an entry: it may open a connection.
    fn unknown(
        &mut self,
        common: &mut Common<E>,
        at: At<E::Tx>,
        packet: &mut Packet,
        want: Want<E, F>,
    ) -> Step<Want<E, F>> {
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
        if common.connections >= common.most {
            return Step::Done(Verdict::Drop(TABLE_FULL));
        }
        self.choose(common, at, packet, want)
    }

    fn choose(
        &mut self,
        common: &mut Common<E>,
        at: At<E::Tx>,
        packet: &mut Packet,
        want: Want<E, F>,
    ) -> Step<Want<E, F>> {
        match self.servers.choose(at.tx, &Map::<E, F>::key(&want.ticket)) {
            Chosen::Place(place) => self.open(common, at, packet, want, place),
            Chosen::Ask(ticket) => Step::Again(Want { stage: Stage::Least(ticket), ..want }),
            Chosen::None => Step::Done(Verdict::Drop(NO_BACKEND)),
        }
    }

    /// Open a connection to the server at `place`, which already counts it.
    fn open(
        &mut self,
        common: &mut Common<E>,
        at: At<E::Tx>,
        packet: &mut Packet,
        want: Want<E, F>,
        place: usize,
    ) -> Step<Want<E, F>> {
        let (tuple, class) = F::tuple(&Map::<E, F>::key(&want.ticket));
        let server = self.servers.at(place);
        let has_port = matches!(tuple.proto, proto::TCP | proto::UDP);
        let port = server.port.filter(|_| has_port).unwrap_or(tuple.dport);
        let address = server.address;
        let mut own = Connection {
            rewrite: rewrite::<F>((tuple.dst, tuple.dport), (address, port)),
            due: 0,
            place: place as u16,
            server: server.number,
            state: State::new(State::COUNTED),
        };
        let settled = if want.special & EVENTS == 0 { State::SETTLED } else { 0 };
        own.note(settled, at.now, tuple.proto, class, &common.timeouts);
        let mut back = Connection {
            rewrite: rewrite::<F>((address, port), (tuple.dst, tuple.dport)),
            state: State::new(0),
            ..own
        };
        back.note(settled, at.now, tuple.proto, class.other_way(), &common.timeouts);
        let other = F::key(&other_way(&tuple, class, &own.rewrite), class.other_way());
        let before = self.map.len();
        let inserted = self.map.insert(at.tx, &want.ticket, own).is_ok();
        common.connections += self.map.len() - before;
        let other = self.map.want(at.tx, other);
        if !inserted || self.map.insert(at.tx, &other, back).is_err() {
            common.connections -= usize::from(self.map.remove(at.tx, &want.ticket).is_some());
            self.servers.release(at.tx, own.place);
            return Step::Done(Verdict::Drop(TABLE_FULL));
        }
        common.opened += 1;
        let verdict = common.send::<F>(at, packet, &own, false);
        if want.special & FIRST_FRAGMENT != 0 {
            self.await_fragments(common, at, packet, tuple, class, address, own);
        }
        Step::Done(verdict)
    }

    /// Remember where the later fragments of the datagram go that `packet`, already rewritten, began.
    #[expect(clippy::too_many_arguments, reason = "all that was learned of the packet on the way here")]
    fn await_fragments(
        &mut self,
        common: &mut Common<E>,
        at: At<E::Tx>,
        packet: &Packet,
        tuple: Tuple<F::Address>,
        class: Class,
        address: F::Address,
        like: Connection<F::Address>,
    ) {
        let Some(ident) = F::ident(packet.data(), &packet.layers()) else { return };
        if common.fragmented >= MOST_FRAGMENTED {
            return;
        }
        let was = if class.is_back() { tuple.src } else { tuple.dst };
        let key = Tuple { sport: ident as u16, dport: (ident >> 16) as u16, ..tuple };
        let rewrite = rewrite::<F>((was, 0), (address, 0));
        let mut entry = Connection { rewrite, due: 0, state: State::new(State::SETTLED), ..like };
        entry.note(0, at.now, tuple.proto, class.fragment(), &common.timeouts);
        let before = self.map.len();
        let ticket = self.map.want(at.tx, F::key(&key, class.fragment()));
        // With no room the later fragments are dropped, and counted then.
        let _ = self.map.insert(at.tx, &ticket, entry);
        common.fragmented += self.map.len() - before;
    }

    fn tidy(&mut self, common: &mut Common<E>, tx: E::Tx, now: u64, count: usize) {
        let (map, servers) = (&mut self.map, &mut self.servers);
        map.sweep(count, |key, entry| {
            if now <= entry.due {
                return false;
            }
            let (tuple, class) = F::tuple(key);
            let over = entry.is_over(now, tuple.proto, class, &common.timeouts);
            if over && class.is_fragment() {
                common.fragmented -= 1;
            } else if over && class == Class::FORWARD {
                common.connections -= 1;
                if entry.abandon() {
                    servers.release(tx, entry.place);
                }
            }
            over
        });
    }
}

fn rewrite<F: Family>(from: (F::Address, u16), to: (F::Address, u16)) -> Rewrite<F::Address> {
    let (network, transport) = (F::delta(from.0, to.0), Delta::new().change16(from.1, to.1));
    Rewrite { address: to.0, network, transport, port: to.1 }
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

//! The table and the servers of one IP version, and what a packet does there.

use catena_dataplane::module::{Reason, Verdict};
use catena_packet::Packet;
use catena_packet::wire::{Layers, tcp};
use catena_state::{Access, Declaration, Engine, FlowMap, Intent, NoMemory, Scope, Tx};

use crate::family::AddressOf;
use crate::function::{Holding, Step};
use crate::rewrite::Change;

use super::balancer::{MOST_FRAGMENTED, Shared, TABLE_FULL};
use super::connection::{Connection, EVENTS, FIRST_FRAGMENT, State};
use super::family::{Balance, Class, Tuple};
use super::proof::News;
use super::room::{Going, MOST_GOING};
use super::servers::Servers;
use super::settings::Settings;
use super::stages::{Next, Stage, Want};

pub(super) const OUT: Declaration =
    Declaration::flow_map("mapping", "connection to server mapping", Scope::Connection, Access::ReadWrite);
pub(super) const BACK: Declaration =
    Declaration::flow_map("mapping back", "the same by its way back", Scope::Connection, Access::ReadWrite);

pub(super) type Map<E, F> = <E as Engine>::FlowMap<<F as Balance>::Key, Connection<AddressOf<F>>>;

/// The table and the servers of one IP version.
pub(super) struct Side<E: Engine, F: Balance> {
    /// Of the way out, and of the way back: apart, so that the entries of traffic one way lie side by side.
    pub(super) maps: [Map<E, F>; 2],
    pub(super) servers: Servers<F>,
    /// Connections that leave the table; empty but for that moment.
    pub(super) going: Vec<Going<F::Key, F::Address>>,
    /// What comes next for packets whose plans have no room for it.
    held: Holding<Next<E, F>>,
}

impl<E: Engine, F: Balance> Side<E, F> {
    pub(super) fn new(engine: &mut E, settings: &Settings, most: usize) -> Result<Self, NoMemory> {
        let is_used = settings.vips.iter().any(|vip| F::address(vip.ip).is_some());
        // Every way back belongs to a way out, and goes with it; what room there is more keeps look-ups short.
        let capacity = if is_used { 2 * most + MOST_FRAGMENTED } else { 1 };
        let maps = [engine.flow_map(&OUT.part(F::PART), capacity)?, engine.flow_map(&BACK.part(F::PART), capacity)?];
        let (servers, going) = (Servers::new(settings), Vec::with_capacity(MOST_GOING));
        Ok(Side { maps, servers, going, held: Holding::of::<E>() })
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
    pub(super) fn want(&mut self, tx: &mut Tx, gate: u16, (key, special): (F::Key, u8)) -> Want<E, F> {
        Want {
            ticket: self.maps[way(gate)].want(tx, key, Intent::Change),
            stage: Stage::Own,
            special,
            way: way(gate) as u8,
        }
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
        tx: &mut Tx,
        packet: &mut Packet,
        want: &mut Want<E, F>,
    ) -> Option<Verdict> {
        if let Stage::Own = want.stage
            && want.special == 0
            && let Some(own) = self.maps[way(tx.gate)].read(tx, &want.ticket)
            && own.state.has(State::QUIET)
            && tx.now <= own.due
            && !self.servers.must_move(own.place)
        {
            return Some(shared.send::<F>(tx, packet, own.server, &own.rewrite));
        }
        None
    }

    /// Whatever changes the table, and packets that are none of the balancer's. Where it leaves [`Stage::Full`] room may be
    /// made.
    pub(super) fn finish_rare(
        &mut self,
        shared: &mut Shared<E>,
        tx: &mut Tx,
        packet: &mut Packet,
        want: &mut Want<E, F>,
    ) -> Step {
        match want.stage {
            Stage::Own if self.maps[way(tx.gate)].read(tx, &want.ticket).is_some() => {
                self.known(shared, tx, packet, want)
            }
            Stage::Own => self.unknown(shared, tx, packet, want),
            Stage::Full(_) => Step::Done(Verdict::Drop(TABLE_FULL)),
            Stage::Other { bits, proof, server, port, address } => {
                self.tell_other(shared, tx, packet, want, News { bits, proof }, server, (address, port))
            }
            Stage::Held(held) => match self.held.take(held) {
                Some(next) => self.go_on(shared, tx, packet, want, next),
                None => Step::Done(Verdict::Drop(Reason::NO_PARKING)),
            },
        }
    }

    /// Go on with what comes next for a packet.
    fn go_on(
        &mut self,
        shared: &mut Shared<E>,
        tx: &mut Tx,
        packet: &mut Packet,
        want: &mut Want<E, F>,
        next: Next<E, F>,
    ) -> Step {
        match next {
            Next::Admitted(asked, which) => self.admitted(shared, tx, packet, want, asked, which),
            Next::Both(back, place, asked) => self.open(shared, tx, packet, want, (&back, place), asked),
            Next::Fragments(asked, which, datagram) => {
                self.await_fragments(shared, tx, packet, want, (asked, which), datagram)
            }
        }
    }

    /// Hold aside what comes next for a packet, while what it has asked for comes; or go on, where nothing is late.
    pub(super) fn then(
        &mut self,
        shared: &mut Shared<E>,
        tx: &mut Tx,
        packet: &mut Packet,
        want: &mut Want<E, F>,
        next: Next<E, F>,
    ) -> Step {
        if !E::WAITS {
            return self.go_on(shared, tx, packet, want, next);
        }
        let Some(held) = self.held.hold(next) else { return Step::Done(Verdict::Drop(Reason::NO_PARKING)) };
        want.stage = Stage::Held(held);
        Step::Again
    }

    /// Ask for another entry, instead of the one before.
    pub(super) fn ask_for(&mut self, tx: &mut Tx, want: &mut Want<E, F>, tuple: &Tuple<F::Address>, class: Class) {
        let way = usize::from(class.is_back());
        (want.ticket, want.way) = (self.maps[way].want(tx, F::key(tuple, class), Intent::Create), way as u8);
    }
}

/// How a packet leaves: the address and port that it has, those that it gets instead, and its server's number.
#[derive(Clone, Copy)]
pub(super) struct Leaving<A> {
    pub(super) from: (A, u16),
    pub(super) to: (A, u16),
    pub(super) server: u16,
}

impl<A: Copy> Leaving<A> {
    #[inline(never)]
    pub(super) fn leave<E: Engine, F: Balance<Address = A>>(
        self,
        shared: &mut Shared<E>,
        tx: &mut Tx,
        packet: &mut Packet,
    ) -> Step {
        let rewrite = Change::new::<F>(self.from, self.to);
        Step::Done(shared.send::<F>(tx, packet, self.server, &rewrite))
    }
}

/// The way out or the way back, as an index.
#[inline(always)]
pub(super) fn way(gate: u16) -> usize {
    usize::from(gate == 1)
}

/// Return the other direction's tuple, as packets bring it, of a direction whose packets get this address and port.
pub(super) fn other_way<A: Copy>(tuple: &Tuple<A>, class: Class, to: (A, u16)) -> Tuple<A> {
    let Tuple { src, dst, sport, dport, proto } = *tuple;
    if class.is_back() {
        Tuple { src: dst, dst: to.0, sport: dport, dport: to.1, proto }
    } else {
        Tuple { src: to.0, dst: src, sport: to.1, dport: sport, proto }
    }
}

/// Read the TCP flags that change a connection; none for other protocols.
#[inline(always)]
fn tcp_events(frame: &[u8], layers: &Layers) -> u8 {
    let flags = tcp::flags(frame, layers) & EVENTS;
    if layers.has(Layers::PORTS) { flags } else { 0 }
}

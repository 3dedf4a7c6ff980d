//! The table and the servers of one IP version, and what a packet does there.

use std::marker::PhantomData;

use catena_dataplane::module::{Reason, Verdict};
use catena_packet::Packet;
use catena_packet::wire::{Layers, tcp};
use catena_state::{Access, Declaration, Engine, FlowMap, Intent, NoMemory, Other, Scope, TwoKeyMap, Tx};

use crate::family::AddressOf;
use crate::function::{Holding, Step};
use crate::rewrite::Change;

use super::balancer::{MOST_FRAGMENTED, Shared, TABLE_FULL};
use super::connection::{Connection, EVENTS, FIRST_FRAGMENT, LATER_FRAGMENT, Part, State};
use super::family::{Balance, Class, Tuple};
use super::servers::Servers;
use super::settings::Settings;
use super::stages::{Next, Of, Stage, Want};

pub(super) const CONNECTIONS: Declaration =
    Declaration::flow_map("mapping", "connection to server mapping", Scope::Connection, Access::ReadWrite);
pub(super) const BACK: Declaration =
    Declaration::flow_map("mapping back", "the same by its way back", Scope::Connection, Access::ReadWrite);
pub(super) const PARTS: Declaration =
    Declaration::flow_map("fragments", "where later fragments of a datagram go", Scope::Connection, Access::ReadWrite);

/// The key of a connection by what its server sends.
pub(super) struct WayBack<F>(PhantomData<F>);

impl<F: Balance> Other<F::Key, Connection<F::Address>> for WayBack<F> {
    type Key = F::Key;

    #[inline(always)]
    fn of(key: &F::Key, own: &Connection<F::Address>) -> F::Key {
        way_back::<F>(key, (own.rewrite.address, own.rewrite.port))
    }
}

pub(super) type Map<E, F> = <E as Engine>::TwoKeyMap<<F as Balance>::Key, Connection<AddressOf<F>>, WayBack<F>>;
pub(super) type Parts<E, F> = <E as Engine>::FlowMap<<F as Balance>::Key, Part<AddressOf<F>>>;

/// What became of a packet that may be of a connection that nothing happens to.
pub(super) enum Known {
    /// It is, and was sent.
    Sent(Verdict),
    /// It is of no connection.
    Nothing,
    /// Something else.
    Other,
}

/// The table and the servers of one IP version.
pub(super) struct Side<E: Engine, F: Balance> {
    pub(super) connections: Map<E, F>,
    /// Of datagrams in fragments, by the datagram's identification.
    pub(super) parts: Parts<E, F>,
    pub(super) servers: Servers<F>,
    /// What comes next for packets whose plans have no room for it.
    held: Holding<Next<E, F>>,
}

impl<E: Engine, F: Balance> Side<E, F> {
    pub(super) fn new(engine: &mut E, settings: &Settings, most: usize) -> Result<Self, NoMemory> {
        let is_used = settings.vips.iter().any(|vip| F::address(vip.ip).is_some());
        let [connections, parts] = if is_used { [most, MOST_FRAGMENTED] } else { [1; 2] };
        Ok(Side {
            connections: engine.two_key_map([&CONNECTIONS.part(F::PART), &BACK.part(F::PART)], connections)?,
            parts: engine.flow_map(&PARTS.part(F::PART), parts)?,
            servers: Servers::new(settings),
            held: Holding::of::<E>(),
        })
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
        let which = if layers.has(Layers::LATER) { LATER_FRAGMENT } else { FIRST_FRAGMENT };
        Some((F::read_fragment(frame, layers, class)?, tcp_events(frame, layers) | which))
    }

    /// Ask for the entry of a key.
    #[inline(always)]
    pub(super) fn want(&mut self, tx: &mut Tx, gate: u16, (key, special): (F::Key, u8)) -> Want<E, F> {
        let (ticket, of) = if special & LATER_FRAGMENT != 0 {
            (self.parts.want(tx, key, Intent::Change), Of::Part)
        } else if gate == 1 {
            (self.connections.want_other(tx, key, Intent::Change), Of::Server)
        } else {
            (self.connections.want(tx, key, Intent::Change), Of::Client)
        };
        Want { ticket, stage: Stage::Own, special, of }
    }

    /// Bring the entry near.
    #[inline(always)]
    pub(super) fn warm(&mut self, want: &mut Want<E, F>) {
        match want.of {
            Of::Client => self.connections.warm(&mut want.ticket),
            Of::Server => self.connections.warm_other(&mut want.ticket),
            Of::Part => self.parts.warm(&mut want.ticket),
        }
    }

    /// Use the entry of a connection that nothing happens to, and decide.
    #[inline(always)]
    pub(super) fn finish_known(
        &mut self,
        shared: &mut Shared<E>,
        tx: &mut Tx,
        packet: &mut Packet,
        want: &mut Want<E, F>,
    ) -> Known {
        if !matches!(want.stage, Stage::Own) | (want.special != 0) {
            return Known::Other;
        }
        let is_back = tx.gate == 1;
        let found;
        let ticket = match want.of {
            Of::Client => &want.ticket,
            // Where entries are late, the ticket that is found is for the next step.
            _ if E::WAITS => return Known::Other,
            _ => match self.connections.found(tx, &want.ticket, Intent::Change) {
                Some(other) => {
                    found = other;
                    &found
                }
                None => return Known::Nothing,
            },
        };
        let Some(own) = self.connections.read(tx, ticket) else { return Known::Nothing };
        let quiet = if is_back { State::QUIET_BACK } else { State::QUIET_OUT };
        if !own.state.has(quiet) | (tx.now > own.due) || self.servers.must_move(own.place) {
            return Known::Other;
        }
        let (server, mut change) = (own.server, own.rewrite);
        if is_back {
            let Tuple { dst, dport, .. } = F::tuple(&Map::<E, F>::key(ticket)).0;
            change = change.back(dst, dport);
        }
        Known::Sent(shared.send::<F>(tx, packet, server, &change))
    }

    /// Whatever changes the table, and packets that are none of the balancer's. Where it leaves [`Stage::Full`] room may be
    /// made.
    pub(super) fn finish_rare(
        &mut self,
        shared: &mut Shared<E>,
        tx: &mut Tx,
        packet: &mut Packet,
        want: &mut Want<E, F>,
        known: Known,
    ) -> Step {
        match want.stage {
            Stage::Own if matches!(known, Known::Nothing) => self.unknown(shared, tx, packet, want),
            Stage::Own => match want.of {
                Of::Part => self.part(shared, tx, packet, want),
                Of::Server => match self.connections.found(tx, &want.ticket, Intent::Change) {
                    Some(found) => {
                        (want.ticket, want.of) = (found, Of::Client);
                        if E::WAITS { Step::Again } else { self.known(shared, tx, packet, want) }
                    }
                    None => Step::Done(Verdict::Gate(tx.gate)),
                },
                Of::Client => self.known(shared, tx, packet, want),
            },
            Stage::Full { .. } => Step::Done(Verdict::Drop(TABLE_FULL)),
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

/// Return the key of the way back of a connection with this key whose packets get this address and port.
#[inline(always)]
pub(super) fn way_back<F: Balance>(key: &F::Key, to: (F::Address, u16)) -> F::Key {
    let Tuple { src, sport, proto, .. } = F::tuple(key).0;
    F::key(&Tuple { src: to.0, dst: src, sport: to.1, dport: sport, proto }, Class::BACK)
}

/// Read the TCP flags that change a connection; none for other protocols.
#[inline(always)]
fn tcp_events(frame: &[u8], layers: &Layers) -> u8 {
    let flags = tcp::flags(frame, layers) & EVENTS;
    if layers.has(Layers::PORTS) { flags } else { 0 }
}

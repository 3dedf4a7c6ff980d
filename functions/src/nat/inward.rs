//! The way back, and first fragments in both directions.

use catena_packet::Packet;
use catena_packet::wire::number::proto;
use catena_packet::wire::{ports, tcp, vlan};
use catena_state::{Engine, FlowMap, Intent, TwoKeyMap, Tx, taken};

use super::family::Translate;
use super::fragments::{self, Became, Fragments};
use super::icmp;
use super::identifications::Ident;
use super::plan::{ExternalTicket, Inside, InsideTicket, Kind, Next, Plan, Source};
use super::reasons::{FILTERED, NO_MAPPING, OTHER_VLAN, UNTRANSLATABLE};
use super::sessions::{self, Contact};
use super::translate::{BACK, Napt, OUT, TURN, drop};
use crate::function::{Step, Try};
use crate::rewrite::{self, Change, Side};

impl<E: Engine, F: Translate> Napt<E, F> {
    /// Return who a packet is from, as its session knows them; of one that comes back in that is its new `source`.
    pub(super) fn remote(packet: &Packet, plan: &Plan<E, F>, source: Source<F>) -> Option<Source<F>> {
        let (frame, layers) = (packet.data(), packet.layers());
        if plan.kind == Kind::Error {
            let about = icmp::about::<F>(frame, &layers)?;
            let (address, port) = if plan.hairpin { source } else { (about.addresses[1], about.ports[1]) };
            return Some((address, if about.proto == F::ICMP { 0 } else { port }));
        }
        let port = ports(frame, &layers).map(|(sport, _)| sport);
        if plan.hairpin {
            return Some((source.0, port.map_or(0, |_| source.1)));
        }
        F::addresses(frame, usize::from(layers.l3)).map(|[src, _]| (src, port.unwrap_or_default()))
    }

    /// From outside, with the mapping that it is for, and its session where packets are filtered.
    pub(super) fn back(
        &mut self,
        tx: &mut Tx,
        packet: &mut Packet,
        plan: &mut Plan<E, F>,
        (ticket, session): (&InsideTicket<E, F>, Option<&sessions::Ticket<E, F>>),
        (source, ident): (Source<F>, Ident<E>),
    ) -> Step {
        let now = tx.now;
        let ident = self.ident(tx, ident);
        let Some(mut mapping) = self.mappings.inside.get(tx, ticket) else { return drop(NO_MAPPING) };
        if self.mappings.timeouts.over(mapping.state, mapping.last, now) {
            return drop(NO_MAPPING);
        }
        let inside = Inside::<E, F>::key(ticket);
        let (address, port, _) = F::parts(inside);
        let layers = packet.layers();
        // Tags are not rewritten: in another VLAN the address is another host's, or nobody's.
        if vlan::of(packet.data(), &layers) != Some(F::vlan(inside)) {
            return drop(OTHER_VLAN);
        }
        let flags = tcp::flags(packet.data(), &layers);
        if let Some(session) = session {
            let contact = Contact { inside, mapping: mapping.identity(), flags };
            if !self.sessions.may(tx, session, &contact) {
                return drop(FILTERED);
            }
        }
        if plan.kind != Kind::Error && layers.proto == proto::TCP {
            mapping.state = mapping.state.back(flags);
        }
        let outward = taken(mapping).change();
        let change = outward.back(address, port);
        if plan.kind == Kind::FirstFragment
            && !plan.hairpin
            && let Some(key) = Fragments::<E, F>::key(packet.data(), &layers, tx.gate)
        {
            return self.ask_first(tx, packet, plan, key, (inside, outward), (Ident::Kept, Try::First));
        }
        if plan.hairpin && Self::rewrite_hairpin(packet, plan.kind, source, ident).is_none() {
            return drop(UNTRANSLATABLE);
        }
        let is_rewritten = if plan.kind == Kind::Error {
            let (frame, sides) = (packet.data_mut(), (Side::Destination, Side::Source));
            icmp::about::<F>(frame, &layers)
                .and_then(|about| icmp::translate(frame, &layers, &about, sides, address, port))
                .is_some()
        } else {
            rewrite::end::<F>(packet.data_mut(), &layers, Side::Destination, &change)
        };
        if !is_rewritten {
            return drop(UNTRANSLATABLE);
        }
        if !plan.hairpin {
            self.count(tx, &layers);
        }
        Step::Done(BACK)
    }

    /// From outside, or from inside with a new `source`: which mapping has the external endpoint was asked for.
    pub(super) fn inward(
        &mut self,
        tx: &mut Tx,
        packet: &mut Packet,
        plan: &mut Plan<E, F>,
        ticket: &ExternalTicket<E, F>,
        source: Source<F>,
    ) -> Step {
        let Some(found) = self.mappings.inside.found(tx, ticket, Intent::Change) else {
            if !plan.hairpin || !self.mappings.may_be_elsewhere(Inside::<E, F>::other_key(ticket)) {
                return drop(NO_MAPPING);
            }
            let ident = self.ask_hairpin_ident(tx, packet, plan, source);
            return self.then(tx, packet, plan, Next::Turn(source, ident));
        };
        if !self.sessions.filter() {
            let ident = self.ask_hairpin_ident(tx, packet, plan, source);
            return self.then(tx, packet, plan, Next::Back(found, source, ident));
        }
        let Some(remote) = Self::remote(packet, plan, source) else { return drop(UNTRANSLATABLE) };
        let session = self.sessions.want(tx, self.sessions.key(Inside::<E, F>::key(&found), remote), Intent::Change);
        let ident = self.ask_hairpin_ident(tx, packet, plan, source);
        self.then(tx, packet, plan, Next::Filtered(found, session, source, ident))
    }

    /// From inside, to an external endpoint of another instance: it goes there as a packet from outside.
    pub(super) fn turn(
        &mut self,
        tx: &mut Tx,
        packet: &mut Packet,
        plan: &Plan<E, F>,
        (source, ident): (Source<F>, Ident<E>),
    ) -> Step {
        let ident = self.ident(tx, ident);
        match Self::rewrite_hairpin(packet, plan.kind, source, ident) {
            Some(()) => {
                // There it is counted.
                self.uncount(tx, &packet.layers());
                Step::Done(TURN)
            }
            None => drop(UNTRANSLATABLE),
        }
    }

    /// Ask for an identification for a packet from inside that comes back in; one from outside keeps its own.
    fn ask_hairpin_ident(&mut self, tx: &mut Tx, packet: &Packet, plan: &Plan<E, F>, source: Source<F>) -> Ident<E> {
        if plan.hairpin { self.ask_ident(tx, packet, source.0) } else { Ident::Kept }
    }

    /// A first fragment, in either direction, whose mapping was just used: ask for a place for what becomes of its datagram.
    pub(super) fn ask_first(
        &mut self,
        tx: &mut Tx,
        packet: &mut Packet,
        plan: &mut Plan<E, F>,
        key: F::Pair,
        (inside, change): (F::Endpoint, Change<F::Address>),
        (ident, which): (Ident<E>, Try),
    ) -> Step {
        let place = self.fragments.want_first(tx, key, F::host_of(inside));
        self.then(tx, packet, plan, Next::First(key, place, (inside, change), ident, which))
    }

    /// The same, with that place.
    pub(super) fn first(
        &mut self,
        tx: &mut Tx,
        packet: &mut Packet,
        plan: &mut Plan<E, F>,
        (key, place): (F::Pair, &fragments::First<E, F>),
        (inside, change): (F::Endpoint, Change<F::Address>),
        (ident, which): (Ident<E>, Try),
    ) -> Step {
        let ident = self.ident(tx, ident);
        let room = self.fragments.room(tx, place);
        if room.is_err() && which == Try::First && self.fragments.make_room(tx) {
            let ident = ident.map_or(Ident::Kept, Ident::New);
            return self.ask_first(tx, packet, plan, key, (inside, change), (ident, Try::Last));
        }
        let Some(became) = Self::rewrite_first(tx.gate, packet, (inside, &change), ident) else {
            room.into_iter().for_each(|group| self.fragments.give_up(tx, group));
            return drop(UNTRANSLATABLE);
        };
        self.fragments.remember(tx, place, room, became);
        self.count(tx, &packet.layers());
        Step::Done(if tx.gate == 0 { OUT } else { BACK })
    }

    /// Rewrite a first fragment, in either direction. Returns what became of its datagram.
    fn rewrite_first(
        gate: u16,
        packet: &mut Packet,
        (inside, change): (F::Endpoint, &Change<F::Address>),
        ident: Option<u32>,
    ) -> Option<Became<F>> {
        let (address, port, _) = F::parts(inside);
        if gate == 0 {
            let ident = Self::rewrite_out(packet, Kind::FirstFragment, change, ident)?;
            return Some(((address, change.address), ident));
        }
        // Its source stays: two hosts outside are told apart by it, and one answers for its identifications.
        let (layers, back) = (packet.layers(), change.back(address, port));
        let is_rewritten = rewrite::end::<F>(packet.data_mut(), &layers, Side::Destination, &back);
        is_rewritten.then_some(((change.address, address), None))
    }
}

//! The way out: the mapping of a packet from inside, found or made, and who it speaks to.

use catena_packet::Packet;
use catena_packet::wire::{icmp_identifier, ports, tcp};
use catena_state::{Engine, FlowMap, Intent, Shared, TwoKeyMap, Tx, taken};

use super::family::Translate;
use super::fragments::Fragments;
use super::icmp;
use super::identifications::Ident;
use super::mapping::Mapping;
use super::plan::{ExternalTicket, Inside, InsideTicket, Kind, LeaseTicket, Next, Plan, Source};
use super::reasons::{HOST_LIMIT, NO_MAPPING, NO_PORT, SESSION_LIMIT, TOO_MANY, UNTRANSLATABLE};
use super::sessions::{self, Contact, NewSession};
use super::translate::{Napt, OUT, drop};
use crate::function::{Step, Try};
use crate::rewrite::{self, Change, Side};
use catena_state::value::ports::{Lease, Leased};

impl<E: Engine, F: Translate> Napt<E, F> {
    /// From inside, with a mapping asked for.
    pub(super) fn out(
        &mut self,
        tx: &mut Tx,
        packet: &mut Packet,
        plan: &mut Plan<E, F>,
        ticket: &InsideTicket<E, F>,
    ) -> Step {
        let now = tx.now;
        let inside = Inside::<E, F>::key(ticket);
        let Some(mut mapping) = self.mappings.inside.get(tx, ticket) else {
            return self.unmapped(tx, packet, plan, ticket);
        };
        if self.mappings.timeouts.over(mapping.state, mapping.last, now) {
            std::mem::drop(mapping);
            self.mappings.remove(tx, ticket);
            return self.unmapped(tx, packet, plan, ticket);
        }
        let flags = tcp::flags(packet.data(), &packet.layers());
        if plan.kind != Kind::Error {
            mapping.last = mapping.last.max(now);
            mapping.state = mapping.state.out(flags);
        }
        let mapping = taken(mapping);
        let end = self.mappings.timeouts.end(mapping.state, mapping.last);
        self.mappings.inside.sooner(tx, ticket, end);
        self.used(tx, packet, plan, inside, &mapping)
    }

    /// From inside, with its mapping, which this packet has used.
    fn used(
        &mut self,
        tx: &mut Tx,
        packet: &mut Packet,
        plan: &mut Plan<E, F>,
        inside: F::Endpoint,
        mapping: &Mapping<F::Address>,
    ) -> Step {
        let (change, identity) = (mapping.change(), mapping.identity());
        if plan.kind == Kind::Error || !self.sessions.filter() {
            return self.mapped(tx, packet, plan, (inside, change));
        }
        let layers = packet.layers();
        let flags = tcp::flags(packet.data(), &layers);
        let Some([_, dst]) = F::addresses(packet.data(), usize::from(layers.l3)) else { return drop(UNTRANSLATABLE) };
        let port = ports(packet.data(), &layers).map_or(0, |(_, dport)| dport);
        let key = self.sessions.key(inside, (dst, port));
        let session = self.sessions.want(tx, key, Intent::Change);
        self.then(tx, packet, plan, Next::Noted(key, session, Contact { inside, mapping: identity, flags }, change))
    }

    /// From inside, with a session asked for where it is noted who was spoken to.
    pub(super) fn noted(
        &mut self,
        tx: &mut Tx,
        packet: &mut Packet,
        plan: &mut Plan<E, F>,
        (key, session, contact): (F::Pair, &sessions::Ticket<E, F>, Contact<F>),
        change: Change<F::Address>,
    ) -> Step {
        if !self.sessions.sent(tx, session, &contact) {
            let new = self.sessions.want_new(tx, key);
            return self.then(tx, packet, plan, Next::Met(key, new, contact, change, Try::First));
        }
        self.mapped(tx, packet, plan, (contact.inside, change))
    }

    /// From inside, the first packet to whom it is for, with a place for the session.
    pub(super) fn met(
        &mut self,
        tx: &mut Tx,
        packet: &mut Packet,
        plan: &mut Plan<E, F>,
        (key, new, contact): (F::Pair, &NewSession<E, F>, Contact<F>),
        (change, which): (Change<F::Address>, Try),
    ) -> Step {
        match self.sessions.begin(tx, new, &contact) {
            Ok(()) => self.mapped(tx, packet, plan, (contact.inside, change)),
            // What is over gives its room back before another is refused.
            Err(why) if which == Try::First && self.sessions.make_room(tx, why, &mut self.mappings) => {
                let new = self.sessions.want_new(tx, key);
                self.then(tx, packet, plan, Next::Met(key, new, contact, change, Try::Last))
            }
            Err(_) => drop(SESSION_LIMIT),
        }
    }

    /// From inside, with a mapping that was just used, and so is not over before the packet leaves.
    fn mapped(
        &mut self,
        tx: &mut Tx,
        packet: &mut Packet,
        plan: &mut Plan<E, F>,
        (inside, change): (F::Endpoint, Change<F::Address>),
    ) -> Step {
        let layers = packet.layers();
        if plan.hairpin {
            // RFC 4787 REQ-9: "A NAT MUST support hairpinning", with the external source address and port.
            return match self.external_of(packet, plan.kind, change.port) {
                Some(external) => {
                    self.count(tx, &layers);
                    let ticket = self.mappings.inside.want_other(tx, external, Intent::Change);
                    self.then(tx, packet, plan, Next::Hairpin(ticket, (change.address, change.port)))
                }
                None => drop(UNTRANSLATABLE),
            };
        }
        let ident = self.ask_ident(tx, packet, change.address);
        if plan.kind == Kind::FirstFragment
            && let Some(key) = Fragments::<E, F>::key(packet.data(), &layers, tx.gate)
        {
            return self.ask_first(tx, packet, plan, key, (inside, change), (ident, Try::First));
        }
        match ident {
            ident if !E::WAITS || matches!(ident, Ident::Kept) => self.leave(tx, packet, plan, ident, &change),
            ident => self.then(tx, packet, plan, Next::Leave(ident, change)),
        }
    }

    /// From inside, with an identification asked for where it gets a new one.
    pub(super) fn leave(
        &mut self,
        tx: &mut Tx,
        packet: &mut Packet,
        plan: &Plan<E, F>,
        ident: Ident<E>,
        change: &Change<F::Address>,
    ) -> Step {
        let ident = self.ident(tx, ident);
        if Self::rewrite_out(packet, plan.kind, change, ident).is_none() {
            return drop(UNTRANSLATABLE);
        }
        self.count(tx, &packet.layers());
        Step::Done(OUT)
    }

    /// Return the external endpoint that a packet from inside goes to, when `port` is its new source port or identifier.
    pub(super) fn external_of(&self, packet: &Packet, kind: Kind, port: u16) -> Option<F::Endpoint> {
        let (frame, layers) = (packet.data(), packet.layers());
        if kind == Kind::Error {
            return icmp::about::<F>(frame, &layers)
                .map(|about| F::endpoint(about.addresses[0], about.ports[0], about.proto));
        }
        let [_, dst] = F::addresses(frame, usize::from(layers.l3))?;
        let port = ports(frame, &layers).map(|(_, dport)| dport).or(icmp_identifier(frame, &layers).map(|_| port))?;
        Some(F::endpoint(dst, port, layers.proto))
    }

    /// Rewrite a packet from inside, of whatever kind, with a new identification if there is one. Returns that, if it found
    /// its place; `None` where the packet's headers are not what they were.
    pub(super) fn rewrite_out(
        packet: &mut Packet,
        kind: Kind,
        change: &Change<F::Address>,
        ident: Option<u32>,
    ) -> Option<Option<u32>> {
        let layers = packet.layers();
        if kind == Kind::Error {
            let frame = packet.data_mut();
            let sides = (Side::Source, Side::Destination);
            let about = icmp::about::<F>(frame, &layers)?;
            icmp::translate(frame, &layers, &about, sides, change.address, change.port)?;
        } else if !rewrite::end::<F>(packet.data_mut(), &layers, Side::Source, change) {
            return None;
        }
        let is_set = |ident: &u32| F::set_ident(packet.data_mut(), usize::from(layers.l3), *ident).is_some();
        Some(ident.filter(is_set))
    }

    /// Rewrite a packet from inside that comes back in, as the one it is on its way: from an external endpoint.
    pub(super) fn rewrite_hairpin(
        packet: &mut Packet,
        kind: Kind,
        source: Source<F>,
        ident: Option<u32>,
    ) -> Option<()> {
        let (frame, layers) = (packet.data(), packet.layers());
        let [src, _] = F::addresses(frame, usize::from(layers.l3))?;
        let port = ports(frame, &layers).map(|(sport, _)| sport).or(icmp_identifier(frame, &layers));
        // Of an error its own end and port are used alone; what that does to sums is worked out with them.
        let change = Change::of::<F>((src, port.unwrap_or_default()), source, layers.proto);
        Self::rewrite_out(packet, kind, &change, ident).map(|_| ())
    }

    /// From inside, and nothing is mapped: ask for a port. Whether there is room for a mapping is looked at before: a refusal
    /// costs little more than a look-up.
    #[inline(never)]
    pub(super) fn unmapped(
        &mut self,
        tx: &mut Tx,
        packet: &mut Packet,
        plan: &mut Plan<E, F>,
        inside: &InsideTicket<E, F>,
    ) -> Step {
        if plan.kind == Kind::Error {
            return drop(NO_MAPPING);
        }
        if self.mappings.is_full(tx) {
            self.mappings.catch_up(tx, None);
            if self.mappings.is_full(tx) {
                return drop(TOO_MANY);
            }
        }
        self.coming.bring(&mut self.mappings);
        self.lease(tx, packet, plan, inside, Try::First)
    }

    fn lease(
        &mut self,
        tx: &mut Tx,
        packet: &mut Packet,
        plan: &mut Plan<E, F>,
        inside: &InsideTicket<E, F>,
        which: Try,
    ) -> Step {
        let ticket = self.mappings.ports.want(tx, Lease(F::host_of(Inside::<E, F>::key(inside)), self.mappings.part));
        // Where nothing is late, a new mapping is made without a word in between: most packets of a flood need one.
        if !E::WAITS {
            return self.leased(tx, packet, plan, (inside, ticket), which);
        }
        self.then(tx, packet, plan, Next::Leased(*inside, ticket, which))
    }

    /// From inside, with the places of its mapping.
    pub(super) fn map(
        &mut self,
        tx: &mut Tx,
        packet: &mut Packet,
        plan: &mut Plan<E, F>,
        (here, there): (&InsideTicket<E, F>, &ExternalTicket<E, F>),
        (to, birth): (Source<F>, u8),
    ) -> Step {
        let flags = tcp::flags(packet.data(), &packet.layers());
        match self.mappings.add(tx, (here, there), to, (birth, flags)) {
            Some(mapping) => self.used(tx, packet, plan, Inside::<E, F>::key(here), &mapping),
            None => drop(TOO_MANY),
        }
    }

    /// From inside, with a port that was taken, or refused.
    pub(super) fn leased(
        &mut self,
        tx: &mut Tx,
        packet: &mut Packet,
        plan: &mut Plan<E, F>,
        (inside, ticket): (&InsideTicket<E, F>, LeaseTicket<E>),
        which: Try,
    ) -> Step {
        match self.mappings.ports.got(tx, &ticket) {
            Leased::Port(index, port, birth) => {
                self.mappings.claim(tx, index, port);
                let to = (self.mappings.space.address(index), port);
                let (here, there) = self.mappings.want_both(tx, inside, to);
                if !E::WAITS {
                    return self.map(tx, packet, plan, (&here, &there), (to, birth));
                }
                self.then(tx, packet, plan, Next::Mapped(here, there, to, birth))
            }
            refused => {
                let is_limit = refused == Leased::Limit;
                // What is over gives its port back before another is refused.
                let whose = is_limit.then(|| F::host_of(Inside::<E, F>::key(inside)));
                if which == Try::First && self.mappings.catch_up(tx, whose) {
                    return self.lease(tx, packet, plan, inside, Try::Last);
                }
                drop(if is_limit { HOST_LIMIT } else { NO_PORT })
            }
        }
    }
}

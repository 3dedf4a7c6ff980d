//! The way out: the mapping of a packet from inside, found or made (RFC 4787 §4), and the packet rewritten by it.

use catena_packet::Packet;
use catena_packet::wire::tcp;
use catena_state::{Engine, FlowMap, Shared, taken};

use super::family::Translate;
use super::icmp;
use super::identifications::Ident;
use super::mapping::Mapping;
use super::plan::{At, ExternalTicket, Inside, InsideTicket, Kind, LeaseTicket, Next, Source, Used};
use super::reasons::{HOST_LIMIT, NO_MAPPING, NO_PORT, TOO_MANY, UNTRANSLATABLE};
use super::translate::{Napt, OUT, drop};
use crate::function::{Step, Try};
use crate::rewrite::{self, Change, Side};
use catena_state::value::ports::{Lease, Leased};

impl<E: Engine, F: Translate> Napt<E, F> {
    /// A packet from inside, with its mapping asked for: one that lives is used, and lives on (REQ-6).
    pub(super) fn out(&mut self, at: &mut At<'_, E, F>, ticket: &InsideTicket<E, F>) -> Step {
        let now = at.tx.now;
        let Some(mut mapping) = self.mappings.inside.get(at.tx, ticket) else { return self.unmapped(at, ticket) };
        if self.mappings.timeouts.over(mapping.state, mapping.last, now) {
            std::mem::drop(mapping);
            self.mappings.remove(at.tx, ticket);
            return self.unmapped(at, ticket);
        }
        let flags = tcp::flags(at.packet.data(), &at.packet.layers());
        if at.plan.kind != Kind::Error {
            mapping.last = mapping.last.max(now);
            mapping.state = mapping.state.out(flags);
        }
        let mapping = taken(mapping);
        let end = self.mappings.timeouts.end(mapping.state, mapping.last);
        self.mappings.inside.sooner(at.tx, ticket, end);
        self.use_of(at, Inside::<E, F>::key(ticket), &mapping)
    }

    /// There is no mapping: a port is asked for. Whether there is room for a mapping is looked at before: a refusal costs little
    /// more than a look-up.
    #[inline(never)]
    pub(super) fn unmapped(&mut self, at: &mut At<'_, E, F>, inside: &InsideTicket<E, F>) -> Step {
        if at.plan.kind == Kind::Error {
            return drop(NO_MAPPING);
        }
        if self.mappings.is_full(at.tx) {
            self.mappings.catch_up(at.tx, None);
            if self.mappings.is_full(at.tx) {
                return drop(TOO_MANY);
            }
        }
        self.coming.bring(&mut self.mappings);
        self.lease(at, inside, Try::First)
    }

    /// Ask for a port. Inline, as all up to the port is: who reads as one what was just written in parts waits for all that was written
    /// before, which may be far.
    #[inline(always)]
    fn lease(&mut self, at: &mut At<'_, E, F>, inside: &InsideTicket<E, F>, which: Try) -> Step {
        let host = F::host_of(Inside::<E, F>::key(inside));
        let lease = self.mappings.ports.want(at.tx, Lease(host, self.mappings.part));
        // Where nothing is late, a new mapping is made without a word in between: most packets of a flood need one.
        if !E::WAITS {
            return self.leased(at, inside, &lease, which);
        }
        self.then(at, Next::Leased { inside: *inside, lease, which })
    }

    /// What is over has given its port back: ask once more.
    #[cold]
    #[inline(never)]
    fn lease_again(&mut self, at: &mut At<'_, E, F>, inside: &InsideTicket<E, F>) -> Step {
        self.lease(at, inside, Try::Last)
    }

    /// A port was taken, the same for whoever it speaks to (REQ-1), or refused: the places of its mapping are asked for.
    #[inline(always)]
    pub(super) fn leased(
        &mut self,
        at: &mut At<'_, E, F>,
        inside: &InsideTicket<E, F>,
        lease: &LeaseTicket<E>,
        which: Try,
    ) -> Step {
        match self.mappings.ports.got(at.tx, lease) {
            Leased::Port(index, port, birth) => {
                self.mappings.claim(at.tx, index, port);
                let to = (self.mappings.space.address(index), port);
                let (here, there) = self.mappings.want_both(at.tx, inside, to);
                if !E::WAITS {
                    return self.map(at, (&here, &there), to, birth);
                }
                self.then(at, Next::Mapped { here, there, to, birth })
            }
            refused => {
                let is_limit = refused == Leased::Limit;
                // What is over gives its port back before another is refused.
                let whose = is_limit.then(|| F::host_of(Inside::<E, F>::key(inside)));
                if which == Try::First && self.mappings.catch_up(at.tx, whose) {
                    return self.lease_again(at, inside);
                }
                drop(if is_limit { HOST_LIMIT } else { NO_PORT })
            }
        }
    }

    /// The places are there: the mapping is made.
    pub(super) fn map(
        &mut self,
        at: &mut At<'_, E, F>,
        (here, there): (&InsideTicket<E, F>, &ExternalTicket<E, F>),
        to: Source<F>,
        birth: u8,
    ) -> Step {
        let flags = tcp::flags(at.packet.data(), &at.packet.layers());
        match self.mappings.add(at.tx, (here, there), to, (birth, flags)) {
            Some(mapping) => self.use_of(at, Inside::<E, F>::key(here), &mapping),
            None => drop(TOO_MANY),
        }
    }

    /// The packet has its mapping: where packets are filtered, whom it speaks to is noted first.
    fn use_of(&mut self, at: &mut At<'_, E, F>, inside: F::Endpoint, mapping: &Mapping<F::Address>) -> Step {
        let used = Used { inside, change: mapping.change() };
        if at.plan.kind == Kind::Error || !self.sessions.filter() {
            return self.mapped(at, used);
        }
        self.note(at, used, mapping.identity())
    }

    /// All that decides is there; the mapping was just used, and so is not over before the packet leaves. It comes back in, or
    /// gets its identification.
    pub(super) fn mapped(&mut self, at: &mut At<'_, E, F>, used: Used<F>) -> Step {
        if at.plan.hairpin {
            return self.come_back(at, &used.change);
        }
        let ident = self.ask_ident(at.tx, at.packet, used.change.address);
        if at.plan.kind == Kind::FirstFragment
            && let Some(first) = Self::first_of(at, used, ident)
        {
            return self.ask_first(at, first);
        }
        match ident {
            ident if !E::WAITS || matches!(ident, Ident::Kept) => self.leave(at, &used.change, ident),
            ident => self.then(at, Next::Leave { change: used.change, ident }),
        }
    }

    /// The packet leaves.
    pub(super) fn leave(&mut self, at: &mut At<'_, E, F>, change: &Change<F::Address>, ident: Ident<E>) -> Step {
        let ident = self.ident(at.tx, ident);
        if Self::rewrite_out(at.packet, at.plan.kind, change, ident).is_none() {
            return drop(UNTRANSLATABLE);
        }
        self.count(at.tx, &at.packet.layers(), 1);
        Step::Done(OUT)
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
}

//! Hairpins: packets from inside to an external endpoint of our own (RFC 4787 §6). "A NAT MUST support hairpinning" (REQ-9), with
//! the external source address and port: after the way out comes the way back, here or in another instance.

use catena_packet::Packet;
use catena_packet::wire::{icmp_identifier, ports};
use catena_state::{Engine, Intent, TwoKeyMap};

use super::family::Translate;
use super::icmp;
use super::identifications::Ident;
use super::plan::{Arrival, At, Kind, Next, Source};
use super::reasons::{NO_MAPPING, UNTRANSLATABLE};
use super::translate::{Napt, TURN, drop};
use crate::function::Step;
use crate::rewrite::Change;

impl<E: Engine, F: Translate> Napt<E, F> {
    /// A packet from inside, with its mapping: whose the external endpoint is that it goes to is asked for.
    pub(super) fn come_back(&mut self, at: &mut At<'_, E, F>, change: &Change<F::Address>) -> Step {
        let Some(external) = Self::external_of(at.packet, at.plan.kind, change.port) else {
            return drop(UNTRANSLATABLE);
        };
        self.count(at.tx, &at.packet.layers(), 1);
        let external = self.mappings.inside.want_other(at.tx, external, Intent::Change);
        self.then(at, Next::Hairpin { external, source: (change.address, change.port) })
    }

    /// Return the external endpoint that a packet from inside goes to, when `port` is its new source port or identifier.
    fn external_of(packet: &Packet, kind: Kind, port: u16) -> Option<F::Endpoint> {
        let (frame, layers) = (packet.data(), packet.layers());
        if kind == Kind::Error {
            return icmp::about::<F>(frame, &layers)
                .map(|about| F::endpoint(about.addresses[0], about.ports[0], about.proto));
        }
        let [_, dst] = F::addresses(frame, usize::from(layers.l3))?;
        let port = ports(frame, &layers).map(|(_, dport)| dport).or(icmp_identifier(frame, &layers).map(|_| port))?;
        Some(F::endpoint(dst, port, layers.proto))
    }

    /// Nobody here has the external endpoint: a hairpin may be for another instance's.
    pub(super) fn turn_to(&mut self, at: &mut At<'_, E, F>, external: F::Endpoint, source: Source<F>) -> Step {
        if !at.plan.hairpin || !self.mappings.may_be_elsewhere(external) {
            return drop(NO_MAPPING);
        }
        let ident = self.ask_hairpin_ident(at, source);
        self.then(at, Next::Turn(Arrival { source, ident }))
    }

    /// It goes there, as a packet from outside.
    pub(super) fn turn(&mut self, at: &mut At<'_, E, F>, arrival: Arrival<E, F>) -> Step {
        let ident = self.ident(at.tx, arrival.ident);
        match Self::rewrite_hairpin(at.packet, at.plan.kind, arrival.source, ident) {
            Some(()) => {
                // There it is counted.
                self.count(at.tx, &at.packet.layers(), -1);
                Step::Done(TURN)
            }
            None => drop(UNTRANSLATABLE),
        }
    }

    /// Ask for an identification for a packet from inside that comes back in; one from outside keeps its own.
    pub(super) fn ask_hairpin_ident(&mut self, at: &mut At<'_, E, F>, source: Source<F>) -> Ident<E> {
        if at.plan.hairpin { self.ask_ident(at.tx, at.packet, source.0) } else { Ident::Kept }
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
}

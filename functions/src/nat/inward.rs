//! The way back: whose mapping a packet from outside is for, whether it may come in (RFC 4787 §5), and the packet rewritten by it.
//! What a hairpin is on its way in, it is, too, with a new source.

use catena_packet::Packet;
use catena_packet::wire::number::proto;
use catena_packet::wire::{ports, tcp, vlan};
use catena_state::{Engine, FlowMap, Intent, TwoKeyMap, taken};

use super::family::Translate;
use super::icmp;
use super::identifications::Ident;
use super::plan::{Arrival, At, ExternalTicket, Inside, InsideTicket, Kind, Next, Plan, Source, Used};
use super::reasons::{FILTERED, NO_MAPPING, OTHER_VLAN, UNTRANSLATABLE};
use super::sessions::{self, Contact};
use super::translate::{BACK, Napt, drop};
use crate::function::Step;
use crate::rewrite::{self, Side};

impl<E: Engine, F: Translate> Napt<E, F> {
    /// Which mapping has the external endpoint was asked for: the mapping is asked for, and its session where packets are filtered.
    /// Of a packet from outside nobody looks at the `source`.
    pub(super) fn inward(&mut self, at: &mut At<'_, E, F>, external: &ExternalTicket<E, F>, source: Source<F>) -> Step {
        let Some(mapping) = self.mappings.inside.found(at.tx, external, Intent::Change) else {
            return self.turn_to(at, Inside::<E, F>::other_key(external), source);
        };
        let mut session = None;
        if self.sessions.filter() {
            let Some(remote) = Self::remote(at.packet, at.plan, source) else { return drop(UNTRANSLATABLE) };
            let key = self.sessions.key(Inside::<E, F>::key(&mapping), remote);
            session = Some(self.sessions.want(at.tx, key, Intent::Change));
        }
        let ident = self.ask_hairpin_ident(at, source);
        self.then(at, Next::Back { mapping, session, arrival: Arrival { source, ident } })
    }

    /// Return who a packet is from, as its session knows them; of one that comes back in that is its new `source`.
    fn remote(packet: &Packet, plan: &Plan<E, F>, source: Source<F>) -> Option<Source<F>> {
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

    /// The mapping is there, and the session where packets are filtered: the packet goes in (REQ-8).
    pub(super) fn back(
        &mut self,
        at: &mut At<'_, E, F>,
        ticket: &InsideTicket<E, F>,
        session: Option<&sessions::Ticket<E, F>>,
        arrival: Arrival<E, F>,
    ) -> Step {
        let now = at.tx.now;
        let ident = self.ident(at.tx, arrival.ident);
        let Some(mut mapping) = self.mappings.inside.get(at.tx, ticket) else { return drop(NO_MAPPING) };
        if self.mappings.timeouts.over(mapping.state, mapping.last, now) {
            return drop(NO_MAPPING);
        }
        let inside = Inside::<E, F>::key(ticket);
        let layers = at.packet.layers();
        // Tags are not rewritten: in another VLAN the address is another host's, or nobody's.
        if vlan::of(at.packet.data(), &layers) != Some(F::vlan(inside)) {
            return drop(OTHER_VLAN);
        }
        let flags = tcp::flags(at.packet.data(), &layers);
        if let Some(session) = session {
            let contact = Contact { inside, mapping: mapping.identity(), flags };
            if !self.sessions.may(at.tx, session, &contact) {
                return drop(FILTERED);
            }
        }
        if at.plan.kind != Kind::Error && layers.proto == proto::TCP {
            mapping.state = mapping.state.back(flags);
        }
        let used = Used { inside, change: taken(mapping).change() };
        if at.plan.kind == Kind::FirstFragment
            && !at.plan.hairpin
            && let Some(first) = Self::first_of(at, used, Ident::Kept)
        {
            return self.ask_first(at, first);
        }
        if at.plan.hairpin && Self::rewrite_hairpin(at.packet, at.plan.kind, arrival.source, ident).is_none() {
            return drop(UNTRANSLATABLE);
        }
        if Self::rewrite_back(at.packet, at.plan.kind, &used).is_none() {
            return drop(UNTRANSLATABLE);
        }
        if !at.plan.hairpin {
            self.count(at.tx, &layers, 1);
        }
        Step::Done(BACK)
    }

    /// Rewrite a packet from outside, of whatever kind; `None` where its headers are not what they were.
    pub(super) fn rewrite_back(packet: &mut Packet, kind: Kind, used: &Used<F>) -> Option<()> {
        let (address, port, _) = F::parts(used.inside);
        let layers = packet.layers();
        let frame = packet.data_mut();
        if kind == Kind::Error {
            let about = icmp::about::<F>(frame, &layers)?;
            return icmp::translate(frame, &layers, &about, (Side::Destination, Side::Source), address, port);
        }
        rewrite::end::<F>(frame, &layers, Side::Destination, &used.change.back(address, port)).then_some(())
    }
}

//! The translation of one family, packet by packet. Its steps, in the order of RFC 4787:
//!
//! | Of a packet | Steps | RFC 4787 | Where |
//! |---|---|---|---|
//! | What it is, and whose mapping it needs | `prepare` | | here |
//! | From inside, and needs nothing but rewriting | `plain` | §4 | here |
//! | From inside: a mapping, found or made | `out`; `unmapped`, `leased`, `map`; then `mapped`, `leave` | §4: REQ-1, REQ-6 | `outward.rs` |
//! | From inside: who is spoken to | `note`, `noted`, `met` | §5: REQ-8 | `sessions.rs` |
//! | From outside: its mapping, and whether it may come in | `inward`, `back` | §5: REQ-8 | `inward.rs` |
//! | From inside to the inside | `come_back`, then as from outside; or `turn_to`, `turn` | §6: REQ-9 | `hairpin.rs` |
//! | An ICMP error | the same steps, by the packet that it is about | §9: REQ-12 | `icmp.rs` |
//! | Which identification it gets | `ask_ident`, `ident` | §10, RFC 6864 | `identifications.rs` |
//! | A fragment | `ask_first`, `first`; `later`, `part` | §11: REQ-14 | `fragments.rs` |
//!
//! A step asks for what the next one needs, and says which one that is ([`Next`]): a packet may have to wait between them.

use std::convert::Infallible;

use catena_dataplane::Reason;
use catena_dataplane::module::Verdict;
use catena_packet::Packet;
use catena_packet::wire::number::proto;
use catena_packet::wire::tcp::flag;
use catena_packet::wire::vlan::{self, Vlan};
use catena_packet::wire::{Layers, icmp_identifier, ports};
use catena_state::value::{Add, Counts, Get};
use catena_state::{
    Access, Declaration, Engine, FlowMap, Intent, Mover, NoMemory, Scope, Share, Shared, TwoKeyMap, Tx,
};

use super::coming::Coming;
use super::family::Translate;
use super::fragments::Fragments;
use super::icmp;
use super::identifications::{IDENTIFICATIONS, Identifications, Numbering};
use super::mapping::{Mappings, State};
use super::options::Options;
use super::plan::{At, Inside, InsideTicket, Kind, Next, Phase, Plan, Request, What};
use super::reasons::{REASONS, TOO_DEEP, UNROUTABLE, UNTRANSLATABLE};
use super::sessions::Sessions;
use super::space::Space;
use crate::function::{Function, Holding, Step, most_over};
use catena_state::value::ports::Used;

/// Output gates: to the outside, and back to the inside.
pub(super) const OUT: Verdict = Verdict::Gate(0);
pub(super) const BACK: Verdict = Verdict::Gate(1);

/// To another instance, which takes it in by its input gate 1.
pub(super) const TURN: Verdict = Verdict::Gate(2);

/// At 0 packets that are not TCP's, at 1 those that are: each packet is counted once.
pub const PACKETS: Declaration =
    Declaration::shared("packets", "packets other than TCP's, TCP packets", Scope::Global, Access::WriteMostly);

/// The flags that may change a mapping's state on the way out.
const CHANGES: u8 = flag::SYN | flag::FIN | flag::RST;

/// Translates the packets of one family and passes all others.
pub struct Napt<E: Engine, F: Translate> {
    pub(super) mappings: Mappings<E, F>,
    pub(super) sessions: Sessions<E, F>,
    pub(super) fragments: Fragments<E, F>,
    pub(super) identifications: E::Shared<Identifications>,
    pub(super) numbering: Numbering,
    packets: E::Shared<Counts>,
    /// Least and greatest external address.
    bounds: (F::Address, F::Address),
    /// What is about to be mapped, as far as it is foreseen.
    pub(super) coming: Coming<F>,
    /// What comes next for packets whose plans have no room for it.
    held: Holding<Next<E, F>>,
}

/// What became of a packet that may need nothing but rewriting.
enum Plain {
    Rewritten,
    /// There is no mapping.
    Unmapped,
    /// Something else: a mapping that is over, headers that are not where they should be, an identification to wait for.
    Other,
}

pub(super) fn drop(reason: Reason) -> Step {
    Step::Done(Verdict::Drop(reason))
}

impl<E: Engine, F: Translate> Napt<E, F> {
    /// Make a translation into the endpoints of `space`.
    ///
    /// # Errors
    /// [`NoMemory`] for what the options and the space ask for.
    pub fn new(engine: &mut E, space: Space<F>, options: &Options) -> Result<Self, NoMemory> {
        let (share, grid, bounds, seed) = (engine.share(), space.grid, space.bounds(), engine.seed());
        let max = |share: Share| share.part_of(options.max_mappings).min(grid.ports_of(share)) as usize;
        let object = IDENTIFICATIONS.part(F::PART);
        let Ok(identifications) = engine.shared_of(&object, || Ok::<_, Infallible>(Identifications::new(seed)));
        Ok(Napt {
            mappings: Mappings::new(engine, space, options.timeouts, max(share), options.max_per_host)?,
            sessions: Sessions::new(engine, (options.filtering, options.timeouts), max)?,
            fragments: Fragments::new(engine)?,
            identifications,
            numbering: Numbering::new(seed, engine.share_of(&object)),
            packets: engine.shared(&PACKETS.part(F::PART), Counts::new(2)),
            bounds,
            coming: Coming::nothing(),
            held: Holding::of::<E>(),
        })
    }

    /// Return the mappings.
    pub fn mappings(&self) -> &Mappings<E, F> {
        &self.mappings
    }

    #[inline(always)]
    pub(super) fn is_external(&self, address: F::Address) -> bool {
        self.bounds.0 <= address && address <= self.bounds.1 && self.mappings.space.index(address).is_some()
    }

    /// Return the request of a packet with a port or identifier at each end.
    #[inline(always)]
    fn request(
        &self,
        gate: u16,
        [src, dst]: [F::Address; 2],
        [sport, dport]: [u16; 2],
        proto: u8,
        kind: Kind,
    ) -> Request<F> {
        let is_plain = kind == Kind::Plain && proto != F::ICMP;
        if gate == 0 {
            let endpoint = F::endpoint(src, sport, proto);
            Request { what: What::Out, endpoint, kind, is_plain, hairpin: self.is_external(dst) }
        } else {
            Request { what: What::In, endpoint: F::endpoint(dst, dport, proto), kind, is_plain, hairpin: false }
        }
    }

    /// Put the endpoint of a packet from inside into its VLAN.
    fn within(request: Request<F>, vlan: Vlan) -> Request<F> {
        match request.what {
            What::Out => Request { endpoint: F::within(request.endpoint, vlan), ..request },
            _ => request,
        }
    }

    /// Read all that is not a whole TCP segment or UDP datagram in no VLAN.
    #[inline(never)]
    fn read_other(&self, gate: u16, packet: &Packet) -> Request<F> {
        let (layers, frame) = (packet.layers(), packet.data());
        let nothing = F::endpoint(self.bounds.0, 0, 0);
        let only = |what| Request { what, endpoint: nothing, kind: Kind::Plain, is_plain: false, hairpin: false };
        if layers.net != F::NET {
            return only(What::Pass);
        }
        let Some(addresses) = F::addresses(frame, usize::from(layers.l3)) else { return only(What::Refuse) };
        if !F::is_routable(addresses[0], addresses[1]) {
            return only(if F::stays_on_link(addresses[0], addresses[1]) { What::Pass } else { What::Unroutable });
        }
        // RFC 4302 §3.3.3.1.1: an authentication header covers the addresses.
        let known = matches!(layers.proto, proto::TCP | proto::UDP) || layers.proto == F::ICMP;
        if !known || layers.has(Layers::AUTHENTICATED) {
            return only(What::Refuse);
        }
        let Some(vlan) = vlan::of(frame, &layers) else { return only(What::TooDeep) };
        if layers.has(Layers::LATER) {
            return only(What::Later);
        }
        let kind = if layers.has(Layers::FRAGMENT) { Kind::FirstFragment } else { Kind::Plain };
        if let Some((sport, dport)) = ports(frame, &layers) {
            return Self::within(self.request(gate, addresses, [sport, dport], layers.proto, kind), vlan);
        }
        if let Some(identifier) = icmp_identifier(frame, &layers) {
            return Self::within(self.request(gate, addresses, [identifier; 2], layers.proto, kind), vlan);
        }
        match icmp::about::<F>(frame, &layers) {
            // The packet that an error is about goes the other way.
            Some(about) => {
                let hairpin = gate == 0 && self.is_external(addresses[1]);
                let ([src, dst], [sport, dport]) = (about.addresses, about.ports);
                let request = self.request(gate, [dst, src], [dport, sport], about.proto, Kind::Error);
                Self::within(Request { hairpin, ..request }, vlan)
            }
            None => only(What::Refuse),
        }
    }

    /// From inside, a packet that needs nothing but rewriting. Nothing is done where there is more to do.
    #[inline(always)]
    fn plain(&mut self, tx: &mut Tx, packet: &mut Packet, ticket: &InsideTicket<E, F>) -> Plain {
        if E::WAITS && !F::is_atomic(packet.data(), &packet.layers()) {
            return Plain::Other;
        }
        let now = tx.now;
        let Some(mut mapping) = self.mappings.inside.get(tx, ticket) else { return Plain::Unmapped };
        if self.mappings.timeouts.over(mapping.state, mapping.last, now) {
            return Plain::Other;
        }
        let (change, layers) = (mapping.change(), packet.layers());
        // Where nobody waits: asked for and taken at once.
        let next = |ends| {
            let asked = self.identifications.want(tx, self.numbering.draw16(ends));
            self.numbering.ident16(self.identifications.got(tx, &asked))
        };
        let Some(flags) = super::rewrite::source::<F>(packet.data_mut(), &layers, &change, next) else {
            return Plain::Other;
        };
        let last = mapping.last.max(now);
        mapping.last = last;
        // A branch that is hardly ever taken, whatever the mix of protocols.
        if (flags & CHANGES != 0) | (mapping.state == State::Answered) {
            let state = mapping.state.out(flags);
            mapping.state = state;
            std::mem::drop(mapping);
            self.mappings.inside.sooner(tx, ticket, self.mappings.timeouts.end(state, last));
        } else {
            std::mem::drop(mapping);
        }
        self.count(tx, &layers, 1);
        Plain::Rewritten
    }

    /// All phases, and what a plain packet from inside may need beside rewriting.
    #[inline(never)]
    fn other(&mut self, at: &mut At<'_, E, F>) -> Step {
        match at.plan.phase {
            Phase::Done(verdict) => Step::Done(verdict),
            Phase::Plain(ticket) | Phase::Out(ticket) => self.out(at, &ticket),
            Phase::In(ticket) => self.inward(at, &ticket, (self.bounds.0, 0)),
            Phase::Later => self.later(at),
            Phase::Held(held) => match self.held.take(held) {
                Some(next) => self.go_on(at, next),
                None => drop(Reason::NO_PARKING),
            },
        }
    }

    /// Hold aside what comes next for a packet, while what it has asked for comes; or go on, where nothing is late.
    pub(super) fn then(&mut self, at: &mut At<'_, E, F>, next: Next<E, F>) -> Step {
        if !E::WAITS {
            return self.go_on(at, next);
        }
        match self.held.hold(next) {
            Some(held) => at.plan.then(Phase::Held(held)),
            None => drop(Reason::NO_PARKING),
        }
    }

    /// Go on with what was held aside.
    fn go_on(&mut self, at: &mut At<'_, E, F>, next: Next<E, F>) -> Step {
        match next {
            Next::Leased { inside, lease, which } => self.leased(at, &inside, &lease, which),
            Next::Mapped { here, there, to, birth } => self.map(at, (&here, &there), to, birth),
            Next::Noted { meeting, session } => self.noted(at, meeting, &session),
            Next::Met { meeting, place, which } => self.met(at, meeting, &place, which),
            Next::Leave { change, ident } => self.leave(at, &change, ident),
            Next::Hairpin { external, source } => self.inward(at, &external, source),
            Next::Turn(arrival) => self.turn(at, arrival),
            Next::Back { mapping, session, arrival } => self.back(at, &mapping, session.as_ref(), arrival),
            Next::First { first, place, which } => self.first(at, first, &place, which),
            Next::Part { part, side } => self.part(at, &part, side),
        }
    }

    /// Count a packet once; or -1 times, where another instance counts it, too.
    #[inline(always)]
    pub(super) fn count(&mut self, tx: &mut Tx, layers: &Layers, times: i64) {
        self.packets.send(tx, Add::to(usize::from(layers.proto == proto::TCP), times));
    }
}

impl<E: Engine, F: Translate> Function<E> for Napt<E, F> {
    type Plan = Plan<E, F>;

    #[inline(always)]
    fn prepare(&mut self, tx: &mut Tx, packet: &Packet) -> Plan<E, F> {
        let (layers, frame) = (packet.layers(), packet.data());
        const WHOLE: u8 = Layers::PORTS | Layers::FRAGMENT | Layers::AUTHENTICATED | Layers::VLAN;
        let plain = (layers.net == F::NET)
            & (layers.flags & WHOLE == Layers::PORTS)
            & ((layers.proto == proto::TCP) | (layers.proto == proto::UDP));
        let request = match (F::addresses(frame, usize::from(layers.l3)), ports(frame, &layers)) {
            (Some(addresses), Some((sport, dport))) if plain && F::is_routable(addresses[0], addresses[1]) => {
                self.request(tx.gate, addresses, [sport, dport], layers.proto, Kind::Plain)
            }
            _ => self.read_other(tx.gate, packet),
        };
        let Request { what, endpoint, kind, is_plain, hairpin } = request;
        let special = !is_plain | hairpin | self.sessions.filter();
        let phase = match what {
            What::Out if !special => Phase::Plain(self.mappings.inside.want(tx, endpoint, Intent::Change)),
            What::Out => Phase::Out(self.mappings.inside.want(tx, endpoint, Intent::Change)),
            What::In => Phase::In(self.mappings.inside.want_other(tx, endpoint, Intent::Change)),
            What::Later => Phase::Later,
            What::Pass => Phase::Done(Verdict::Gate(tx.gate)),
            What::Refuse => Phase::Done(Verdict::Drop(UNTRANSLATABLE)),
            What::Unroutable => Phase::Done(Verdict::Drop(UNROUTABLE)),
            What::TooDeep => Phase::Done(Verdict::Drop(TOO_DEEP)),
        };
        Plan { phase, kind, hairpin }
    }

    #[inline(always)]
    fn warm(&mut self, plan: &mut Plan<E, F>) {
        match &mut plan.phase {
            Phase::Plain(ticket) | Phase::Out(ticket) => {
                self.mappings.inside.warm(ticket);
                if Inside::<E, F>::seems_new(ticket) {
                    self.coming.add(Inside::<E, F>::key(ticket), &self.mappings);
                }
            }
            Phase::In(ticket) => self.mappings.inside.warm_other(ticket),
            _ => {}
        }
    }

    #[inline(always)]
    fn finish(&mut self, tx: &mut Tx, packet: &mut Packet, plan: &mut Plan<E, F>) -> Step {
        if let Phase::Plain(ticket) = &plan.phase {
            match self.plain(tx, packet, ticket) {
                Plain::Rewritten => return Step::Done(OUT),
                Plain::Unmapped => {
                    let ticket = *ticket;
                    return self.unmapped(&mut At { tx, packet, plan }, &ticket);
                }
                Plain::Other => {}
            }
        }
        self.other(&mut At { tx, packet, plan })
    }

    fn tidy(&mut self, tx: &mut Tx, idle: bool) {
        let most = most_over(idle);
        self.mappings.expire(tx, most);
        self.sessions.expire(tx, most);
        self.fragments.expire(tx, most);
    }

    fn objects(&mut self, tx: &mut Tx, mover: &mut Mover) {
        self.mappings.objects(tx, mover);
        self.sessions.objects(tx, mover);
        self.fragments.objects(tx, mover);
    }

    fn reasons(&self) -> &'static [&'static str] {
        REASONS
    }

    fn gauges(&self, tell: &mut dyn FnMut(&'static str, u64)) {
        tell("mappings", self.mappings.inside.len() as u64);
        let (hosts, free_blocks) = self.mappings.ports.look(Used);
        tell("hosts", hosts);
        tell("free blocks", free_blocks);
        let [others, of_tcp] = [0, 1].map(|is_tcp| self.packets.look(Get::at(is_tcp)) as u64);
        tell("packets", others + of_tcp);
        tell("TCP packets", of_tcp);
    }

    fn is_common(&self, gauge: &str) -> bool {
        E::ALL_SEE && gauge != "mappings"
    }
}

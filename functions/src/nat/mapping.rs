//! Mappings: an inside endpoint, the external endpoint it appears as, and how long that holds.

use std::collections::HashSet;
use std::marker::PhantomData;
use std::sync::Arc;

use catena_packet::wire::number::proto;
use catena_packet::wire::tcp::flag;
use catena_state::{
    Access, Claims, Declaration, Engine, Fate, FlowMap, Intent, Mover, NoMemory, Other, Plain, Scope, Share, Shared,
    TwoKeyMap, Tx, looks,
};

use super::family::{Host, Translate};
use super::plan::{ExternalTicket, Inside, InsideTicket};
use super::space::Space;
use crate::rewrite::Change;
use catena_state::value::ports::{Lent, Limits, Ports, Release};

/// The ports of external addresses.
pub const PORTS: Declaration = Declaration::shared("ports", "who has which ports", Scope::Global, Access::ReadWrite);
/// By inside endpoint.
pub const MAPPINGS: Declaration =
    Declaration::flow_map("mappings", "external endpoints", Scope::SourceEndpoint, Access::ReadWrite);
/// By external endpoint: which mapping has it.
pub const EXTERNAL: Declaration =
    Declaration::flow_map("external endpoints", "whose they are", Scope::SourceEndpoint, Access::ReadMostly);

/// What a mapping's timeout depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Plain)]
#[repr(u8)]
pub enum State {
    /// UDP.
    Udp = 0,
    /// Queries of ICMP.
    Icmp = 1,
    /// TCP of which the outside has not answered.
    Opening = 2,
    /// TCP that the outside has answered, and the inside after that.
    Established = 3,
    /// TCP that the inside has ended, by a FIN or a RST.
    Closing = 4,
    /// TCP that was established, until a FIN or a RST came from outside. Strangers can forge either: it lives on, but
    /// goes before anything is refused for want of its room.
    Doubtful = 5,
    /// TCP that somebody outside has answered. A host that did not ask for it answers with a RST (RFC 9293 §3.10.7.3).
    Answered = 6,
}

impl State {
    /// Return the state of a new mapping.
    pub fn first(number: u8) -> State {
        match number {
            proto::TCP => State::Opening,
            proto::UDP => State::Udp,
            _ => State::Icmp,
        }
    }

    /// Return the state after a TCP segment from inside.
    #[inline(always)]
    pub fn out(self, flags: u8) -> State {
        match self {
            _ if flags & (flag::FIN | flag::RST) != 0 => State::Closing,
            State::Closing if flags & flag::SYN != 0 => State::Opening,
            State::Answered if flags & (flag::SYN | flag::ACK) == flag::ACK => State::Established,
            other => other,
        }
    }

    /// Return the state after a TCP segment from outside. Who opens and closes is the inside: a host that gets a FIN
    /// sends its own, and only one that gets a RST is silent.
    pub fn back(self, flags: u8) -> State {
        const ANSWER: u8 = flag::SYN | flag::ACK;
        let is_end = flags & (flag::FIN | flag::RST) != 0;
        match self {
            State::Established if is_end => State::Doubtful,
            State::Opening if !is_end && flags & flag::ACK != 0 => State::Answered,
            // Another connection from the same port.
            State::Doubtful if !is_end && flags & ANSWER == ANSWER => State::Established,
            other => other,
        }
    }
}

/// Timeouts in ns, by [`State`].
#[derive(Clone, Copy, Debug)]
pub struct Timeouts(pub [u64; 8]);

impl Timeouts {
    /// Return whether something last used at `last` is over.
    #[inline(always)]
    pub fn over(&self, state: State, last: u64, now: u64) -> bool {
        now.saturating_sub(last) >= self.0[state as usize]
    }

    /// Return when something last used at `last` is over.
    #[inline(always)]
    pub fn end(&self, state: State, last: u64) -> u64 {
        last.saturating_add(self.0[state as usize])
    }

    /// Return the timeouts of what is in the way of something new. RFC 7857 §2.2 lets a NAT forget a connection when
    /// no packet came for 4 minutes after a RST.
    #[must_use]
    pub fn when_short(mut self) -> Self {
        self.0[State::Doubtful as usize] = self.least_tcp();
        self
    }

    /// Return the shortest life of TCP.
    pub fn least_tcp(&self) -> u64 {
        self.0[State::Opening as usize].min(self.0[State::Established as usize])
    }
}

/// What an inside endpoint is translated to.
#[derive(Clone, Copy, Debug, Plain)]
pub struct Mapping<A> {
    /// When a packet from inside last used it (RFC 4787 REQ-6), in ns since 1970.
    pub last: u64,
    address: A,
    port: u16,
    address_sum: u16,
    upper_sum: u16,
    /// What its timeout depends on.
    pub state: State,
    /// Tells it from earlier mappings of the same endpoint: that of its port's lease.
    birth: u8,
}

impl<A: Copy> Mapping<A> {
    /// Return external address and port, and what they do to checksums.
    #[inline(always)]
    pub fn change(&self) -> Change<A> {
        let Mapping { address, port, address_sum, upper_sum, .. } = *self;
        Change { address, port, address_sum, upper_sum }
    }

    /// Return what tells the mapping from earlier and later ones of the same inside endpoint.
    pub fn identity(&self) -> (u16, u8) {
        (self.port, self.birth)
    }
}
// With key and the map's own eight bytes an entry is one cache line, of IPv6 too.
const _: () = assert!(size_of::<Mapping<[u64; 2]>>() == 32);

/// The external endpoint of a mapping: address, port and protocol.
pub struct External<F>(PhantomData<F>);

impl<F: Translate> Other<F::Endpoint, Mapping<F::Address>> for External<F> {
    type Key = F::Endpoint;

    #[inline(always)]
    fn of(inside: &F::Endpoint, mapping: &Mapping<F::Address>) -> F::Endpoint {
        F::endpoint(mapping.address, mapping.port, F::parts(*inside).2)
    }
}

/// All mappings, by inside and by external endpoint, and the ports they use.
pub struct Mappings<E: Engine, F: Translate> {
    /// By inside address, port and protocol, and the VLAN they are in; and by external address, port and protocol.
    pub inside: Inside<E, F>,
    /// Who has which ports.
    pub ports: E::Shared<Ports>,
    /// The part of them that this instance lends.
    pub part: u16,
    /// The external addresses.
    pub space: Space<F>,
    /// Where it is said which slot a block is for; nowhere in a replay.
    claims: Option<Arc<Claims>>,
    /// How long mappings live unused.
    pub timeouts: Timeouts,
    /// The ports of mappings that are over, each behind the index of its address: only a place to write them down, empty but for the
    /// moment when they go.
    going: Vec<(u32, u16)>,
}

impl<A: Copy> Mapping<A> {
    /// Return the index of its external address, and its port.
    fn leased<F: Translate<Address = A>>(&self, space: &Space<F>) -> Option<(u32, u16)> {
        space.index(self.address).map(|index| (index, self.port))
    }
}

/// Most mappings that go together.
const MOST_GOING: usize = 64;

impl<E: Engine, F: Translate> Mappings<E, F> {
    /// Make none, of up to `max`, each with a port of `space`; `max_per_host` ports a host, 0 for any number.
    ///
    /// # Errors
    /// [`NoMemory`] for so many.
    pub fn new(
        engine: &mut E,
        space: Space<F>,
        timeouts: Timeouts,
        max: usize,
        per_host: u32,
    ) -> Result<Self, NoMemory> {
        let (share, seed) = (engine.share(), engine.seed());
        let (ports, blocks) = (PORTS.part(F::PART), space.grid.all_blocks());
        // One object for all instances has a part for each, since what comes back goes to the instance that the port says.
        let (shares, part) = match engine.share_of(&ports) == share {
            true => (vec![share], 0),
            false => ((0..share.count).map(|index| Share { index, ..share }).collect(), share.index as u16),
        };
        let limits = Limits { per_host, roams: F::IS_HOST_SUBNET, takes_in: engine.moves() };
        Ok(Mappings {
            inside: engine.two_key_map([&MAPPINGS.part(F::PART), &EXTERNAL.part(F::PART)], max)?,
            claims: engine.claims(&ports, blocks)?,
            ports: engine.shared_of(&ports, || Ports::new(space.grid, limits, shares, seed))?,
            part,
            space,
            timeouts,
            going: Vec::with_capacity(MOST_GOING),
        })
    }

    /// Ask for the places of a mapping to be made: of an inside endpoint, to an external one whose port was just taken.
    pub fn want_both(
        &mut self,
        tx: &mut Tx,
        inside: &InsideTicket<E, F>,
        (address, port): (F::Address, u16),
    ) -> (InsideTicket<E, F>, ExternalTicket<E, F>) {
        let external = F::endpoint(address, port, F::parts(Inside::<E, F>::key(inside)).2);
        (self.inside.want_again(tx, inside, Intent::Create), self.inside.want_other(tx, external, Intent::Create))
    }

    /// Make the mapping whose places were asked for, for a packet with these flags of TCP. `None` where there is no room: the port is
    /// free again.
    #[inline(always)]
    pub fn add(
        &mut self,
        tx: &mut Tx,
        (here, there): (&InsideTicket<E, F>, &ExternalTicket<E, F>),
        to: (F::Address, u16),
        (birth, flags): (u8, u8),
    ) -> Option<Mapping<F::Address>> {
        let now = tx.now;
        let inside = Inside::<E, F>::key(here);
        let (address, port, number) = F::parts(inside);
        let Change { address, port, address_sum, upper_sum } = Change::of::<F>((address, port), to, number);
        let state = State::first(number).out(flags);
        let mapping = Mapping { last: now, address, port, address_sum, upper_sum, state, birth };
        if self.inside.insert_both(tx, (here, there), mapping, self.timeouts.end(state, now)).is_ok() {
            return Some(mapping);
        }
        self.release(tx, to);
        None
    }

    /// Give a port back.
    fn release(&mut self, tx: &mut Tx, (address, port): (F::Address, u16)) {
        if let Some(index) = self.space.index(address) {
            self.ports.send(tx, Release(index, port));
        }
    }

    /// Say that a port, of the address with this index, was taken for the slot that packets back to it are of.
    #[inline]
    pub fn claim(&self, tx: &Tx, index: u32, port: u16) {
        if let Some(claims) = &self.claims
            && let Some(block) = self.space.grid.block_of(index, port)
        {
            claims.claim(block as usize, tx.slot);
        }
    }

    /// Return whether an external endpoint may be another instance's: where that is known at all.
    pub fn may_be_elsewhere(&self, external: F::Endpoint) -> bool {
        let slot = |claims: &Arc<Claims>| claims.slot(self.space.block(external)? as usize);
        self.claims.as_ref().and_then(slot).is_some()
    }

    /// Show a mover the mappings, and the ports that their hosts have: a host's mappings all are of one slot.
    pub fn objects(&mut self, tx: &mut Tx, mover: &mut Mover) {
        let mut hosts = HashSet::new();
        mover.flows(tx, &mut self.inside, |_, inside, _| _ = hosts.insert(F::host_of(*inside)));
        mover.records(
            &mut self.ports,
            |ports, _, write| {
                if let Some(ports) = ports.own() {
                    ports.leave(|host| hosts.contains(host), write);
                }
            },
            |ports, lent: Lent| ports.own().map_or(Ok(()), |ports| ports.arrive(lent)),
        );
    }

    /// Return whether there are as many mappings as there may be.
    pub fn is_full(&mut self, tx: &mut Tx) -> bool {
        self.inside.is_full(tx)
    }

    /// Return whether a mapping lives that is told from others by `identity`, as far as is known without waiting.
    pub fn lives(&mut self, tx: &mut Tx, inside: F::Endpoint, identity: (u16, u8), now: u64) -> bool {
        let mapping = self.inside.peek(tx, inside);
        mapping.is_some_and(|mapping| {
            mapping.identity() == identity && !self.timeouts.over(mapping.state, mapping.last, now)
        })
    }

    /// Before something is refused, look at the mappings that are due; returns whether there were any. What only
    /// the outside has ended goes too: of `host`, if it has as many as it may, or of all, if all are short.
    pub fn catch_up(&mut self, tx: &mut Tx, host: Option<Host>) -> bool {
        let is_any_over = self.expire(tx, looks::MOST) > 0;
        let now = tx.now;
        let due = self.inside.owed(tx, now);
        let (usual, short) = (self.timeouts, self.timeouts.when_short());
        self.sweep_by(tx, due, |key| match host {
            Some(host) if F::host_of(*key) != host => usual,
            _ => short,
        });
        is_any_over || due > 0
    }

    /// Look at up to `most` mappings whose end may have come, and take back those that are over. Returns how many were looked at.
    pub fn expire(&mut self, tx: &mut Tx, most: usize) -> usize {
        let now = tx.now;
        let (mut left, timeouts) = (most, self.timeouts);
        while left > 0 {
            let some = left.min(MOST_GOING);
            left -= some;
            let Mappings { inside, space, going, .. } = self;
            let looked = inside.expire(tx, now, some, |_, _, mapping| {
                let end = timeouts.end(mapping.state, mapping.last);
                if end > now {
                    return Fate::Until(end);
                }
                going.extend(mapping.leased(space));
                Fate::Over
            });
            self.let_go(tx);
            if looked < some {
                return most - left - some + looked;
            }
        }
        most
    }

    /// Look at the next `count` places for mappings that are over by these timeouts, and take them back.
    fn sweep_by(&mut self, tx: &mut Tx, count: usize, timeouts: impl Fn(&F::Endpoint) -> Timeouts) {
        let now = tx.now;
        let mut left = count;
        while left > 0 {
            let some = left.min(MOST_GOING);
            left -= some;
            let Mappings { inside, space, going, .. } = self;
            inside.sweep(tx, some, |_, key, mapping| {
                let is_over = timeouts(key).over(mapping.state, mapping.last, now);
                if is_over {
                    going.extend(mapping.leased(space));
                }
                is_over
            });
            self.let_go(tx);
        }
    }

    /// Take back the ports of mappings that have gone. They are anywhere: what leads to all is asked for, one part after the other,
    /// and looked at when it has come.
    fn let_go(&mut self, tx: &mut Tx) {
        let Mappings { ports, going, .. } = self;
        if going.is_empty() {
            return;
        }
        ports.bring(|ports| ports.bring_leased(going.iter().copied()));
        for (index, port) in going.drain(..) {
            ports.send(tx, Release(index, port));
        }
    }

    /// Take back a mapping that is over.
    pub fn remove(&mut self, tx: &mut Tx, ticket: &InsideTicket<E, F>) {
        if let Some(mapping) = self.inside.remove(tx, ticket) {
            self.release(tx, (mapping.address, mapping.port));
        }
    }
}

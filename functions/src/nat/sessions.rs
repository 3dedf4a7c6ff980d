//! Who was spoken to: the filter of packets from outside (RFC 4787 §5).
//!
//! A session ends as its connection does, or with its mapping. Nothing tells it of the mapping's end, as that would be
//! work without a bound; one that has lost its mapping lets nothing in, and goes before any host is refused.

use catena_state::looks::Looks;
use catena_state::{Access, Declaration, Engine, FlowMap, Intent, NoMemory, Plain, Scope};

use super::family::Family;
use super::mapping::{Mappings, State, Timeouts};
use super::tags::Vlan;
use crate::shares::Shares;

/// By inside and remote endpoint.
pub const SESSIONS: Declaration =
    Declaration::flow_map("sessions", "who was sent to", Scope::Connection, Access::ReadWrite);

/// Which packets from outside a mapping lets in (RFC 4787 REQ-8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filtering {
    /// Endpoint-independent: all.
    Independent,
    /// Address-dependent: those of addresses that the inside endpoint has sent to.
    Address,
    /// Address and port-dependent: those of endpoints that it has sent to.
    AddressPort,
}

/// Sessions that there is room for, for each mapping that there may be.
const FOR_EACH_MAPPING: usize = 4;
/// Most sessions, in any case.
const MOST: usize = 1 << 24;

/// That an inside endpoint sent to a remote one.
#[derive(Clone, Copy, Debug, Plain)]
pub struct Session {
    last: u64,
    /// The mapping it had then: a later one starts afresh.
    mapping: (u16, u8),
    /// Decides how long it lives, as it does for a mapping.
    state: State,
    /// Who has it.
    group: u16,
}

/// A packet between an inside and a remote endpoint.
#[derive(Clone, Copy)]
pub struct Contact<F: Family> {
    /// The inside endpoint.
    pub inside: F::Endpoint,
    /// The identity of the mapping between.
    pub mapping: (u16, u8),
    /// The flags of a TCP segment; 0 of anything else.
    pub flags: u8,
}

/// The promise of a session.
pub type Ticket<E, F> =
    <<E as Engine>::FlowMap<<F as Family>::Pair, Session> as FlowMap<<F as Family>::Pair, Session>>::Ticket;

/// The remote endpoints that inside endpoints have sent to.
pub struct Sessions<E: Engine, F: Family> {
    filtering: Filtering,
    sent: E::FlowMap<F::Pair, Session>,
    shares: Shares,
    timeouts: Timeouts,
    looks: Looks,
}

impl<E: Engine, F: Family> Sessions<E, F> {
    /// Make none, for up to `mappings` mappings.
    ///
    /// # Errors
    /// [`NoMemory`] for that.
    pub fn new(engine: &mut E, filtering: Filtering, timeouts: Timeouts, mappings: usize) -> Result<Self, NoMemory> {
        let most = match filtering {
            Filtering::Independent => 1,
            _ => mappings.saturating_mul(FOR_EACH_MAPPING).min(MOST),
        };
        Ok(Sessions {
            filtering,
            sent: engine.flow_map(&SESSIONS.part(F::PART), most)?,
            shares: Shares::new(engine.seed(), most),
            timeouts,
            looks: Looks::new(most),
        })
    }

    /// Return whether anything is filtered.
    #[inline(always)]
    pub fn filter(&self) -> bool {
        self.filtering != Filtering::Independent
    }

    /// Ask for the session between an inside and a remote endpoint.
    pub fn want(
        &mut self,
        tx: E::Tx,
        inside: F::Endpoint,
        (remote, remote_port): (F::Address, u16),
        intent: Intent,
    ) -> Ticket<E, F> {
        let (address, port, number) = F::parts(inside);
        let remote_port = if self.filtering == Filtering::AddressPort { remote_port } else { 0 };
        let vlan = u64::from(F::vlan(inside));
        let tail = u64::from(port) | u64::from(remote_port) << 16 | u64::from(number) << 32 | vlan << 40;
        self.sent.want(tx, F::pair(address, remote, tail), intent)
    }

    /// Return the inside endpoint of a session.
    fn inside(key: &F::Pair) -> F::Endpoint {
        let (address, tail) = F::first_of_pair(key);
        F::within(F::endpoint(address, tail as u16, (tail >> 32) as u8), (tail >> 40) as Vlan)
    }

    /// Note a packet from inside. Returns whether there was room: where there is none, answers would be filtered, so
    /// the packet must not leave.
    #[must_use]
    pub fn sent(
        &mut self,
        tx: E::Tx,
        ticket: &Ticket<E, F>,
        contact: &Contact<F>,
        mappings: &mut Mappings<E, F>,
        now: u64,
    ) -> bool {
        let &Contact { inside, mapping, flags } = contact;
        let first = State::first(F::parts(inside).2);
        if let Some(mut session) = self.sent.get(tx, ticket) {
            if session.mapping != mapping || self.timeouts.over(session.state, session.last, now) {
                (session.mapping, session.state) = (mapping, first);
            }
            session.state = session.state.out(flags);
            session.last = now;
            return true;
        }
        let group = self.shares.group(F::host_of(inside).words());
        if !self.shares.take(group) {
            let due = self.looks.due(now);
            self.make_room(group, mappings, now, due);
            if due == 0 || !self.shares.take(group) {
                return false;
            }
        }
        // More than one for each that comes, so that they go faster than they come.
        self.sweep(now, 4);
        let session = Session { last: now, mapping, state: first.out(flags), group };
        let is_noted = self.sent.insert(tx, ticket, session).is_ok();
        if !is_noted {
            self.shares.give(group);
        }
        is_noted
    }

    /// Return whether a packet from a remote endpoint may go to an inside one.
    pub fn may(&mut self, tx: E::Tx, ticket: &Ticket<E, F>, contact: &Contact<F>, now: u64) -> bool {
        let Some(mut session) = self.sent.get(tx, ticket) else { return false };
        if session.mapping != contact.mapping || self.timeouts.over(session.state, session.last, now) {
            return false;
        }
        session.state = session.state.back(contact.flags);
        true
    }

    /// Look at up to `count` sessions and forget those that are over.
    pub fn sweep(&mut self, now: u64, count: usize) {
        let Sessions { sent, shares, timeouts, .. } = self;
        sent.sweep(count, |_, session| {
            let is_over = timeouts.over(session.state, session.last, now);
            if is_over {
                shares.give(session.group);
            }
            is_over
        });
    }

    /// Before a group is refused, look at up to `count` sessions and forget those that are over or have lost their
    /// mapping. What only the outside has ended goes too: of the group, if it has its part, or of all, if all are short.
    fn make_room(&mut self, group: u16, mappings: &mut Mappings<E, F>, now: u64, count: usize) {
        let Sessions { sent, shares, timeouts, .. } = self;
        let whose = shares.has_its_part(group).then_some(group);
        let (short, least) = (timeouts.when_short(), timeouts.least_tcp());
        sent.sweep(count, |key, session| {
            let timeouts = if whose.is_none_or(|own| own == session.group) { &short } else { &*timeouts };
            // A mapping lives on after the last packet of any session, at least as long as the shortest timeout: only
            // those of TCP that are established outlive theirs, and only after that.
            let is_over = timeouts.over(session.state, session.last, now)
                || matches!(session.state, State::Established | State::Doubtful)
                    && now.saturating_sub(session.last) >= least
                    && !mappings.lives(Self::inside(key), session.mapping, now);
            if is_over {
                shares.give(session.group);
            }
            is_over
        });
    }
}

//! Who was spoken to: the filter of packets from outside (RFC 4787 §5).
//!
//! A session ends as its connection does, or with its mapping. Nothing tells it of the mapping's end, as that would be
//! work without a bound; one that has lost its mapping lets nothing in, and goes before any host is refused.

use catena_state::{Access, Declaration, Engine, FlowMap, Intent, Mover, NoMemory, Plain, Scope, Share, Tx, looks};

use super::family::Translate;
use super::mapping::{Mappings, State, Timeouts};
use super::plan::{At, Meeting, Next, Used};
use super::reasons::{SESSION_LIMIT, UNTRANSLATABLE};
use super::translate::{self, Napt};
use crate::fair_map::{self, FairMap, Grouped, Place};
use crate::function::{Step, Try};
use crate::shares::Taken;
use catena_packet::wire::vlan::Vlan;
use catena_packet::wire::{ports, tcp};

/// By inside and remote endpoint.
pub const SESSIONS: Declaration =
    Declaration::flow_map("sessions", "who was sent to", Scope::SourceEndpoint, Access::ReadWrite);

/// By inside host.
pub const SESSION_SHARES: Declaration =
    Declaration::shared("shares of sessions", "who has how many sessions", Scope::Global, Access::ReadWrite);

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
/// Most sessions of all instances, in any case.
const MOST: u64 = 1 << 24;

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

impl Grouped for Session {
    fn group(&self) -> u16 {
        self.group
    }
}

/// A packet between an inside and a remote endpoint.
#[derive(Clone, Copy)]
pub struct Contact<F: Translate> {
    /// The inside endpoint.
    pub inside: F::Endpoint,
    /// The identity of the mapping between.
    pub mapping: (u16, u8),
    /// The flags of a TCP segment; 0 of anything else.
    pub flags: u8,
}

/// The promise of a session.
pub type Ticket<E, F> = fair_map::Ticket<E, <F as Translate>::Pair, Session>;
/// The promise of a place for one.
pub type NewSession<E, F> = Place<E, <F as Translate>::Pair, Session>;

/// The remote endpoints that inside endpoints have sent to.
pub struct Sessions<E: Engine, F: Translate> {
    filtering: Filtering,
    sent: FairMap<E, F::Pair, Session>,
    timeouts: Timeouts,
}

impl<E: Engine, F: Translate> Sessions<E, F> {
    /// Make none, for up to as many mappings as an instance of this one's share has.
    ///
    /// # Errors
    /// [`NoMemory`] for that.
    pub fn new(
        engine: &mut E,
        (filtering, timeouts): (Filtering, Timeouts),
        mappings: impl Fn(Share) -> usize,
    ) -> Result<Self, NoMemory> {
        let most = |share: Share| match filtering {
            Filtering::Independent => 1,
            _ => mappings(share).saturating_mul(FOR_EACH_MAPPING).min(share.part_of(MOST) as usize),
        };
        let objects = [&SESSIONS.part(F::PART), &SESSION_SHARES.part(F::PART)];
        Ok(Sessions { filtering, sent: FairMap::new(engine, objects, most)?, timeouts })
    }

    /// Show a mover the sessions.
    pub fn objects(&mut self, tx: &mut Tx, mover: &mut Mover) {
        self.sent.objects(tx, mover);
    }

    /// Return whether anything is filtered.
    #[inline(always)]
    pub fn filter(&self) -> bool {
        self.filtering != Filtering::Independent
    }

    /// Return the key of the session between an inside and a remote endpoint.
    pub fn key(&self, inside: F::Endpoint, (remote, remote_port): (F::Address, u16)) -> F::Pair {
        let (address, port, number) = F::parts(inside);
        let remote_port = if self.filtering == Filtering::AddressPort { remote_port } else { 0 };
        let vlan = u64::from(F::vlan(inside));
        let tail = u64::from(port) | u64::from(remote_port) << 16 | u64::from(number) << 32 | vlan << 40;
        F::pair(address, remote, tail)
    }

    /// Ask for the session with this key.
    pub fn want(&mut self, tx: &mut Tx, key: F::Pair, intent: Intent) -> Ticket<E, F> {
        self.sent.entries.want(tx, key, intent)
    }

    /// Ask for a place for the session with this key.
    pub fn want_new(&mut self, tx: &mut Tx, key: F::Pair) -> NewSession<E, F> {
        self.sent.want_place(tx, key, F::host_of(Self::inside(&key)).words())
    }

    /// Return the inside endpoint of a session.
    fn inside(key: &F::Pair) -> F::Endpoint {
        let (address, tail) = F::first_of_pair(key);
        F::within(F::endpoint(address, tail as u16, (tail >> 32) as u8), (tail >> 40) as Vlan)
    }

    /// Note a packet from inside. Returns whether there was a session of it.
    pub fn sent(&mut self, tx: &mut Tx, ticket: &Ticket<E, F>, contact: &Contact<F>) -> bool {
        let now = tx.now;
        let &Contact { inside, mapping, flags } = contact;
        let Some(mut session) = self.sent.entries.get(tx, ticket) else { return false };
        let before = session.state;
        if session.mapping != mapping || self.timeouts.over(session.state, session.last, now) {
            (session.mapping, session.state) = (mapping, State::first(F::parts(inside).2));
        }
        session.state = session.state.out(flags);
        session.last = session.last.max(now);
        let Session { state, last, .. } = *session;
        drop(session);
        if state != before {
            self.sent.entries.sooner(tx, ticket, self.timeouts.end(state, last));
        }
        true
    }

    /// Begin the session of a packet from inside.
    ///
    /// # Errors
    /// Why there is no room: answers would be filtered, so the packet must not leave.
    pub fn begin(&mut self, tx: &mut Tx, new: &NewSession<E, F>, contact: &Contact<F>) -> Result<(), Taken> {
        let (now, &Contact { inside, mapping, flags }) = (tx.now, contact);
        let room = self.sent.room(tx, new)?;
        let state = State::first(F::parts(inside).2).out(flags);
        let until = self.timeouts.end(state, now);
        self.sent.put(tx, new, Ok(room), |group| (Session { last: now, mapping, state, group }, until))
    }

    /// Return whether a packet from a remote endpoint may go to an inside one.
    pub fn may(&mut self, tx: &mut Tx, ticket: &Ticket<E, F>, contact: &Contact<F>) -> bool {
        let Some(mut session) = self.sent.entries.get(tx, ticket) else { return false };
        if session.mapping != contact.mapping || self.timeouts.over(session.state, session.last, tx.now) {
            return false;
        }
        session.state = session.state.back(contact.flags);
        true
    }

    /// Look at up to `most` sessions whose end may have come, and forget those that are over. Returns how many were looked at.
    pub fn expire(&mut self, tx: &mut Tx, most: usize) -> usize {
        let (now, timeouts) = (tx.now, self.timeouts);
        self.sent.expire(tx, now, most, |session| timeouts.end(session.state, session.last))
    }

    /// Before a group is refused, look at the sessions that are due and forget those that are over or have lost their mapping.
    /// What only the outside has ended goes too: of the group, if it has its part, or of all, if all are short. Returns
    /// whether there were any to look at.
    pub fn make_room(&mut self, tx: &mut Tx, refused: Taken, mappings: &mut Mappings<E, F>) -> bool {
        let now = tx.now;
        let is_any_over = self.expire(tx, looks::MOST) > 0;
        let due = self.sent.entries.owed(tx, now);
        let whose = if let Taken::HasItsPart(group) = refused { Some(group) } else { None };
        let (usual, short, least) = (self.timeouts, self.timeouts.when_short(), self.timeouts.least_tcp());
        self.sent.sweep(tx, due, |tx, key, session| {
            let timeouts = if whose.is_none_or(|own| own == session.group) { &short } else { &usual };
            // A mapping lives on after the last packet of any session, at least as long as the shortest timeout: only
            // those of TCP that are established outlive theirs, and only after that.
            timeouts.over(session.state, session.last, now)
                || matches!(session.state, State::Established | State::Doubtful)
                    && now.saturating_sub(session.last) >= least
                    && !mappings.lives(tx, Self::inside(key), session.mapping, now)
        });
        is_any_over || due > 0
    }
}

impl<E: Engine, F: Translate> Napt<E, F> {
    /// A packet from inside that has used its mapping: the session of it and whom it is for is asked for.
    pub(super) fn note(&mut self, at: &mut At<'_, E, F>, used: Used<F>, mapping: (u16, u8)) -> Step {
        let (frame, layers) = (at.packet.data(), at.packet.layers());
        let Some([_, dst]) = F::addresses(frame, usize::from(layers.l3)) else {
            return translate::drop(UNTRANSLATABLE);
        };
        let port = ports(frame, &layers).map_or(0, |(_, dport)| dport);
        let contact = Contact { inside: used.inside, mapping, flags: tcp::flags(frame, &layers) };
        let key = self.sessions.key(used.inside, (dst, port));
        let session = self.sessions.want(at.tx, key, Intent::Change);
        self.then(at, Next::Noted { meeting: Meeting { key, contact, used }, session })
    }

    /// With that session; where there is none, a place for it is asked for.
    pub(super) fn noted(&mut self, at: &mut At<'_, E, F>, meeting: Meeting<F>, session: &Ticket<E, F>) -> Step {
        if self.sessions.sent(at.tx, session, &meeting.contact) {
            return self.mapped(at, meeting.used);
        }
        self.meet(at, meeting, Try::First)
    }

    fn meet(&mut self, at: &mut At<'_, E, F>, meeting: Meeting<F>, which: Try) -> Step {
        let place = self.sessions.want_new(at.tx, meeting.key);
        self.then(at, Next::Met { meeting, place, which })
    }

    /// With that place.
    pub(super) fn met(
        &mut self,
        at: &mut At<'_, E, F>,
        meeting: Meeting<F>,
        place: &NewSession<E, F>,
        which: Try,
    ) -> Step {
        match self.sessions.begin(at.tx, place, &meeting.contact) {
            Ok(()) => self.mapped(at, meeting.used),
            // What is over gives its room back before another is refused.
            Err(why) if which == Try::First && self.sessions.make_room(at.tx, why, &mut self.mappings) => {
                self.meet(at, meeting, Try::Last)
            }
            Err(_) => translate::drop(SESSION_LIMIT),
        }
    }
}

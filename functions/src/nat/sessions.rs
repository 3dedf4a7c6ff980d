//! Who was spoken to: the filter of packets from outside (RFC 4787 §5).

use catena_packet::wire::number::proto;
use catena_state::{Engine, FlowMap};

use super::family::Family;
use super::mapping::{State, Timeouts};
use crate::looks::Looks;
use crate::shares::Shares;

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
#[derive(Clone, Copy, Debug)]
pub struct Session {
    last: u64,
    /// The mapping it had then: a later one starts afresh.
    mapping: (u16, u8),
    /// Decides how long it lives: TCP that the remote side has answered lives longer.
    state: State,
    /// Who has it.
    group: u16,
}

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
    pub fn new(engine: &mut E, filtering: Filtering, timeouts: Timeouts, mappings: usize) -> Self {
        let most = match filtering {
            Filtering::Independent => 1,
            _ => mappings.saturating_mul(FOR_EACH_MAPPING).min(MOST),
        };
        Sessions {
            filtering,
            sent: engine.flow_map("sessions", most),
            shares: Shares::new(engine.seed(), most),
            timeouts,
            looks: Looks::new(most),
        }
    }

    /// Return whether anything is filtered.
    #[inline(always)]
    pub fn filter(&self) -> bool {
        self.filtering != Filtering::Independent
    }

    fn key(&self, inside: F::Endpoint, remote: (F::Address, u16)) -> F::Pair {
        let (address, port, number) = F::parts(inside);
        let remote_port = if self.filtering == Filtering::AddressPort { remote.1 } else { 0 };
        let tail = u64::from(port) | u64::from(remote_port) << 16 | u64::from(number) << 32;
        F::pair(address, remote.0, tail)
    }

    /// Note that an inside endpoint sends to a remote one by its mapping of that identity. Returns whether there was
    /// room: where there is none, answers would be filtered, so the packet must not leave.
    #[must_use]
    pub fn sent(
        &mut self,
        tx: E::Tx,
        inside: F::Endpoint,
        remote: (F::Address, u16),
        mapping: (u16, u8),
        now: u64,
    ) -> bool {
        let ticket = self.sent.want(tx, self.key(inside, remote));
        let state = State::first(F::parts(inside).2);
        if let Some(session) = self.sent.get(tx, &ticket) {
            if session.mapping != mapping || self.timeouts.over(session.state, session.last, now) {
                (session.mapping, session.state) = (mapping, state);
            }
            session.last = now;
            return true;
        }
        let group = self.shares.group(F::words(F::parts(inside).0));
        if !self.shares.take(group) {
            let due = self.looks.due(now);
            self.sweep(now, due);
            if due == 0 || !self.shares.take(group) {
                return false;
            }
        }
        // More than one for each that comes, so that they go faster than they come.
        self.sweep(now, 4);
        let is_noted = self.sent.insert(tx, &ticket, Session { last: now, mapping, state, group }).is_ok();
        if !is_noted {
            self.shares.give(group);
        }
        is_noted
    }

    /// Return whether a remote endpoint may send to an inside one by its mapping of that identity; if so, it has
    /// answered.
    pub fn may(
        &mut self,
        tx: E::Tx,
        inside: F::Endpoint,
        remote: (F::Address, u16),
        mapping: (u16, u8),
        now: u64,
    ) -> bool {
        let ticket = self.sent.want(tx, self.key(inside, remote));
        let timeouts = &self.timeouts;
        let Some(session) = self.sent.get(tx, &ticket) else { return false };
        if session.mapping != mapping || timeouts.over(session.state, session.last, now) {
            return false;
        }
        if F::parts(inside).2 == proto::TCP {
            session.state = State::Established;
        }
        true
    }

    /// Look at up to `count` sessions and forget the old ones.
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
}

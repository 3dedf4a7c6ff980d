//! Who was spoken to: the filter of packets from outside (RFC 4787 §5).

use catena_state::{Engine, FlowMap};

use super::family::Family;
use super::mapping::{State, Timeouts};

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

/// That an inside endpoint sent to a remote one.
#[derive(Clone, Copy, Debug)]
pub struct Session {
    last: u64,
    /// The mapping it had then: a later one starts afresh.
    mapping: (u16, u8),
}

/// The remote endpoints that inside endpoints have sent to.
pub struct Sessions<E: Engine, F: Family> {
    filtering: Filtering,
    sent: E::FlowMap<F::Pair, Session>,
    timeouts: Timeouts,
}

impl<E: Engine, F: Family> Sessions<E, F> {
    /// Make none; at most `max`.
    pub fn new(engine: &mut E, filtering: Filtering, timeouts: Timeouts, max: usize) -> Self {
        let max = if filtering == Filtering::Independent { 1 } else { max };
        Sessions { filtering, sent: engine.flow_map("sessions", max), timeouts }
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

    /// TCP as long as it may live, since a session does not know its mapping's state; the mapping's own timeout
    /// bounds it.
    fn over(timeouts: &Timeouts, tail_is_tcp: bool, last: u64, now: u64) -> bool {
        timeouts.over(if tail_is_tcp { State::Established } else { State::Udp }, last, now)
    }

    /// Note that an inside endpoint sends to a remote one by its mapping of that identity.
    pub fn sent(&mut self, tx: E::Tx, inside: F::Endpoint, remote: (F::Address, u16), mapping: (u16, u8), now: u64) {
        let timeouts = self.timeouts;
        self.sent.sweep(4, |_, session| Self::over(&timeouts, true, session.last, now));
        let ticket = self.sent.want(tx, self.key(inside, remote));
        // Where there is no room, answers are filtered: safe, and counted when they come.
        let _ = self.sent.insert(tx, &ticket, Session { last: now, mapping });
    }

    /// Return whether a remote endpoint may send to an inside one by its mapping of that identity.
    pub fn may(
        &mut self,
        tx: E::Tx,
        inside: F::Endpoint,
        remote: (F::Address, u16),
        mapping: (u16, u8),
        now: u64,
    ) -> bool {
        let ticket = self.sent.want(tx, self.key(inside, remote));
        let is_tcp = F::parts(inside).2 == catena_packet::wire::number::proto::TCP;
        let timeouts = &self.timeouts;
        self.sent
            .get(tx, &ticket)
            .is_some_and(|session| session.mapping == mapping && !Self::over(timeouts, is_tcp, session.last, now))
    }

    /// Look at up to `count` sessions and forget the old ones.
    pub fn sweep(&mut self, now: u64, count: usize) {
        let timeouts = self.timeouts;
        self.sent.sweep(count, |_, session| Self::over(&timeouts, true, session.last, now));
    }
}

//! The table's entries: a connection, found by the packets of its client and by those of its server, and what becomes of a datagram's
//! later fragments.
//!
//! An entry is written when its connection opens, changes or has been used for a quarter of its time-out; all
//! other packets only read it.
//!
//! What a packet proves of its connection is in `proof`: here it is only remembered.

use catena_packet::wire::number::proto;
use catena_packet::wire::tcp::flag::{FIN, RST, SYN};

use catena_state::Plain;

use super::proof::proves;
use crate::rewrite::Change;

/// The packet opens the datagram whose later fragments follow; stands beside TCP's flags.
pub(super) const FIRST_FRAGMENT: u8 = 0x80;
/// The packet is one of these; stands there, too.
pub(super) const LATER_FRAGMENT: u8 = 0x40;
/// The TCP flags that change a connection.
pub(super) const EVENTS: u8 = FIN | SYN | RST;

/// Times without a packet after which a connection is forgotten, in ns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timeouts {
    pub(super) tcp_established: u64,
    pub(super) tcp_transitory: u64,
    /// UDP and all other protocols.
    pub(super) udp: u64,
}

/// Later fragments come within this time of the first, in ns (as long as Linux waits for them).
const FRAGMENTS: u64 = 30_000_000_000;

impl Timeouts {
    fn of(&self, proto: u8, state: State) -> u64 {
        if proto != proto::TCP {
            self.udp
        } else if state.any(State::SETTLED | State::HEARD) && !state.any(State::FINS | State::CLOSED) {
            self.tcp_established
        } else {
            self.tcp_transitory
        }
    }
}

/// What is known of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Plain)]
pub(super) struct State(u16);

impl State {
    /// Established: server and client have shown that they hear each other.
    pub(super) const SETTLED: u16 = 1;
    /// The client has sent FIN.
    pub(super) const FIN_OUT: u16 = 2;
    /// The server has sent FIN.
    pub(super) const FIN_BACK: u16 = 4;
    /// Both have.
    const FINS: u16 = Self::FIN_OUT | Self::FIN_BACK;
    /// Reset, or FIN both ways.
    pub(super) const CLOSED: u16 = 8;
    /// It counts as an active connection of its server.
    pub(super) const COUNTED: u16 = 16;
    /// The client's packets without an event change nothing.
    pub(super) const QUIET_OUT: u16 = 32;
    /// The server's packets without an event change nothing.
    pub(super) const QUIET_BACK: u16 = 1 << 10;
    /// Closed by a RST of the client alone, whose source may be false: an established connection keeps its entry.
    pub(super) const CUT: u16 = 64;
    /// The client has sent a SYN.
    pub(super) const BEGAN: u16 = 128;
    /// The server has sent SYN and ACK, so that [`Connection::proof`] is known.
    pub(super) const AWAITS: u16 = 256;
    /// The server has answered, which proves nothing: of TCP, what began before the balancer did, which is kept as long as
    /// an established connection; of what is neither TCP nor SCTP, anything. It goes first when the table is full.
    pub(super) const HEARD: u16 = 512;
    /// Never kept: the server has sent something after the client's RST, so the connection lives.
    pub(super) const REVIVED: u16 = 1 << 14;
    /// Never kept: it has sent SYN and ACK after the client's RST, so this is another connection.
    pub(super) const ANEW: u16 = 1 << 15;

    pub(super) const fn new(bits: u16) -> State {
        State(bits)
    }

    #[inline(always)]
    pub(super) const fn has(self, bits: u16) -> bool {
        self.0 & bits == bits
    }

    const fn any(self, bits: u16) -> bool {
        self.0 & bits != 0
    }

    /// Return the state with these bits, closed once both sides have sent FIN.
    const fn with(self, bits: u16) -> State {
        let (reset, cut) = (Self::CLOSED, Self::CLOSED | Self::CUT);
        let has_ended = self.0 & cut == reset || bits & cut == reset;
        let mut state = self.0 | bits;
        if bits & Self::ANEW != 0 {
            state &= !(cut | Self::FINS | Self::SETTLED | Self::HEARD);
        } else {
            if bits & Self::REVIVED != 0 {
                state &= !cut;
            }
            if state & Self::FINS == Self::FINS || has_ended {
                state = (state | Self::CLOSED) & !Self::CUT;
            }
        }
        State(state & !(Self::REVIVED | Self::ANEW))
    }

    /// Return the state, and in it of each way whether a packet without an event would change nothing.
    const fn routed(self, proto: u8) -> State {
        let mut state = self.0 & !(Self::QUIET_OUT | Self::QUIET_BACK);
        if self.has(Self::SETTLED) || !self.has(Self::AWAITS) {
            state |= Self::QUIET_OUT;
        }
        if self.is_answered(proto) && !self.has(Self::CUT) {
            state |= Self::QUIET_BACK;
        }
        State(state)
    }

    /// Return whether the server has answered, with proof where the protocol has any.
    pub(super) const fn is_answered(self, proto: u8) -> bool {
        self.has(Self::SETTLED) || !proves(proto) && self.has(Self::HEARD)
    }

    /// Return whether the connection goes first when the table is full: half-open, or closed.
    pub(super) const fn goes_first(self) -> bool {
        !self.has(Self::SETTLED) || self.has(Self::CLOSED) && !self.has(Self::CUT)
    }
}

/// A connection: how its client's packets are rewritten, and its server's the other way round.
#[derive(Clone, Copy, Debug, Plain)]
pub(super) struct Connection<A> {
    pub(super) rewrite: Change<A>,
    /// When the entry is to be written again, in ns: a quarter of its time-out after it last was.
    pub(super) due: u64,
    /// The acknowledgement that shows that the client got the server's SYN.
    pub(super) proof: u32,
    /// The server's place in the ranking.
    pub(super) place: u16,
    /// The server's number in the configuration, from 0.
    pub(super) server: u16,
    pub(super) state: State,
}

const _: () = assert!(size_of::<Connection<u32>>() <= 40, "with its key, an IPv4 entry is one cache line");
const _: () = assert!(size_of::<Connection<[u64; 2]>>() <= 72, "with its key, an IPv6 entry is two cache lines");

impl<A> Connection<A> {
    /// Take note of a packet. Returns whether the entry changed or was due.
    pub(super) fn note(&mut self, bits: u16, now: u64, proto: u8, timeouts: &Timeouts) -> bool {
        let state = self.state.with(bits).routed(proto);
        let touched = state != self.state || now > self.due;
        self.state = state;
        if touched {
            self.due = now.saturating_add(timeouts.of(proto, state) / 4);
        }
        touched
    }

    /// Return whether the connection must be taken off its server's count now: true once.
    pub(super) fn released(&mut self) -> bool {
        let released = self.state.has(State::CLOSED | State::COUNTED);
        if released {
            self.state.0 &= !State::COUNTED;
        }
        released
    }

    /// Return whether the connection lives again and must be counted: true once.
    pub(super) fn revived(&mut self) -> bool {
        let revived = !self.state.any(State::CLOSED | State::COUNTED);
        if revived {
            self.state.0 |= State::COUNTED;
        }
        revived
    }

    /// Take it off its server's count because it leaves that server. Returns whether it was on it.
    pub(super) fn abandon(&mut self) -> bool {
        self.state = self.state.with(State::CLOSED);
        self.released()
    }

    /// Return when the connection is over if no packet comes until then.
    pub(super) fn end(&self, proto: u8, timeouts: &Timeouts) -> u64 {
        self.due.saturating_add(timeouts.of(proto, self.state)).saturating_add(1)
    }

    /// Return whether there was no packet for at least the time-out, and at most five quarters of it.
    pub(super) fn is_over(&self, now: u64, proto: u8, timeouts: &Timeouts) -> bool {
        now > self.due && now - self.due > timeouts.of(proto, self.state)
    }
}

/// A datagram whose first fragment was seen: how the later ones are rewritten, which go one way.
#[derive(Clone, Copy, Debug, Plain)]
pub(super) struct Part<A> {
    pub(super) rewrite: Change<A>,
    /// When the entry is to be written again, in ns: as of a connection.
    due: u64,
    /// The server's number in the configuration, from 0.
    pub(super) server: u16,
}

impl<A> Part<A> {
    /// Make it for a datagram that begins now.
    pub(super) fn new(rewrite: Change<A>, server: u16, now: u64) -> Self {
        Part { rewrite, due: now.saturating_add(FRAGMENTS / 4), server }
    }

    /// Take note of a later fragment.
    pub(super) fn note(&mut self, now: u64) {
        if now > self.due {
            self.due = now.saturating_add(FRAGMENTS / 4);
        }
    }

    /// Return when it is over if no fragment comes until then.
    pub(super) fn end(&self) -> u64 {
        self.due.saturating_add(FRAGMENTS).saturating_add(1)
    }
}

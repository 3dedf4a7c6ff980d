//! The table's entries: one a direction of a connection, and one for the later fragments of a datagram.
//!
//! An entry is written when its connection opens, changes or has been used for a quarter of its time-out; all
//! other packets only read it. So the two entries of a connection can tell each other of life at little cost,
//! and each can be dropped by what stands in it alone.
//!
//! A connection is settled by a packet of its server alone, because a client's packet may have a false source. For
//! TCP it is one without SYN and RST: these a server sends to any stranger (RFC 9293, sections 3.5.1 and 3.5.2).

use catena_packet::wire::number::proto;
use catena_packet::wire::tcp::flag::{FIN, RST, SYN};

use super::family::{Class, Rewrite};

/// The packet opens the datagram whose later fragments follow; stands beside TCP's flags.
pub(super) const FIRST_FRAGMENT: u8 = 0x80;
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
    fn of(&self, proto: u8, class: Class, state: State) -> u64 {
        if class.is_fragment() {
            FRAGMENTS
        } else if proto != proto::TCP {
            self.udp
        } else if state.has(State::SETTLED) && !state.any(State::FIN_HERE | State::FIN_THERE | State::CLOSED) {
            self.tcp_established
        } else {
            self.tcp_transitory
        }
    }
}

/// What is known of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct State(u8);

impl State {
    /// The server has answered: the connection is established.
    pub(super) const SETTLED: u8 = 1;
    /// FIN was seen in this direction.
    pub(super) const FIN_HERE: u8 = 2;
    /// FIN was seen in the other direction.
    pub(super) const FIN_THERE: u8 = 4;
    /// Reset, or FIN both ways.
    pub(super) const CLOSED: u8 = 8;
    /// It counts as an active connection of its server; only in entries of the way out.
    pub(super) const COUNTED: u8 = 16;
    /// Packets without an event change nothing: those of clients, and of servers once settled.
    pub(super) const QUIET: u8 = 32;
    /// Closed by a RST of the client, whose source may be false: an established connection keeps its entry.
    const CUT: u8 = 64;

    pub(super) const fn new(bits: u8) -> State {
        State(bits)
    }

    #[inline(always)]
    pub(super) const fn has(self, bit: u8) -> bool {
        self.0 & bit == bit
    }

    const fn any(self, bits: u8) -> bool {
        self.0 & bits != 0
    }

    /// Return the state with these bits, closed once both sides have sent FIN.
    const fn with(self, bits: u8) -> State {
        let state = self.0 | bits;
        let state = if state & Self::SETTLED != 0 { state | Self::QUIET } else { state };
        let both = Self::FIN_HERE | Self::FIN_THERE;
        State(if state & both == both { state | Self::CLOSED } else { state })
    }

    /// Return whether the connection goes first when the table is full: half-open, or closed.
    pub(super) const fn goes_first(self) -> bool {
        !self.has(Self::SETTLED) || self.has(Self::CLOSED) && !self.has(Self::CUT)
    }

    /// Return what the entry of the other direction has to know.
    pub(super) const fn seen_from_there(self) -> u8 {
        let fin = if self.has(Self::FIN_HERE) { Self::FIN_THERE } else { 0 };
        self.0 & (Self::SETTLED | Self::CLOSED) | fin
    }
}

/// Return what a packet's flags do to the state of its own direction.
pub(super) const fn bits_of(special: u8, class: Class) -> u8 {
    let mut bits = 0;
    if class.is_back() && special & (SYN | RST) == 0 {
        bits |= State::SETTLED;
    }
    if special & FIN != 0 {
        bits |= State::FIN_HERE;
    }
    if special & RST != 0 {
        bits |= if class.is_back() { State::CLOSED } else { State::CLOSED | State::CUT };
    }
    bits
}

/// An entry: how packets are rewritten, and whose they are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Connection<A> {
    pub(super) rewrite: Rewrite<A>,
    /// When the entry is to be written again, in ns: a quarter of its time-out after it last was.
    pub(super) due: u64,
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
    pub(super) fn note(&mut self, bits: u8, now: u64, proto: u8, class: Class, timeouts: &Timeouts) -> bool {
        let state = self.state.with(bits);
        let touched = state != self.state || now > self.due;
        self.state = state;
        if touched {
            self.due = now.saturating_add(timeouts.of(proto, class, state) / 4);
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

    /// Take it off its server's count because it leaves that server. Returns whether it was on it.
    pub(super) fn abandon(&mut self) -> bool {
        self.state = self.state.with(State::CLOSED);
        self.released()
    }

    /// Return whether there was no packet for at least the time-out, and at most five quarters of it.
    pub(super) fn is_over(&self, now: u64, proto: u8, class: Class, timeouts: &Timeouts) -> bool {
        now > self.due && now - self.due > timeouts.of(proto, class, self.state)
    }
}

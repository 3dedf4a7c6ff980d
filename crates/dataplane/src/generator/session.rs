//! One TCP session as both sides speak it (RFC 9293 §3.5, §3.6): handshake, requests and answers, end.
//!
//! ```text
//!     client                      server
//!       SYN            ─────▶
//!                      ◀─────       SYN, ACK
//!       ACK            ─────▶
//!       request        ─────▶                     these four again
//!                      ◀─────       answer        and again
//!                      ◀─────       answer
//!       ACK            ─────▶
//!       FIN, ACK       ─────▶
//!                      ◀─────       FIN, ACK
//!       ACK            ─────▶
//! ```
//!
//! Nothing is lost or comes out of order, so every segment acknowledges all that the other side sent
//! before it; nobody has more than two segments on the way, well below the window.

use catena_packet::wire::tcp::flag;

use super::frame::Say;

/// Where a session stands: what comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Syn,
    SynAck,
    Ack,
    Request,
    FirstAnswer,
    SecondAnswer,
    AckAnswers,
    Fin,
    FinAck,
    LastAck,
    Over,
}

/// A TCP session.
#[derive(Clone, Copy, Debug)]
pub(super) struct Session {
    step: Step,
    /// The next sequence numbers.
    client: u32,
    server: u32,
}

impl Session {
    /// Begin with initial sequence numbers.
    pub fn new(bits: u64) -> Self {
        Session { step: Step::Syn, client: bits as u32, server: (bits >> 32) as u32 }
    }

    /// Return whether the last segment is out.
    pub fn is_over(&self) -> bool {
        self.step == Step::Over
    }

    /// Return whether the next segment is the server's.
    pub fn is_server_next(&self) -> bool {
        matches!(self.step, Step::SynAck | Step::FirstAnswer | Step::SecondAnswer | Step::FinAck)
    }

    /// Return whether the next segment carries data.
    pub fn is_data_next(&self) -> bool {
        matches!(self.step, Step::Request | Step::FirstAnswer | Step::SecondAnswer)
    }

    /// Return whether the next segment has a SYN's option.
    pub fn is_syn_next(&self) -> bool {
        matches!(self.step, Step::Syn | Step::SynAck)
    }

    /// End instead of sending more data.
    pub fn close(&mut self) {
        if matches!(self.step, Step::Request | Step::FirstAnswer | Step::SecondAnswer | Step::AckAnswers) {
            self.step = Step::Fin;
        }
    }

    /// Take the next segment, with `data` bytes if it carries any.
    pub fn next(&mut self, data: usize) -> Say {
        let from_server = self.is_server_next();
        let data = if self.is_data_next() { data } else { 0 };
        let (flags, after) = match self.step {
            Step::Syn => (flag::SYN, Step::SynAck),
            Step::SynAck => (flag::SYN | flag::ACK, Step::Ack),
            Step::Ack => (flag::ACK, Step::Request),
            Step::Request => (flag::PSH | flag::ACK, Step::FirstAnswer),
            Step::FirstAnswer => (flag::ACK, Step::SecondAnswer),
            Step::SecondAnswer => (flag::PSH | flag::ACK, Step::AckAnswers),
            Step::AckAnswers => (flag::ACK, Step::Request),
            Step::Fin => (flag::FIN | flag::ACK, Step::FinAck),
            Step::FinAck => (flag::FIN | flag::ACK, Step::LastAck),
            Step::LastAck | Step::Over => (flag::ACK, Step::Over),
        };
        self.step = after;
        // RFC 9293 §3.4: SYN and FIN take a sequence number each.
        let taken = data as u32 + u32::from(flags & (flag::SYN | flag::FIN) != 0);
        let (ours, theirs) =
            if from_server { (&mut self.server, self.client) } else { (&mut self.client, self.server) };
        let seq = *ours;
        *ours = ours.wrapping_add(taken);
        let ack = if flags & flag::ACK != 0 { theirs } else { 0 };
        Say::Segment { from_server, flags, seq, ack, data }
    }
}

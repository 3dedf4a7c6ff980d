//! What a packet proves of its connection. A client's packet may have a false source, so it proves nothing by itself.
//!
//! TCP is settled when the client acknowledges the number of the server's SYN, which only the true sender was told
//! (RFC 9293 §3.5; it is hard to guess, RFC 6528), or when the server sends data or FIN, which it does only to one who did
//! so. A server's bare ACK proves nothing: half-open, it answers so whatever does not fit (RFC 9293 §3.10.7.4). But where
//! no SYN was seen it may be all that an old, idle connection has to show.
//!
//! SCTP is settled when the server sends what it sends in an association alone: COOKIE ACK, for a cookie that only the true
//! sender of the INIT was told (RFC 9260 §5.1), data, or what acknowledges or probes. INIT ACK, ABORT and ERROR answer
//! anybody (§8.4).
//!
//! Other protocols have no proof: servers answer pings and questions (DNS, or the first packet of QUIC and DTLS) whoever
//! seems to send them, and a false sender may send a second packet after the answer. An answer is noted, but settles
//! nothing.

use catena_packet::Packet;
use catena_packet::wire::number::proto;
use catena_packet::wire::tcp::flag::{ACK, FIN, RST, SYN};
use catena_packet::wire::{Layers, sctp, tcp};

use super::connection::{Connection, State};

/// The chunks that begin a server's packets of an association (RFC 9260 §3.2, RFC 4895 §4.1, RFC 8260 §2.1): DATA, SACK,
/// HEARTBEAT, HEARTBEAT ACK, COOKIE ACK, AUTH, I-DATA.
const OF_AN_ASSOCIATION: [u8; 7] = [0, 3, 4, 5, 11, 15, 64];

/// Whether a protocol shows by its packets that client and server hear each other.
pub(super) const fn proves(proto: u8) -> bool {
    matches!(proto, proto::TCP | proto::SCTP)
}

/// Return what a server's packet, of another protocol than TCP, shows; as bits of [`State`].
fn answer(packet: &Packet, proto: u8) -> u16 {
    if proto != proto::SCTP {
        return State::HEARD;
    }
    let (frame, layers) = (packet.data(), packet.layers());
    let chunk = frame.get(usize::from(layers.l4) + sctp::HEADER_LEN).filter(|_| layers.has(Layers::PORTS));
    if chunk.is_some_and(|chunk| OF_AN_ASSOCIATION.contains(chunk)) { State::SETTLED } else { 0 }
}

/// What changes with a packet.
#[derive(Clone, Copy)]
pub(super) struct News {
    /// Bits of [`State`].
    pub(super) bits: u16,
    /// With [`State::AWAITS`]: the acknowledgement that the server awaits.
    pub(super) proof: u32,
}

impl News {
    /// Read what a packet of a known connection, not yet rewritten, does to it.
    pub(super) fn read<A>(own: &Connection<A>, packet: &Packet, special: u8, proto: u8, is_back: bool) -> News {
        let state = own.state;
        let mut bits = 0;
        if special & FIN != 0 {
            bits |= if is_back { State::FIN_BACK } else { State::FIN_OUT };
        }
        if special & RST != 0 {
            bits |= if is_back { State::CLOSED } else { State::CLOSED | State::CUT };
            return News { bits, proof: 0 };
        }
        if !is_back && special & SYN != 0 {
            bits |= State::BEGAN;
        }
        let was_cut = is_back && state.has(State::CUT);
        if was_cut {
            bits |= State::REVIVED;
        }
        if proto != proto::TCP {
            return News { bits: if is_back { bits | answer(packet, proto) } else { bits }, proof: 0 };
        }
        let (frame, layers) = (packet.data(), packet.layers());
        let header = frame.get(usize::from(layers.l4)..).filter(|_| layers.has(Layers::PORTS));
        let Some(Ok(segment)) = header.map(tcp::Packet::new_checked) else { return News { bits, proof: 0 } };
        let acknowledges = segment.flags() & ACK != 0;
        if is_back && special & SYN != 0 && acknowledges && (was_cut || !state.has(State::SETTLED)) {
            let anew = if was_cut { State::ANEW } else { 0 };
            return News { bits: bits | State::AWAITS | anew, proof: segment.seq().wrapping_add(1) };
        }
        bits |= match (is_back, special & SYN != 0) {
            (_, true) => 0,
            (true, false) => {
                let has_data = layers.end(frame).is_some_and(|end| end > usize::from(layers.payload));
                match has_data || special & FIN != 0 {
                    true => State::SETTLED,
                    false if state.has(State::BEGAN) => 0,
                    false => State::HEARD,
                }
            }
            (false, false) if acknowledges && state.has(State::AWAITS) && segment.ack() == own.proof => State::SETTLED,
            (false, false) => 0,
        };
        News { bits, proof: 0 }
    }
}

//! The key of a flow, the same for both directions, and what else is read of a packet.

use catena_packet::wire::{FlowKey, FlowKeyV4, FlowKeyV6, Layers, ipv6, tcp};
use catena_state::{Key, Plain};

use super::flow::Seen;

/// A five-tuple whose first endpoint is the smaller one.
pub trait TwoWayKey: Key {
    /// Read a packet's key, and which way of the flow it goes.
    fn read(frame: &[u8], layers: &Layers) -> Option<(Self, Seen)>;
    /// Return the key as records have it.
    fn either(&self) -> EitherKey;
}

/// The key of a flow of either IP version.
#[derive(Clone, Copy, Debug, Plain)]
pub enum EitherKey {
    /// IPv4.
    V4([u64; 2]),
    /// IPv6.
    V6([u64; 5]),
}

impl EitherKey {
    /// Return the key as others know it: source is the endpoint of way 0.
    pub(super) fn flow_key(&self) -> FlowKey {
        match *self {
            EitherKey::V4([addresses, rest]) => {
                let (src, dst) = (addresses as u32, (addresses >> 32) as u32);
                let (sport, dport, proto) = (rest as u16, (rest >> 16) as u16, (rest >> 32) as u8);
                FlowKey::V4(FlowKeyV4 { src, dst, sport, dport, proto })
            }
            EitherKey::V6([a, b, c, d, rest]) => {
                let (sport, dport, proto) = (rest as u16, (rest >> 16) as u16, (rest >> 32) as u8);
                FlowKey::V6(FlowKeyV6 { src: [a, b], dst: [c, d], sport, dport, proto })
            }
        }
    }
}

impl TwoWayKey for [u64; 2] {
    #[inline(always)]
    fn read(frame: &[u8], layers: &Layers) -> Option<(Self, Seen)> {
        let key = FlowKeyV4::read(frame, layers)?;
        let swap =
            (u64::from(key.src) << 16 | u64::from(key.sport)) > (u64::from(key.dst) << 16 | u64::from(key.dport));
        // Exchanged by arithmetic: which way packets go is anyone's guess, the branch predictor's too.
        let [addresses, rest] = key.words();
        let ports = (rest as u32).rotate_left(16 * u32::from(swap));
        let key = [addresses.rotate_left(32 * u32::from(swap)), rest >> 32 << 32 | u64::from(ports)];
        let bytes = u32::from(length_at(frame, usize::from(layers.l3) + 2)?);
        Some((key, Seen { way: u8::from(swap), flags: tcp_flags(frame, layers), bytes }))
    }

    fn either(&self) -> EitherKey {
        EitherKey::V4(*self)
    }
}

impl TwoWayKey for [u64; 5] {
    #[inline(always)]
    fn read(frame: &[u8], layers: &Layers) -> Option<(Self, Seen)> {
        let key = FlowKeyV6::read(frame, layers)?;
        let number = |half: [u64; 2]| u128::from(half[0]) << 64 | u128::from(half[1]);
        let (src, dst) = (number(key.src), number(key.dst));
        let swap = (src > dst) | ((src == dst) & (key.sport > key.dport));
        let [a, b, c, d, rest] = key.words();
        let mask = u64::from(swap).wrapping_neg();
        let (x, y) = ((a ^ c) & mask, (b ^ d) & mask);
        let ports = (rest as u32).rotate_left(16 * u32::from(swap));
        let key = [a ^ x, b ^ y, c ^ x, d ^ y, rest >> 32 << 32 | u64::from(ports)];
        let bytes = ipv6::HEADER_LEN as u32 + u32::from(length_at(frame, usize::from(layers.l3) + 4)?);
        Some((key, Seen { way: u8::from(swap), flags: tcp_flags(frame, layers), bytes }))
    }

    fn either(&self) -> EitherKey {
        EitherKey::V6(*self)
    }
}

#[inline(always)]
fn length_at(frame: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*frame.get(at..)?.first_chunk()?))
}

/// Return the flags of a whole TCP segment; none of any other packet.
#[inline(always)]
fn tcp_flags(frame: &[u8], layers: &Layers) -> u8 {
    let is_whole = layers.flags & (Layers::PORTS | Layers::FRAGMENT) == Layers::PORTS;
    let flags = tcp::flags(frame, layers);
    if is_whole { flags } else { 0 }
}

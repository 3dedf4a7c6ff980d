//! Whose bucket a packet takes from.

use catena_packet::Packet;
use catena_packet::wire::{FlowKeyV4, FlowKeyV6, Net};
use catena_state::Scope;

use crate::config::{ArgError, Args};

/// What the rate is promised to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Per {
    Class,
    /// An end of the packet's way, by prefix; the end is the source on the way out, or the destination.
    End {
        destination: bool,
        mask4: u32,
        mask6: [u64; 2],
    },
    Flow,
}

/// The key of a packet's bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// Of an IPv4 packet, of the class, or of all frames of no known source.
    Narrow([u64; 2]),
    /// Of an IPv6 packet.
    Wide([u64; 5]),
    /// It has none and passes: ARP.
    Free,
}

/// Tells the way back from the way out, in the last word of a key; flow keys use the bits below 40.
const BACK: u32 = 63;
/// Set beside it for frames that are neither IP nor ARP: nothing tells whose they are.
const UNKNOWN: u64 = 1 << 62;

impl Per {
    /// Read the arguments `per`, `prefix4` and `prefix6`.
    pub(super) fn new(args: &Args) -> Result<Per, ArgError> {
        let (bits4, bits6) = (args.integer("prefix4", 32, 0..=32)?, args.integer("prefix6", 64, 0..=128)?);
        let per = args.text("per", "class");
        let destination = match per {
            "src" => false,
            "dst" => true,
            other => {
                if let Some(name) = ["prefix4", "prefix6"].into_iter().find(|name| args.get(name).is_some()) {
                    let message = format!("means nothing with `per = {other}`");
                    return Err(ArgError::new(name, message).help("set `per = src` or `per = dst`"));
                }
                return match other {
                    "class" => Ok(Per::Class),
                    "flow" => Ok(Per::Flow),
                    _ => Err(ArgError::new("per", format!("expected class, src, dst or flow, found `{other}`"))),
                };
            }
        };
        let mask4 = !u32::MAX.checked_shr(bits4 as u32).unwrap_or(0);
        let mask6 = !u128::MAX.checked_shr(bits6 as u32).unwrap_or(0);
        Ok(Per::End { destination, mask4, mask6: [(mask6 >> 64) as u64, mask6 as u64] })
    }

    /// Whether all packets of a key have one source: IPv4 and IPv6.
    pub(super) fn within_source(self) -> [bool; 2] {
        match self {
            Per::Class => [false, false],
            Per::Flow => [true, true],
            Per::End { destination, mask4, mask6 } => {
                [!destination && mask4 == u32::MAX, !destination && mask6[0] == u64::MAX]
            }
        }
    }

    /// The header fields that tell keys apart. A part of an address is none, but what the configuration names; but of IPv6 the first 64
    /// bits are one host's.
    pub(super) fn scope(self) -> Scope {
        match self {
            Per::Class => Scope::Configured,
            Per::Flow => Scope::Connection,
            Per::End { mask4, mask6, .. } if mask4 != u32::MAX || mask6[0] != u64::MAX => Scope::Configured,
            Per::End { destination: true, .. } => Scope::Destination,
            Per::End { .. } => Scope::Source,
        }
    }

    /// The key of a packet, whose headers are parsed, that came in by `gate`.
    #[inline(always)]
    pub(super) fn key(self, packet: &Packet, gate: u16) -> Key {
        let back = u64::from(gate & 1) << BACK;
        let (frame, layers) = (packet.data(), packet.layers());
        let l3 = frame.get(usize::from(layers.l3)..).unwrap_or_default();
        let known = match self {
            Per::Class => Some(Key::Narrow([0, back])),
            Per::End { destination, mask4, mask6 } => {
                let second = destination != (gate & 1 == 1);
                match layers.net {
                    Net::Ipv4 => l3.get(12..).and_then(|at| at.first_chunk()).map(|ends: &[u8; 8]| {
                        let ends = u64::from_be_bytes(*ends);
                        let end = if second { ends as u32 } else { (ends >> 32) as u32 };
                        Key::Narrow([u64::from(end & mask4), back])
                    }),
                    Net::Ipv6 => l3.get(8 + 16 * usize::from(second)..).and_then(|at| at.first_chunk()).map(|end| {
                        let end = u128::from_be_bytes(*end);
                        Key::Wide([(end >> 64) as u64 & mask6[0], end as u64 & mask6[1], 0, 0, back])
                    }),
                    Net::Arp | Net::Other => None,
                }
            }
            // The way back keeps its own order of ends: its flow has a bucket of its own anyway.
            Per::Flow if layers.net == Net::Ipv6 => FlowKeyV6::read(frame, &layers).map(|key| {
                let [a, b, c, d, tail] = key.words();
                Key::Wide([a, b, c, d, tail | back])
            }),
            Per::Flow => FlowKeyV4::read(frame, &layers).map(|key| {
                let [ends, tail] = key.words();
                Key::Narrow([ends, tail | back])
            }),
        };
        match known {
            Some(key) => key,
            None if layers.net == Net::Arp => Key::Free,
            None => Key::Narrow([0, back | UNKNOWN]),
        }
    }
}

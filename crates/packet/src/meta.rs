//! What modules know of a packet beside its bytes: one cache line.

use crate::clock::Clock;
use crate::wire::Layers;

/// Bytes of a packet's attribute area; slots in it get their offsets when a pipeline is built.
pub const ATTRIBUTE_BYTES: usize = 12;

/// The metadata of one packet, exactly one cache line.
///
/// The first fields describe the buffer and belong to this crate; the others are free for all modules
/// of a pipeline. A packet fresh from a pool has all of them zero.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
pub struct Meta {
    /// Length of the packet in bytes.
    pub(crate) len: u32,
    /// Offset of the packet's first byte from the start of the buffer's room.
    pub(crate) head: u16,
    /// Size class of the buffer: 0 small, 1 jumbo.
    pub(crate) class: u8,
    /// Whether `layers` is valid.
    pub(crate) parsed: bool,
    /// Where the headers are, once parsed ([`crate::Packet::parse`]).
    pub(crate) layers: Layers,
    /// The port that the packet came in by.
    pub port: u16,
    /// How many bytes more the packet had on the wire than its capture kept, at most 65535.
    pub cut: u16,
    /// Service path: identifier (24 bits) and index (8 bits), RFC 8300 §2.3.
    pub path: u32,
    /// Marks of functions for functions (like a firewall mark).
    pub mark: u32,
    /// When a worker took the packet from its port, in units of [`STAMP_SHIFT`] cycles of the
    /// processor's time-stamp counter, modulo 2³² (11 s at 3 GHz): enough for latencies.
    pub stamp: u32,
    /// Logical clock, unique and rising per root.
    pub clock: Clock,
    /// Arrival time in ns since 1970, from the capture or the port.
    pub arrival: u64,
    /// Attribute slots.
    pub attributes: [u8; ATTRIBUTE_BYTES],
    pub(crate) tail: u32,
}

/// A [`Meta::stamp`] counts units of `1 << STAMP_SHIFT` cycles.
pub const STAMP_SHIFT: u32 = 3;

const _: () = assert!(size_of::<Meta>() == 64);

//! What modules know of a packet beside its bytes: one cache line.

use crate::clock::Clock;
use crate::slot::Way;
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
    /// The port that the packet came in by, and the slot that it is of.
    pub way: Way,
    /// How many bytes more the packet had on the wire than its capture kept, at most 65535.
    pub cut: u16,
    /// Service path: identifier (24 bits) and index (8 bits), RFC 8300 §2.3.
    pub path: u32,
    /// Marks of functions for functions (like a firewall mark).
    pub mark: u32,
    /// When a worker took the packet from its port, in units of [`STAMP_SHIFT`] cycles of the
    /// processor's time-stamp counter, modulo 2³² (11 s at 3 GHz): enough for latencies.
    pub stamp: u32,
    /// Logical clock, unique and rising.
    pub clock: Clock,
    /// Arrival time in ns since 1970, from the capture or the port.
    pub arrival: u64,
    /// Attribute slots.
    pub attributes: [u8; ATTRIBUTE_BYTES],
    /// By how many ns the run was ahead of its arrival when it came in: see [`Meta::time`].
    pub late: u32,
}

impl Meta {
    /// Return the time of the run at which a recorded packet came in: that of the latest packet so far. It never goes back
    /// from one packet to the next, in the order of their clocks.
    #[inline(always)]
    pub fn time(&self) -> u64 {
        self.arrival + u64::from(self.late)
    }

    /// Say at which time of the run, not before its arrival, the packet came in. Arrivals are corrected where they come in,
    /// and go back by a second at most.
    #[inline(always)]
    pub fn came_at(&mut self, now: u64) {
        self.late = u32::try_from(now.saturating_sub(self.arrival)).unwrap_or(u32::MAX);
    }
}

/// A [`Meta::stamp`] counts units of `1 << STAMP_SHIFT` cycles.
pub const STAMP_SHIFT: u32 = 3;

const _: () = assert!(size_of::<Meta>() == 64);

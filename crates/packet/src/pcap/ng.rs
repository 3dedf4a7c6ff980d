//! The layout of pcapng: sections of blocks, of which these matter here: section header, interface
//! description, and the three that hold a packet.
//!
//! Section numbers are those of draft-ietf-opsawg-pcapng.

use std::ops::Range;

use super::bytes::Order;
use super::{LinkType, MAX_RECORD};

/// The types of blocks (§11.1).
pub(super) const SECTION_HEADER: u32 = 0x0a0d_0d0a;
pub(super) const INTERFACE: u32 = 1;
pub(super) const OBSOLETE_PACKET: u32 = 2;
pub(super) const SIMPLE_PACKET: u32 = 3;
pub(super) const ENHANCED_PACKET: u32 = 6;

/// Reads 1a2b3c4d in the byte order of its section (§4.1).
pub(super) const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;

/// The bytes of any block around its body: type and length before it, and the length once more (§3.1).
pub(super) const BLOCK_HEADER: usize = 8;
pub(super) const BLOCK_TRAILER: usize = 4;

/// The options of an interface that decide how its times are read (§4.2).
pub(super) const OPTION_TIME_RESOLUTION: u16 = 9;
const OPTION_TIME_OFFSET: u16 = 14;

/// A comment, of any block (§3.5.1).
pub(super) const OPTION_COMMENT: u16 = 1;
/// The bytes of any option before its value, and of the one that ends a block's options (§3.5).
pub(super) const OPTION_HEADER: usize = 4;

/// More interfaces than any section has; a bound on the memory that a hostile file can ask for.
const MAX_INTERFACES: usize = 65_536;

/// The state of the section being read.
pub(super) struct Section {
    pub(super) order: Order,
    interfaces: Vec<Interface>,
}

#[derive(Clone, Copy)]
struct Interface {
    link: LinkType,
    /// The most bytes kept of a packet; 0 for no limit.
    snap_len: u32,
    clock: Clock,
}

/// Where in a block's body a packet lies, and what is said about it.
pub(super) struct Packet {
    pub(super) time_ns: u64,
    pub(super) link: LinkType,
    pub(super) original: u32,
    pub(super) data: Range<usize>,
}

/// What is wrong with a block.
pub(super) enum Fault {
    Malformed(&'static str),
    /// The packet claims this many bytes.
    TooLong(u32),
}

impl Section {
    /// Reads the body of a section header: byte order and version. The first 8 bytes suffice.
    pub(super) fn parse(body: &[u8; 8]) -> Result<Section, &'static str> {
        let order = [Order::Little, Order::Big]
            .into_iter()
            .find(|order| order.u32(body, 0) == BYTE_ORDER_MAGIC)
            .ok_or("a section header has no valid byte-order magic")?;
        // "a change of the major version means that it cannot be read" (§4.1).
        if order.u16(body, 4) != 1 {
            return Err("a section has a major version other than 1");
        }
        Ok(Section { order, interfaces: Vec::new() })
    }

    /// The link type of the section's first interface, if it has described one.
    pub(super) fn first_link(&self) -> Option<LinkType> {
        self.interfaces.first().map(|interface| interface.link)
    }

    /// Reads the body of an interface description (§4.2).
    pub(super) fn add_interface(&mut self, body: &[u8]) -> Result<(), &'static str> {
        if body.len() < 8 {
            return Err("an interface description is too short");
        }
        if self.interfaces.len() == MAX_INTERFACES {
            return Err("a section has more than 65536 interfaces");
        }
        let mut clock = Clock::MICROSECONDS;
        let mut options = &body[8..];
        while options.len() >= 4 {
            let code = self.order.u16(options, 0);
            let len = usize::from(self.order.u16(options, 2));
            let Some(value) = options.get(4..4 + len) else {
                return Err("an option of an interface runs beyond its block");
            };
            match (code, value) {
                (0, _) => break,
                (OPTION_TIME_RESOLUTION, &[resolution]) => clock.resolution = resolution,
                (OPTION_TIME_OFFSET, &[_, _, _, _, _, _, _, _]) => {
                    clock.offset_s = self.order.i64(value, 0);
                }
                _ => {}
            }
            options = options.get((4 + len).next_multiple_of(4)..).unwrap_or(&[]);
        }
        self.interfaces.push(Interface {
            link: LinkType(self.order.u16(body, 0)),
            snap_len: self.order.u32(body, 4),
            clock,
        });
        Ok(())
    }

    /// Reads the body of an enhanced packet block (§4.3).
    #[inline]
    pub(super) fn enhanced(&self, body: &[u8]) -> Result<Packet, Fault> {
        if body.len() < 20 {
            return Err(Fault::Malformed("a packet block is too short"));
        }
        self.packet(self.order.u32(body, 0), body)
    }

    /// Reads the body of an obsolete packet block (appendix A): as the enhanced one, but that the
    /// interface has 16 bits and a count of drops the other 16.
    pub(super) fn obsolete(&self, body: &[u8]) -> Result<Packet, Fault> {
        if body.len() < 20 {
            return Err(Fault::Malformed("a packet block is too short"));
        }
        self.packet(u32::from(self.order.u16(body, 0)), body)
    }

    #[inline]
    fn packet(&self, interface: u32, body: &[u8]) -> Result<Packet, Fault> {
        let interface = self.interface(interface)?;
        let ticks = u64::from(self.order.u32(body, 4)) << 32 | u64::from(self.order.u32(body, 8));
        let captured = self.order.u32(body, 12);
        Ok(Packet {
            time_ns: interface.clock.nanoseconds(ticks),
            link: interface.link,
            original: self.order.u32(body, 16),
            data: data(body, 20, captured)?,
        })
    }

    /// Reads the body of a simple packet block (§4.4): the first interface, no time, and as many
    /// bytes of the packet as the interface's limit allows.
    pub(super) fn simple(&self, body: &[u8]) -> Result<Packet, Fault> {
        let interface = self.interface(0)?;
        if body.len() < 4 {
            return Err(Fault::Malformed("a packet block is too short"));
        }
        let original = self.order.u32(body, 0);
        let captured = match interface.snap_len {
            0 => original,
            limit => original.min(limit),
        };
        Ok(Packet { time_ns: 0, link: interface.link, original, data: data(body, 4, captured)? })
    }

    #[inline]
    fn interface(&self, index: u32) -> Result<&Interface, Fault> {
        self.interfaces.get(index as usize).ok_or(Fault::Malformed("a packet names an undescribed interface"))
    }
}

/// The place of `len` bytes of data at `start` of `body`.
#[inline]
fn data(body: &[u8], start: usize, len: u32) -> Result<Range<usize>, Fault> {
    let bytes = len as usize;
    if bytes > MAX_RECORD {
        return Err(Fault::TooLong(len));
    }
    if body.len() < start + bytes {
        return Err(Fault::Malformed("a packet runs beyond its block"));
    }
    Ok(start..start + bytes)
}

/// How an interface's times are read.
#[derive(Clone, Copy)]
struct Clock {
    /// `if_tsresol`: one tick is 10^-n s, or 2^-n s with the upper bit set.
    resolution: u8,
    /// `if_tsoffset`: seconds to be added.
    offset_s: i64,
}

impl Clock {
    const MICROSECONDS: Clock = Clock { resolution: 6, offset_s: 0 };

    /// Nanoseconds since 1970, rounded down; the nearest bound for times that have no place in 64
    /// bits.
    #[inline]
    fn nanoseconds(self, ticks: u64) -> u64 {
        let ns = match self.resolution {
            9 => ticks,
            6 => ticks.saturating_mul(1_000),
            other => unusual_resolution(ticks, other),
        };
        if self.offset_s == 0 {
            return ns;
        }
        let ns = i128::from(ns) + i128::from(self.offset_s) * 1_000_000_000;
        u64::try_from(ns).unwrap_or(if ns < 0 { 0 } else { u64::MAX })
    }
}

#[cold]
fn unusual_resolution(ticks: u64, resolution: u8) -> u64 {
    let exponent = u32::from(resolution & 0x7f);
    let ns = if resolution & 0x80 != 0 {
        // At most 2^64 * 10^9, less than 2^94.
        (u128::from(ticks) * 1_000_000_000) >> exponent
    } else if exponent <= 9 {
        u128::from(ticks) * 10u128.pow(9 - exponent)
    } else {
        // 10^38 is the greatest power in 128 bits, and ticks are less than 10^20.
        u128::from(ticks) / 10u128.pow((exponent - 9).min(38))
    };
    u64::try_from(ns).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ns(resolution: u8, offset_s: i64, ticks: u64) -> u64 {
        Clock { resolution, offset_s }.nanoseconds(ticks)
    }

    #[test]
    fn ticks_become_nanoseconds() {
        assert_eq!(ns(6, 0, 1_500_000), 1_500_000_000);
        assert_eq!(ns(9, 0, 7), 7);
        assert_eq!(ns(0, 0, 3), 3_000_000_000);
        assert_eq!(ns(3, 0, 3), 3_000_000);
        assert_eq!(ns(12, 0, 7_999), 7);
        assert_eq!(ns(0x80, 0, 3), 3_000_000_000);
        assert_eq!(ns(0x80 | 1, 0, 3), 1_500_000_000);
        assert_eq!(ns(0x80 | 20, 0, 1 << 20), 1_000_000_000);
    }

    #[test]
    fn offsets_are_seconds() {
        assert_eq!(ns(6, 2, 1), 2_000_001_000);
        assert_eq!(ns(9, -1, 1_000_000_005), 5);
    }

    #[test]
    fn times_out_of_range_end_at_the_bounds() {
        assert_eq!(ns(9, -1, 5), 0);
        assert_eq!(ns(9, i64::MIN, u64::MAX), 0);
        assert_eq!(ns(9, i64::MAX, u64::MAX), u64::MAX);
        assert_eq!(ns(6, 0, u64::MAX), u64::MAX);
        assert_eq!(ns(0, 0, u64::MAX), u64::MAX);
        for resolution in 0..=u8::MAX {
            ns(resolution, i64::MIN, u64::MAX);
            ns(resolution, i64::MAX, u64::MAX);
        }
        assert_eq!(ns(127, 0, u64::MAX), 0);
        assert_eq!(ns(255, 0, u64::MAX), 0);
    }
}

//! The layout of pcap: one file header, then records.
//!
//! draft-ietf-opsawg-pcap describes today's format; the other magic numbers and the versions before
//! 2.4 are read as libpcap (`sf-pcap.c`) and Wireshark (`wiretap/libpcap.c`) read them.

use std::io::Read;

use super::bytes::Order;
use super::window::{Found, Window};
use super::{Error, LinkType, MAX_RECORD, Place};

/// The length of the file header, in bytes.
const FILE_HEADER: usize = 24;

/// Times in microseconds.
const MAGIC_MICROS: u32 = 0xa1b2_c3d4;
/// Times in nanoseconds.
pub(super) const MAGIC_NANOS: u32 = 0xa1b2_3c4d;
/// Alexey Kuznetzov's patch of libpcap: 8 more bytes a record (interface, protocol, direction).
const MAGIC_KUZNETZOV: u32 = 0xa1b2_cd34;
/// Ixia's "lcap", captured by hardware and by software: the length of all records stands in 4 more
/// bytes after the file header.
const MAGIC_IXIA_HARDWARE: u32 = 0x1c00_01ac;
const MAGIC_IXIA_SOFTWARE: u32 = 0x1c00_01ab;

/// What the file header says about all records.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    order: Order,
    /// Nanoseconds in one unit of a record's second time field.
    unit_ns: u64,
    /// Bytes of a record before its data.
    record_header: usize,
    /// Bytes between the file header and the first record.
    gap: usize,
    lengths: Lengths,
    pub(super) link: LinkType,
}

/// In which order a record's two lengths stand.
#[derive(Debug, Clone, Copy)]
enum Lengths {
    CapturedFirst,
    OriginalFirst,
    /// Version 2.3 was written both ways: the captured length is the lesser.
    Either,
}

/// What stands before a record's data.
struct RecordHeader {
    time_ns: u64,
    captured: u32,
    original: u32,
}

impl Layout {
    /// Whether `head` begins with a magic number of pcap.
    pub(super) fn is_magic(head: [u8; 4]) -> bool {
        Self::magic(&head).is_some()
    }

    fn magic(head: &[u8]) -> Option<(Order, u32)> {
        [Order::Little, Order::Big].into_iter().map(|order| (order, order.u32(head, 0))).find(|(_, magic)| {
            matches!(*magic, MAGIC_MICROS | MAGIC_NANOS | MAGIC_KUZNETZOV | MAGIC_IXIA_HARDWARE | MAGIC_IXIA_SOFTWARE)
        })
    }

    /// Reads the file header; `None` if it is not one, or of a version nobody has defined.
    fn parse(header: &[u8; FILE_HEADER]) -> Option<Layout> {
        let (order, magic) = Self::magic(header)?;
        let major = order.u16(header, 4);
        let minor = order.u16(header, 6);
        let lengths = match (major, minor) {
            (2, 4..) => Lengths::CapturedFirst,
            (2, 3) => Lengths::Either,
            // 543.0 is what DG/UX wrote.
            (2, 0..=2) | (543, 0) => Lengths::OriginalFirst,
            _ => return None,
        };
        let ixia = matches!(magic, MAGIC_IXIA_HARDWARE | MAGIC_IXIA_SOFTWARE);
        Some(Layout {
            order,
            unit_ns: if magic == MAGIC_NANOS { 1 } else { 1_000 },
            record_header: if magic == MAGIC_KUZNETZOV { 24 } else { 16 },
            gap: if ixia { 4 } else { 0 },
            lengths,
            // Draft, §4: the upper half says whether an FCS is kept; readers ignore the rest of it.
            link: LinkType((order.u32(header, 20) & 0xffff) as u16),
        })
    }

    /// Reads what stands before a record's data.
    ///
    /// # Panics
    /// When `bytes` is shorter than `record_header`.
    #[inline]
    fn record(&self, bytes: &[u8]) -> RecordHeader {
        let bytes = &bytes[..16];
        let seconds = u64::from(self.order.u32(bytes, 0));
        let fraction = u64::from(self.order.u32(bytes, 4));
        let first = self.order.u32(bytes, 8);
        let second = self.order.u32(bytes, 12);
        let (captured, original) = match self.lengths {
            Lengths::CapturedFirst => (first, second),
            Lengths::OriginalFirst => (second, first),
            Lengths::Either => (first.min(second), first.max(second)),
        };
        RecordHeader {
            // Cannot overflow: less than 2^32 s and 2^32 µs are less than 2^63 ns.
            time_ns: seconds * 1_000_000_000 + fraction * self.unit_ns,
            captured,
            original,
        }
    }
}

/// Reads the file header, which is at the beginning of the window.
pub(super) fn file_header<R: Read>(window: &mut Window<R>, place: Place) -> Result<Layout, Error> {
    window.need(FILE_HEADER, place)?;
    let mut header = [0; FILE_HEADER];
    header.copy_from_slice(&window.view()[..FILE_HEADER]);
    let layout = Layout::parse(&header)
        .ok_or(Error::Malformed { place, what: "a version of pcap other than 2 is announced" })?;
    let len = FILE_HEADER + layout.gap;
    window.need(len, place)?;
    window.pass(len);
    Ok(layout)
}

/// Reads the next record; `None` at the end of the file.
#[inline]
pub(super) fn record<R: Read>(window: &mut Window<R>, layout: &Layout, records: u64) -> Result<Option<Found>, Error> {
    let place = Place { offset: window.offset(), records };
    if !window.need_or_end(layout.record_header, place)? {
        return Ok(None);
    }
    let header = layout.record(window.view());
    let captured = header.captured as usize;
    if captured > MAX_RECORD {
        return Err(Error::TooLong { place, len: u64::from(header.captured), most: MAX_RECORD });
    }
    let len = layout.record_header + captured;
    window.need(len, place)?;
    let passed = window.pass(len);
    Ok(Some(Found {
        time_ns: header.time_ns,
        link: layout.link,
        original_len: header.original,
        bytes: passed.start + layout.record_header..passed.end,
    }))
}

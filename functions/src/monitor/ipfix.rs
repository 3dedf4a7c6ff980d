//! Flow records as IPFIX: messages of RFC 7011 in a file (RFC 5655), both ways in one record (RFC 5103).

use std::io::{self, Write};

use catena_packet::wire::FlowKey;
use std::net::IpAddr;

use super::export::Record;
use super::flow::End;

const VERSION: u16 = 10;
const HEADER: usize = 16;
const TEMPLATE_SET: u16 = 2;
/// Template of IPv4 records; the next number is that of IPv6.
const TEMPLATE: u16 = 256;
/// RFC 5103 §6.1: the enterprise number that marks the reverse of an information element.
const REVERSE: u32 = 29_305;
/// A message is sent before it is longer than this; its length must fit 16 bits.
const MOST: usize = 60_000;

/// Information elements by number and length in bytes (IANA, "IP Flow Information Export (IPFIX) Entities").
const ADDRESSES: [[(u16, u16); 2]; 2] = [[(8, 4), (12, 4)], [(27, 16), (28, 16)]];
const COMMON: [(u16, u16); 9] = [
    (7, 2),   // sourceTransportPort
    (11, 2),  // destinationTransportPort
    (4, 1),   // protocolIdentifier
    (136, 1), // flowEndReason
    (156, 8), // flowStartNanoseconds
    (157, 8), // flowEndNanoseconds
    (2, 8),   // packetDeltaCount
    (1, 8),   // octetDeltaCount
    (6, 2),   // tcpControlBits
];
/// The last three once more, of the way back.
const REVERSED: [(u16, u16); 3] = [(2, 8), (1, 8), (6, 2)];

/// Makes messages of records.
pub(super) struct Exporter {
    domain: u32,
    /// Data records sent before, modulo 2³².
    sequence: u32,
    /// Records that wait for their message, of IPv4 and of IPv6.
    sets: [Vec<u8>; 2],
    records: u32,
    /// The latest time in all records so far, in s since 1970.
    latest: u32,
    /// What that was when the first of those that wait came.
    opened: u32,
}

impl Exporter {
    pub(super) fn new(domain: u32) -> Self {
        Exporter { domain, sequence: 0, sets: [Vec::new(), Vec::new()], records: 0, latest: 0, opened: 0 }
    }

    /// Write the templates.
    pub(super) fn begin(&mut self, out: &mut impl Write) -> io::Result<()> {
        let mut set = Vec::new();
        for (template, addresses) in (TEMPLATE..).zip(ADDRESSES) {
            let count = addresses.len() + COMMON.len() + REVERSED.len();
            set.extend([template, count as u16].map(u16::to_be_bytes).as_flattened());
            for (element, length) in addresses.into_iter().chain(COMMON) {
                set.extend([element, length].map(u16::to_be_bytes).as_flattened());
            }
            for (element, length) in REVERSED {
                // RFC 7011 §3.2: the first bit says that an enterprise number follows.
                set.extend([element | 0x8000, length].map(u16::to_be_bytes).as_flattened());
                set.extend(REVERSE.to_be_bytes());
            }
        }
        self.message(out, &[(TEMPLATE_SET, &set)])
    }

    /// Take a record, and write a message when there are enough for one, or when those that wait have waited for a second
    /// of the packets' time: equal records in equal order make equal messages.
    pub(super) fn write(&mut self, out: &mut impl Write, record: &Record) -> io::Result<()> {
        let Record { key, flow, end } = record;
        let (orig, resp) = (flow.origin(), 1 - flow.origin());
        let key = if orig == 0 { key.flow_key() } else { key.flow_key().reverse() };
        let latest = self.latest.max((flow.last / 1_000_000_000) as u32);
        if latest > self.opened {
            self.flush(out)?;
        }
        self.latest = latest;
        if self.records == 0 {
            self.opened = latest;
        }
        let set = &mut self.sets[usize::from(matches!(key, FlowKey::V6(_)))];
        let (src, dst) = (key.src(), key.dst());
        for ip in [src.ip(), dst.ip()] {
            match ip {
                IpAddr::V4(ip) => set.extend(ip.octets()),
                IpAddr::V6(ip) => set.extend(ip.octets()),
            }
        }
        set.extend([src.port(), dst.port()].map(u16::to_be_bytes).as_flattened());
        set.extend([key.proto(), reason(*end)]);
        set.extend([ntp(flow.first), ntp(flow.last)].map(u64::to_be_bytes).as_flattened());
        for way in [orig, resp] {
            let counts = [flow.packets[way], flow.bytes[way]].map(u64::from);
            set.extend(counts.map(u64::to_be_bytes).as_flattened());
            set.extend(u16::from(flow.flags[way]).to_be_bytes());
        }
        self.records += 1;
        if self.sets[0].len() + self.sets[1].len() > MOST { self.flush(out) } else { Ok(()) }
    }

    /// Return how many records wait for their message.
    pub(super) fn waiting(&self) -> u32 {
        self.records
    }

    /// Write a message of the records that wait.
    pub(super) fn flush(&mut self, out: &mut impl Write) -> io::Result<()> {
        if self.records == 0 {
            return Ok(());
        }
        let sets = std::mem::take(&mut self.sets);
        self.message(out, &[(TEMPLATE, &sets[0]), (TEMPLATE + 1, &sets[1])])?;
        self.sequence = self.sequence.wrapping_add(self.records);
        self.records = 0;
        self.sets = sets;
        self.sets.iter_mut().for_each(Vec::clear);
        Ok(())
    }

    fn message(&self, out: &mut impl Write, sets: &[(u16, &Vec<u8>)]) -> io::Result<()> {
        let sets = || sets.iter().filter(|(_, content)| !content.is_empty());
        let length = HEADER + sets().map(|(_, content)| 4 + content.len()).sum::<usize>();
        out.write_all([VERSION, length as u16].map(u16::to_be_bytes).as_flattened())?;
        out.write_all([self.latest, self.sequence, self.domain].map(u32::to_be_bytes).as_flattened())?;
        for (set, content) in sets() {
            out.write_all([*set, 4 + content.len() as u16].map(u16::to_be_bytes).as_flattened())?;
            out.write_all(content)?;
        }
        Ok(())
    }
}

/// RFC 5102 §5.11.3, flowEndReason.
const fn reason(end: End) -> u8 {
    match end {
        End::Idle => 1,
        End::Active => 2,
        End::Closed => 3,
        End::Forced => 4,
        End::Evicted => 5,
    }
}

/// RFC 7011 §6.1.10: seconds since 1900 and a fraction in units of 2⁻³² s.
fn ntp(ns: u64) -> u64 {
    let seconds = (ns / 1_000_000_000).wrapping_add(2_208_988_800);
    let fraction = ((ns % 1_000_000_000) << 32) / 1_000_000_000;
    seconds << 32 | fraction
}

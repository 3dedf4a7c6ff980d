//! The parts of a frame that a function may write, and the checksums over them: read here once more, by the RFCs
//! and not by the code under test.
//!
//! What is not understood has no parts, and so may not change at all.

use std::ops::Range;

use super::sum;

/// A checksum in a frame.
#[derive(Debug)]
pub struct Sum {
    /// Whose it is.
    pub name: &'static str,
    /// Where it stands.
    pub place: usize,
    /// How far it is from right; `None` for UDP's zero, which says that there is none (RFC 768).
    pub error: Option<u16>,
}

/// What stands where in a frame, of the packet itself and of the one that an ICMP error quotes.
#[derive(Debug, Default)]
pub struct Parts {
    /// Source and destination: addresses, ports.
    pub ends: Vec<[Range<usize>; 2]>,
    /// Identifiers of ICMP queries, which take the place of ports.
    pub idents: Vec<Range<usize>>,
    /// Identifications of packets that are fragments, or may become some: a translator gives them anew (RFC 6864 §5.3.1).
    pub numbers: Vec<Range<usize>>,
    /// What a router writes: stations' addresses and the time to live.
    pub hops: Vec<Range<usize>>,
    /// The checksums.
    pub sums: Vec<Sum>,
}

/// Names of the checksums of a packet, and of a packet that is quoted.
const NAMES: [[&str; 4]; 2] =
    [["IPv4", "TCP", "UDP", "ICMP"], ["quoted IPv4", "quoted TCP", "quoted UDP", "quoted ICMP"]];

/// The upper layer of an IP packet.
struct Upper {
    proto: u8,
    /// Where it begins, and where what is there of it ends.
    range: Range<usize>,
    /// The sum of the pseudo header.
    pseudo: u64,
    is_v6: bool,
    is_quoted: bool,
}

fn word(frame: &[u8], at: usize) -> Option<u16> {
    frame.get(at..at + 2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
}

impl Parts {
    /// Read a frame.
    pub fn of(frame: &[u8]) -> Parts {
        let mut parts = Parts::default();
        let mut at = 12;
        while matches!(word(frame, at), Some(0x8100 | 0x88a8 | 0x9100)) {
            at += 4;
        }
        if matches!(word(frame, at), Some(0x0800 | 0x86dd)) {
            parts.hops.push(0..12);
            parts.ip(frame, at + 2..frame.len(), false);
        }
        parts
    }

    /// Return the frame with zeros where these functions may write: those of a router too if it is `routed`.
    pub fn rest(&self, frame: &[u8], routed: bool) -> Vec<u8> {
        let mut rest = frame.to_vec();
        let sums = self.sums.iter().map(|sum| sum.place..sum.place + 2);
        let hops = self.hops.iter().filter(|_| routed).cloned();
        let may_change =
            self.ends.iter().flatten().chain(&self.idents).chain(&self.numbers).cloned().chain(sums).chain(hops);
        may_change.for_each(|range| rest[range].fill(0));
        rest
    }

    /// Read the IP packet that begins `within`.
    fn ip(&mut self, frame: &[u8], within: Range<usize>, is_quoted: bool) -> Option<()> {
        match frame[..within.end].get(within.start)? >> 4 {
            4 => self.ipv4(frame, within, is_quoted),
            6 => self.ipv6(frame, within, is_quoted),
            _ => None,
        }
    }

    /// RFC 791 §3.1.
    fn ipv4(&mut self, frame: &[u8], within: Range<usize>, is_quoted: bool) -> Option<()> {
        let at = within.start;
        let header = usize::from(frame[at] & 15) * 4;
        if header < 20 || at + header > within.end {
            return None;
        }
        self.ends.push([at + 12..at + 16, at + 16..at + 20]);
        self.hops.push(at + 8..at + 9);
        let total = sum::words(&frame[at..at + header]);
        let error = Some(sum::error(total));
        self.sums.push(Sum { name: NAMES[usize::from(is_quoted)][0], place: at + 10, error });
        let payload = usize::from(word(frame, at + 2)?).checked_sub(header)?;
        let fragment = word(frame, at + 6)?;
        if fragment & 0x7fff != 0x4000 && !is_quoted {
            self.numbers.push(at + 4..at + 6);
        }
        if fragment & 0x1fff != 0 {
            return None;
        }
        let (proto, start) = (frame[at + 9], at + header);
        let pseudo = sum::words(&frame[at + 12..at + 20]) + u64::from(proto) + payload as u64;
        let range = start..within.end.min(start + payload);
        self.upper(frame, Upper { proto, range, pseudo, is_v6: false, is_quoted })
    }

    /// RFC 8200 §3 and §4.
    fn ipv6(&mut self, frame: &[u8], within: Range<usize>, is_quoted: bool) -> Option<()> {
        let (at, mut start) = (within.start, within.start + 40);
        if start > within.end {
            return None;
        }
        self.ends.push([at + 8..at + 24, at + 24..at + 40]);
        self.hops.push(at + 7..at + 8);
        let last = start + usize::from(word(frame, at + 4)?);
        let (mut proto, end) = (frame[at + 6], last.min(within.end));
        while matches!(proto, 0 | 43 | 44 | 60) {
            let extension = frame[..end].get(start..start + 8)?;
            let fragment = if proto == 44 { word(extension, 2)? } else { 0 };
            if fragment & 0xfff9 != 0 && !is_quoted {
                self.numbers.push(start + 4..start + 8);
            }
            if fragment & 0xfff8 != 0 {
                return None;
            }
            start += if proto == 44 { 8 } else { 8 + usize::from(extension[1]) * 8 };
            proto = extension[0];
        }
        let payload = last.checked_sub(start)?;
        let pseudo = sum::words(&frame[at + 8..at + 40]) + u64::from(proto) + payload as u64;
        self.upper(frame, Upper { proto, range: start..end, pseudo, is_v6: true, is_quoted })
    }

    fn upper(&mut self, frame: &[u8], upper: Upper) -> Option<()> {
        let Range { start, end } = upper.range;
        let shown = frame.get(start..end).filter(|shown| shown.len() >= 4)?;
        let names = NAMES[usize::from(upper.is_quoted)];
        let ports = [start..start + 2, start + 2..start + 4];
        match upper.proto {
            6 => {
                self.ends.push(ports);
                self.sum(frame, names[1], start + 16, start..end, upper.pseudo)
            }
            17 => {
                self.ends.push(ports);
                let length = word(shown, 4).map_or(shown.len(), usize::from);
                let end = if length < 8 { end } else { end.min(start + length) };
                self.sum(frame, names[2], start + 6, start..end, upper.pseudo)?;
                let last = self.sums.last_mut()?;
                last.error = last.error.filter(|_| word(frame, last.place) != Some(0));
                Some(())
            }
            1 if !upper.is_v6 => self.icmp(frame, upper, names[3]),
            58 if upper.is_v6 => self.icmp(frame, upper, names[3]),
            _ => None,
        }
    }

    /// RFC 792 and RFC 4443: queries have an identifier, errors quote what they are about.
    fn icmp(&mut self, frame: &[u8], upper: Upper, name: &'static str) -> Option<()> {
        let Range { start, end } = upper.range;
        let (is_query, is_error) = match (upper.is_v6, frame[start]) {
            (false, kind) => (matches!(kind, 0 | 8 | 13..=18), matches!(kind, 3 | 4 | 11 | 12)),
            (true, kind) => (matches!(kind, 128 | 129), (1..128).contains(&kind)),
        };
        if is_query && start + 6 <= end {
            self.idents.push(start + 4..start + 6);
        } else if !is_error || upper.is_quoted || start + 8 > end {
            return None;
        }
        self.sum(frame, name, start + 2, start..end, if upper.is_v6 { upper.pseudo } else { 0 })?;
        if is_error { self.ip(frame, start + 8..end, true) } else { Some(()) }
    }

    /// Add the checksum at `place` over `covered` and a pseudo header, if it is within.
    fn sum(
        &mut self,
        frame: &[u8],
        name: &'static str,
        place: usize,
        covered: Range<usize>,
        pseudo: u64,
    ) -> Option<()> {
        if place + 2 > covered.end {
            return None;
        }
        let error = Some(sum::error(pseudo + sum::words(&frame[covered])));
        self.sums.push(Sum { name, place, error });
        Some(())
    }
}

/// Return a frame with source and destination exchanged, as of an answer. No checksum minds that.
pub fn mirrored(frame: &[u8]) -> Vec<u8> {
    let mut mirrored = frame.to_vec();
    for [source, destination] in Parts::of(frame).ends {
        mirrored[source.clone()].copy_from_slice(&frame[destination.clone()]);
        mirrored[destination].copy_from_slice(&frame[source]);
    }
    mirrored
}

/// Write the right checksum of this name into a frame.
///
/// # Panics
/// When the frame has none of this name.
pub fn put_right(frame: &mut [u8], name: &str) {
    let of = |frame: &[u8]| Parts::of(frame).sums.into_iter().find(|sum| sum.name == name).expect("a checksum");
    let place = of(frame).place;
    // Not zero, which UDP takes for none; 0xffff adds nothing either.
    frame[place..place + 2].fill(0xff);
    let check = sum::right(u64::from(of(frame).error.expect("a checksum")));
    let check = if check == 0 && name.ends_with("UDP") { 0xffff } else { check };
    frame[place..place + 2].copy_from_slice(&check.to_be_bytes());
}
